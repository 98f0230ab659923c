// SPDX-License-Identifier: Apache-2.0
// Weights in the layout of a kernel, packed once per model and shared by its interpreters.
#pragma once

#include <compare>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "core/buffer.h"
#include "core/cancellable_mutex.h"

namespace leadline::runtime {

struct PackedKey {
  int subgraph = 0;
  int node = 0;
  int64_t bytes = 0;
  std::string layout;
  auto operator<=>(const PackedKey&) const = default;
};

/// Thread-safe. Memory is freed when the last interpreter that uses it is destroyed.
class PackedWeightsCache {
 public:
  explicit PackedWeightsCache(std::shared_ptr<Budget> budget) : budget_(std::move(budget)) {}

  /// The packed memory of `key`; made with `pack` if it does not exist. Throws BudgetError.
  std::shared_ptr<const Buffer> acquire(const PackedKey& key, const std::function<void(std::byte*)>& pack);
  bool holds(const PackedKey& key) const;

 private:
  std::shared_ptr<Budget> budget_;
  mutable CancellableMutex mutex_{"the model's packed weights"};
  std::map<PackedKey, std::weak_ptr<const Buffer>> entries_;
};

}  // namespace leadline::runtime
