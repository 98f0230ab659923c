// SPDX-License-Identifier: Apache-2.0
#include "base/flexbuffer_map.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "base/half.h"

namespace leadline {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

enum FlexType : uint8_t {
  kFlexInt = 1,
  kFlexUInt = 2,
  kFlexFloat = 3,
  kFlexIndirectInt = 6,
  kFlexIndirectUInt = 7,
  kFlexIndirectFloat = 8,
  kFlexMap = 9,
  kFlexBool = 26,
};

/// Reads with bounds checks; every function gives nothing outside the bytes.
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

size_t width_of(uint64_t packed_type) { return size_t{1} << (packed_type & 3); }

/// A vector: the position of its first element, the width and the number of its elements.
struct Vector {
  size_t first = 0;
  size_t width = 0;
  size_t count = 0;
};

std::optional<Vector> vector_at(const Reader& reader, size_t first, size_t width) {
  if (first < width) return std::nullopt;
  const auto count = reader.unsigned_at(first - width, width);
  if (!count || *count > (reader.size() - std::min(first, reader.size())) / width) return std::nullopt;
  return Vector{first, width, static_cast<size_t>(*count)};
}

}  // namespace

std::optional<FlexMap> FlexMap::parse(std::span<const std::byte> bytes) {
  const Reader reader(bytes);
  // The last byte is the root's width, the one before its type, the root lies before both.
  if (bytes.size() < 3) return std::nullopt;
  const auto root_width = std::to_integer<size_t>(bytes[bytes.size() - 1]);
  const auto root_type = std::to_integer<uint64_t>(bytes[bytes.size() - 2]);
  if (!std::has_single_bit(root_width) || root_width > 8 || root_width > bytes.size() - 2) return std::nullopt;
  if (root_type >> 2 != kFlexMap) return std::nullopt;
  const auto first = reader.target_at(bytes.size() - 2 - root_width, root_width);
  const size_t width = width_of(root_type);
  if (!first || *first < 3 * width) return std::nullopt;

  // Before the values: their count, the width of the keys, the offset of the vector of keys. After them: their types.
  const auto values = vector_at(reader, *first, width);
  const auto keys_first = reader.target_at(*first - 3 * width, width);
  const auto keys_width = reader.unsigned_at(*first - 2 * width, width);
  if (!values || !keys_first || !keys_width || !std::has_single_bit(*keys_width) || *keys_width > 8) {
    return std::nullopt;
  }
  const auto keys = vector_at(reader, *keys_first, static_cast<size_t>(*keys_width));
  if (!keys || keys->count != values->count) return std::nullopt;

  FlexMap map;
  for (size_t i = 0; i < values->count; ++i) {
    const auto key_position = reader.target_at(keys->first + i * keys->width, keys->width);
    const auto key = key_position ? reader.key_at(*key_position) : std::nullopt;
    const auto type = reader.unsigned_at(values->first + values->count * width + i, 1);
    if (!key || !type) return std::nullopt;
    size_t position = values->first + i * width;
    size_t value_width = width;
    auto kind = static_cast<uint8_t>(*type >> 2);
    if (kind >= kFlexIndirectInt && kind <= kFlexIndirectFloat) {
      const auto target = reader.target_at(position, width);
      if (!target) return std::nullopt;
      position = *target;
      value_width = width_of(*type);
      kind = static_cast<uint8_t>(kind - kFlexIndirectInt + kFlexInt);
    }
    std::optional<Number> number;
    if (kind == kFlexInt) {
      if (const auto value = reader.signed_at(position, value_width)) number = *value;
    } else if (kind == kFlexUInt || kind == kFlexBool) {
      if (const auto value = reader.unsigned_at(position, value_width)) number = *value;
    } else if (kind == kFlexFloat) {
      if (const auto value = reader.float_at(position, value_width)) number = *value;
    } else {
      continue;
    }
    if (!number) return std::nullopt;
    map.values_.insert_or_assign(*key, *number);
  }
  return map;
}

std::optional<double> FlexMap::number(std::string_view name) const {
  const auto it = values_.find(name);
  if (it == values_.end()) return std::nullopt;
  return std::visit([](auto value) { return static_cast<double>(value); }, it->second);
}

int32_t FlexMap::get_int(std::string_view name, int32_t fallback) const {
  const auto value = number(name);
  if (!value) return fallback;
  constexpr double kLow = std::numeric_limits<int32_t>::min();
  constexpr double kHigh = std::numeric_limits<int32_t>::max();
  return *value == *value ? static_cast<int32_t>(std::clamp(*value, kLow, kHigh)) : 0;
}

float FlexMap::get_float(std::string_view name, float fallback) const {
  const auto value = number(name);
  if (!value) return fallback;
  constexpr double kHigh = std::numeric_limits<float>::max();
  return *value == *value ? static_cast<float>(std::clamp(*value, -kHigh, kHigh)) : 0.0F;
}

bool FlexMap::get_bool(std::string_view name, bool fallback) const {
  const auto value = number(name);
  return value ? *value != 0.0 : fallback;
}

}  // namespace leadline
