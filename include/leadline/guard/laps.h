// SPDX-License-Identifier: Apache-2.0
// Finds out whether a loop leaks: memory after each round, and a fit that separates growth from warm-up, noise and
// single steps.
//   leadline::guard::Laps laps;
//   for (int i = 0; i < 50; ++i) { work(); laps.lap(); }
//   std::cout << laps.report().text << '\n';  // "grows 3.2 MiB a round ..." or "flat ..."
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace leadline::guard {

enum class GrowthVerdict { kTooFewRounds, kFlat, kGrows };

/// "too few rounds", "flat", "grows".
const char* growth_verdict_name(GrowthVerdict verdict) noexcept;

/// How one quantity went from round to round.
struct Growth {
  GrowthVerdict verdict = GrowthVerdict::kTooFewRounds;
  double per_round = 0.0;  ///< the median slope (Theil-Sen) after the warm-up
  double low = 0.0;        ///< its 95 % interval, for rounds that vary independently
  double high = 0.0;
};

/// What there was after a round. -1: unknown.
struct LapSample {
  int64_t round = 0;         ///< from 1 on
  int64_t memory = -1;       ///< anonymous, shared and swapped pages of this process; pages of files are not its own
  int64_t allocated = -1;    ///< bytes in use in the C library's heap; what it keeps for later is not in use
  int64_t accounted = -1;    ///< what is charged to budgets: Leadline's own
  int64_t objects = -1;      ///< what the caller counts, such as blocks of Python's allocator
  int64_t descriptors = -1;  ///< open files, sockets, pipes
  int64_t processes = -1;    ///< children, those that ended and were not waited for too
};

struct LapReport {
  GrowthVerdict verdict = GrowthVerdict::kTooFewRounds;  ///< kGrows when any of the six grows
  /// Growth of the process. Where its pages do not show it yet (allocators take them in large pieces): of what grows
  /// inside them.
  double bytes_per_round = 0.0;
  double low = 0.0;
  double high = 0.0;
  int64_t rounds = 0;
  Growth memory;
  Growth allocated;
  Growth accounted;
  Growth objects;
  Growth descriptors;
  Growth processes;
  std::string text;  ///< as text, without a final newline
};

/// Takes a sample after each round. Its own memory does not grow: after kMostSamples it keeps every second sample, and
/// so on; after the first kEveryRound rounds it takes 5 % of the loop's time, but never waits for more than a sixteenth
/// of the rounds: the late ones decide. Not thread-safe.
class Laps {
 public:
  static constexpr int64_t kEveryRound = 24;
  static constexpr size_t kMostSamples = 256;

  Laps();

  /// Whether the next lap() takes a sample. Time from here on is the sample's: callers that have something to do before
  /// each sample ask first.
  bool samples_next();
  /// Ends a round. `objects`: see LapSample.
  void lap(int64_t objects = -1);
  /// After the last round, where it was not sampled.
  void sample_last(int64_t objects = -1);

  int64_t rounds() const { return round_; }
  const std::vector<LapSample>& samples() const { return samples_; }
  LapReport report() const;

 private:
  using Clock = std::chrono::steady_clock;

  void take_sample(int64_t objects);

  int64_t round_ = 0;
  int64_t stride_ = 1;
  std::vector<LapSample> samples_;
  Clock::time_point start_ = Clock::now();
  Clock::duration spent_{};
  Clock::time_point asked_{};  // when samples_next() said yes
  bool next_ = false;
};

}  // namespace leadline::guard
