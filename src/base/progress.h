// SPDX-License-Identifier: Apache-2.0
// Progress as the engine reports it and as terminals show it.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

#include "leadline/progress.h"

namespace leadline {

/// Counts what is done of a piece of work and tells `progress`, which may be empty. Throws Error(kCancelled) when that
/// says no.
class ProgressCounter {
 public:
  ProgressCounter(const Progress& progress, int64_t total) : progress_(progress), total_(total) {}
  /// Before the first add() too, so that work can be stopped before it starts.
  void add(int64_t done);

 private:
  const Progress& progress_;
  int64_t total_;
  int64_t done_ = 0;
};

/// A bar on standard error that appears when the work takes more than a second, and goes when this does. Silent where
/// standard error is no terminal.
class ProgressBar {
 public:
  explicit ProgressBar(std::string title);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void update(int64_t done, int64_t total);
  /// "Converting [#####     ]  50%  0:03": a line of at most `columns` letters.
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
