// SPDX-License-Identifier: Apache-2.0
#include "runtime/kept_plans.h"

#include <algorithm>
#include <utility>

namespace leadline::runtime {
namespace {

constexpr size_t kMostPlans = 8;
constexpr int64_t kShareOfLimit = 64;  // all of them together take at most this part of the limit

}  // namespace

void KeptPlans::keep(std::unique_ptr<Runner> runner) {
  if (runner == nullptr || !runner->can_be_resumed()) return;
  Entry entry;
  entry.folded = runner->suspend();
  entry.structures = runner->needs().structures;
  entry.runner = std::move(runner);
  const int64_t most = charged_->limit() / kShareOfLimit;
  if (entry.bytes() > most) return;
  while (entries_.size() >= kMostPlans || (!entries_.empty() && bytes() + entry.bytes() > most)) {
    drop_oldest();
  }
  entries_.reserve(kMostPlans);
  try {
    charged_->charge(entry.structures, MemoryCategory::kGraph);
  } catch (const BudgetError&) {
    return;
  }
  environment_.accounts.budget()->count_shared(-entry.folded, MemoryCategory::kGraph);
  bytes_ += entry.bytes();
  entries_.push_back(std::move(entry));
}

void KeptPlans::give_back(const Entry& entry) {
  bytes_ -= entry.bytes();
  charged_->release(entry.structures, MemoryCategory::kGraph);
  environment_.accounts.budget()->count_shared(entry.folded, MemoryCategory::kGraph);
}

std::unique_ptr<Runner> KeptPlans::take(std::span<const Shape> inputs, const ir::ChangedNodes* changed) {
  const auto found = std::ranges::find_if(entries_, [&](const Entry& entry) {
    return entry.runner->changed().get() == changed && entry.runner->is_planned_for(inputs);
  });
  if (found == entries_.end()) return nullptr;
  give_back(*found);
  std::unique_ptr<Runner> runner = std::move(found->runner);
  entries_.erase(found);
  return runner;
}

void KeptPlans::drop_oldest() {
  give_back(entries_.front());
  entries_.erase(entries_.begin());
}

void KeptPlans::clear() {
  while (!entries_.empty()) drop_oldest();
}

}  // namespace leadline::runtime
