// SPDX-License-Identifier: Apache-2.0
#include "leadline/recipe.h"

#include <string_view>

#include "core/boundary.h"
#include "core/error.h"
#include "core/pattern_text.h"
#include "io/json.h"
#include "io/mapped_file.h"
#include "ops/registry.h"
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

std::string recipe_to_json(const std::vector<RecipeRule>& rules, const RecipeSettings& settings) {
  Json beside = Json::object();
  if (settings.mode) beside["mode"] = quantization_mode_name(*settings.mode);
  if (settings.method) beside["method"] = calibration_method_name(*settings.method);
  if (settings.percentile) beside["percentile"] = *settings.percentile;
  if (settings.per_channel) beside["per_channel"] = *settings.per_channel;
  if (settings.equalize) beside["equalize"] = *settings.equalize;
  if (settings.bias_correction) beside["bias_correction"] = *settings.bias_correction;
  if (settings.rounding) beside["rounding"] = weight_rounding_name(*settings.rounding);
  std::string text = beside.dump();
  text.pop_back();
  text += text.size() > 1 ? ", \"rules\": [" : "\"rules\": [";
  for (const RecipeRule& rule : rules) {
    Json json = Json::object();
    if (!rule.op.empty()) json["op"] = rule.op;
    if (!rule.name.empty()) json["name"] = rule.name;
    if (rule.node >= 0) json["node"] = rule.node;
    json["mode"] = quantization_mode_name(rule.mode);
    if (rule.optional) json["optional"] = true;
    if (rule.block_size > 0) json["block_size"] = rule.block_size;
    if (!rule.symmetric) json["symmetric"] = false;
    if (rule.min_weight_elements) json["min_weight_elements"] = *rule.min_weight_elements;
    if (rule.rounding) json["rounding"] = weight_rounding_name(*rule.rounding);
    if (rule.rotation != WeightRotation::kNone) json["rotation"] = weight_rotation_name(rule.rotation);
    text += (&rule == rules.data() ? "\n " : ",\n ") + json.dump();
  }
  return text + "\n]}\n";
}

RecipeRule rule_for_tensor(const std::string& name, QuantizationMode mode) {
  RecipeRule rule;
  rule.mode = mode;
  rule.name = exact_pattern(name);
  return rule;
}

RecipeRule rule_for(const std::string& name, QuantizationMode mode) {
  if (ops::registry().find_named(name) == nullptr) return rule_for_tensor(name, mode);
  RecipeRule rule;
  rule.op = name;
  rule.mode = mode;
  return rule;
}

RecipeDocument parse_recipe(const std::string& json) try {
  RecipeDocument recipe = quantize::read_recipe(json);
  const quantize::Recipe checked(recipe.rules);  // throws for patterns and ops that do not exist
  return recipe;
} catch (...) {
  rethrow_as_error();
}

RecipeDocument load_recipe(const std::string& path) try {
  RecipeDocument recipe;
  parse_file(path, [&](std::string_view text) { recipe = parse_recipe(std::string(text)); });
  return recipe;
} catch (...) {
  rethrow_as_error();
}

}  // namespace leadline
