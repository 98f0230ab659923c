// SPDX-License-Identifier: Apache-2.0
// Limits of a guarded process, and how it ended: plain data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "leadline/budget.h"

namespace leadline::guard {

/// What a guarded process tree may take. 0: no such limit.
struct GuardLimits {
  int64_t memory_bytes = 0;              ///< resident memory of the whole tree
  ByteUnits units = ByteUnits::kBinary;  ///< of sizes in the report's texts
  int64_t processes = 1024;              ///< processes in the tree at one time
  double timeout_seconds = 0.0;
};

/// Why a guarded process ended.
enum class GuardCause {
  kExit,       ///< it ended by itself
  kSignal,     ///< a signal the guard did not send
  kMemory,     ///< the tree took more memory than its limit, or the machine's OOM killer chose it
  kProcesses,  ///< the tree had more processes than its limit
  kTimeout,    ///< it took longer than its limit
  kInterrupt,  ///< the caller asked for it
};

/// "exit", "signal", "memory", "processes", "timeout", "interrupt".
const char* guard_cause_name(GuardCause cause) noexcept;

struct GuardReport {
  bool ended = false;  ///< false: the process is there; the rest is what is known so far
  GuardCause cause = GuardCause::kExit;
  int exit_code = -1;  ///< of an exit; -1 otherwise
  int signal = 0;      ///< that ended the process; 0: none
  /// The most memory that the tree had, with pages of files that it mapped. Of one process it is the kernel's own count
  /// (VmHWM, ru_maxrss), to the page; of several at once it is the highest sample.
  int64_t peak_bytes = 0;
  double seconds = 0.0;
  GuardLimits limits;
  bool cgroup = false;                  ///< limits are a control group's; else resource limits and samples
  std::vector<std::string> last_lines;  ///< of standard output and standard error, in order of arrival
  std::string summary;                  ///< one sentence: what happened
  std::string advice;                   ///< what to do about it; empty after a successful exit
};

}  // namespace leadline::guard
