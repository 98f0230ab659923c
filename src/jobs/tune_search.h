// SPDX-License-Identifier: Apache-2.0
// The search of TuneJob, over names and numbers alone.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "leadline/tune.h"

namespace leadline::jobs {

using Names = std::vector<std::string>;

class TuneSearch {
 public:
  /// Measures the model in which these are kept.
  using Measure = std::function<TuneTrial(const Names& kept)>;
  /// For each tensor the results of the nodes that read it.
  using Readers = std::map<std::string, Names>;

  /// `out_of_time`: no further search.
  TuneSearch(Measure measure, double target, int max_trials, std::function<bool()> out_of_time = {})
      : measure_(std::move(measure)),
        target_(target),
        max_trials_(static_cast<size_t>(max_trials)),
        out_of_time_(std::move(out_of_time)) {}

  /// For what is searched from here on.
  void raise_target(double target) { target_ = target; }

  /// A part of the network, and its own parts.
  struct Region {
    Names names;
    std::vector<Names> parts;
  };
  /// The nodes to keep, from regions that cost most first: as many as are enough, without the parts that are not
  /// needed. Nothing: all of them are not enough.
  Names find_in(const std::vector<Region>& regions);
  /// The nodes to keep; `order` has those that can be kept, the most suspected first.
  Names find(const Names& order, const Readers& readers);
  /// Each set is measured once.
  const TuneTrial& measure(const Names& kept);
  bool enough(const Names& kept) { return measure(kept).value >= target_; }
  const std::vector<TuneTrial>& trials() const { return trials_; }

  bool exhausted() const { return trials_.size() >= max_trials_ || (out_of_time_ && out_of_time_()); }
  /// Adds a trial that was measured elsewhere.
  void add(const TuneTrial& trial) { trials_.push_back(trial); }

 private:
  /// The first of `order`, with as many steps of its readers as are enough; nothing when none are.
  Names grow(const Names& order, const Readers& readers);
  /// The shortest beginning of `order` that is enough; all of it when nothing is.
  Names bisect(const Names& order);
  /// Without these, where that is enough.
  void drop(Names& kept, const Names& names);
  /// Without the nodes that are not needed, the least suspected first.
  Names give_back(Names kept);

  Measure measure_;
  double target_;
  size_t max_trials_;
  std::function<bool()> out_of_time_;
  std::map<std::set<std::string>, TuneTrial> known_;
  std::vector<TuneTrial> trials_;
};

/// Trials than which no other is better in one of value, size and time and as good in the others; the smallest first.
std::vector<TuneTrial> front_of(const std::vector<TuneTrial>& trials);

}  // namespace leadline::jobs
