// SPDX-License-Identifier: Apache-2.0
// Greedy arena placement: fixed orders of buffers, each put into the lowest or the tightest gap. See arena.h.
#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <utility>

#include "core/cancel.h"
#include "plan/arena_problem.h"

namespace leadline::plan::internal {
namespace {

constexpr int64_t kUnplaced = -1;

enum class Fit { kLowest, kTightest };

// The larger key comes first; ties keep the order of `otherwise`, which is by size.
template <typename Key>
std::vector<int> sorted_by(std::vector<int> otherwise, Key key) {
  std::stable_sort(otherwise.begin(), otherwise.end(), [&](int a, int b) { return key(a) > key(b); });
  return otherwise;
}

// Sections from the fullest to the emptiest; in each, the buffers not listed yet, by size.
std::vector<int> breadth_order(const Problem& p, const std::vector<int>& by_size) {
  std::vector<int> sections(p.sections());
  std::iota(sections.begin(), sections.end(), 0);
  std::stable_sort(sections.begin(), sections.end(), [&](int a, int b) { return p.load[a] > p.load[b]; });
  std::vector<int> rank_of_section(p.sections());
  for (int rank = 0; rank < p.sections(); ++rank) rank_of_section[sections[rank]] = rank;
  std::vector<int> first_rank(p.count(), std::numeric_limits<int>::max());
  for (int s = 0; s < p.sections(); ++s) {
    for (const int j : p.members[s]) first_rank[j] = std::min(first_rank[j], rank_of_section[s]);
  }
  return sorted_by(by_size, [&](int j) { return -first_rank[j]; });
}

constexpr int kOrders = 6;

std::vector<int> make_order(const Problem& p, const std::vector<int>& by_size, int which) {
  // Products of two int64_t can overflow; the order needs no exactness beyond a double's.
  switch (which) {
    case 0:
      return by_size;
    case 1:
      return sorted_by(by_size, [&](int j) { return static_cast<double>(p.size[j]) * p.lifetime[j]; });
    case 2:
      return breadth_order(p, by_size);
    case 3:
      return sorted_by(by_size, [&](int j) { return p.lifetime[j]; });
    case 4:
      return sorted_by(by_size, [&](int j) { return p.pressure[j]; });
    default:
      return sorted_by(by_size, [&](int j) { return -p.lo[j]; });
  }
}

class Greedy {
 public:
  Greedy(const Problem& problem, Effort& effort) : p_(problem), effort_(effort) {}

  Placement run(const std::vector<int>& order, Fit fit) {
    Placement result{.offsets = std::vector<int64_t>(p_.count(), kUnplaced)};
    PacedCheck check;
    for (const int j : order) {
      check.count(static_cast<int64_t>(4 * p_.overlaps[j].size()));
      below_.clear();
      for (const int k : p_.overlaps[j]) {
        if (result.offsets[k] != kUnplaced) below_.emplace_back(result.offsets[k], result.offsets[k] + p_.size[k]);
      }
      // Sorting costs a factor of log(n) over the visit.
      effort_.used += static_cast<int64_t>(p_.overlaps[j].size() + below_.size() * std::bit_width(below_.size()));
      std::sort(below_.begin(), below_.end());
      result.offsets[j] = find_gap(p_.size[j], fit);
      result.bytes = std::max(result.bytes, result.offsets[j] + p_.size[j]);
    }
    return result;
  }

 private:
  int64_t find_gap(int64_t size, Fit fit) const {
    int64_t top = 0, best = kUnplaced, best_gap = std::numeric_limits<int64_t>::max();
    for (const auto& [begin, end] : below_) {
      const int64_t gap = begin - top;
      if (gap >= size && gap < best_gap) {
        best = top;
        best_gap = gap;
        if (fit == Fit::kLowest) break;
      }
      top = std::max(top, end);
    }
    return best == kUnplaced ? top : best;
  }

  const Problem& p_;
  Effort& effort_;
  std::vector<std::pair<int64_t, int64_t>> below_;  // [begin, end) of placed buffers alive with the current one
};

std::vector<int> size_order(const Problem& p) {
  std::vector<int> order(p.count());
  std::iota(order.begin(), order.end(), 0);
  return sorted_by(std::move(order), [&](int j) { return std::pair(p.size[j], p.lifetime[j]); });
}

// Heights over the sections: largest height in a range, and setting a range to a height above all of it.
class Skyline {
 public:
  explicit Skyline(int sections)
      : width_(std::bit_ceil(static_cast<unsigned>(sections))), top_(2 * width_), all_(2 * width_) {}

  int64_t highest(unsigned lo, unsigned hi) const { return highest(1, 0, width_ - 1, lo, hi); }
  void raise(unsigned lo, unsigned hi, int64_t height) { raise(1, 0, width_ - 1, lo, hi, height); }

 private:
  int64_t highest(unsigned node, unsigned begin, unsigned end, unsigned lo, unsigned hi) const {
    if (hi < begin || end < lo) return 0;
    if (lo <= begin && end <= hi) return top_[node];
    const unsigned middle = begin + (end - begin) / 2;
    return std::max(
        {all_[node], highest(2 * node, begin, middle, lo, hi), highest(2 * node + 1, middle + 1, end, lo, hi)});
  }
  void raise(unsigned node, unsigned begin, unsigned end, unsigned lo, unsigned hi, int64_t height) {
    if (hi < begin || end < lo) return;
    top_[node] = std::max(top_[node], height);
    if (lo <= begin && end <= hi) {
      all_[node] = std::max(all_[node], height);
      return;
    }
    const unsigned middle = begin + (end - begin) / 2;
    raise(2 * node, begin, middle, lo, hi, height);
    raise(2 * node + 1, middle + 1, end, lo, hi, height);
  }

  unsigned width_;
  std::vector<int64_t> top_;  // per node: largest height in its range
  std::vector<int64_t> all_;  // per node: a height that all of its range has at least
};

}  // namespace

Placement stack_by_size(const Problem& problem) {
  Placement result{.offsets = std::vector<int64_t>(problem.count())};
  Skyline skyline(problem.sections());
  for (const int j : size_order(problem)) {
    result.offsets[j] = skyline.highest(problem.lo[j], problem.hi[j]);
    const int64_t top = result.offsets[j] + problem.size[j];
    skyline.raise(problem.lo[j], problem.hi[j], top);
    result.bytes = std::max(result.bytes, top);
  }
  return result;
}

Placement place_greedily(const Problem& problem, int64_t goal, Effort& effort) {
  const std::vector<int> by_size = size_order(problem);
  const int64_t stop_at = effort.used + (effort.limit - effort.used) / 4;
  Greedy greedy(problem, effort);
  Placement best = greedy.run(by_size, Fit::kLowest);
  for (const Fit fit : {Fit::kLowest, Fit::kTightest}) {
    for (int which = fit == Fit::kLowest ? 1 : 0; which < kOrders; ++which) {
      if (best.bytes <= goal || effort.used >= stop_at) return best;
      Placement other = greedy.run(make_order(problem, by_size, which), fit);
      if (other.bytes < best.bytes) best = std::move(other);
    }
  }
  return best;
}

}  // namespace leadline::plan::internal
