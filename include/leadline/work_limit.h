// SPDX-License-Identifier: Apache-2.0
// Limits of time, and the way to stop whatever Leadline does.
#pragma once

#include <chrono>
#include <limits>

#include "leadline/progress.h"

namespace leadline {

inline constexpr double kNoTimeout = std::numeric_limits<double>::infinity();

/// While it lives, whatever Leadline does on this thread (load, plan, run, convert, calibrate, quantize, debug) can be
/// ended: `check` is asked again and again, and `timeout` seconds after this was made the work throws Error(kTimeout),
/// which names the node it was at. What was being made is abandoned; interpreters can be used again. Limits nest: all
/// of them hold. To be destroyed in the order that scopes have.
///
///   const WorkLimit limit({}, 2.5);
///   Model model = Model::load(path);
///   Interpreter(model).invoke();
class WorkLimit {
 public:
  /// Throws Error(kInvalidArgument) when `timeout` is negative or no number.
  explicit WorkLimit(RunCheck check, double timeout = kNoTimeout);
  /// The same for `timeout` seconds that began earlier and end at `deadline`.
  WorkLimit(RunCheck check, std::chrono::steady_clock::time_point deadline, double timeout);
  ~WorkLimit();
  WorkLimit(const WorkLimit&) = delete;
  WorkLimit& operator=(const WorkLimit&) = delete;

  /// Throws what the checks throw, of this and of those around it.
  void ask() const;

 private:
  void give_up() const;

  RunCheck check_;
  double timeout_;
  std::chrono::steady_clock::time_point deadline_;
  const WorkLimit* outer_;
};

}  // namespace leadline
