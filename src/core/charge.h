// SPDX-License-Identifier: Apache-2.0
// Bytes charged to a Budget for as long as something lives that is not a Buffer.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "leadline/budget.h"

namespace leadline {

class Charge {
 public:
  Charge() = default;
  Charge(std::shared_ptr<Budget> budget, MemoryCategory category) : budget_(std::move(budget)), category_(category) {}
  /// Throws BudgetError when `bytes` are refused.
  Charge(std::shared_ptr<Budget> budget, MemoryCategory category, int64_t bytes) : Charge(std::move(budget), category) {
    resize(bytes);
  }
  ~Charge() { resize(0); }
  Charge(const Charge&) = delete;
  Charge& operator=(const Charge&) = delete;

  /// Raises or lowers the charge to `bytes`. Throws BudgetError and changes nothing when that is refused.
  void resize(int64_t bytes) {
    if (budget_ == nullptr) return;
    if (bytes > bytes_) budget_->charge(bytes - bytes_, category_);
    if (bytes < bytes_) budget_->release(bytes_ - bytes, category_);
    bytes_ = bytes;
  }
  int64_t bytes() const { return bytes_; }
  const std::shared_ptr<Budget>& budget() const { return budget_; }

 private:
  std::shared_ptr<Budget> budget_;
  MemoryCategory category_ = MemoryCategory::kStatistics;
  int64_t bytes_ = 0;
};

}  // namespace leadline
