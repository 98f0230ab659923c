// SPDX-License-Identifier: Apache-2.0
// The rules of a recipe, ready to be asked about the nodes of a graph, and their JSON.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "leadline/recipe.h"
#include "quantize/pattern.h"

namespace leadline::quantize {

/// Rules ready to be asked. The last that matches decides.
class Recipe {
 public:
  /// Throws Error(kInvalidArgument), naming the rule, for bad patterns, patterns that take too much together, unknown
  /// ops, node numbers below -1, and weights in a form that the mode does not have.
  explicit Recipe(const std::vector<RecipeRule>& rules);

  /// The rule that decides; null when none matches.
  const RecipeRule* rule(const ir::Graph& graph, int subgraph, int node) const;
  /// Rules that match no node of the graph, in their order.
  std::vector<RecipeRule> unmatched(const ir::Graph& graph) const;
  /// Throws Error(kInvalidArgument) for the first rule that matches no node and is not optional, with what it may have
  /// meant.
  void require_matches(const ir::Graph& graph) const;

 private:
  struct Compiled {
    RecipeRule rule;
    std::optional<ir::OpId> op;           // nothing: any
    std::shared_ptr<const Pattern> name;  // null: any; equal ones are one

    bool matches(const ir::Graph& graph, int subgraph, int node) const;
  };
  std::vector<Compiled> rules_;
};

/// What leadline::parse_recipe() returns, before Recipe checks it.
RecipeDocument read_recipe(std::string_view json);

}  // namespace leadline::quantize
