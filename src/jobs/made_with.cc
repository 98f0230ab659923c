// SPDX-License-Identifier: Apache-2.0
// How a quantized model was made, as its file shows it: so that advice changes one thing and leaves the others.
#include <algorithm>
#include <set>
#include <string>

#include "debug/index.h"
#include "debug/match.h"
#include "jobs/suggestions.h"
#include "leadline/recipe.h"
#include "ops/registry.h"
#include "runtime/loaded_model.h"

namespace leadline::jobs {
namespace {

using debug::at;

/// What the quantized nodes and their weights look like.
struct Traits {
  bool int16 = false;             // activations
  bool int8 = false;              // activations
  bool float16 = false;           // weights
  bool int4 = false;              // weights
  bool int2 = false;              // weights
  int64_t least_elements = 1024;  // of quantized weights; TensorFlow's converter leaves smaller ones float
  bool widened = false;           // integer weights through DEQUANTIZE
  int64_t channel_scales = 0;
  int64_t single_scales = 0;
  int64_t dense_channel_scales = 0;
  int64_t dense_single_scales = 0;
};

void look_at_weights(const ir::Value& value, bool dense, bool widened, Traits& traits) {
  traits.float16 |= value.dtype == DType::kFloat16;
  if (!debug::is_quantized(value)) return;
  traits.int4 |= value.dtype == DType::kInt4;
  traits.int2 |= value.dtype == DType::kInt2;
  traits.widened |= widened;
  traits.least_elements = std::min(traits.least_elements, value.shape.elements());
  const bool channels = value.quantization.scale.size() > 1;
  if (dense) {
    (channels ? traits.dense_channel_scales : traits.dense_single_scales) += 1;
  } else {
    (channels ? traits.channel_scales : traits.single_scales) += 1;
  }
}

Traits traits_of(const ir::Graph& graph) {
  Traits traits;
  for (const ir::Subgraph& subgraph : graph.subgraphs) {
    std::vector<int> source(subgraph.values.size(), -1);  // what DEQUANTIZE made it of
    for (const ir::Node& node : subgraph.nodes) {
      if (debug::changes_type_only(node) && subgraph.values[at(node.inputs[0])].constant) {
        source[at(node.outputs[0])] = node.inputs[0];
        continue;
      }
      for (const int v : node.outputs) {
        if (v == ir::kAbsent || !debug::is_quantized(subgraph.values[at(v)])) continue;
        traits.int16 |= subgraph.values[at(v)].dtype == DType::kInt16;
        traits.int8 |= subgraph.values[at(v)].dtype != DType::kInt16;
      }
      const ops::OpDef* row = ops::row_of(node);
      if (row == nullptr || !row->contraction.has_weights()) continue;
      const size_t place = at(row->contraction.weights);
      if (place >= node.inputs.size() || node.inputs[place] == ir::kAbsent) continue;
      const int v = node.inputs[place];
      const bool widened = source[at(v)] >= 0;
      const ir::Value& weights = subgraph.values[at(widened ? source[at(v)] : v)];
      const Shape& shape = weights.shape;
      if (!weights.constant || shape.rank() < 2) continue;
      look_at_weights(weights, row->contraction.kind == ops::ContractionKind::kDense, widened, traits);
    }
  }
  return traits;
}

QuantizationMode mode_of(const Traits& traits) {
  if (traits.int16) return QuantizationMode::kInt16x8;
  if (traits.int8) return QuantizationMode::kInt8;
  if (traits.float16) return QuantizationMode::kFloat16;
  if (traits.int2) return QuantizationMode::kDynamicInt2;
  if (traits.int4) return traits.widened ? QuantizationMode::kWeightOnlyInt4 : QuantizationMode::kDynamicInt4;
  return traits.widened ? QuantizationMode::kWeightOnlyInt8 : QuantizationMode::kDynamicRange;
}

DType border_type(const ir::Graph& graph, bool inputs) {
  const ir::Subgraph& main = graph.subgraphs[0];
  for (const int v : inputs ? main.inputs : main.outputs) {
    if (debug::is_quantized(main.values[at(v)])) return main.values[at(v)].dtype;
  }
  return DType::kFloat32;
}

/// Rules for nodes that could have been quantized and were not: somebody kept them.
std::vector<RecipeRule> kept_rules(const Model& reference, const Model& quantized, const QuantizeOptions& options) {
  const ir::Subgraph& q = quantized.loaded()->graph()->subgraphs[0];
  const ir::Subgraph& f = reference.loaded()->graph()->subgraphs[0];
  const debug::Match match = debug::match_subgraphs(q, f);
  std::set<int> float_nodes;
  for (size_t n = 0; n < q.nodes.size(); ++n) {
    const auto plain = [&](int v) {
      return v == ir::kAbsent || (!debug::is_quantized(q.values[at(v)]) && q.values[at(v)].dtype != DType::kFloat16 &&
                                  (q.values[at(v)].constant || !match.from_constant[at(v)]));
    };
    const ir::Node& node = q.nodes[n];
    if (match.node[n] >= 0 && std::all_of(node.inputs.begin(), node.inputs.end(), plain) &&
        std::all_of(node.outputs.begin(), node.outputs.end(), plain)) {
      float_nodes.insert(match.node[n]);
    }
  }
  std::vector<RecipeRule> rules;
  for (const QuantizedNode& node : Quantizer(reference, options).nodes()) {
    if (node.subgraph != 0 || node.mode == QuantizationMode::kFloat || !float_nodes.contains(node.node)) continue;
    rules.push_back(rule_for_tensor(node.name, QuantizationMode::kFloat));
  }
  return rules;
}

}  // namespace

QuantizeOptions options_of(const Model& reference, const Model& quantized) {
  const ir::Graph& graph = *quantized.loaded()->graph();
  const Traits traits = traits_of(graph);
  QuantizeOptions options;
  options.mode = mode_of(traits);
  options.per_channel = traits.channel_scales > 0 || traits.single_scales == 0;
  options.per_channel_dense = traits.dense_channel_scales > 0 || traits.dense_single_scales == 0;
  // Where there are no weights of one kind, what was asked for is what the others show.
  if (traits.channel_scales + traits.single_scales == 0) options.per_channel = options.per_channel_dense;
  if (traits.dense_channel_scales + traits.dense_single_scales == 0) options.per_channel_dense = options.per_channel;
  if (is_integer(options.mode)) {
    options.input_type = border_type(graph, true);
    options.output_type = border_type(graph, false);
  } else {
    options.min_weight_elements = traits.least_elements;
  }
  options.recipe = kept_rules(reference, quantized, options);
  return options;
}

}  // namespace leadline::jobs
