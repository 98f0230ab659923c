// SPDX-License-Identifier: Apache-2.0
// Which nodes are to be treated how: rules that match ops, names and node numbers, and their JSON.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "quantize/pattern.h"
#include "quantize/treatment.h"

namespace leadline::quantize {

/// Nodes that match all of its conditions get its treatment.
struct Rule {
  std::string op;    // name of an op; empty or "*": any
  std::string name;  // pattern, searched in the names of the node's outputs; empty: any
  int node = -1;     // number of a node in subgraph 0; -1: any
  Treatment treatment = Treatment::kFloat;
};

/// Rules ready to be asked. The last that matches decides.
class Recipe {
 public:
  /// Throws Error(kInvalidArgument), naming the rule, for bad patterns, patterns that take too much together, unknown
  /// ops and node numbers below -1.
  explicit Recipe(const std::vector<Rule>& rules);

  /// Nothing when no rule matches.
  std::optional<Treatment> treatment(const ir::Graph& graph, int subgraph, int node) const;

 private:
  struct Compiled {
    Rule rule;
    std::shared_ptr<const Pattern> name;  // null: any; equal ones are one
  };
  std::vector<Compiled> rules_;
};

/// A recipe in JSON, in either of two shapes:
///  - a list of rules, or {"rules": [...]}: {"op": "CONV_2D", "name": "block1/.*", "node": 3, "mode": "float"}; every
///    condition may be left out or be a list of which one must match; modes are those of treatment_of();
///  - a list as ai-edge-quantizer writes it: {"regex", "operation", "algorithm_key", "op_config"}. What it does not
///    name stays float.
/// Throws Error(kInvalidArgument) that names the line of bad JSON, or the rule and the key.
std::vector<Rule> parse_recipe(std::string_view json);

/// "float", "float16", "dynamic", "int8", "int16x8", "weight_only_int8", "weight_only_int4"; nothing for other names.
std::optional<Treatment> treatment_of(std::string_view mode);

}  // namespace leadline::quantize
