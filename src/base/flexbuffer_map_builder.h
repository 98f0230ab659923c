// SPDX-License-Identifier: Apache-2.0
// Writes a FlexBuffers map of numbers, for tests of what reads one.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace leadline {

using FlexEntry = std::pair<std::string, std::variant<bool, int32_t, uint32_t, float>>;

/// Every element 4 bytes wide.
inline std::vector<std::byte> build_flex_map(const std::vector<FlexEntry>& entries) {
  std::vector<std::byte> bytes;
  auto put = [&](uint32_t value, int width = 4) {
    for (int i = 0; i < width; ++i) bytes.push_back(static_cast<std::byte>(value >> (8 * i)));
  };
  auto put_offset_to = [&](size_t target) { put(static_cast<uint32_t>(bytes.size() - target)); };
  std::vector<size_t> names;
  for (const FlexEntry& entry : entries) {
    names.push_back(bytes.size());
    for (char c : entry.first) bytes.push_back(static_cast<std::byte>(c));
    bytes.push_back(std::byte{0});
  }
  put(static_cast<uint32_t>(entries.size()));
  const size_t keys = bytes.size();
  for (size_t name : names) put_offset_to(name);
  put_offset_to(keys);
  put(4);
  put(static_cast<uint32_t>(entries.size()));
  const size_t values = bytes.size();
  for (const FlexEntry& entry : entries) {
    std::visit(
        [&](auto value) {
          if constexpr (std::is_same_v<decltype(value), float>) {
            put(std::bit_cast<uint32_t>(value));
          } else {
            put(static_cast<uint32_t>(value));
          }
        },
        entry.second);
  }
  constexpr uint32_t kTypes[] = {26, 1, 2, 3};  // bool, int, uint, float, as in the variant
  for (const FlexEntry& entry : entries) put(kTypes[entry.second.index()] << 2 | 2U, 1);
  put_offset_to(values);
  put(9U << 2 | 2U, 1);  // a map, 4 bytes wide
  put(4, 1);
  return bytes;
}

}  // namespace leadline
