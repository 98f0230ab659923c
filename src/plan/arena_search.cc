// SPDX-License-Identifier: Apache-2.0
// Depth-first search for a layout within a capacity, with undo by trail. See arena.h for the rules and arena_search.h
// for the meaning of the state.
#include "plan/arena_search.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

namespace leadline::plan::internal {

Search::Search(const Problem& problem)
    : p_(problem),
      is_placed_(problem.count()),
      twin_(problem.count(), -1),
      weight_(problem.sections(), 1),
      row_(problem.sections()),
      slot_start_(problem.count()),
      is_dirty_(problem.sections()) {
  const int n = p_.count();
  int slots = 0;
  std::map<std::tuple<int, int, int64_t>, int> seen;
  for (int j = 0; j < n; ++j) {
    slot_start_[j] = slots - p_.lo[j];
    slots += p_.hi[j] - p_.lo[j] + 1;
    const auto [at, fresh] = seen.try_emplace({p_.lo[j], p_.hi[j], p_.size[j]}, j);
    if (!fresh) twin_[j] = std::exchange(at->second, j);
  }
  slot_.resize(slots);
  for (int s = 0; s < p_.sections(); ++s) {
    row_[s] = static_cast<int>(members_.size());
    for (const int j : p_.members[s]) {
      slot_[slot_start_[j] + s] = static_cast<int>(members_.size()) - row_[s];
      members_.push_back(j);
    }
  }
}

void Search::reset(int64_t capacity) {
  capacity_ = capacity;
  steps_ = p_.count() + p_.sections();
  const int n = p_.count();
  floor_.assign(n, 0);
  ground_.assign(n, 0);
  offset_.assign(n, 0);
  hole_.assign(n, 0);
  is_placed_.assign(n, 0);
  rest_ = p_.load;
  lowest_.assign(p_.sections(), 0);
  crossing_.assign(p_.sections(), 0);
  unplaced_.resize(p_.sections());
  for (int s = 0; s < p_.sections(); ++s) unplaced_[s] = static_cast<int>(p_.members[s].size());
  for (int j = 0; j < n; ++j) {
    if (p_.lo[j] == p_.hi[j]) continue;
    ++crossing_[p_.lo[j]];
    --crossing_[p_.hi[j]];
  }
  for (int s = 1; s < p_.sections(); ++s) crossing_[s] += crossing_[s - 1];
  trail_.clear();
  placed_.clear();
  frames_.clear();
}

Answer Search::run(int64_t capacity, Focus focus, std::span<const int> rank, int64_t budget) {
  reset(capacity);
  if (capacity < p_.bound) return Answer::kImpossible;
  focus_ = focus;
  rank_ = rank;
  frames_.push_back({.lo = 0, .hi = p_.sections() - 1});
  while (!frames_.empty()) {
    Frame& frame = frames_.back();
    if (frame.chosen < 0) {
      if (steps_ >= budget) return Answer::kGaveUp;
      if (!descend(frame) && !fall_back()) return Answer::kImpossible;
      continue;
    }
    Frame part;
    if (next_part(frame, part)) {
      frames_.push_back(part);
    } else {
      frames_.pop_back();
    }
  }
  return Answer::kFound;
}

// Places the next buffer of the frame; a buffer that cannot be placed at its floor is postponed at once. False: the
// frame has no solution.
bool Search::descend(Frame& frame) {
  const int j = pick(frame.lo, frame.hi);
  if (floor_[j] > ground_[j] || waits_for_twin(j)) return lift(j) && check_sections();
  frame.trail = trail_.size();
  frame.placed = placed_.size();
  if (place(j) && check_sections()) {
    frame.chosen = j;
    frame.cursor = frame.lo;
    return true;
  }
  undo(frame);
  return postpone(j) && check_sections();
}

// The top frame has no solution: the frame that asked for it must postpone its buffer instead. False: none is left.
bool Search::fall_back() {
  for (frames_.pop_back(); !frames_.empty(); frames_.pop_back()) {
    Frame& frame = frames_.back();
    undo(frame);
    if (postpone(std::exchange(frame.chosen, -1)) && check_sections()) return true;
  }
  return false;
}

bool Search::next_part(Frame& frame, Frame& part) const {
  while (frame.cursor <= frame.hi) {
    const int lo = frame.cursor;
    int hi = lo;
    bool any = unplaced_[hi] > 0;
    while (hi < frame.hi && crossing_[hi] > 0) any |= unplaced_[++hi] > 0;
    frame.cursor = hi + 1;
    if (any) {
      part = {.lo = lo, .hi = hi};
      return true;
    }
  }
  return false;
}

int Search::pick_section(int lo, int hi) {
  steps_ += hi - lo + 1;
  int best = -1;
  double best_score = 0;
  for (int s = lo; s <= hi; ++s) {
    if (unplaced_[s] == 0) continue;
    const int64_t slack = capacity_ - lowest_[s] - rest_[s];
    if (focus_ == Focus::kWeightedTight) {
      const double score =
          static_cast<double>(weight_[s]) / (static_cast<double>(capacity_) + 100.0 * static_cast<double>(slack));
      if (best >= 0 && score <= best_score) continue;
      best_score = score;
    } else if (best >= 0 &&
               std::pair(lowest_[s], slack) >= std::pair(lowest_[best], capacity_ - lowest_[best] - rest_[best])) {
      continue;
    }
    best = s;
  }
  return best;
}

// A buffer that nothing unplaced can slide beneath. One that has the lowest floor of all is such a buffer.
int Search::pick(int lo, int hi) {
  const int section = pick_section(lo, hi);
  int best = -1;
  const bool everywhere = focus_ == Focus::kLowest;
  for (int s = everywhere ? lo : section; s <= (everywhere ? hi : section); ++s) {
    if (unplaced_[s] == 0 || lowest_[s] > lowest_[section]) continue;
    steps_ += unplaced_[s];
    for (int m = row_[s]; m < row_[s] + unplaced_[s]; ++m) {
      if (best < 0 || before(members_[m], best)) best = members_[m];
    }
  }
  for (int beneath = best; beneath >= 0; beneath = lowest_beneath(best)) best = beneath;
  return best;
}

int Search::lowest_beneath(int buffer) {
  if (waits_for_twin(buffer)) {
    int first = twin_[buffer];
    while (waits_for_twin(first)) first = twin_[first];
    if (floor_[first] <= floor_[buffer]) return first;
  }
  if (focus_ != Focus::kWeightedTight) return -1;
  steps_ += static_cast<int64_t>(p_.overlaps[buffer].size());
  int lowest = -1;
  for (const int k : p_.overlaps[buffer]) {
    if (!is_placed_[k] && top(k) <= floor_[buffer] && (lowest < 0 || before(k, lowest))) lowest = k;
  }
  return lowest;
}

bool Search::place(int buffer) {
  const int64_t begin = floor_[buffer], end = top(buffer);
  set(is_placed_[buffer], 1);
  offset_[buffer] = begin;
  placed_.push_back(buffer);
  take_from_sections(buffer);
  steps_ += static_cast<int64_t>(p_.overlaps[buffer].size());
  for (const int k : p_.overlaps[buffer]) {
    if (is_placed_[k]) continue;
    if (begin < hole_[k]) set(hole_[k], 0);
    if (end <= ground_[k]) continue;
    set(ground_[k], end);
    if (!raise(k, end)) return false;
  }
  return true;
}

void Search::take_from_sections(int buffer) {
  steps_ += p_.hi[buffer] - p_.lo[buffer] + 1;
  for (int s = p_.lo[buffer]; s <= p_.hi[buffer]; ++s) {
    rest_[s] -= p_.size[buffer];
    if (s < p_.hi[buffer]) --crossing_[s];
    // Swap with the last unplaced member; undo needs only the count, since it goes backwards.
    const int last = --unplaced_[s];
    int& slot = slot_[slot_start_[buffer] + s];
    const int moved = members_[row_[s] + last];
    std::swap(members_[row_[s] + slot], members_[row_[s] + last]);
    slot_[slot_start_[moved] + s] = slot;
    slot = last;
    if (!is_dirty_[s]) {
      is_dirty_[s] = 1;
      dirty_.push_back(s);
    }
  }
}

// The buffer does not lie at its floor, though it could: it rests on another one, and another one enters its place.
bool Search::postpone(int buffer) {
  set(hole_[buffer], top(buffer));
  return lift(buffer);
}

// The buffer rests on an unplaced one. Nothing unplaced ends at or below its floor (see pick), so the floor does rise.
bool Search::lift(int buffer) {
  steps_ += static_cast<int64_t>(p_.overlaps[buffer].size());
  int64_t support = std::numeric_limits<int64_t>::max();
  bool filled = hole_[buffer] == 0;
  for (const int k : p_.overlaps[buffer]) {
    if (is_placed_[k]) continue;
    support = std::min(support, top(k));
    filled |= floor_[k] < hole_[buffer];
  }
  if (waits_for_twin(buffer)) support = std::max(support, top(twin_[buffer]));
  return filled && support <= capacity_ && raise(buffer, support);
}

bool Search::raise(int buffer, int64_t floor) {
  const int64_t old = floor_[buffer];
  if (floor <= old) return true;
  if (floor > capacity_ - p_.size[buffer]) return false;
  set(floor_[buffer], floor);
  steps_ += (p_.hi[buffer] - p_.lo[buffer]) / 4 + 1;  // a run over neighbours in memory
  for (int s = p_.lo[buffer]; s <= p_.hi[buffer]; ++s) {
    if (lowest_[s] == old && !is_dirty_[s]) {
      is_dirty_[s] = 1;
      dirty_.push_back(s);
    }
  }
  return true;
}

bool Search::check_sections() {
  bool fits = true;
  for (const int s : dirty_) {
    is_dirty_[s] = 0;
    if (!fits || unplaced_[s] == 0) continue;
    steps_ += unplaced_[s];
    int64_t lowest = std::numeric_limits<int64_t>::max();
    for (int m = row_[s]; m < row_[s] + unplaced_[s]; ++m) lowest = std::min(lowest, floor_[members_[m]]);
    if (lowest != lowest_[s]) set(lowest_[s], lowest);
    if (lowest > capacity_ - rest_[s]) {
      ++weight_[s];
      fits = false;
    }
  }
  dirty_.clear();
  return fits;
}

void Search::undo(const Frame& frame) {
  for (; trail_.size() > frame.trail; trail_.pop_back()) *trail_.back().where = trail_.back().old;
  for (; placed_.size() > frame.placed; placed_.pop_back()) {
    const int j = placed_.back();
    for (int s = p_.lo[j]; s <= p_.hi[j]; ++s) {
      rest_[s] += p_.size[j];
      ++unplaced_[s];
      if (s < p_.hi[j]) ++crossing_[s];
    }
  }
  for (const int s : dirty_) is_dirty_[s] = 0;
  dirty_.clear();
}

void Search::fade_weights() {
  for (int64_t& weight : weight_) weight = 1 + (weight - 1) / 2;
}

}  // namespace leadline::plan::internal
