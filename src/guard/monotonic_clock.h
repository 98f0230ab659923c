// SPDX-License-Identifier: Apache-2.0
// The time that only grows, as numbers. Async-signal-safe, which std::chrono does not promise.
#pragma once

#include <cstdint>
#include <ctime>

namespace leadline::guard {

inline int64_t monotonic_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

inline double monotonic_seconds() { return static_cast<double>(monotonic_ns()) * 1e-9; }

}  // namespace leadline::guard
