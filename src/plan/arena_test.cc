// SPDX-License-Identifier: Apache-2.0
// Arena placement against an independent overlap checker, exhaustive search on small cases, and public instances.
#include "plan/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <numeric>
#include <random>
#include <string>

#include "plan/arena_search.h"

namespace leadline::plan {
namespace {

using Intervals = std::vector<Interval>;

int64_t round_up(int64_t bytes, int64_t alignment) { return (bytes + alignment - 1) / alignment * alignment; }

// Compares every pair by the definition; shares nothing with the code under test.
void expect_valid(const Intervals& intervals, const Layout& layout, int64_t alignment) {
  ASSERT_EQ(layout.offsets.size(), intervals.size());
  int64_t top = 0, bound = 0;
  for (size_t i = 0; i < intervals.size(); ++i) {
    const int64_t begin = layout.offsets[i], end = begin + round_up(intervals[i].bytes, alignment);
    ASSERT_GE(begin, 0);
    ASSERT_EQ(begin % alignment, 0);
    ASSERT_TRUE(begin == 0 || intervals[i].bytes > 0);
    top = std::max(top, end);
    int64_t alive_at_start = 0;
    for (size_t j = 0; j < intervals.size(); ++j) {
      const Interval& other = intervals[j];
      const int64_t size = round_up(other.bytes, alignment);
      if (other.first <= intervals[i].first && intervals[i].first <= other.last) alive_at_start += size;
      if (j <= i || intervals[i].bytes == 0 || other.bytes == 0) continue;
      const bool same_time = std::max(intervals[i].first, other.first) <= std::min(intervals[i].last, other.last);
      const bool same_bytes = begin < layout.offsets[j] + size && layout.offsets[j] < end;
      ASSERT_FALSE(same_time && same_bytes) << "buffers " << i << " and " << j << " share memory";
    }
    bound = std::max(bound, alive_at_start);
  }
  EXPECT_EQ(layout.bytes, top);
  EXPECT_EQ(layout.lower_bound, bound);
  EXPECT_GE(layout.bytes, bound);
}

// Some order, with every buffer put on top of what is placed and alive with it, reaches the optimum.
int64_t optimum(const Intervals& intervals) {
  std::vector<size_t> order(intervals.size());
  std::iota(order.begin(), order.end(), 0);
  int64_t best = std::numeric_limits<int64_t>::max();
  do {
    std::vector<int64_t> top(intervals.size());
    int64_t highest = 0;
    for (size_t i = 0; i < order.size() && highest < best; ++i) {
      const Interval& a = intervals[order[i]];
      int64_t offset = 0;
      for (size_t k = 0; k < i; ++k) {
        const Interval& b = intervals[order[k]];
        if (a.first <= b.last && b.first <= a.last) offset = std::max(offset, top[order[k]]);
      }
      top[order[i]] = offset + a.bytes;
      highest = std::max(highest, top[order[i]]);
    }
    best = std::min(best, highest);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

Intervals random_intervals(std::mt19937& random, int count, int steps, int longest, int largest) {
  const auto upto = [&](int limit) { return static_cast<int>(random() % static_cast<unsigned>(limit)); };
  Intervals intervals;
  for (int i = 0; i < count; ++i) {
    const int first = upto(steps);
    intervals.push_back({.bytes = upto(largest + 1), .first = first, .last = first + upto(longest)});
  }
  return intervals;
}

// Whether the buffers fit, by trying every offset for one after the other. Sizes and capacity must be tiny.
bool fits(const Intervals& intervals, int64_t capacity, std::vector<int64_t> offsets = {}) {
  const size_t i = offsets.size();
  if (i == intervals.size()) return true;
  const Interval& a = intervals[i];
  offsets.push_back(0);
  for (int64_t& offset = offsets.back(); offset + a.bytes <= capacity; ++offset) {
    bool free = true;
    for (size_t k = 0; k < i && free; ++k) {
      const Interval& b = intervals[k];
      const bool same_time = a.first <= b.last && b.first <= a.last;
      free = !same_time || offset + a.bytes <= offsets[k] || offsets[k] + b.bytes <= offset;
    }
    if (free && fits(intervals, capacity, offsets)) return true;
  }
  return false;
}

// Every step is filled to `load`: the kind of instance whose optimum can lie above the bound.
Intervals tight_intervals(std::mt19937& random, int64_t load, int steps) {
  std::vector<int64_t> free(static_cast<size_t>(steps), load);
  Intervals intervals;
  for (int i = 0; i < 12; ++i) {
    const int first = static_cast<int>(random() % static_cast<unsigned>(steps));
    const int last = std::min(steps - 1, first + static_cast<int>(random() % 4));
    const int64_t bytes = 1 + static_cast<int64_t>(random() % 3);
    if (*std::min_element(free.begin() + first, free.begin() + last + 1) < bytes) continue;
    for (int step = first; step <= last; ++step) free[static_cast<size_t>(step)] -= bytes;
    intervals.push_back({bytes, first, last});
  }
  for (int step = 0; step < steps; ++step) {
    if (free[static_cast<size_t>(step)] > 0) intervals.push_back({free[static_cast<size_t>(step)], step, step});
  }
  std::stable_sort(intervals.begin(), intervals.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return intervals;
}

TEST(Arena, NothingNeedsNoMemory) {
  EXPECT_EQ(place({}).bytes, 0);
  const Intervals empty = {{0, 0, 5}, {0, 3, 3}};
  const Layout layout = place(empty);
  EXPECT_EQ(layout.bytes, 0);
  EXPECT_EQ(layout.offsets, (std::vector<int64_t>{0, 0}));
}

TEST(Arena, BuffersThatMeetAtOneStepAreApartAndOthersShare) {
  const Intervals chain = {{100, 0, 1}, {100, 1, 2}, {100, 2, 3}};
  const Layout layout = place(chain);
  expect_valid(chain, layout, 64);
  EXPECT_EQ(layout.bytes, 256);
  EXPECT_EQ(layout.offsets[0], layout.offsets[2]);
}

TEST(Arena, SizesAreRoundedToTheAlignment) {
  const Intervals pair = {{1, 0, 0}, {65, 0, 0}};
  EXPECT_EQ(place(pair).bytes, 192);
  EXPECT_EQ(place(pair, {.alignment = 1}).bytes, 66);
  EXPECT_EQ(place(pair, {.alignment = 48}).bytes, 144);
}

TEST(Arena, RefusesWhatCannotBePlaced) {
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  EXPECT_THROW(place(Intervals{{-1, 0, 0}}), std::invalid_argument);
  EXPECT_THROW(place(Intervals{{1, 1, 0}}), std::invalid_argument);
  EXPECT_THROW(place(Intervals{{1, 0, 0}}, {.alignment = 0}), std::invalid_argument);
  EXPECT_THROW(place(Intervals{{kHuge, 0, 0}}), std::invalid_argument);
  EXPECT_THROW(place(Intervals{{kHuge / 2, 0, 0}, {kHuge / 2 + 2, 5, 5}}, {.alignment = 1}), std::invalid_argument);
  EXPECT_EQ(place(Intervals{{kHuge, 0, 0}}, {.alignment = 1}).bytes, kHuge);
}

TEST(Arena, StepsMayBeAnyInt) {
  constexpr int kMin = std::numeric_limits<int>::min(), kMax = std::numeric_limits<int>::max();
  const Intervals intervals = {{10, kMin, kMax}, {20, kMin, kMin}, {20, kMax, kMax}};
  const Layout layout = place(intervals, {.alignment = 1});
  expect_valid(intervals, layout, 1);
  EXPECT_EQ(layout.bytes, 30);
}

TEST(Arena, RandomLayoutsNeverOverlap) {
  std::mt19937 random(1);
  for (int round = 0; round < 4000; ++round) {
    const int count = 1 + static_cast<int>(random() % 60);
    const int steps = 1 + static_cast<int>(random() % 80);
    const int longest = 1 + static_cast<int>(random() % 25);
    const Intervals intervals = random_intervals(random, count, steps, longest, round % 3 == 0 ? 8 : 5000);
    const int64_t alignment = round % 2 == 0 ? 64 : 1;
    const int64_t effort = round % 7 == 0 ? 0 : 200'000;
    const Layout layout = place(intervals, {.alignment = alignment, .effort = effort});
    ASSERT_NO_FATAL_FAILURE(expect_valid(intervals, layout, alignment)) << "round " << round;
  }
}

TEST(Arena, SmallInstancesAreOptimal) {
  std::mt19937 random(2);
  for (int round = 0; round < 1500; ++round) {
    const int count = 3 + static_cast<int>(random() % 6);
    const Intervals intervals = random_intervals(random, count, 7, 4, round % 2 == 0 ? 6 : 100);
    const Layout layout = place(intervals, {.alignment = 1});
    expect_valid(intervals, layout, 1);
    ASSERT_EQ(layout.bytes, optimum(intervals)) << "round " << round;
  }
}

TEST(Arena, OptimumAboveTheBoundIsProvenNotGuessed) {
  std::mt19937 random(3);
  int above_bound = 0;
  for (int round = 0; round < 6000; ++round) {
    const Intervals intervals = tight_intervals(random, round % 2 == 0 ? 6 : 8, 7);
    const Layout layout = place(intervals, {.alignment = 1});
    expect_valid(intervals, layout, 1);
    if (layout.bytes == layout.lower_bound) continue;
    ++above_bound;
    EXPECT_FALSE(fits(intervals, layout.bytes - 1)) << "round " << round;
    EXPECT_LT(layout.steps, PlaceOptions{}.effort) << "the search ends by proof, not by exhaustion";
  }
  // Such cases are rare; without any, the test would say nothing.
  EXPECT_GT(above_bound, 10);
}

// place() mostly ends with the first rule that answers; here every rule must answer, in any order of the buffers.
TEST(ArenaSearch, EveryFocusFindsALayoutExactlyWhenThereIsOne) {
  using internal::Answer;
  using internal::Focus;
  std::mt19937 random(11);
  int impossible = 0;
  for (int round = 0; round < 30000; ++round) {
    const int64_t load = 4 + round % 5;
    const Intervals intervals = tight_intervals(random, load, 5 + round % 4);
    std::vector<int64_t> sizes;
    for (const Interval& interval : intervals) sizes.push_back(interval.bytes);
    const bool possible = fits(intervals, load);
    impossible += possible ? 0 : 1;
    const auto problems = internal::make_problems(intervals, sizes);
    for (const Focus focus : {Focus::kLowest, Focus::kLowestThenTight, Focus::kWeightedTight}) {
      bool found = true;
      for (const auto& problem : problems) {
        std::vector<int> rank(static_cast<size_t>(problem.count()));
        std::iota(rank.begin(), rank.end(), 0);
        std::shuffle(rank.begin(), rank.end(), random);
        internal::Search search(problem);
        const Answer answer = search.run(load, focus, rank, 100'000'000);
        ASSERT_NE(answer, Answer::kGaveUp);
        found = found && answer == Answer::kFound;
      }
      EXPECT_EQ(found, possible) << "round " << round << ", focus " << static_cast<int>(focus);
    }
  }
  EXPECT_GT(impossible, 10);
}

// Cuts a rectangle of steps x bytes into buffers, so that a layout without any gap exists.
void cut(std::mt19937& random, int first, int last, int64_t bytes, int pieces, Intervals& into) {
  const int steps = last - first + 1;
  const bool by_time = steps > 1 && (bytes == 1 || random() % 2 == 0);
  if (pieces == 1 || (steps == 1 && bytes == 1)) {
    into.push_back({bytes, first, last});
  } else if (by_time) {
    const int middle = first + static_cast<int>(random() % static_cast<unsigned>(steps - 1));
    cut(random, first, middle, bytes, pieces / 2, into);
    cut(random, middle + 1, last, bytes, pieces - pieces / 2, into);
  } else {
    const int64_t part = 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(bytes - 1));
    cut(random, first, last, part, pieces / 2, into);
    cut(random, first, last, bytes - part, pieces - pieces / 2, into);
  }
}

TEST(ArenaSearch, NeverCallsImpossibleWhatWasCutFromOneBlock) {
  using internal::Answer;
  using internal::Focus;
  std::mt19937 random(12);
  int found = 0;
  for (int round = 0; round < 6000; ++round) {
    const int64_t capacity = 6 + static_cast<int64_t>(random() % 20);
    Intervals intervals;
    cut(random, 0, 11, capacity, 8 + static_cast<int>(random() % 24), intervals);
    // Without some buffers there is slack, and other rules of the search come into play.
    if (round % 2 == 0) std::erase_if(intervals, [&](const Interval&) { return random() % 8 == 0; });
    std::shuffle(intervals.begin(), intervals.end(), random);
    std::vector<int64_t> sizes;
    for (const Interval& interval : intervals) sizes.push_back(interval.bytes);
    for (const auto& problem : internal::make_problems(intervals, sizes)) {
      std::vector<int> rank(static_cast<size_t>(problem.count()));
      std::iota(rank.begin(), rank.end(), 0);
      std::shuffle(rank.begin(), rank.end(), random);
      internal::Search search(problem);
      for (const Focus focus : {Focus::kLowest, Focus::kLowestThenTight, Focus::kWeightedTight}) {
        const Answer answer = search.run(capacity, focus, rank, 100'000);
        ASSERT_NE(answer, Answer::kImpossible) << "round " << round << ", focus " << static_cast<int>(focus);
        found += answer == Answer::kFound ? 1 : 0;
      }
    }
  }
  EXPECT_GT(found, 10'000);
}

TEST(Arena, SameInputGivesSameLayout) {
  std::mt19937 random(4);
  for (int round = 0; round < 20; ++round) {
    const Intervals intervals = random_intervals(random, 120, 60, 12, 4000);
    const Layout once = place(intervals), again = place(intervals);
    EXPECT_EQ(once.offsets, again.offsets);
    EXPECT_EQ(once.steps, again.steps);
  }
}

TEST(Arena, MoreEffortIsNeverWorseThanNone) {
  std::mt19937 random(5);
  for (int round = 0; round < 30; ++round) {
    const Intervals intervals = random_intervals(random, 150, 60, 15, 4000);
    const int64_t greedy = place(intervals, {.effort = 0}).bytes;
    EXPECT_LE(place(intervals, {.effort = 3'000'000}).bytes, greedy);
  }
}

TEST(Arena, EffortIsRespected) {
  std::mt19937 random(6);
  const Intervals intervals = random_intervals(random, 1000, 300, 120, 100'000);
  const int64_t first_order = place(intervals, {.effort = 0}).steps;
  for (const int64_t effort : {int64_t{1'000'000}, int64_t{10'000'000}, int64_t{30'000'000}}) {
    const Layout layout = place(intervals, {.effort = effort});
    expect_valid(intervals, layout, 64);
    // A greedy order is finished once begun, and a search step is not cut in the middle.
    EXPECT_LE(layout.steps, effort + 2 * first_order + 100'000);
  }
}

TEST(Arena, UnlimitedEffortEndsByProof) {
  std::mt19937 random(10);
  for (int round = 0; round < 300; ++round) {
    const Intervals intervals = tight_intervals(random, 8, 7);
    const Layout layout = place(intervals, {.alignment = 1, .effort = std::numeric_limits<int64_t>::max()});
    expect_valid(intervals, layout, 1);
    EXPECT_TRUE(layout.bytes == layout.lower_bound || !fits(intervals, layout.bytes - 1));
  }
}

TEST(Arena, ReachingTheTargetEndsTheWork) {
  std::mt19937 random(7);
  const Intervals intervals = random_intervals(random, 200, 80, 20, 4000);
  const Layout greedy = place(intervals, {.effort = 0});
  const Layout layout = place(intervals, {.target = greedy.bytes});
  EXPECT_EQ(layout.offsets, greedy.offsets);
  EXPECT_EQ(layout.steps, greedy.steps);
}

TEST(Arena, LayersOfANetworkMeetTheBoundQuickly) {
  // 700 activations: each feeds the next layer, every fourth one also a residual sum three layers later.
  std::mt19937 random(8);
  Intervals intervals;
  for (int step = 0; step < 700; ++step) {
    intervals.push_back({1000 + static_cast<int64_t>(random() % 500'000), step, step + (step % 4 == 0 ? 4 : 1)});
  }
  const Layout layout = place(intervals);
  expect_valid(intervals, layout, 64);
  EXPECT_EQ(layout.bytes, layout.lower_bound);
}

TEST(Arena, HugeInputsFallBackToStacking) {
  std::mt19937 random(9);
  Intervals intervals = random_intervals(random, 4000, 50, 50, 1000);
  for (Interval& interval : intervals) interval.last = std::max(interval.last, 49);
  const Layout layout = place(intervals);
  expect_valid(intervals, layout, 64);
  EXPECT_EQ(layout.bytes, layout.lower_bound);
}

Intervals read_instance(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  EXPECT_EQ(line, "id,lower,upper,size");
  Intervals intervals;
  while (std::getline(file, line)) {
    long long id = 0, lower = 0, upper = 0, size = 0;
    if (std::sscanf(line.c_str(), "%lld,%lld,%lld,%lld", &id, &lower, &upper, &size) != 4) continue;
    intervals.push_back({size, static_cast<int>(lower), static_cast<int>(upper) - 1});  // upper is exclusive
  }
  return intervals;
}

TEST(Arena, PublicInstancesFitTheirCapacity) {
  const char* shared = std::getenv("LEADLINE_SHARED");
  if (shared == nullptr) GTEST_SKIP() << "LEADLINE_SHARED is not set: no public instances";
  const std::filesystem::path folder = std::filesystem::path(shared) / "planner";
  if (!std::filesystem::is_directory(folder)) GTEST_SKIP() << folder << " is not there: no public instances";
  constexpr int64_t kCapacity = 1'048'576;
  for (const char name : std::string("ABCDEFGHIJK")) {
    const Intervals intervals = read_instance(folder / (std::string(1, name) + ".1048576.csv"));
    ASSERT_FALSE(intervals.empty()) << name;
    const auto start = std::chrono::steady_clock::now();
    const Layout layout = place(intervals, {.alignment = 1, .effort = 1'000'000'000, .target = kCapacity});
    const std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - start;
    expect_valid(intervals, layout, 1);
    EXPECT_LE(layout.bytes, kCapacity) << name;
    const int64_t greedy = place(intervals, {.alignment = 1, .effort = 0}).bytes;
    std::printf("%c: %zu buffers, %lld bytes, bound %lld, by size %lld, %lld steps, %.1f ms\n", name, intervals.size(),
                static_cast<long long>(layout.bytes), static_cast<long long>(layout.lower_bound),
                static_cast<long long>(greedy), static_cast<long long>(layout.steps), spent.count());
  }
}

}  // namespace
}  // namespace leadline::plan
