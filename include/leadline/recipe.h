// SPDX-License-Identifier: Apache-2.0
// Recipes: which nodes are quantized how, and their JSON.
#pragma once

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
};

/// "op CONV_2D, name 'block1/.*'": how messages call a rule.
std::string describe(const RecipeRule& rule);

/// Reads a recipe in either of two shapes:
///  - a list of rules, or an object with the key "rules": {"op": "CONV_2D", "name": "block1/.*", "node": 3,
///    "mode": "float"}. Conditions may be left out, or be lists of which one must match. Modes are those of names.h;
///  - what ai-edge-quantizer writes: {"regex", "operation", "algorithm_key", "op_config"}. Nodes that it does not name
///    stay float.
/// Patterns are regular expressions without back references and look-around. Throws Error(kInvalidArgument) that names
/// the line of bad JSON, or the rule and the key.
std::vector<RecipeRule> parse_recipe(const std::string& json);

/// The same from a file. Throws Error(kIo) too.
std::vector<RecipeRule> load_recipe(const std::string& path);

/// A recipe that parse_recipe() reads, one rule per line.
std::string recipe_to_json(const std::vector<RecipeRule>& rules);
/// A rule for the nodes that compute the tensor of this name, and no other.
RecipeRule rule_for_tensor(const std::string& name, QuantizationMode mode);

}  // namespace leadline
