// SPDX-License-Identifier: Apache-2.0
// How far a job is, and the way to stop it.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace leadline {

/// Where a job is in one of the phases of its JobPlan.
struct JobProgress {
  std::string_view phase;  ///< as the plan calls it
  std::string_view unit;   ///< what is counted: "samples", "bytes" or "trials"
  int64_t done = 0;
  int64_t total = -1;  ///< -1: not known
};

/// Called from time to time on the thread that does the work; must not call the job. False stops the job, which then
/// throws Error(kCancelled); so does an exception, which is passed on.
using JobObserver = std::function<bool(const JobProgress&)>;

}  // namespace leadline
