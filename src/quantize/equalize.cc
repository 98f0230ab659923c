// SPDX-License-Identifier: Apache-2.0
#include "quantize/equalize.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <vector>

#include "core/cancel.h"
#include "ops/registry.h"
#include "passes/editor.h"
#include "quantize/constants.h"

namespace leadline::quantize {
namespace {

constexpr int kRounds = 20;         // a chain of layers settles within a few
constexpr double kSettled = 1e-3;   // factors this near to 1 no longer matter
constexpr double kLargest = 1.0e3;  // of a factor: beyond it a channel is dead, not unequal

/// A node with weights, by the magnitudes of its weights between each input channel and each output channel. Factors
/// are collected per channel and applied to the constants at the end.
struct Layer {
  ops::ContractionOperands operands;
  int node = 0;
  int64_t outputs = 0;
  int64_t inputs = 0;
  std::vector<float> largest;  // outputs x inputs; of a depthwise layer one per output
  std::vector<double> output_factors;
  std::vector<double> input_factors;

  bool depthwise() const { return operands.kind == ops::ContractionKind::kDepthwise; }
  int64_t input_of(int64_t output) const { return output * inputs / std::max<int64_t>(outputs, 1); }

  double output_range(int64_t output) const {
    const auto o = static_cast<size_t>(output);
    if (depthwise()) {
      return static_cast<double>(largest[o]) * output_factors[o] * input_factors[static_cast<size_t>(input_of(output))];
    }
    double range = 0.0;
    for (int64_t i = 0; i < inputs; ++i) {
      const auto at = static_cast<size_t>(output * inputs + i);
      range = std::max(range, static_cast<double>(largest[at]) * input_factors[static_cast<size_t>(i)]);
    }
    return range * output_factors[o];
  }

  double input_range(int64_t input) const {
    double range = 0.0;
    for (int64_t o = 0; o < outputs; ++o) {
      if (depthwise() && input_of(o) != input) continue;
      const auto at = static_cast<size_t>(depthwise() ? o : o * inputs + input);
      range = std::max(range, static_cast<double>(largest[at]) * output_factors[static_cast<size_t>(o)]);
    }
    return range * input_factors[static_cast<size_t>(input)];
  }
};

/// Input `i` of a node; kAbsent where it has none.
int input_of(const ir::Node& node, int i) {
  return i >= 0 && i < static_cast<int>(node.inputs.size()) ? node.inputs[static_cast<size_t>(i)] : ir::kAbsent;
}

std::optional<Layer> layer_of(passes::Editor& e, int n) {
  const ir::Node& node = e.node(n);
  const ops::OpDef* op = ops::row_of(node);
  if (op == nullptr || !op->is_integer_layer()) return {};
  Layer layer;
  layer.node = n;
  layer.operands = op->contraction;
  const int w = input_of(node, layer.operands.weights);
  const int x = input_of(node, layer.operands.activations);
  const int b = input_of(node, layer.operands.bias);
  if (x == ir::kAbsent || node.outputs.size() != 1 || !e.is_constant(w)) return {};
  const ir::Value& weights = e.value(w);
  if (weights.dtype != DType::kFloat32 || weights.shape.rank() != layer.operands.rank) return {};
  const Shape& shape = weights.shape;
  layer.outputs = shape[layer.operands.output_axis];
  const Shape& input = e.value(x).shape;
  if (input.rank() < 1) return {};
  layer.inputs = input[input.rank() - 1];
  if (layer.depthwise()) {
    if (input.rank() != layer.operands.rank || layer.inputs < 1 || layer.outputs % layer.inputs != 0) return {};
  } else if (layer.inputs != shape[layer.operands.input_axis]) {
    return {};  // grouped, or a vector that was reshaped on the way
  }
  if (b != ir::kAbsent) {
    if (!e.is_constant(b)) return {};
    const ir::Value& bias = e.value(b);
    if (bias.dtype != DType::kFloat32 || bias.shape.elements() != layer.outputs || bias.shape.rank() != 1) return {};
  }
  if (layer.outputs < 1 || layer.inputs < 1) return {};

  const Floats floats(weights);
  layer.largest.assign(static_cast<size_t>(layer.depthwise() ? layer.outputs : layer.outputs * layer.inputs), 0.0F);
  const AxisIndex output_of(shape, layer.operands.output_axis);
  const AxisIndex channel_of(shape, layer.operands.input_axis);
  for (size_t at = 0; at < floats.values().size(); ++at) {
    const auto element = static_cast<int64_t>(at);
    const int64_t output = output_of(element);
    float& largest =
        layer.largest[static_cast<size_t>(layer.depthwise() ? output : output * layer.inputs + channel_of(element))];
    largest = std::max(largest, std::abs(floats.values()[at]));
  }
  layer.output_factors.assign(static_cast<size_t>(layer.outputs), 1.0);
  layer.input_factors.assign(static_cast<size_t>(layer.inputs), 1.0);
  return layer;
}

/// Whether positive factors pass through what a node does with its sums.
bool lets_factors_pass(const ir::Node& node) {
  const auto activation = passes::activation_of(*node.attributes);
  return !activation || *activation == ir::Activation::kNone || *activation == ir::Activation::kRelu;
}

/// One step towards equal ranges; how far the factors were from 1.
double balance(Layer& first, Layer& second) {
  double moved = 0.0;
  for (int64_t c = 0; c < first.outputs; ++c) {
    const double before = first.output_range(c);
    const double after = second.input_range(c);
    if (!(before > 0.0) || !(after > 0.0) || !std::isfinite(before * after)) continue;
    const double total = first.output_factors[static_cast<size_t>(c)];
    double factor = std::sqrt(before / after);
    factor = std::clamp(factor, total / kLargest, total * kLargest);
    first.output_factors[static_cast<size_t>(c)] /= factor;
    second.input_factors[static_cast<size_t>(c)] *= factor;
    moved = std::max(moved, std::abs(std::log(factor)));
  }
  return moved;
}

std::vector<float> rounded(const std::vector<double>& factors) { return {factors.begin(), factors.end()}; }

/// Multiplies the constants of a layer by its factors.
void apply(passes::Editor& e, const Layer& layer) {
  const ir::Node node = e.node(layer.node);
  const auto weights_at = static_cast<size_t>(layer.operands.weights);
  const auto bias_at = static_cast<size_t>(layer.operands.bias);
  const int w = node.inputs[weights_at];
  const Shape shape = e.value(w).shape;
  int axis = layer.operands.input_axis;
  std::vector<double> factors = layer.input_factors;
  ir::Source source = e.source_of(w);
  if (layer.depthwise()) {
    axis = layer.operands.output_axis;
    factors.resize(static_cast<size_t>(layer.outputs));
    for (int64_t o = 0; o < layer.outputs; ++o) {
      factors[static_cast<size_t>(o)] =
          layer.output_factors[static_cast<size_t>(o)] * layer.input_factors[static_cast<size_t>(layer.input_of(o))];
    }
  } else {
    source = ir::scaled_source(std::move(source), shape, layer.operands.output_axis, rounded(layer.output_factors));
  }
  source = ir::scaled_source(std::move(source), shape, axis, rounded(factors));
  std::vector<int> inputs = node.inputs;
  inputs[weights_at] = e.add_constant(e.value(w).name, DType::kFloat32, shape, std::move(source));
  if (const int b = input_of(node, layer.operands.bias); b != ir::kAbsent) {
    const Shape length = e.value(b).shape;
    const std::string name = e.value(b).name;
    inputs[bias_at] = e.add_constant(name, DType::kFloat32, length,
                                     ir::scaled_source(e.source_of(b), length, 0, rounded(layer.output_factors)));
  }
  e.set_inputs(layer.node, std::move(inputs));
}

int equalize_subgraph(ir::Graph& graph, int subgraph) {
  passes::Editor e(graph, subgraph);
  std::map<int, Layer> layers;
  for (int n = 0; n < e.node_count(); ++n) {
    if (auto layer = layer_of(e, n)) layers.emplace(n, std::move(*layer));
  }
  std::vector<std::pair<Layer*, Layer*>> pairs;
  for (auto& [n, first] : layers) {
    const int v = e.node(n).outputs[0];
    if (!lets_factors_pass(e.node(n)) || e.is_output(v) || !e.used_once(v)) continue;
    const auto second = layers.find(*e.consumers(v).begin());
    if (second == layers.end() || input_of(e.node(second->first), second->second.operands.activations) != v) continue;
    if (second->second.inputs != first.outputs) continue;
    pairs.emplace_back(&first, &second->second);
  }
  PacedCheck check;
  for (int round = 0; round < kRounds; ++round) {
    double moved = 0.0;
    for (const auto& [first, second] : pairs) {
      check.count(64 * first->outputs);
      moved = std::max(moved, balance(*first, *second));
    }
    if (moved < kSettled) break;
  }
  std::vector<bool> changed(static_cast<size_t>(e.node_count()));
  for (const auto& [first, second] : pairs) {
    for (const Layer* layer : {first, second}) {
      check.count(64 * (layer->inputs + layer->outputs) + (1 << 12));
      if (!changed[static_cast<size_t>(layer->node)]) apply(e, *layer);
      changed[static_cast<size_t>(layer->node)] = true;
    }
  }
  return static_cast<int>(pairs.size());
}

}  // namespace

int equalize(ir::Graph& graph) {
  int pairs = 0;
  for (size_t s = 0; s < graph.subgraphs.size(); ++s) pairs += equalize_subgraph(graph, static_cast<int>(s));
  return pairs;
}

}  // namespace leadline::quantize
