// SPDX-License-Identifier: Apache-2.0
// When the watchdog speaks, and how soon it looks again: decided from samples alone.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "leadline/guard/watch_report.h"

namespace leadline::guard {

/// An alarm needs two things: memory near a limit, and a cell that made it grow. Memory that others use, or that was
/// used before the cell began, is not a reason to stop it. One alarm per episode: the next one comes after memory has
/// fallen, for another cell, or when what was told to stop grows on.
class WatchRule {
 public:
  /// `fraction` of capacity, `resident_limit` in bytes; 0: no such limit.
  WatchRule(double fraction, int64_t resident_limit) : fraction_(fraction), resident_limit_(resident_limit) {}

  /// A cell begins with memory as it is now.
  void begin_cell(const MemorySample& now);
  /// Takes a sample; an alarm that is due, without its cell.
  std::optional<WatchAlarm> take(const MemorySample& sample, bool busy);
  /// An alarm was given, or has reached whom it was for.
  void told(const MemorySample& now);

  /// Seconds until the next sample is needed.
  double interval(bool busy) const;
  /// Bytes that a cell may still take before it meets a limit or the end of memory. Negative: unknown.
  int64_t room() const;
  /// An alarm was given and memory has not fallen since.
  bool in_episode() const { return told_; }
  double bytes_per_second() const;

 private:
  struct Point {
    double seconds;
    int64_t resident;
  };

  int64_t needed_growth(int64_t limit) const;

  const double fraction_;
  const int64_t resident_limit_;
  MemorySample last_;
  MemorySample begin_;
  std::deque<Point> history_;  // the last seconds
  bool told_ = false;
  double told_at_ = 0.0;
  int64_t told_resident_ = 0;
};

}  // namespace leadline::guard
