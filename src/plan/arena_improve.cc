// SPDX-License-Identifier: Apache-2.0
// Drives the search: which capacity to ask for, with which rules, for how long. See step 5 in arena.h.
#include <algorithm>
#include <array>
#include <tuple>
#include <vector>

#include "core/cancel.h"
#include "plan/arena_problem.h"
#include "plan/arena_search.h"

namespace leadline::plan::internal {
namespace {

enum class Priority { kLifetime, kArea, kPressureArea, kPressureLifetime, kSize, kLongArea };

struct Strategy {
  Focus focus;
  Priority priority;
};

constexpr std::array kStrategies = {
    Strategy{Focus::kLowestThenTight, Priority::kLifetime},
    Strategy{Focus::kLowestThenTight, Priority::kPressureArea},
    Strategy{Focus::kLowestThenTight, Priority::kPressureLifetime},
    Strategy{Focus::kLowestThenTight, Priority::kArea},
    Strategy{Focus::kLowestThenTight, Priority::kSize},
    Strategy{Focus::kLowestThenTight, Priority::kLongArea},
    Strategy{Focus::kWeightedTight, Priority::kLifetime},
    Strategy{Focus::kWeightedTight, Priority::kPressureArea},
    Strategy{Focus::kWeightedTight, Priority::kPressureLifetime},
    Strategy{Focus::kWeightedTight, Priority::kArea},
    Strategy{Focus::kWeightedTight, Priority::kSize},
    Strategy{Focus::kWeightedTight, Priority::kLongArea},
    Strategy{Focus::kLowest, Priority::kLifetime},
    Strategy{Focus::kLowest, Priority::kPressureLifetime},
};

// The first strategies are also good without backtracking.
constexpr int kDives = 6;

// SplitMix64: the same numbers everywhere, so that a layout does not depend on the standard library.
class Noise {
 public:
  // A factor between 0.78 and 1.28: enough to swap neighbours in an order, too little to reverse it.
  double factor() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return static_cast<double>(800 + (z >> 32) % 512) / 1024.0;
  }

 private:
  uint64_t state_ = 1;
};

// Where a sequence of attempts stands: the strategies take turns, and the leash grows after each round of turns.
struct Sequence {
  int64_t leash;
  size_t attempts = 0;
};

class Improver {
 public:
  Improver(const Problem& problem, int64_t goal, Effort& effort, Placement& best)
      : p_(problem), effort_(effort), best_(best), search_(problem), rank_(p_.count()), possible_(goal) {}

  void run() {
    dive();
    // About forty descents from the empty arena to the full one; with little effort, fewer, so that all get their turn.
    const int64_t descent = p_.overlaps.items() + 2 * p_.members.items() + int64_t{p_.count()} * p_.sections() / 2;
    Sequence at_goal{.leash = std::min(40 * descent, effort_.limit / 16 + 1)};
    Sequence tightening{.leash = std::min(4 * descent, effort_.limit / 64 + 1)};
    for (int64_t budget = effort_.limit / 16 + 1; !done(); budget = std::min(2 * budget, effort_.limit)) {
      ask(possible_, budget, at_goal);
      tighten(budget / 2, tightening);
    }
  }

 private:
  bool done() const { return best_.bytes <= possible_ || effort_.spent(); }

  // Single descents without a limit: stronger than the greedy orders, and cheap.
  void dive() {
    int64_t all = 0;
    for (const int64_t size : p_.size) all += size;
    Sequence once{.leash = effort_.limit};
    const int64_t stop_at = effort_.used + (effort_.limit - effort_.used) / 4;
    for (int i = 0; i < kDives && !done() && effort_.used < stop_at; ++i) ask(all, stop_at - effort_.used, once);
  }

  // Asks for half the distance to what is possible; when that is too hard, for a quarter, and so on.
  void tighten(int64_t budget, Sequence& sequence) {
    const int64_t stop_at = effort_.used + budget;
    for (int64_t divisor = 2; !done() && effort_.used < stop_at;) {
      const int64_t cut = (best_.bytes - possible_) / divisor;
      if (cut < p_.quantum) return;
      if (ask(best_.bytes - cut, budget / 4, sequence) == Answer::kGaveUp) divisor *= 2;
    }
  }

  // Attempts until one answers or `budget` steps of the shared effort are spent; keeps what the answer shows.
  Answer ask(int64_t capacity, int64_t budget, Sequence& sequence) {
    const int64_t stop_at = std::min(effort_.limit, effort_.used + budget);
    while (effort_.used < stop_at) {
      check_cancelled();
      const size_t turn = sequence.attempts % kStrategies.size();
      if (sequence.attempts > 0 && turn == 0) sequence.leash += sequence.leash / 3;
      make_ranks(kStrategies[turn].priority, sequence.attempts >= kStrategies.size());
      ++sequence.attempts;
      const Answer answer =
          search_.run(capacity, kStrategies[turn].focus, rank_, std::min(sequence.leash, stop_at - effort_.used));
      effort_.used += search_.steps() + p_.count();
      if (answer == Answer::kFound) keep(search_.offsets());
      if (answer == Answer::kImpossible) possible_ = (capacity / p_.quantum + 1) * p_.quantum;
      if (answer != Answer::kGaveUp) return answer;
      search_.fade_weights();
    }
    return Answer::kGaveUp;
  }

  void keep(const std::vector<int64_t>& offsets) {
    int64_t bytes = 0;
    for (int j = 0; j < p_.count(); ++j) bytes = std::max(bytes, offsets[j] + p_.size[j]);
    if (bytes < best_.bytes) best_ = {.offsets = offsets, .bytes = bytes};
  }

  void make_ranks(Priority priority, bool noisy) {
    struct Key {
      double major, minor;
      int buffer;
    };
    std::vector<Key> keys;
    keys.reserve(rank_.size());
    for (int j = 0; j < p_.count(); ++j) {
      const auto size = static_cast<double>(p_.size[j]), lifetime = static_cast<double>(p_.lifetime[j]);
      const auto pressure = static_cast<double>(p_.pressure[j]);
      const double factor = noisy ? noise_.factor() : 1.0;
      switch (priority) {
        case Priority::kLifetime:
          keys.push_back({lifetime * factor, size, j});
          break;
        case Priority::kArea:
          keys.push_back({size * lifetime * factor, 0, j});
          break;
        case Priority::kPressureArea:
          keys.push_back({pressure, size * lifetime * factor, j});
          break;
        case Priority::kPressureLifetime:
          keys.push_back({pressure, lifetime * factor, j});
          break;
        case Priority::kSize:
          keys.push_back({size * factor, 0, j});
          break;
        case Priority::kLongArea:
          keys.push_back({size * lifetime * lifetime * factor, 0, j});
          break;
      }
    }
    std::sort(keys.begin(), keys.end(), [](const Key& a, const Key& b) {
      return std::tuple(-a.major, -a.minor, a.buffer) < std::tuple(-b.major, -b.minor, b.buffer);
    });
    for (int i = 0; i < p_.count(); ++i) rank_[keys[i].buffer] = i;
  }

  const Problem& p_;
  Effort& effort_;
  Placement& best_;
  Search search_;
  std::vector<int> rank_;
  Noise noise_;
  int64_t possible_;  // less is impossible, or not asked for
};

}  // namespace

void improve_by_search(const Problem& problem, int64_t goal, Effort& effort, Placement& best) {
  if (best.bytes > goal && !effort.spent()) Improver(problem, goal, effort, best).run();
}

}  // namespace leadline::plan::internal
