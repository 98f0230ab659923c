// SPDX-License-Identifier: Apache-2.0
// An immutable table from int64 to string or from string to int64, in one block of memory that someone else owns.
// Of equal keys the first counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "core/string_tensor.h"
#include "core/tensor.h"

namespace leadline::ops {

/// True for the two kinds of table that the format has.
inline bool is_table_type(DType key, DType value) {
  return (key == DType::kInt64 && value == DType::kString) || (key == DType::kString && value == DType::kInt64);
}

class LookupTable {
 public:
  /// Memory that a table of `count` keys takes; nothing when that is too much.
  static std::optional<int64_t> memory_bytes(int64_t count, int64_t key_bytes, int64_t value_bytes);

  /// Copies keys and values, string tensors checked and types allowed by is_table_type(), into `memory` of
  /// memory_bytes(), aligned to 8.
  LookupTable(std::byte* memory, const TensorView& keys, const TensorView& values);

  /// Number of different keys.
  int64_t size() const { return size_; }
  /// The row of a key, or -1. The key's type must be the table's.
  int64_t find(int64_t key) const;
  int64_t find(std::string_view key) const;
  /// The value of a row that find() gave. The type must be the table's.
  int64_t number(int64_t row) const { return numbers_[row]; }
  std::string_view text(int64_t row) const { return texts_[row]; }

 private:
  template <typename Matches>
  uint64_t slot_of(uint64_t hash, const Matches& matches) const;

  // Each row has a number and a text, one of them the key.
  const int64_t* numbers_ = nullptr;
  StringTensorReader texts_;
  std::span<int32_t> slots_;  // open addressing: row + 1, 0 where free; a power of two, at most half full
  int64_t size_ = 0;
};

}  // namespace leadline::ops
