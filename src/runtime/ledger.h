// SPDX-License-Identifier: Apache-2.0
// What has been planned so far: the other half of "planned equals counted".
#pragma once

#include <array>
#include <cstdint>

#include "leadline/budget.h"

namespace leadline::runtime {

/// Every allocation is entered here with its size in the plan; the Budget counts what is really taken.
/// Comparing the two peaks finds every byte that was not planned. Not thread-safe.
class Ledger {
 public:
  /// Enters bytes taken (positive) or released (negative).
  void enter(int64_t bytes, MemoryCategory category) {
    now_[static_cast<size_t>(category)] += bytes;
    total_ += bytes;
    if (total_ <= peak_) return;
    peak_ = total_;
    at_peak_ = now_;
  }
  int64_t peak() const { return peak_; }
  int64_t total() const { return total_; }
  int64_t now(MemoryCategory category) const { return now_[static_cast<size_t>(category)]; }
  int64_t at_peak(MemoryCategory category) const { return at_peak_[static_cast<size_t>(category)]; }

 private:
  std::array<int64_t, kMemoryCategoryCount> now_{};
  std::array<int64_t, kMemoryCategoryCount> at_peak_{};
  int64_t total_ = 0;
  int64_t peak_ = 0;
};

}  // namespace leadline::runtime
