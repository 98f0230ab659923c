// SPDX-License-Identifier: Apache-2.0
// Recipes in JSON: which nodes are quantized how.
#pragma once

#include <string>
#include <vector>

#include "leadline/quantizer.h"

namespace leadline {

/// Reads a recipe for QuantizerOptions::recipe, in either of two shapes:
///  - a list of rules, or an object with the key "rules": {"op": "CONV_2D", "name": "block1/.*", "node": 3,
///    "mode": "float"}. Conditions may be left out, or be lists of which one must match. Modes: "float", "float16",
///    "dynamic", "int8", "int16x8", "weight_only_int8", "weight_only_int4";
///  - what ai-edge-quantizer writes: {"regex", "operation", "algorithm_key", "op_config"}. Nodes that it does not name
///    stay float.
/// Patterns are regular expressions without back references and look-around. Throws Error(kInvalidArgument) that names
/// the line of bad JSON, or the rule and the key.
std::vector<RecipeRule> parse_recipe(const std::string& json);

/// The same from a file. Throws Error(kIo) too.
std::vector<RecipeRule> load_recipe(const std::string& path);

/// The mode called so in recipes; throws Error(kInvalidArgument) with all names for any other text.
QuantizationMode parse_quantization_mode(const std::string& name);
std::string quantization_mode_name(QuantizationMode mode);

}  // namespace leadline
