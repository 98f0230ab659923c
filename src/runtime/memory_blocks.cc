// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory_blocks.h"

#include <cstring>
#include <iterator>
#include <utility>

namespace leadline::runtime {

std::shared_ptr<Buffer> MemoryBlocks::tensor(int value) const {
  const auto it = tensors_.find(value);
  return it == tensors_.end() ? nullptr : it->second.buffer;
}

bool MemoryBlocks::take_tensor(int value, int64_t bytes, MemoryCategory category) {
  const auto held = tensors_.find(value);
  if (held != tensors_.end() && held->second.buffer->bytes() == align_up(bytes)) return false;
  drop_tensor(value);
  const auto place = tensors_.emplace(value, TensorBlock{nullptr, category}).first;
  try {
    place->second.buffer = accounts_.take(bytes, category);
  } catch (...) {
    tensors_.erase(place);
    throw;
  }
  return true;
}

void MemoryBlocks::drop_tensor(int value) {
  const auto it = tensors_.find(value);
  if (it == tensors_.end()) return;
  accounts_.give_back(it->second.buffer, it->second.category);
  tensors_.erase(it);
}

void MemoryBlocks::take_arena(size_t segment, int64_t bytes) {
  if (arenas_.size() <= segment) arenas_.resize(segment + 1);
  drop_arena(segment);
  arenas_[segment] = accounts_.take(bytes, MemoryCategory::kArena);
}

void MemoryBlocks::drop_arena(size_t segment) {
  if (segment < arenas_.size()) accounts_.give_back(arenas_[segment], MemoryCategory::kArena);
}

std::vector<std::shared_ptr<Buffer>> MemoryBlocks::detach_arenas(size_t first) {
  std::vector<std::shared_ptr<Buffer>> detached;
  if (first >= arenas_.size()) return detached;
  const auto begin = arenas_.begin() + static_cast<std::ptrdiff_t>(first);
  detached.assign(std::make_move_iterator(begin), std::make_move_iterator(arenas_.end()));
  arenas_.resize(first);
  return detached;
}

std::byte* MemoryBlocks::persistent(int node) const {
  const auto it = persistent_.find(node);
  return it == persistent_.end() ? nullptr : it->second->data();
}

bool MemoryBlocks::has_persistent(int node, int64_t bytes) const {
  const auto it = persistent_.find(node);
  return it != persistent_.end() && it->second->bytes() == bytes;
}

void MemoryBlocks::take_persistent(int node, int64_t bytes) {
  auto& memory = persistent_[node];
  if (memory != nullptr && memory->bytes() == bytes) return;
  accounts_.give_back(memory, MemoryCategory::kVariables);
  try {
    memory = accounts_.take(bytes, MemoryCategory::kVariables);
  } catch (...) {
    persistent_.erase(node);
    throw;
  }
}

void MemoryBlocks::clear_persistent() {
  for (auto& [node, memory] : persistent_) std::memset(memory->data(), 0, static_cast<size_t>(memory->bytes()));
}

const std::byte* MemoryBlocks::acquire_packed(const PackedKey& key, const std::function<void(std::byte*)>& pack) {
  const auto held = packed_.find(key);
  if (held != packed_.end()) return held->second->data();
  const auto entry = packed_.emplace(key, shared_->acquire(key, pack)).first;  // counted when it is there: both throw
  accounts_.ledger().enter(key.bytes, MemoryCategory::kPackedWeights);
  accounts_.budget()->count_shared(entry->second->bytes(), MemoryCategory::kPackedWeights);
  return entry->second->data();
}

void MemoryBlocks::collect_packed(std::vector<std::shared_ptr<const Buffer>>& packed) const {
  for (const auto& [key, memory] : packed_) packed.push_back(memory);
}

void MemoryBlocks::take_over(MemoryBlocks& other) {
  tensors_ = std::exchange(other.tensors_, {});
  persistent_ = std::exchange(other.persistent_, {});
  packed_ = std::exchange(other.packed_, {});
}

void MemoryBlocks::release() {
  for (auto& arena : arenas_) accounts_.give_back(arena, MemoryCategory::kArena);
  arenas_.clear();
  for (auto& [key, memory] : packed_) {
    accounts_.ledger().enter(-key.bytes, MemoryCategory::kPackedWeights);
    accounts_.budget()->count_shared(-memory->bytes(), MemoryCategory::kPackedWeights);
  }
  packed_.clear();
  for (auto& [value, block] : tensors_) accounts_.give_back(block.buffer, block.category);
  tensors_.clear();
  for (auto& [node, memory] : persistent_) accounts_.give_back(memory, MemoryCategory::kVariables);
  persistent_.clear();
}

void MemoryBlocks::collect(std::vector<std::shared_ptr<const void>>& memory) const {
  for (const auto& arena : arenas_) memory.push_back(arena);
  for (const auto& [value, block] : tensors_) memory.push_back(block.buffer);
  for (const auto& [node, buffer] : persistent_) memory.push_back(buffer);
}

}  // namespace leadline::runtime
