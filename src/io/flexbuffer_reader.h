// SPDX-License-Identifier: Apache-2.0
// The pieces of the FlexBuffers format, read from unchecked bytes.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>

#include "core/half.h"

namespace leadline::flexbuffer {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

enum Type : uint8_t {
  kFlexNull = 0,
  kFlexInt = 1,
  kFlexUInt = 2,
  kFlexFloat = 3,
  kFlexKey = 4,
  kFlexString = 5,
  kFlexIndirectInt = 6,
  kFlexIndirectUInt = 7,
  kFlexIndirectFloat = 8,
  kFlexMap = 9,
  kFlexVector = 10,
  kFlexVectorInt = 11,  // to 15: vectors of int, uint, float, key, string without types
  kFlexVectorFloat = 13,
  kFlexVectorString = 15,
  kFlexVectorInt2 = 16,  // to 24: 2, 3 and 4 ints, uints, floats without count
  kFlexVectorFloat4 = 24,
  kFlexBlob = 25,
  kFlexBool = 26,
  kFlexVectorBool = 36,
};

/// Reads with bounds checks; every function returns nothing outside the bytes.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  size_t size() const { return bytes_.size(); }

  std::optional<uint64_t> unsigned_at(size_t position, size_t width) const {
    if (position > bytes_.size() || width > bytes_.size() - position) return std::nullopt;
    uint64_t value = 0;
    std::memcpy(&value, bytes_.data() + position, width);
    return value;
  }

  /// Where the offset stored at `position` points: offsets count backwards from where they are stored.
  std::optional<size_t> target_at(size_t position, size_t width) const {
    const auto offset = unsigned_at(position, width);
    if (!offset || *offset > position) return std::nullopt;
    return position - static_cast<size_t>(*offset);
  }

  std::optional<std::string> key_at(size_t position) const {
    const auto begin = bytes_.begin() + static_cast<std::ptrdiff_t>(std::min(position, bytes_.size()));
    const auto end = std::find(begin, bytes_.end(), std::byte{0});
    if (end == bytes_.end()) return std::nullopt;
    return std::string(reinterpret_cast<const char*>(&*begin), static_cast<size_t>(end - begin));
  }

  std::optional<int64_t> signed_at(size_t position, size_t width) const {
    const auto raw = unsigned_at(position, width);
    if (!raw) return std::nullopt;
    const auto shift = static_cast<unsigned>(64 - 8 * width);
    return static_cast<int64_t>(*raw << shift) >> shift;
  }

  std::optional<double> float_at(size_t position, size_t width) const {
    const auto raw = unsigned_at(position, width);
    if (!raw) return std::nullopt;
    switch (width) {
      case 8:
        return std::bit_cast<double>(*raw);
      case 4:
        return std::bit_cast<float>(static_cast<uint32_t>(*raw));
      case 2:
        return half_to_float(static_cast<uint16_t>(*raw));
      default:
        return std::nullopt;
    }
  }

 private:
  std::span<const std::byte> bytes_;
};

inline size_t width_of(uint64_t packed_type) { return size_t{1} << (packed_type & 3); }

/// A vector: the position of its first element, the width and the number of its elements.
struct Vector {
  size_t first = 0;
  size_t width = 0;
  size_t count = 0;
};

inline std::optional<Vector> vector_at(const Reader& reader, size_t first, size_t width) {
  if (first < width) return std::nullopt;
  const auto count = reader.unsigned_at(first - width, width);
  if (!count || *count > (reader.size() - std::min(first, reader.size())) / width) return std::nullopt;
  return Vector{first, width, static_cast<size_t>(*count)};
}

}  // namespace leadline::flexbuffer
