// SPDX-License-Identifier: Apache-2.0
// What is to become of each node of a float graph: the recipe, the mode and the rules of the ops, put together. The
// rewrites (integers.h, weights.h) do what it says.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "leadline/recipe.h"
#include "quantize/gram.h"

namespace leadline::quantize {

/// What a recipe says of a node's weights.
struct WeightRule {
  int block_size = 0;                          // see RecipeRule
  bool symmetric = true;                       // see RecipeRule
  std::optional<int64_t> min_weight_elements;  // instead of that of WeightOptions
  std::optional<WeightRounding> rounding;      // instead of the options'
  WeightRotation rotation = WeightRotation::kNone;
};

struct NodeTreatment {
  QuantizationMode mode = QuantizationMode::kFloat;
  std::string reason = {};  // why a node that was to be quantized stays float
  WeightRule weights = {};
  int node = -1;  // in the float graph; -1: it was added
};

/// The matrix of what a node of the float graph multiplies its weights with; null: there is none.
using GramOf = std::function<const GramMatrix*(int subgraph, int node)>;

/// By subgraph, then by node.
using Treatments = std::vector<std::vector<NodeTreatment>>;

struct TreatmentOptions {
  QuantizationMode mode = QuantizationMode::kInt8;  // of nodes that the recipe does not name
  /// The recipe: the rule for a node; null when it has none. May be empty.
  std::function<const RecipeRule*(int subgraph, int node)> recipe;
  /// Why a node's weights cannot have a treatment that keeps float activations; an empty text when they can.
  std::function<std::string(const ir::Subgraph&, const ir::Node&, const NodeTreatment&)> weights_obstacle;
};

/// Which subgraphs are run by themselves, and so may have inputs and outputs of other types: the main one and those of
/// signatures, unless a node calls them too.
std::vector<bool> entry_subgraphs(const ir::Graph& graph);

/// Throws Error(kUnsupported), naming the first tensor, when the model has quantized tensors or float16 weights.
void require_float_model(const ir::Graph& graph);

/// The mode of every node, kFloat with a reason where its op has no such form.
Treatments plan_treatments(const ir::Graph& graph, const TreatmentOptions& options);

/// Whether a node computes with float values at all.
bool has_floats(const ir::Subgraph& subgraph, const ir::Node& node);

/// Throws Error(kUnsupported) that lists every node that was to have an integer form and stays float for a reason.
void require_integers(const ir::Graph& graph, const Treatments& treatments);

}  // namespace leadline::quantize
