// SPDX-License-Identifier: Apache-2.0
#include "ops/lookup_table.h"

#include <bit>
#include <cstring>
#include <limits>

#include "core/work.h"

namespace leadline::ops {
namespace {

constexpr int64_t kWord = 8;

constexpr int64_t to_words(int64_t bytes) { return (bytes + kWord - 1) / kWord * kWord; }

int64_t slot_count(int64_t count) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(1, 2 * count))));
}

/// Spreads every bit of a number over all bits (the finalizer of MurmurHash3).
uint64_t mix(uint64_t h) {
  h = (h ^ (h >> 33)) * 0xFF51AFD7ED558CCDULL;
  h = (h ^ (h >> 33)) * 0xC4CEB9FE1A85EC53ULL;
  return h ^ (h >> 33);
}

uint64_t hash_of(int64_t key) { return mix(static_cast<uint64_t>(key)); }
uint64_t hash_of(std::string_view key) { return mix(std::hash<std::string_view>{}(key)); }

}  // namespace

std::optional<int64_t> LookupTable::memory_bytes(int64_t count, int64_t key_bytes, int64_t value_bytes) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max() / 2;  // rows are numbered in 32 bits
  constexpr int64_t kLargest = std::numeric_limits<int64_t>::max() / 8;
  if (count > kMost || key_bytes > kLargest || value_bytes > kLargest) return std::nullopt;
  return to_words(key_bytes) + to_words(value_bytes) + slot_count(count) * static_cast<int64_t>(sizeof(int32_t));
}

LookupTable::LookupTable(std::byte* memory, const TensorView& keys, const TensorView& values) : texts_({}) {
  const bool number_keys = keys.dtype == DType::kInt64;
  const TensorView& numbers = number_keys ? keys : values;
  const TensorView& texts = number_keys ? values : keys;
  const auto copy = [&](const TensorView& from) {
    std::byte* to = memory;
    copy_bytes(to, from.data, from.bytes);
    memory += to_words(from.bytes);
    return to;
  };
  numbers_ = reinterpret_cast<const int64_t*>(copy(numbers));
  texts_ = StringTensorReader({copy(texts), static_cast<size_t>(texts.bytes)});
  const int64_t count = keys.elements();
  slots_ = {reinterpret_cast<int32_t*>(memory), static_cast<size_t>(slot_count(count))};
  fill_bytes(memory, std::byte{0}, static_cast<int64_t>(slots_.size_bytes()));
  for_items(count, 64, [&](int64_t row) {
    const uint64_t slot =
        number_keys ? slot_of(hash_of(numbers_[row]), [&](int64_t other) { return numbers_[other] == numbers_[row]; })
                    : slot_of(hash_of(texts_[row]), [&](int64_t other) { return texts_[other] == texts_[row]; });
    if (slots_[slot] != 0) return;
    slots_[slot] = static_cast<int32_t>(row + 1);
    ++size_;
  });
}

/// The slot whose row matches, or the free one where such a row belongs.
template <typename Matches>
uint64_t LookupTable::slot_of(uint64_t hash, const Matches& matches) const {
  const uint64_t mask = slots_.size() - 1;
  uint64_t slot = hash & mask;
  while (slots_[slot] != 0 && !matches(slots_[slot] - 1)) slot = (slot + 1) & mask;
  return slot;
}

int64_t LookupTable::find(int64_t key) const {
  return int64_t{slots_[slot_of(hash_of(key), [&](int64_t row) { return numbers_[row] == key; })]} - 1;
}

int64_t LookupTable::find(std::string_view key) const {
  return int64_t{slots_[slot_of(hash_of(key), [&](int64_t row) { return texts_[row] == key; })]} - 1;
}

}  // namespace leadline::ops
