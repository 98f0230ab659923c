// SPDX-License-Identifier: Apache-2.0
// The memory that a runner holds: tensors with memory of their own, arenas, what nodes keep, packed weights.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "core/buffer.h"
#include "runtime/accounts.h"
#include "runtime/packed_weights.h"

namespace leadline::runtime {

/// Everything taken here is in both counts; what is left at the end is released. Not thread-safe.
class MemoryBlocks {
 public:
  MemoryBlocks(Accounts& accounts, std::shared_ptr<PackedWeightsCache> shared)
      : accounts_(accounts), shared_(std::move(shared)) {}
  ~MemoryBlocks() { release(); }
  MemoryBlocks(const MemoryBlocks&) = delete;
  MemoryBlocks& operator=(const MemoryBlocks&) = delete;

  struct TensorBlock {
    std::shared_ptr<Buffer> buffer;
    MemoryCategory category = MemoryCategory::kInputsOutputs;
  };
  /// Inputs, outputs and variables that have memory here, by value.
  const std::map<int, TensorBlock>& tensors() const { return tensors_; }
  /// Null when the value has none.
  std::shared_ptr<Buffer> tensor(int value) const;
  /// Memory of this size for `value`. True: it was taken now, and is zero; false: it was there. After BudgetError the
  /// value has none.
  bool take_tensor(int value, int64_t bytes, MemoryCategory category);
  void drop_tensor(int value);

  /// The arena of a segment; null: in the caller's workspace, or released.
  std::shared_ptr<Buffer> arena(size_t segment) const { return segment < arenas_.size() ? arenas_[segment] : nullptr; }
  bool has_arena(size_t segment) const { return segment < arenas_.size() && arenas_[segment] != nullptr; }
  /// In place of one that is there.
  void take_arena(size_t segment, int64_t bytes);
  void drop_arena(size_t segment);
  /// The arenas from this segment on, which the caller returns to the accounts.
  std::vector<std::shared_ptr<Buffer>> detach_arenas(size_t first);

  /// What a node keeps from run to run; null: nothing.
  std::byte* persistent(int node) const;
  bool has_persistent(int node, int64_t bytes) const;
  /// Keeps what is there unless its size is another.
  void take_persistent(int node, int64_t bytes);
  void clear_persistent();

  bool holds_packed(const PackedKey& key) const { return packed_.contains(key); }
  /// The packed weights of `key`, which the model is charged for; made with `pack` if they do not exist.
  const std::byte* acquire_packed(const PackedKey& key, const std::function<void(std::byte*)>& pack);

  void collect_packed(std::vector<std::shared_ptr<const Buffer>>& packed) const;

  /// Takes over the tensors, kept memory and packed weights of `other`, its arenas not.
  void take_over(MemoryBlocks& other);
  void release();
  /// Adds everything that kernels write to.
  void collect(std::vector<std::shared_ptr<const void>>& memory) const;

 private:
  Accounts& accounts_;
  const std::shared_ptr<PackedWeightsCache> shared_;
  std::map<int, TensorBlock> tensors_;
  std::vector<std::shared_ptr<Buffer>> arenas_;
  std::map<int, std::shared_ptr<Buffer>> persistent_;
  std::map<PackedKey, std::shared_ptr<const Buffer>> packed_;
};

}  // namespace leadline::runtime
