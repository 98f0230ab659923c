// SPDX-License-Identifier: Apache-2.0
#include "api/op_names.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "core/join.h"
#include "ops/registry.h"

namespace leadline {
namespace {

constexpr size_t kMostSuggestions = 3;
constexpr size_t kLongestName = 64;  // of an op of the format; distances are not computed for more

std::string plain(std::string_view name) {
  std::string result;
  for (const char c : name) {
    if (c != '_') result += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return result;
}

/// How many characters must be inserted, left out or replaced to make `b` of `a`.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, replaced}));
    }
  }
  return row[b.size()];
}

}  // namespace

std::vector<std::string> similar_ops(std::string_view name) {
  if (name.size() > kLongestName) return {};
  const std::string wanted = plain(name);
  const size_t most = std::max<size_t>(1, wanted.size() / 4);
  std::vector<std::pair<size_t, std::string>> found;
  for (const auto& [code, row] : ops::registry().builtins()) {
    const size_t distance = edit_distance(wanted, plain(row.id.name()));
    if (distance <= most) found.emplace_back(distance, row.id.name());
  }
  std::ranges::sort(found);
  std::vector<std::string> names;
  for (auto& [distance, op] : found) {
    if (names.size() < kMostSuggestions) names.push_back(std::move(op));
  }
  return names;
}

bool looks_like_builtin(std::string_view name) {
  const bool upper = std::ranges::all_of(
      name, [](unsigned char c) { return std::isupper(c) != 0 || std::isdigit(c) != 0 || c == '_'; });
  return (upper && !name.empty()) || !similar_ops(name).empty();
}

std::string suggest_ops(std::string_view name) {
  std::vector<std::string> quoted;
  for (const std::string& op : similar_ops(name)) quoted.push_back(fmt::format("'{}'", op));
  if (quoted.empty()) return "`leadline ops` lists those it has.";
  return fmt::format("did you mean {}?", join(quoted, " or "));
}

}  // namespace leadline
