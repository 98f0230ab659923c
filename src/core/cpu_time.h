// SPDX-License-Identifier: Apache-2.0
// CPU time used so far, which does not depend on how busy the machine is.
#pragma once

#include <ctime>

namespace leadline {

inline double cpu_seconds(clockid_t clock) {
  timespec used{};
  clock_gettime(clock, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

/// Of all threads of this process.
inline double process_cpu_seconds() { return cpu_seconds(CLOCK_PROCESS_CPUTIME_ID); }
/// Of the calling thread.
inline double thread_cpu_seconds() { return cpu_seconds(CLOCK_THREAD_CPUTIME_ID); }

}  // namespace leadline
