// SPDX-License-Identifier: Apache-2.0
// Which thread makes the process grow: the one whose page faults rise. Sees native code as well as Python's.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace leadline::guard {

struct ThreadFaults {
  pid_t thread = 0;
  int64_t faults = 0;
};

class ThreadFaultProbe {
 public:
  explicit ThreadFaultProbe(std::string proc) : folder_(std::move(proc) + "/self/task") {}

  /// Page faults of each thread since the call before, the most first; threads without any, and the caller, are left
  /// out. The first call finds none. Reads a file for each thread.
  std::vector<ThreadFaults> since_last();

 private:
  std::string folder_;
  std::vector<ThreadFaults> last_;
};

}  // namespace leadline::guard
