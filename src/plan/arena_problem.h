// SPDX-License-Identifier: Apache-2.0
// One time-connected set of buffers, with what every placement method asks of it. Internal to arena placement.
// Invariant: sizes are positive and rounded; buffers i and j overlap in time iff their section ranges intersect.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/arena.h"

namespace leadline::plan::internal {

/// Rows of integers of different lengths in one block.
class Rows {
 public:
  std::span<const int> operator[](int row) const {
    return {items_.data() + begin_[row], items_.data() + begin_[row + 1]};
  }
  int64_t items() const { return static_cast<int64_t>(items_.size()); }
  void push(int item) { items_.push_back(item); }
  void end_row() { begin_.push_back(items_.size()); }

 private:
  std::vector<size_t> begin_{0};
  std::vector<int> items_;
};

/// Buffers are numbered by the step at which they start. A section is a step at which the set of live buffers is
/// maximal; other steps cannot constrain a layout.
struct Problem {
  std::vector<int> id;            // index in the caller's list
  std::vector<int64_t> size;      // rounded bytes
  std::vector<int64_t> lifetime;  // in steps of the caller
  std::vector<int> lo, hi;        // range of sections, inclusive
  std::vector<int64_t> load;      // per section: sum of live sizes
  std::vector<int64_t> pressure;  // per buffer: largest load it is part of
  bool large = false;             // too many pairs to list: pressure, members and overlaps are empty
  Rows members;                   // per section: live buffers
  Rows overlaps;                  // per buffer: buffers alive with it
  int64_t bound = 0;              // largest load
  int64_t quantum = 1;            // greatest common divisor of the sizes: the optimum is a multiple of it

  int count() const { return static_cast<int>(size.size()); }
  int sections() const { return static_cast<int>(load.size()); }
};

/// Splits the non-empty intervals into components that share no step. `rounded` holds their rounded sizes.
std::vector<Problem> make_problems(std::span<const Interval> intervals, std::span<const int64_t> rounded);

/// A layout of one component.
struct Placement {
  std::vector<int64_t> offsets;
  int64_t bytes = 0;
};

/// Effort shared by all methods.
struct Effort {
  int64_t limit = 0;
  int64_t used = 0;
  bool spent() const { return used >= limit; }
};

/// The layout of last resort: buffers in order of size, each on top of what lies below it. O(n log n).
Placement stack_by_size(const Problem& problem);

/// Greedy orders until `goal` is met or a quarter of the effort is spent; at least one order runs.
Placement place_greedily(const Problem& problem, int64_t goal, Effort& effort);

/// Improves `best` by search until it needs at most `goal` bytes, is proven optimal, or the effort is spent.
void improve_by_search(const Problem& problem, int64_t goal, Effort& effort, Placement& best);

}  // namespace leadline::plan::internal
