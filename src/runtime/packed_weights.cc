// SPDX-License-Identifier: Apache-2.0
#include "runtime/packed_weights.h"

namespace leadline::runtime {

std::shared_ptr<const Buffer> PackedWeightsCache::acquire(const PackedKey& key,
                                                          const std::function<void(std::byte*)>& pack) {
  const std::lock_guard lock(mutex_);
  if (const auto known = entries_.find(key); known != entries_.end()) {
    if (auto held = known->second.lock()) return held;
  }
  // Keys of plans that are gone, with other layouts for other shapes, would add up.
  std::erase_if(entries_, [](const auto& known) { return known.second.expired(); });
  auto memory = std::make_shared<Buffer>(budget_, key.bytes, MemoryCategory::kPackedWeights);
  pack(memory->data());
  entries_[key] = memory;
  return memory;
}

bool PackedWeightsCache::holds(const PackedKey& key) const {
  const std::lock_guard lock(mutex_);
  const auto it = entries_.find(key);
  return it != entries_.end() && !it->second.expired();
}

}  // namespace leadline::runtime
