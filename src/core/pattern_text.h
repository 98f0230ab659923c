// SPDX-License-Identifier: Apache-2.0
// Text that patterns are made of.
#pragma once

#include <string>
#include <string_view>

namespace leadline {

/// A pattern that finds this text: what means something in a pattern is escaped.
inline std::string escaped_pattern(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (std::string_view("\\.^$*+?()[]{}|").find(c) != std::string_view::npos) result += '\\';
    result += c;
  }
  return result;
}

/// A pattern that matches this text and nothing else.
inline std::string exact_pattern(std::string_view text) { return "^" + escaped_pattern(text) + "$"; }

}  // namespace leadline
