// SPDX-License-Identifier: Apache-2.0
// How deep a JSON text nests, before it is parsed: the library goes through deep values by recursion. Its own callback
// could tell while parsing, but makes that quadratic in the length of lists.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace leadline {

/// The most lists and objects that are open at one place; any text has an answer.
inline size_t json_depth(std::string_view text) {
  size_t depth = 0;
  size_t deepest = 0;
  bool inside = false;  // a string
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      inside = !inside;
    } else if (inside) {
      if (c == '\\') ++i;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return deepest;
}

}  // namespace leadline
