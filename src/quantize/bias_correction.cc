// SPDX-License-Identifier: Apache-2.0
#include "quantize/bias_correction.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/cancel.h"
#include "ops/registry.h"
#include "quantize/constants.h"

namespace leadline::quantize {
namespace {

/// What rounding takes from each output channel on average; empty when the means do not fit the weights.
std::vector<double> shifts(const ops::ContractionOperands& operands, const ir::Value& weights,
                           std::span<const float> values, const std::vector<float>& scales,
                           const std::vector<double>& means) {
  const Shape& shape = weights.shape;
  const bool depthwise = operands.kind == ops::ContractionKind::kDepthwise;
  if (shape.rank() != operands.rank || values.empty()) return {};
  const int64_t outputs = shape[operands.output_axis];
  const auto channels = static_cast<int64_t>(means.size());
  if (channels < 1 || (depthwise ? outputs % channels != 0 : shape[operands.input_axis] != channels)) return {};
  const AxisIndex output_of(shape, operands.output_axis);
  const AxisIndex input_of(shape, operands.input_axis);
  std::vector<double> result(static_cast<size_t>(outputs), 0.0);
  const auto count = static_cast<int64_t>(values.size());
  PacedCheck check;
  for (int64_t at = 0; at < count; ++at) {
    check.count(16);
    const auto output = static_cast<size_t>(output_of(at));
    const auto input = depthwise ? output * means.size() / result.size() : static_cast<size_t>(input_of(at));
    const auto scale = static_cast<double>(scales.size() == 1 ? scales[0] : scales[output]);
    const auto exact = static_cast<double>(values[static_cast<size_t>(at)]);
    const double level = std::clamp(std::round(exact / scale), -127.0, 127.0);
    result[output] += (exact - level * scale) * means[input];
  }
  return result;
}

void correct(ir::Graph& graph, int n, size_t bias_at, const std::vector<double>& shift) {
  ir::Subgraph& subgraph = graph.subgraphs[0];
  ir::Node& node = subgraph.nodes[static_cast<size_t>(n)];
  if (node.inputs.size() <= bias_at) node.inputs.resize(bias_at + 1, ir::kAbsent);
  ir::Value corrected;
  std::vector<float> bias(shift.size(), 0.0F);
  if (node.inputs[bias_at] != ir::kAbsent) {
    const ir::Value& given = subgraph.value(node.inputs[bias_at]);
    const Floats floats(given);
    std::copy(floats.values().begin(), floats.values().end(), bias.begin());
    corrected.name = given.name;
    corrected.shape = given.shape;
  } else {
    corrected.name = subgraph.value(node.outputs[0]).name + "/bias";
    corrected.shape = Shape{static_cast<int64_t>(shift.size())};
  }
  for (size_t i = 0; i < bias.size(); ++i) bias[i] = static_cast<float>(static_cast<double>(bias[i]) + shift[i]);
  const auto bytes = std::as_bytes(std::span(bias));
  corrected.has_rank = true;
  corrected.constant = true;
  corrected.source = ir::owned_source({bytes.begin(), bytes.end()});
  node.inputs[bias_at] = static_cast<int>(subgraph.values.size());
  subgraph.values.push_back(std::move(corrected));
}

}  // namespace

void ChannelSums::add(std::span<const std::byte> values, int64_t channels) {
  if (channels < 1) return;
  if (static_cast<int64_t>(sums.size()) != channels) {
    sums.assign(static_cast<size_t>(channels), 0.0);
    rows = 0;
  }
  std::vector<float> row(static_cast<size_t>(channels));
  const size_t bytes = row.size() * sizeof(float);
  for (size_t at = 0; at + bytes <= values.size(); at += bytes) {
    std::memcpy(row.data(), values.data() + at, bytes);
    if (!std::all_of(row.begin(), row.end(), [](float v) { return std::isfinite(v); })) continue;
    for (size_t c = 0; c < row.size(); ++c) sums[c] += static_cast<double>(row[c]);
    ++rows;
  }
}

int correct_biases(ir::Graph& graph, const Treatments& treatments, const MeansOf& means_of,
                   const IntegerOptions& options) {
  int corrected = 0;
  for (size_t n = 0; n < graph.subgraphs[0].nodes.size(); ++n) {
    const ir::Subgraph& subgraph = graph.subgraphs[0];
    const ir::Node& node = subgraph.nodes[n];
    const ops::OpDef* op = ops::row_of(node);
    if (!is_integer(treatments[0][n].mode) || op == nullptr || !op->is_integer_layer()) continue;
    const ops::ContractionOperands& operands = op->contraction;
    const auto input = [&](int i) {
      return i < static_cast<int>(node.inputs.size()) ? node.inputs[static_cast<size_t>(i)] : ir::kAbsent;
    };
    if (input(operands.weights) == ir::kAbsent) continue;
    const ir::Value& weights = subgraph.value(input(operands.weights));
    if (!weights.constant || weights.dtype != DType::kFloat32 || weights.sparsity) continue;
    const Rounding rounding = rounding_of(options, *op, 0, treatments[0][n], weights.shape);
    // The matrix knows the means: what this rounding leaves of a shift is what the other errors make up for.
    if (rounding.method == WeightRounding::kComq && rounding.gram != nullptr) continue;
    std::vector<double> shift;
    {
      const Floats floats(weights);
      const int axis = channel_axis(options, *op, weights.shape);
      const FloatConstant constant{.data = std::as_bytes(floats.values()), .shape = weights.shape};
      shift =
          shifts(operands, weights, floats.values(), weight_scales(constant, axis, 8, Arithmetic::kDouble, rounding),
                 means_of(0, input(operands.activations)));
    }
    const int bias = input(operands.bias);
    const bool fits =
        bias == ir::kAbsent || subgraph.value(bias).shape.elements() == static_cast<int64_t>(shift.size());
    const bool finite = std::all_of(shift.begin(), shift.end(), [](double s) { return std::isfinite(s); });
    if (shift.empty() || !fits || !finite) continue;
    correct(graph, static_cast<int>(n), static_cast<size_t>(operands.bias), shift);
    ++corrected;
  }
  return corrected;
}

}  // namespace leadline::quantize
