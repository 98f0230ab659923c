// SPDX-License-Identifier: Apache-2.0
// Progress as terminals show it, and Ctrl-C while it runs.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

namespace leadline {

/// A bar on standard error that appears when the work takes more than a second, and is removed by the destructor.
/// Silent where standard error is not a terminal.
class ProgressBar {
 public:
  explicit ProgressBar(std::string title);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void update(int64_t done, int64_t total);
  /// "Converting [#####     ]  50%  0:03": a line of at most `columns` characters.
  static std::string line(const std::string& title, int64_t done, int64_t total, int columns, int64_t seconds);

 private:
  using Clock = std::chrono::steady_clock;
  std::string title_;
  Clock::time_point start_;
  Clock::time_point drawn_;
  bool terminal_;
  bool visible_ = false;
};

/// While it lives, Ctrl-C (and a polite request to end) sets stopped() instead of ending the process; the second one
/// ends it as usual. One at a time.
class StopOnSignal {
 public:
  StopOnSignal();
  ~StopOnSignal();
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;

  static bool stopped();
};

}  // namespace leadline
