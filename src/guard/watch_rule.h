// SPDX-License-Identifier: Apache-2.0
// When the watchdog speaks, and how soon it looks again: decided from samples alone.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "leadline/guard/watch_report.h"

namespace leadline::guard {

/// An alarm needs two things: memory near a limit, and a process that made it grow, since the cell began and lately.
/// Memory that others use, or that was used before the cell began, is not a reason to stop it: that is a warning. One
/// alarm per episode: the next one comes after memory has fallen, for another cell, or when what was told to stop grows
/// on.
class WatchRule {
 public:
  /// `fraction` of capacity, `resident_limit` in bytes; 0: no such limit.
  WatchRule(double fraction, int64_t resident_limit) : fraction_(fraction), resident_limit_(resident_limit) {}

  /// A cell begins with memory as it is now.
  void begin_cell(const MemorySample& now);
  /// Takes a sample; an alarm that is due, without its cell.
  std::optional<WatchAlarm> take(const MemorySample& sample);
  /// An alarm was given, or has reached whom it was for.
  void told(const MemorySample& now);
  /// An alarm did not reach anybody who could stop: it is due again in a moment.
  void take_back();

  /// Seconds until the next sample is needed.
  double interval(bool busy) const;
  /// Bytes that a cell may still take before it meets a limit or the end of memory. Negative: unknown.
  int64_t room() const;
  /// An alarm was given and memory has not fallen since.
  bool in_episode() const { return told_; }
  /// Memory is so near a limit that it matters who grows.
  bool near_limit() const;
  /// Memory is near a limit and ends within a second or so: what looking costs does not matter any more.
  bool races() const;
  /// Of the container or machine, whatever limit the process has itself.
  bool near_end_of_memory() const;
  double bytes_per_second() const;
  /// The same, or since the sample before where that is more: what just began to grow is not averaged away.
  double fastest_lately() const;

 private:
  struct Point {
    double seconds;
    int64_t resident;
    int64_t workers;
    int64_t neighbours;
    int64_t used;
  };
  struct Shares {
    int64_t own;      // of this process and its workers
    int64_t overall;  // of all
  };

  int64_t limit_of(int64_t capacity) const;
  int64_t needed_growth(int64_t limit) const;
  /// Files in memory, which no process has mapped, are ours unless neighbours explain the growth.
  static Shares shares(int64_t resident, int64_t workers, int64_t neighbours, int64_t used, bool container);
  Shares since_begin() const;
  Shares lately() const;
  bool is_ours(const WatchAlarm& alarm) const;

  const double fraction_;
  const int64_t resident_limit_;
  MemorySample last_;
  MemorySample begin_;
  double rate_now_ = 0.0;
  std::deque<Point> history_;  // the last seconds
  bool told_ = false;
  bool warned_ = false;
  double told_at_ = 0.0;
  int64_t told_resident_ = 0;
};

}  // namespace leadline::guard
