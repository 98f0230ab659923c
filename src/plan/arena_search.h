// SPDX-License-Identifier: Apache-2.0
// Depth-first search for a layout within a capacity. Internal to arena placement; the rules are described in arena.h.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "plan/arena_problem.h"

namespace leadline::plan::internal {

/// Which section is looked at next.
enum class Focus {
  kLowest,           // the lowest floor anywhere
  kLowestThenTight,  // the section with the lowest floor; among equals, the one with the least slack
  kWeightedTight,    // the section with the most past failures for its slack
};

enum class Answer { kFound, kImpossible, kGaveUp };

/// The state of one problem, reused from attempt to attempt.
class Search {
 public:
  explicit Search(const Problem& problem);

  /// Looks for a layout of at most `capacity` bytes; `rank` orders the buffers, smallest first. `budget` bounds the
  /// steps of this attempt. kImpossible is a proof.
  Answer run(int64_t capacity, Focus focus, std::span<const int> rank, int64_t budget);

  int64_t steps() const { return steps_; }                         // of the last attempt
  const std::vector<int64_t>& offsets() const { return offset_; }  // after kFound
  /// Halves what the sections have learned from failures, so that later ones count more.
  void fade_weights();

 private:
  // One open question: buffer `chosen` was placed, and the parts of [lo, hi] from `cursor` on are still to be solved.
  struct Frame {
    int lo, hi;
    int cursor = 0;
    int chosen = -1;
    size_t trail = 0;
    size_t placed = 0;
  };
  struct Undo {
    int64_t* where;
    int64_t old;
  };

  void reset(int64_t capacity);
  bool descend(Frame& frame);
  bool next_part(Frame& frame, Frame& part) const;
  bool fall_back();
  int pick(int lo, int hi);
  int pick_section(int lo, int hi);
  int lowest_beneath(int buffer);
  bool place(int buffer);
  bool postpone(int buffer);
  bool lift(int buffer);
  bool raise(int buffer, int64_t floor);
  bool check_sections();
  void take_from_sections(int buffer);
  void undo(const Frame& frame);
  void set(int64_t& value, int64_t now) {
    trail_.push_back({&value, value});
    value = now;
  }
  int64_t top(int j) const { return floor_[j] + p_.size[j]; }
  bool waits_for_twin(int j) const { return twin_[j] >= 0 && !is_placed_[twin_[j]]; }
  bool before(int j, int k) const { return std::pair(floor_[j], rank_[j]) < std::pair(floor_[k], rank_[k]); }

  const Problem& p_;
  int64_t capacity_ = 0;
  int64_t steps_ = 0;
  Focus focus_ = Focus::kLowest;
  std::span<const int> rank_;

  // Per buffer. All offsets, also of unplaced buffers, are at least the floor. A floor above the ground (what is placed
  // beneath, over the whole lifetime) means: rests on a buffer that is still unplaced.
  std::vector<int64_t> floor_, ground_, offset_;
  std::vector<int64_t> hole_;  // end of the gap that a postponed buffer left and that another one must enter; 0: none
  std::vector<int64_t> is_placed_;
  std::vector<int> twin_;  // an identical buffer that must lie beneath, or -1

  // Per section.
  std::vector<int64_t> rest_;    // bytes still to be placed
  std::vector<int64_t> lowest_;  // lowest floor among the unplaced
  std::vector<int> unplaced_;    // how many of its members are unplaced; they come first in its row of members_
  std::vector<int> crossing_;    // unplaced buffers alive in this section and the next one
  std::vector<int64_t> weight_;  // failures seen
  std::vector<int> row_;         // start of the section's row in members_
  std::vector<int> members_;
  std::vector<int> slot_start_, slot_;  // per buffer and section: its place in that row

  std::vector<Undo> trail_;
  std::vector<int> placed_;
  std::vector<Frame> frames_;
  std::vector<int> dirty_;
  std::vector<char> is_dirty_;
};

}  // namespace leadline::plan::internal
