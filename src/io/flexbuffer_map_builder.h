// SPDX-License-Identifier: Apache-2.0
// Writes a FlexBuffers map of numbers, lists of int32 and texts: the options of custom ops.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace leadline {

using FlexEntry =
    std::pair<std::string, std::variant<bool, int32_t, uint32_t, float, std::vector<int32_t>, std::string>>;

/// Every element 4 bytes wide. Entries must be sorted by name, each name once.
inline std::vector<std::byte> build_flex_map(const std::vector<FlexEntry>& entries) {
  std::vector<std::byte> bytes;
  auto put = [&](uint32_t value, int width = 4) {
    for (int i = 0; i < width; ++i) bytes.push_back(static_cast<std::byte>(value >> (8 * i)));
  };
  auto put_offset_to = [&](size_t target) { put(static_cast<uint32_t>(bytes.size() - target)); };
  auto align = [&] {
    while (bytes.size() % 4 != 0) bytes.push_back(std::byte{0});
  };
  std::vector<size_t> names;
  for (const FlexEntry& entry : entries) {
    names.push_back(bytes.size());
    for (char c : entry.first) bytes.push_back(static_cast<std::byte>(c));
    bytes.push_back(std::byte{0});
  }
  std::vector<size_t> places;  // of lists and texts
  for (const FlexEntry& entry : entries) {
    align();
    if (const auto* list = std::get_if<std::vector<int32_t>>(&entry.second)) {
      put(static_cast<uint32_t>(list->size()));
      places.push_back(bytes.size());
      for (int32_t value : *list) put(static_cast<uint32_t>(value));
    } else if (const auto* text = std::get_if<std::string>(&entry.second)) {
      put(static_cast<uint32_t>(text->size()));
      places.push_back(bytes.size());
      for (char c : *text) bytes.push_back(static_cast<std::byte>(c));
      bytes.push_back(std::byte{0});
    } else {
      places.push_back(0);
    }
  }
  align();
  put(static_cast<uint32_t>(entries.size()));
  const size_t keys = bytes.size();
  for (size_t name : names) put_offset_to(name);
  put_offset_to(keys);
  put(4);
  put(static_cast<uint32_t>(entries.size()));
  const size_t values = bytes.size();
  for (size_t i = 0; i < entries.size(); ++i) {
    std::visit(
        [&](const auto& value) {
          using T = std::decay_t<decltype(value)>;
          if constexpr (std::is_same_v<T, float>) {
            put(std::bit_cast<uint32_t>(value));
          } else if constexpr (!std::is_arithmetic_v<T>) {
            put_offset_to(places[i]);
          } else {
            put(static_cast<uint32_t>(value));
          }
        },
        entries[i].second);
  }
  constexpr uint32_t kTypes[] = {26, 1, 2, 3, 11, 5};  // bool, int, uint, float, ints, text, as in the variant
  for (const FlexEntry& entry : entries) put(kTypes[entry.second.index()] << 2 | 2U, 1);
  align();
  put_offset_to(values);
  put(9U << 2 | 2U, 1);  // a map, 4 bytes wide
  put(4, 1);
  return bytes;
}

}  // namespace leadline
