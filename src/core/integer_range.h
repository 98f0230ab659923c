// SPDX-License-Identifier: Apache-2.0
// What an integer type can hold.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "leadline/types.h"

namespace leadline {

/// Smallest and largest value of an integer type (unsigned 64 bits: up to the largest int64); nothing for other types.
inline std::optional<std::pair<int64_t, int64_t>> integer_range(DType type) {
  using Range = std::pair<int64_t, int64_t>;
  switch (type) {
    case DType::kInt2:
      return Range{-2, 1};
    case DType::kInt4:
      return Range{-8, 7};
    case DType::kUInt4:
      return Range{0, 15};
    case DType::kInt8:
      return Range{-128, 127};
    case DType::kUInt8:
      return Range{0, 255};
    case DType::kInt16:
      return Range{-32768, 32767};
    case DType::kUInt16:
      return Range{0, 65535};
    case DType::kInt32:
      return Range{std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()};
    case DType::kUInt32:
      return Range{0, std::numeric_limits<uint32_t>::max()};
    case DType::kInt64:
      return Range{std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()};
    case DType::kUInt64:
      return Range{0, std::numeric_limits<int64_t>::max()};
    default:
      return std::nullopt;
  }
}

}  // namespace leadline
