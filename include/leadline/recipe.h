// SPDX-License-Identifier: Apache-2.0
// Recipes: which nodes are quantized how, and their JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "leadline/names.h"

namespace leadline {

/// Nodes that match all of its conditions get its mode.
struct RecipeRule {
  std::string op;    ///< name of an op ("CONV_2D"); empty or "*": any
  std::string name;  ///< regular expression, searched in the names of the node's outputs; empty: any
  int node = -1;     ///< index of the node in subgraph 0; -1: any
  QuantizationMode mode = QuantizationMode::kFloat;
  bool optional = false;  ///< may match no node; otherwise that is an error
  int block_size = 0;  ///< weights along the depth of a dense layer that share a scale, a multiple of 32; 0: a channel
  bool symmetric = true;  ///< weights have no zero points; false: only of weights that are widened before use
  std::optional<int64_t> min_weight_elements = std::nullopt;  ///< as of QuantizeOptions; nothing: that
  std::optional<WeightRounding> rounding = std::nullopt;      ///< as of QuantizeOptions; nothing: that
  WeightRotation rotation = WeightRotation::kNone;  ///< of dense layers' weights, for kernels that multiply integers
};

/// What a recipe says about the whole model, beside its rules. What is absent is left to who quantizes.
struct RecipeSettings {
  std::optional<QuantizationMode> mode;  ///< of nodes that no rule names
  std::optional<CalibrationMethod> method;
  std::optional<double> percentile;
  std::optional<bool> per_channel;  ///< of all weights, those of dense layers too
  std::optional<bool> equalize;
  std::optional<bool> bias_correction;
  std::optional<WeightRounding> rounding;

  bool operator==(const RecipeSettings&) const = default;
};

/// "op CONV_2D, name 'block1/.*'": how messages call a rule.
std::string describe(const RecipeRule& rule);

/// Rules and settings.
struct RecipeDocument {
  std::vector<RecipeRule> rules;
  RecipeSettings settings;
};

/// Reads a recipe in either of two shapes:
///  - a list of rules, or an object with the key "rules": {"op": "CONV_2D", "name": "block1/.*", "node": 3,
///    "mode": "float", "optional": false}. Conditions may be left out, or be lists of which one must match. Modes are
///    those of names.h; "block_size", "symmetric", "min_weight_elements", "rounding" and "rotation" are about weights.
///    The object may have settings beside its rules: "mode", "method", "percentile", "per_channel", "equalize",
///    "bias_correction", "rounding";
///  - what ai-edge-quantizer writes: {"regex", "operation", "algorithm_key", "op_config"}. Nodes that it does not name
///    stay float, and its rules are optional.
/// Patterns are regular expressions without back references and look-around. Throws Error(kInvalidArgument) that names
/// the line of bad JSON, or the rule and the key.
RecipeDocument parse_recipe(const std::string& json);

/// The same from a file. Throws Error(kIo) too.
RecipeDocument load_recipe(const std::string& path);

/// A recipe that parse_recipe() reads, one rule per line.
std::string recipe_to_json(const std::vector<RecipeRule>& rules, const RecipeSettings& settings = {});
/// A rule for the nodes that compute the tensor of this name, and no other.
RecipeRule rule_for_tensor(const std::string& name, QuantizationMode mode);
/// A rule for what `name` is the name of: an op ("SOFTMAX"), or else a tensor.
RecipeRule rule_for(const std::string& name, QuantizationMode mode);

}  // namespace leadline
