// SPDX-License-Identifier: Apache-2.0
// Texts of files without the blanks around them.
#pragma once

#include <string_view>

namespace leadline::guard {

inline std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

}  // namespace leadline::guard
