// SPDX-License-Identifier: Apache-2.0
#include "leadline/recipe.h"

#include <memory>
#include <span>
#include <string_view>

#include "core/boundary.h"
#include "core/error.h"
#include "io/json.h"
#include "io/mapped_file.h"
#include "quantize/recipe.h"

namespace leadline {

std::string describe(const RecipeRule& rule) {
  std::string text;
  const auto add = [&](const std::string& condition) { text += (text.empty() ? "" : ", ") + condition; };
  if (!rule.op.empty()) add("op " + rule.op);
  if (!rule.name.empty()) add("name '" + rule.name + "'");
  if (rule.node >= 0) add("node " + std::to_string(rule.node));
  return text.empty() ? "any node" : text;
}

std::string recipe_to_json(const std::vector<RecipeRule>& rules) {
  std::string text = "{\"rules\": [";
  for (const RecipeRule& rule : rules) {
    Json json = Json::object();
    if (!rule.op.empty()) json["op"] = rule.op;
    if (!rule.name.empty()) json["name"] = rule.name;
    if (rule.node >= 0) json["node"] = rule.node;
    json["mode"] = quantization_mode_name(rule.mode);
    text += (&rule == rules.data() ? "\n " : ",\n ") + json.dump();
  }
  return text + "\n]}\n";
}

RecipeRule rule_for_tensor(const std::string& name, QuantizationMode mode) {
  RecipeRule rule;
  rule.mode = mode;
  rule.name = "^";
  for (const char c : name) {
    if (std::string_view("\\.^$*+?()[]{}|").find(c) != std::string_view::npos) rule.name += '\\';
    rule.name += c;
  }
  rule.name += '$';
  return rule;
}

std::vector<RecipeRule> parse_recipe(const std::string& json) try {
  std::vector<RecipeRule> rules = quantize::read_recipe(json);
  const quantize::Recipe checked(rules);  // throws for patterns and ops that do not exist
  return rules;
} catch (...) {
  rethrow_as_error();
}

std::vector<RecipeRule> load_recipe(const std::string& path) try {
  const std::shared_ptr<ModelBytes> file = ModelBytes::map_file(path);
  const std::span<const std::byte> bytes = file->span();
  try {
    std::vector<RecipeRule> rules = parse_recipe({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    file->require_intact();
    return rules;
  } catch (const Error& error) {
    file->require_intact();
    if (error.code() == ErrorCode::kOutOfMemory) throw;
    throw Error(error.code(), fmt::format("{}: {}", path, error.what()));
  }
} catch (...) {
  rethrow_as_error();
}

}  // namespace leadline
