// SPDX-License-Identifier: Apache-2.0
// Characters of UTF-8 text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace leadline {

constexpr uint32_t kNotUtf8 = 0xFFFFFFFF;

/// The character that begins at `at`, which moves behind it. kNotUtf8, and `at` moves behind the bytes that cannot
/// belong to any character, where the text is not UTF-8.
inline uint32_t next_character(std::string_view text, size_t& at) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const uint32_t first = byte(at++);
  if (first < 0x80) return first;
  // Overlong forms, surrogates and what is beyond Unicode are found in the first two bytes.
  const uint32_t second = byte(at);
  if (first < 0xC2 || first > 0xF4 || (first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ||
      (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F)) {
    return kNotUtf8;
  }
  const int more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : 1;
  uint32_t character = first & (0x3FU >> more);
  for (int i = 0; i < more; ++i) {
    if ((byte(at) & 0xC0U) != 0x80U) return kNotUtf8;
    character = character << 6 | (byte(at++) & 0x3FU);
  }
  return character;
}

/// What is not a character of Unicode becomes the replacement character.
inline void append_utf8(std::string& out, uint32_t c) {
  const auto put = [&](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF)) c = 0xFFFD;
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0U | (c >> 6U));
    put(0x80U | (c & 0x3FU));
  } else if (c < 0x10000) {
    put(0xE0U | (c >> 12U));
    put(0x80U | ((c >> 6U) & 0x3FU));
    put(0x80U | (c & 0x3FU));
  } else {
    put(0xF0U | (c >> 18U));
    put(0x80U | ((c >> 12U) & 0x3FU));
    put(0x80U | ((c >> 6U) & 0x3FU));
    put(0x80U | (c & 0x3FU));
  }
}

}  // namespace leadline
