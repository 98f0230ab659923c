// SPDX-License-Identifier: Apache-2.0
// Plans for earlier input shapes, for callers that resize again and again.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/runner.h"

namespace leadline::runtime {

/// Runners without memory for tensors, those used last. What they hold is charged to the budget that the executable's
/// own is a child of, so that it is within the limit and not in the counts of a run. Not thread-safe.
class KeptPlans {
 public:
  /// `charged` is the parent of the environment's budget.
  KeptPlans(Environment& environment, std::shared_ptr<Budget> charged)
      : environment_(environment), charged_(std::move(charged)) {}
  ~KeptPlans() { clear(); }
  KeptPlans(const KeptPlans&) = delete;
  KeptPlans& operator=(const KeptPlans&) = delete;

  /// Keeps the plan of `runner`, or ends it where another run could not start from it or there is no room. Null: does
  /// nothing.
  void keep(std::unique_ptr<Runner> runner);
  /// The runner planned for these shapes with these changes, to be resumed (Runner::resume); null: there is none.
  std::unique_ptr<Runner> take(std::span<const Shape> inputs, const ir::ChangedNodes* changed);
  bool empty() const { return entries_.empty(); }
  void clear();
  /// What is held for them. Any thread may ask.
  int64_t bytes() const { return bytes_; }

 private:
  struct Entry {
    std::unique_ptr<Runner> runner;
    int64_t structures = 0;  // charged here
    int64_t folded = 0;      // charged when it was folded
    int64_t bytes() const { return structures + folded; }
  };
  void give_back(const Entry& entry);
  void drop_oldest();

  Environment& environment_;
  const std::shared_ptr<Budget> charged_;
  std::vector<Entry> entries_;  // used last: at the end
  std::atomic<int64_t> bytes_ = 0;
};

}  // namespace leadline::runtime
