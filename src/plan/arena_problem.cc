// SPDX-License-Identifier: Apache-2.0
// Compresses time to sections and splits the buffers into components. See arena_problem.h.
#include "plan/arena_problem.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace leadline::plan::internal {
namespace {

// Lists longer than this would take more than 32 MB each.
constexpr int64_t kMaxListed = 8'000'000;

struct Event {
  int step;
  bool end;  // starts come first: a buffer is alive at its last step
  int interval;
  auto key() const { return std::tuple(step, end, interval); }
};

// Walks time once. A section opens when a buffer starts after another one ended, a component when none is alive.
class Sweep {
 public:
  Sweep(std::span<const Interval> intervals, std::span<const int64_t> rounded)
      : intervals_(intervals), rounded_(rounded), local_(intervals.size(), -1) {}

  std::vector<Problem> run() {
    std::vector<Event> events;
    for (size_t i = 0; i < intervals_.size(); ++i) {
      if (rounded_[i] == 0) continue;
      events.push_back({intervals_[i].first, false, static_cast<int>(i)});
      events.push_back({intervals_[i].last, true, static_cast<int>(i)});
    }
    std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) { return a.key() < b.key(); });
    for (const Event& event : events) event.end ? end(event.interval) : start(event.interval);
    return std::move(problems_);
  }

 private:
  void start(int interval) {
    if (live_ == 0) {
      problems_.emplace_back();
      section_ = 0;
      pairs_ = 0;
    } else if (ended_) {
      ++section_;
    }
    ended_ = false;
    pairs_ += 2 * live_++;
    Problem& p = problems_.back();
    local_[interval] = p.count();
    p.id.push_back(interval);
    p.size.push_back(rounded_[interval]);
    p.lifetime.push_back(int64_t{intervals_[interval].last} - intervals_[interval].first + 1);
    p.lo.push_back(section_);
    p.hi.push_back(section_);
  }

  void end(int interval) {
    problems_.back().hi[local_[interval]] = section_;
    ended_ = true;
    if (--live_ == 0) finish(problems_.back());
  }

  void finish(Problem& p) {
    p.load.assign(section_ + 2, 0);
    int64_t listed = pairs_;
    for (int j = 0; j < p.count(); ++j) {
      p.load[p.lo[j]] += p.size[j];
      p.load[p.hi[j] + 1] -= p.size[j];
      p.quantum = j == 0 ? p.size[j] : std::gcd(p.quantum, p.size[j]);
      listed += p.hi[j] - p.lo[j] + 1;
    }
    std::partial_sum(p.load.begin(), p.load.end(), p.load.begin());
    p.load.pop_back();
    p.bound = *std::max_element(p.load.begin(), p.load.end());
    p.large = listed > kMaxListed;
    if (!p.large) list_members(p);
  }

  static void list_members(Problem& p) {
    const int n = p.count();
    p.pressure.assign(n, 0);
    std::vector<int> live;
    int next = 0;
    for (int s = 0; s < p.sections(); ++s) {
      std::erase_if(live, [&](int j) { return p.hi[j] < s; });
      for (; next < n && p.lo[next] == s; ++next) live.push_back(next);
      for (const int j : live) {
        p.members.push(j);
        p.pressure[j] = std::max(p.pressure[j], p.load[s]);
      }
      p.members.end_row();
    }
    // Earlier starters that overlap j are alive in its first section; later ones follow j in the numbering.
    for (int j = 0; j < n; ++j) {
      for (const int k : p.members[p.lo[j]]) {
        if (k < j) p.overlaps.push(k);
      }
      for (int k = j + 1; k < n && p.lo[k] <= p.hi[j]; ++k) p.overlaps.push(k);
      p.overlaps.end_row();
    }
  }

  std::span<const Interval> intervals_;
  std::span<const int64_t> rounded_;
  std::vector<int> local_;
  std::vector<Problem> problems_;
  int section_ = 0;
  int64_t live_ = 0;
  int64_t pairs_ = 0;  // ordered pairs of overlapping buffers in the current component
  bool ended_ = false;
};

}  // namespace

std::vector<Problem> make_problems(std::span<const Interval> intervals, std::span<const int64_t> rounded) {
  return Sweep(intervals, rounded).run();
}

}  // namespace leadline::plan::internal
