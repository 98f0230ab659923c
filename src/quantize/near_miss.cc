// SPDX-License-Identifier: Apache-2.0
#include "quantize/near_miss.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <utility>

namespace leadline::quantize {
namespace {

constexpr double kEnoughInCommon = 1.0 / 3.0;

/// Pairs of neighbouring characters, sorted.
std::vector<uint16_t> pairs_of(std::string_view text) {
  std::vector<uint16_t> pairs;
  const auto lower = [&](size_t i) { return static_cast<uint16_t>(std::tolower(static_cast<unsigned char>(text[i]))); };
  for (size_t i = 0; i + 1 < text.size(); ++i) pairs.push_back(static_cast<uint16_t>(lower(i) << 8 | lower(i + 1)));
  std::sort(pairs.begin(), pairs.end());
  return pairs;
}

/// Dice's coefficient: 1 for texts of the same pairs, 0 for texts that share none.
double likeness(const std::vector<uint16_t>& a, const std::vector<uint16_t>& b) {
  if (a.empty() || b.empty()) return 0.0;
  size_t common = 0;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (a[i] == b[j]) {
      ++common;
      ++i;
      ++j;
    } else {
      a[i] < b[j] ? ++i : ++j;
    }
  }
  return 2.0 * static_cast<double>(common) / static_cast<double>(a.size() + b.size());
}

}  // namespace

std::vector<std::string> near_misses(std::string_view wanted, const std::vector<std::string_view>& names,
                                     size_t count) {
  const std::vector<uint16_t> pairs = pairs_of(wanted);
  std::vector<std::pair<double, std::string_view>> found;
  for (const std::string_view name : names) {
    const bool part = !wanted.empty() && name.find(wanted) != std::string_view::npos;
    const double score = part ? 1.0 : likeness(pairs, pairs_of(name));
    if (score >= kEnoughInCommon) found.emplace_back(score, name);
  }
  if (std::any_of(found.begin(), found.end(), [](const auto& one) { return one.first == 1.0; })) {
    std::erase_if(found, [](const auto& one) { return one.first < 1.0; });
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> result;
  for (const auto& [score, name] : found) {
    if (result.size() == count) break;
    if (std::find(result.begin(), result.end(), name) == result.end()) result.emplace_back(name);
  }
  return result;
}

std::string literal_text(std::string_view pattern) {
  std::string text;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '\\' && i + 1 < pattern.size()) {
      const char next = pattern[++i];
      if (std::isalnum(static_cast<unsigned char>(next)) == 0) text += next;  // not a class such as \d
    } else if (std::string_view(".^$*+?()[]{}|").find(pattern[i]) == std::string_view::npos) {
      text += pattern[i];
    }
  }
  return text;
}

}  // namespace leadline::quantize
