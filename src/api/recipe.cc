// SPDX-License-Identifier: Apache-2.0
#include "leadline/recipe.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "api/boundary.h"
#include "core/error.h"
#include "io/mapped_file.h"
#include "quantize/recipe.h"

namespace leadline {
namespace {

using quantize::Treatment;

constexpr std::array<std::pair<Treatment, QuantizationMode>, 6> kModes{{
    {Treatment::kFloat16, QuantizationMode::kFloat16},
    {Treatment::kHybrid, QuantizationMode::kDynamicRange},
    {Treatment::kInt8, QuantizationMode::kInt8},
    {Treatment::kInt16, QuantizationMode::kInt16x8},
    {Treatment::kWeightOnlyInt8, QuantizationMode::kWeightOnlyInt8},
    {Treatment::kWeightOnlyInt4, QuantizationMode::kWeightOnlyInt4},
}};
constexpr std::array<std::pair<std::string_view, QuantizationMode>, 6> kNames{{
    {"float16", QuantizationMode::kFloat16},
    {"dynamic", QuantizationMode::kDynamicRange},
    {"int8", QuantizationMode::kInt8},
    {"int16x8", QuantizationMode::kInt16x8},
    {"weight_only_int8", QuantizationMode::kWeightOnlyInt8},
    {"weight_only_int4", QuantizationMode::kWeightOnlyInt4},
}};

}  // namespace

std::vector<RecipeRule> parse_recipe(const std::string& json) try {
  const std::vector<quantize::Rule> rules = quantize::parse_recipe(json);
  const quantize::Recipe checked(rules);  // throws for patterns and ops that are none
  std::vector<RecipeRule> result;
  for (const quantize::Rule& rule : rules) {
    const auto* mode =
        std::find_if(kModes.begin(), kModes.end(), [&](const auto& row) { return row.first == rule.treatment; });
    const bool quantized = mode != kModes.end();
    result.push_back({rule.op, rule.name, rule.node, quantized, quantized ? mode->second : QuantizationMode::kInt8});
  }
  return result;
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

QuantizationMode parse_quantization_mode(const std::string& name) try {
  std::vector<std::string_view> names;
  for (const auto& [known, mode] : kNames) {
    if (known == name) return mode;
    names.push_back(known);
  }
  fail(ErrorCode::kInvalidArgument, "there is no mode '{}'; known are {}", name.substr(0, 80), fmt::join(names, ", "));
} catch (...) {
  rethrow_as_error();
}

std::string quantization_mode_name(QuantizationMode mode) {
  const auto* found = std::find_if(kNames.begin(), kNames.end(), [&](const auto& row) { return row.second == mode; });
  return std::string(found->first);
}

}  // namespace leadline
