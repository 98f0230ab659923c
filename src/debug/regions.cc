// SPDX-License-Identifier: Apache-2.0
#include "debug/regions.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "core/pattern_text.h"
#include "debug/index.h"

namespace leadline::debug {
namespace {

/// Converters join the names of nodes they merged by ';': the first is that of the result.
std::string_view first_name(std::string_view name) { return name.substr(0, name.find(';')); }

bool inside(std::string_view name, std::string_view scope) {
  name = first_name(name);
  return name.starts_with(scope) && (name.size() == scope.size() || name[scope.size()] == '/');
}

/// `scope` and the next part of a name inside of it.
std::string_view longer_scope(std::string_view name, std::string_view scope) {
  name = first_name(name);
  const size_t from = scope.empty() ? 0 : scope.size() + 1;
  if (from >= name.size()) return name;
  return name.substr(0, name.find('/', from));
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Without the numbers at the ends of its parts; others are '#'.
std::string alike_name(std::string_view name) {
  name = first_name(name);
  std::string result;
  for (size_t i = 0; i < name.size(); ++i) {
    if (!is_digit(name[i])) {
      result += name[i];
      continue;
    }
    while (i + 1 < name.size() && is_digit(name[i + 1])) ++i;
    const bool ends_part = i + 1 == name.size() || name[i + 1] == '/';
    if (!ends_part) {
      result += '#';
    } else if (!result.empty() && (result.back() == '_' || result.back() == '.')) {
      result.pop_back();
    }
  }
  return result;
}

/// What finds the names that have become `scope`.
std::string alike_pattern(std::string_view scope) {
  std::string result;
  for (size_t i = 0; i <= scope.size(); ++i) {
    if (i == scope.size() || scope[i] == '/') result += "([_.]?[0-9]+)?";
    if (i == scope.size()) break;
    result += scope[i] == '#' ? "[0-9]+" : escaped_pattern(scope.substr(i, 1));
  }
  return "^" + result + "(/|;|$)";
}

std::vector<Region> stretches(const std::vector<int>& nodes, const std::vector<RegionNode>& all) {
  const size_t parts = std::min(kMostParts, nodes.size());
  std::vector<Region> result;
  for (size_t i = 0; i < parts; ++i) {
    result.push_back(stretch(nodes, i * nodes.size() / parts, (i + 1) * nodes.size() / parts, all));
  }
  return result;
}

}  // namespace

Region stretch(const std::vector<int>& nodes, size_t first, size_t last, const std::vector<RegionNode>& all) {
  Region part;
  part.nodes.assign(nodes.begin() + static_cast<std::ptrdiff_t>(first),
                    nodes.begin() + static_cast<std::ptrdiff_t>(last));
  const std::string from(first_name(all[at(part.nodes.front())].name));
  const std::string to(first_name(all[at(part.nodes.back())].name));
  part.name = from == to ? from : from + " ... " + to;
  return part;
}

Region whole_network(const std::vector<RegionNode>& all) {
  Region region;
  region.name = "the network";
  for (size_t i = 0; i < all.size(); ++i) region.nodes.push_back(static_cast<int>(i));
  return region;
}

std::vector<Region> split(const Region& region, const std::vector<RegionNode>& all) {
  if (region.nodes.size() < 2) return {};
  std::string scope = region.scope;
  while (true) {
    std::map<std::string_view, std::vector<int>> groups;
    std::vector<std::string_view> order;
    for (const int i : region.nodes) {
      const std::string_view key = longer_scope(all[at(i)].name, scope);
      std::vector<int>& group = groups[key];
      if (group.empty()) order.push_back(key);
      group.push_back(i);
    }
    if (groups.size() == 1) {
      if (order.front() == scope) break;  // all have one name
      scope = std::string(order.front());
      continue;
    }
    if (groups.size() > kMostParts) break;
    std::vector<Region> parts;
    for (const std::string_view key : order) parts.push_back({std::string(key), groups[key], std::string(key)});
    return parts;
  }
  return stretches(region.nodes, all);
}

std::vector<RegionNode> alike_names(const std::vector<RegionNode>& all) {
  std::vector<RegionNode> alike;
  for (const RegionNode& node : all) alike.push_back({node.node, alike_name(node.name)});
  return alike;
}

std::vector<std::string> patterns_of(const Region& region, const std::vector<RegionNode>& all) {
  if (region.alike && !region.scope.empty()) {
    const auto within = std::count_if(all.begin(), all.end(),
                                      [&](const RegionNode& n) { return inside(alike_name(n.name), region.scope); });
    if (at(static_cast<int>(within)) == region.nodes.size()) return {alike_pattern(region.scope)};
  }
  if (!region.alike && !region.scope.empty() && region.nodes.size() > 1) {
    const auto within =
        std::count_if(all.begin(), all.end(), [&](const RegionNode& n) { return inside(n.name, region.scope); });
    if (at(static_cast<int>(within)) == region.nodes.size()) return {"^" + escaped_pattern(region.scope) + "(/|;|$)"};
  }
  std::vector<std::string> patterns;
  for (const int i : region.nodes) patterns.push_back(exact_pattern(all[at(i)].name));
  return patterns;
}

}  // namespace leadline::debug
