// SPDX-License-Identifier: Apache-2.0
// Arena placement: checks, rounding, and which component is asked for what. The algorithm is described in arena.h.
#include "plan/arena.h"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "plan/arena_problem.h"

namespace leadline::plan {
namespace {

std::vector<int64_t> round_sizes(std::span<const Interval> intervals, int64_t alignment) {
  if (alignment < 1) throw std::invalid_argument("arena placement: the alignment is below 1");
  std::vector<int64_t> rounded;
  rounded.reserve(intervals.size());
  int64_t room = std::numeric_limits<int64_t>::max();
  for (const Interval& interval : intervals) {
    if (interval.bytes < 0) throw std::invalid_argument("arena placement: a buffer has a negative size");
    if (interval.last < interval.first) throw std::invalid_argument("arena placement: a buffer ends before it starts");
    const int64_t units = interval.bytes / alignment + (interval.bytes % alignment != 0 ? 1 : 0);
    if (units > room / alignment) throw std::invalid_argument("arena placement: the sizes exceed the address range");
    rounded.push_back(units * alignment);
    room -= units * alignment;
  }
  return rounded;
}

}  // namespace

Layout place(std::span<const Interval> intervals, const PlaceOptions& options) {
  const std::vector<int64_t> rounded = round_sizes(intervals, options.alignment);
  const std::vector<internal::Problem> problems = internal::make_problems(intervals, rounded);
  Layout layout;
  layout.offsets.assign(intervals.size(), 0);
  for (const auto& problem : problems) layout.lower_bound = std::max(layout.lower_bound, problem.bound);

  // A component may be as large as the largest one must be, so all share one goal; it grows when one misses it.
  constexpr int64_t kForEver = int64_t{1} << 60;  // leaves room for sums
  internal::Effort effort{.limit = std::clamp<int64_t>(options.effort, 0, kForEver)};
  int64_t goal = std::max(layout.lower_bound, options.target);
  std::vector<internal::Placement> placements;
  for (const auto& problem : problems) {
    placements.push_back(problem.large ? internal::stack_by_size(problem)
                                       : internal::place_greedily(problem, goal, effort));
    if (problem.large) goal = std::max(goal, placements.back().bytes);
  }
  for (size_t i = 0; i < problems.size(); ++i) {
    if (!problems[i].large) internal::improve_by_search(problems[i], goal, effort, placements[i]);
    goal = std::max(goal, placements[i].bytes);
    for (size_t j = 0; j < placements[i].offsets.size(); ++j) {
      layout.offsets[problems[i].id[j]] = placements[i].offsets[j];
    }
    layout.bytes = std::max(layout.bytes, placements[i].bytes);
  }
  layout.steps = effort.used;
  return layout;
}

}  // namespace leadline::plan
