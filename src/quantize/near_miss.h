// SPDX-License-Identifier: Apache-2.0
// Names that somebody may have meant who wrote another one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace leadline::quantize {

/// Those of `names` that have `wanted` inside of them; where there are none, those that share most pairs of
/// neighbouring characters with it, the nearest first, and nothing that has less than a third in common. At most
/// `count`.
std::vector<std::string> near_misses(std::string_view wanted, const std::vector<std::string_view>& names, size_t count);

/// The characters a pattern matches literally, in a row: what is looked for where the pattern finds nothing.
std::string literal_text(std::string_view pattern);

}  // namespace leadline::quantize
