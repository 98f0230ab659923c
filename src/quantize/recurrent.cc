// SPDX-License-Identifier: Apache-2.0
#include "quantize/recurrent.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "ops/lstm.h"
#include "ops/op_ids.h"
#include "ops/sequence_lstm.h"
#include "ops/svdf.h"
#include "quantize/constants.h"

namespace leadline::quantize {
namespace {

constexpr int kLstmStates[] = {kLstmOutputState, kLstmCellState};
// Inputs of SVDF.
constexpr int kSvdfFeatures = 1;
constexpr int kSvdfTime = 2;
constexpr int kSvdfBias = 3;
constexpr int kSvdfStates[] = {4};

bool is_lstm(const ir::Node& node) { return ir::is_one_of(node.op, {op::kUnidirectionalSequenceLstm, op::kLstm}); }

int operand_of(const ir::Node& node, int i) {
  return i < static_cast<int>(node.inputs.size()) ? node.inputs[static_cast<size_t>(i)] : ir::kAbsent;
}

const ir::Value& tensor(const ir::Subgraph& subgraph, int v) { return subgraph.value(v); }

bool all_zeros(const ir::Value& value) {
  if (!value.constant || value.dtype != DType::kFloat32) return false;
  const Floats floats(value);
  return std::all_of(floats.values().begin(), floats.values().end(), [](float x) { return x == 0.0F; });
}

/// Whether `node` is zeros times something.
bool makes_zeros(const ir::Subgraph& subgraph, const ir::Node& node) {
  if (!ir::is_one_of(node.op, {op::kMul}) || node.outputs.size() != 1 || node.inputs.size() != 2) return false;
  const ir::Value& first = tensor(subgraph, node.inputs[0]);
  const ir::Value& second = tensor(subgraph, node.inputs[1]);
  return first.dtype == DType::kFloat32 && first.constant != second.constant &&
         all_zeros(first.constant ? first : second);
}

std::string constants_obstacle(const ir::Subgraph& subgraph, const ir::Node& node) {
  const auto states = state_inputs(node);
  for (int i = 1; i < static_cast<int>(node.inputs.size()); ++i) {
    const int v = operand_of(node, i);
    if (v == ir::kAbsent || std::find(states.begin(), states.end(), i) != states.end()) continue;
    const ir::Value& value = tensor(subgraph, v);
    if (!value.constant) return fmt::format("the weights '{}' are computed while running", value.name);
    if (value.dtype != DType::kFloat32 || value.sparsity) {
      return fmt::format("the weights '{}' are not dense float32", value.name);
    }
  }
  return {};
}

std::string lstm_obstacle(const ir::Subgraph& subgraph, const ir::Node& node) {
  ir::Activation activation = ir::Activation::kNone;
  if (const auto* sequence = ir::attributes_if<ops::SequenceLstmAttributes>(*node.attributes)) {
    activation = sequence->activation;
  } else if (const auto* step = ir::attributes_if<ops::LstmAttributes>(*node.attributes)) {
    if (step->kernel_type == ops::LstmKernel::kBasic) return "its basic kernel has no int8 form";
    activation = step->activation;
  }
  if (activation != ir::Activation::kTanh) return "its integer kernel computes tanh, not another activation";
  for (int i = kLstmNorm; i < kLstmNorm + 4; ++i) {
    if (operand_of(node, i) != ir::kAbsent) return "of its layer normalization the ranges are not known";
  }
  for (int i = kLstmRecurrentWeights; i < kLstmRecurrentWeights + 4; ++i) {
    const int v = operand_of(node, i);
    if (v != ir::kAbsent && tensor(subgraph, v).shape.rank() != 2) return "its recurrent weights are a diagonal";
  }
  return {};
}

/// States are read by their node alone, and nothing but zeros is written to them.
std::string sharing_obstacle(const ir::Subgraph& subgraph, const ir::Node& node) {
  for (const int i : state_inputs(node)) {
    const int state = operand_of(node, i);
    if (state == ir::kAbsent) return "a state is missing";
    const std::string& name = tensor(subgraph, state).name;
    const auto has = [state](const std::vector<int>& list) {
      return std::find(list.begin(), list.end(), state) != list.end();
    };
    if (has(subgraph.inputs) || has(subgraph.outputs)) return fmt::format("its state '{}' is seen outside", name);
    for (const ir::Node& other : subgraph.nodes) {
      if (has(other.inputs) && &other != &node) return fmt::format("others read its state '{}'", name);
      if (has(other.outputs) && !makes_zeros(subgraph, other)) {
        return fmt::format("its state '{}' is set to something else than zeros", name);
      }
    }
  }
  return {};
}

/// Constants of a node, on their way to integers.
class Constants {
 public:
  Constants(const ir::Graph& graph, const ir::Subgraph& subgraph, const ir::Node& node, RecurrentForm& form)
      : graph_(graph), subgraph_(subgraph), node_(node), form_(form) {}

  /// Symmetric, with one scale, which is returned; 0 where there is no such input.
  float weights(int i, DType type) {
    if (operand_of(node_, i) == ir::kAbsent) return 0.0F;
    const ir::Value& value = tensor(subgraph_, operand_of(node_, i));
    const float scale = weight_scales(float_constant(graph_, value), -1, dtype_bits(type), Arithmetic::kDouble).at(0);
    form_.constants[i] = {type, symmetric({scale}, 0), true};
    return scale;
  }

  /// int32, in the scale of the products they are added to.
  void bias(int i, float scale) {
    if (operand_of(node_, i) != ir::kAbsent) form_.constants[i] = {DType::kInt32, symmetric({scale}, 0), false};
  }

 private:
  const ir::Graph& graph_;
  const ir::Subgraph& subgraph_;
  const ir::Node& node_;
  RecurrentForm& form_;
};

double magnitude_of(const RealRange& range) { return std::max(std::abs(range.min), std::abs(range.max)); }

/// The power of two that holds a cell state. Kernels have 2^-15 to 2^-9: LiteRT's tanh knows no smaller one.
Parameters cell_parameters(const RealRange& range) {
  const double magnitude = std::max(magnitude_of(range), 1.0e-6);
  const int exponent = static_cast<int>(std::ceil(std::log2(magnitude / 32767.0)));
  return {std::ldexp(1.0F, std::clamp(exponent, -15, -9)), 0};
}

void fill_lstm(const ir::Node& node, const Parameters& input, const Parameters& output, const StateRange& range_of,
               Constants& constants, RecurrentForm& form) {
  for (int gate = 0; gate < 4; ++gate) {
    const float scale = constants.weights(kLstmInputWeights + gate, DType::kInt8);
    constants.weights(kLstmRecurrentWeights + gate, DType::kInt8);
    constants.bias(kLstmBias + gate, scale * input.scale);
  }
  for (int i = kLstmPeephole; i < kLstmPeephole + 3; ++i) constants.weights(i, DType::kInt16);
  const RealRange cells = range_of(kLstmCellState);
  form.states[kLstmOutputState] = {DType::kInt8, output};
  form.states[kLstmCellState] = {DType::kInt16, cell_parameters(cells)};
  form.hidden = output;
  if (operand_of(node, kLstmProjection) == ir::kAbsent) return;
  const double bound = std::tanh(magnitude_of(cells));  // times a gate, which is below 1
  form.hidden = activation_parameters({-bound, bound}, DType::kInt8);
  const float scale = constants.weights(kLstmProjection, DType::kInt8);
  constants.bias(kLstmProjectionBias, scale * form.hidden->scale);
}

}  // namespace

std::span<const int> state_inputs(const ir::Node& node) {
  if (is_lstm(node)) return kLstmStates;
  if (ir::is_one_of(node.op, {op::kSvdf})) return kSvdfStates;
  return {};
}

std::string state_obstacle(const ir::Subgraph& subgraph, const ir::Node& node) {
  if (is_lstm(node)) {
    if (std::string reason = lstm_obstacle(subgraph, node); !reason.empty()) return reason;
  } else if (ir::attributes_as<ops::SvdfAttributes>(node).activation != ir::Activation::kRelu) {
    return "its integer kernel computes RELU, not another activation";
  }
  if (tensor(subgraph, node.inputs[0]).dtype != DType::kFloat32) return "its input is not float32";
  if (std::string reason = constants_obstacle(subgraph, node); !reason.empty()) return reason;
  return sharing_obstacle(subgraph, node);
}

std::vector<StateSetter> state_setters(const ir::Subgraph& subgraph) {
  std::map<int, std::pair<int, int>> readers;  // by state: node and input
  for (size_t n = 0; n < subgraph.nodes.size(); ++n) {
    for (const int i : state_inputs(subgraph.nodes[n])) {
      if (const int v = operand_of(subgraph.nodes[n], i); v != ir::kAbsent) readers[v] = {static_cast<int>(n), i};
    }
  }
  std::vector<StateSetter> result;
  for (size_t n = 0; !readers.empty() && n < subgraph.nodes.size(); ++n) {
    const ir::Node& node = subgraph.nodes[n];
    if (node.outputs.size() != 1) continue;
    const auto found = readers.find(node.outputs[0]);
    if (found == readers.end() || !makes_zeros(subgraph, node)) continue;
    result.push_back({static_cast<int>(n), found->second.first, found->second.second});
  }
  return result;
}

void treat_setters(const ir::Subgraph& subgraph, std::vector<NodeTreatment>& treatments) {
  for (const StateSetter& setter : state_setters(subgraph)) {
    const QuantizationMode mode = treatments[static_cast<size_t>(setter.reader)].mode;
    treatments[static_cast<size_t>(setter.node)] = {is_integer(mode) ? mode : QuantizationMode::kFloat, {}};
  }
}

RecurrentForm recurrent_form(const ir::Graph& graph, const ir::Subgraph& subgraph, const ir::Node& node,
                             const Parameters& input, const Parameters& output, const StateRange& range_of) {
  RecurrentForm form;
  Constants constants(graph, subgraph, node, form);
  if (is_lstm(node)) {
    fill_lstm(node, input, output, range_of, constants, form);
    return form;
  }
  constants.weights(kSvdfFeatures, DType::kInt8);
  const float time = constants.weights(kSvdfTime, DType::kInt16);
  const Parameters state = activation_parameters(range_of(kSvdfStates[0]), DType::kInt16);
  form.states[kSvdfStates[0]] = {DType::kInt16, state};
  constants.bias(kSvdfBias, time * state.scale);
  return form;
}

}  // namespace leadline::quantize
