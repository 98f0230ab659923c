// SPDX-License-Identifier: Apache-2.0
// Text from outside, made harmless for terminals and logs.
#include <fmt/core.h>

#include <cstddef>
#include <iterator>

#include "leadline/types.h"

namespace leadline {
namespace {

struct CodePoint {
  char32_t value = 0;
  size_t length = 0;  // bytes in UTF-8; 0: not UTF-8
};

/// The code point at the start of `text`, which is not empty. Overlong forms, surrogates and values beyond Unicode are
/// not UTF-8.
CodePoint decode(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return {};
  char32_t value = lead & (0x7FU >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return {};
    value = (value << 6U) | (byte(i) & 0x3FU);
  }
  constexpr char32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (value < kSmallest[length] || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) return {};
  return {value, length};
}

bool is_control(char32_t c) {
  const bool direction =
      c == 0x200E || c == 0x200F || c == 0x61C || (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
  const bool line_end = c == 0x2028 || c == 0x2029;
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || direction || line_end;
}

}  // namespace

std::string printable(std::string_view text, bool keep_newlines) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const CodePoint c = decode(text);
    const size_t length = c.length == 0 ? 1 : c.length;
    if (c.length != 0 && (!is_control(c.value) || (keep_newlines && c.value == '\n'))) {
      result.append(text.substr(0, length));
    } else if (c.length <= 1) {
      fmt::format_to(std::back_inserter(result), "\\x{:02x}", static_cast<unsigned char>(text[0]));
    } else {
      fmt::format_to(std::back_inserter(result), "\\u{:04x}", static_cast<uint32_t>(c.value));
    }
    text.remove_prefix(length);
  }
  return result;
}

}  // namespace leadline
