// SPDX-License-Identifier: Apache-2.0
#include "io/flexbuffer_map.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "io/flexbuffer_reader.h"

namespace leadline {
namespace {

using namespace flexbuffer;

/// A stored value: where it lies, how wide its slot is, and its packed type.
struct Slot {
  size_t position = 0;
  size_t width = 0;
  uint64_t type = 0;

  uint8_t kind() const { return static_cast<uint8_t>(type >> 2); }
};

bool is_number(uint8_t kind) {
  return (kind >= kFlexInt && kind <= kFlexFloat) || (kind >= kFlexIndirectInt && kind <= kFlexIndirectFloat) ||
         kind == kFlexBool;
}

std::optional<double> number_at(const Reader& reader, Slot slot) {
  uint8_t kind = slot.kind();
  if (kind >= kFlexIndirectInt && kind <= kFlexIndirectFloat) {
    const auto target = reader.target_at(slot.position, slot.width);
    if (!target) return std::nullopt;
    slot.position = *target;
    slot.width = width_of(slot.type);
    kind = static_cast<uint8_t>(kind - kFlexIndirectInt + kFlexInt);
  }
  if (kind == kFlexFloat) return reader.float_at(slot.position, slot.width);
  if (kind == kFlexInt) {
    const auto value = reader.signed_at(slot.position, slot.width);
    return value ? std::optional(static_cast<double>(*value)) : std::nullopt;
  }
  const auto value = reader.unsigned_at(slot.position, slot.width);
  return value ? std::optional(static_cast<double>(*value)) : std::nullopt;
}

bool is_list(uint8_t kind) {
  return (kind >= kFlexVector && kind <= kFlexVectorFloat) || (kind >= kFlexVectorInt2 && kind <= kFlexVectorFloat4) ||
         kind == kFlexVectorBool;
}

/// The numbers of any kind of vector; nothing when the vector is broken, has an element of another kind, or more than
/// `limit` of them.
std::optional<std::vector<double>> numbers_at(const Reader& reader, const Slot& slot, size_t limit) {
  const auto first = reader.target_at(slot.position, slot.width);
  if (!first) return std::nullopt;
  const uint8_t kind = slot.kind();
  const size_t width = width_of(slot.type);
  Vector list{*first, width, 0};
  auto element = static_cast<uint8_t>(kind == kFlexVectorBool ? kFlexBool : kind - kFlexVectorInt + kFlexInt);
  if (kind >= kFlexVectorInt2 && kind <= kFlexVectorFloat4) {
    list.count = static_cast<size_t>((kind - kFlexVectorInt2) / 3 + 2);
    element = static_cast<uint8_t>((kind - kFlexVectorInt2) % 3 + kFlexInt);
  } else {
    const auto counted = vector_at(reader, *first, width);
    if (!counted) return std::nullopt;
    list = *counted;
  }
  if (list.count > limit) return std::nullopt;
  std::vector<double> numbers;
  for (size_t i = 0; i < list.count; ++i) {
    uint64_t type = uint64_t{element} << 2;
    if (kind == kFlexVector) {  // the types follow the elements
      const auto stored = reader.unsigned_at(list.first + list.count * width + i, 1);
      if (!stored || !is_number(static_cast<uint8_t>(*stored >> 2))) return std::nullopt;
      type = *stored;
    }
    const auto number = number_at(reader, {list.first + i * width, width, type});
    if (!number) return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

std::optional<std::string> text_at(const Reader& reader, const Slot& slot) {
  const auto position = reader.target_at(slot.position, slot.width);
  return position ? reader.key_at(*position) : std::nullopt;
}

constexpr double kLowestInt = std::numeric_limits<int32_t>::min();
constexpr double kHighestInt = std::numeric_limits<int32_t>::max();

int32_t to_int(double value) {
  return value == value ? static_cast<int32_t>(std::clamp(value, kLowestInt, kHighestInt)) : 0;
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
  size_t room = bytes.size();  // many names for one long list or text do not make more of it than there are bytes
  for (size_t i = 0; i < values->count; ++i) {
    const auto key_position = reader.target_at(keys->first + i * keys->width, keys->width);
    const auto key = key_position ? reader.key_at(*key_position) : std::nullopt;
    const auto type = reader.unsigned_at(values->first + values->count * width + i, 1);
    if (!key || !type) return std::nullopt;
    const Slot slot{values->first + i * width, width, *type};
    std::optional<Value> value;
    if (is_number(slot.kind())) {
      value = number_at(reader, slot);
      if (!value) return std::nullopt;
    } else if (is_list(slot.kind())) {
      auto numbers = numbers_at(reader, slot, room);
      room -= numbers ? numbers->size() : 0;
      if (numbers) value = std::move(*numbers);
    } else if (slot.kind() == kFlexString || slot.kind() == kFlexKey) {
      auto text = text_at(reader, slot);
      if (!text || text->size() > room) continue;
      room -= text->size();
      value = std::move(*text);
    }
    if (value) map.values_.insert_or_assign(*key, std::move(*value));
  }
  return map;
}

template <typename T>
const T* FlexMap::find(std::string_view name) const {
  const auto it = values_.find(name);
  return it == values_.end() ? nullptr : std::get_if<T>(&it->second);
}

int32_t FlexMap::get_int(std::string_view name, int32_t fallback) const {
  const auto* value = find<double>(name);
  return value != nullptr ? to_int(*value) : fallback;
}

float FlexMap::get_float(std::string_view name, float fallback) const {
  const auto* value = find<double>(name);
  if (value == nullptr) return fallback;
  constexpr double kHigh = std::numeric_limits<float>::max();
  return *value == *value ? static_cast<float>(std::clamp(*value, -kHigh, kHigh)) : 0.0F;
}

bool FlexMap::get_bool(std::string_view name, bool fallback) const {
  const auto* value = find<double>(name);
  return value != nullptr ? *value != 0.0 : fallback;
}

std::optional<std::vector<int32_t>> FlexMap::get_ints(std::string_view name) const {
  const auto* list = find<std::vector<double>>(name);
  if (list == nullptr) return std::nullopt;
  std::vector<int32_t> ints;
  for (const double value : *list) ints.push_back(to_int(value));
  return ints;
}

std::optional<std::string> FlexMap::get_text(std::string_view name) const {
  const auto* text = find<std::string>(name);
  return text != nullptr ? std::optional(*text) : std::nullopt;
}

}  // namespace leadline
