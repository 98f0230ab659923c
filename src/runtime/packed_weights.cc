// SPDX-License-Identifier: Apache-2.0
#include "runtime/packed_weights.h"

namespace leadline::runtime {

std::shared_ptr<const Buffer> PackedWeights::acquire(const PackedKey& key,
                                                     const std::function<void(std::byte*)>& pack) {
  const std::lock_guard lock(mutex_);
  std::weak_ptr<const Buffer>& entry = entries_[key];
  if (auto held = entry.lock()) return held;
  auto memory = std::make_shared<Buffer>(budget_, key.bytes, MemoryCategory::kPackedWeights);
  pack(memory->data());
  entry = memory;
  return memory;
}

bool PackedWeights::holds(const PackedKey& key) const {
  const std::lock_guard lock(mutex_);
  const auto it = entries_.find(key);
  return it != entries_.end() && !it->second.expired();
}

}  // namespace leadline::runtime
