// SPDX-License-Identifier: Apache-2.0
#include "quantize/bias_correction.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/cancel.h"
#include "ops/registry.h"
#include "quantize/parameters.h"

namespace leadline::quantize {
namespace {

bool is_known(const ir::Node& node) {
  return node.op == "CONV_2D" || node.op == "DEPTHWISE_CONV_2D" || node.op == "FULLY_CONNECTED";
}

/// What rounding takes from each output channel on average; empty when the means do not fit the weights.
std::vector<double> shifts(const ir::Node& node, const ir::Value& weights, std::span<const float> values,
                           const std::vector<float>& scales, const std::vector<double>& means) {
  const Shape& shape = weights.shape;
  const int rank = shape.rank();
  const bool depthwise = node.op == "DEPTHWISE_CONV_2D";
  if (rank < 2 || values.empty()) return {};
  const int64_t columns = shape[rank - 1];
  const int64_t outputs = depthwise ? columns : shape[0];
  const auto channels = static_cast<int64_t>(means.size());
  if (channels < 1 || (depthwise ? outputs % channels != 0 : columns != channels)) return {};
  std::vector<double> result(static_cast<size_t>(outputs), 0.0);
  const auto count = static_cast<int64_t>(values.size());
  const int64_t row = count / outputs;  // of one output, when it is not the last axis
  PacedCheck check;
  for (int64_t at = 0; at < count; ++at) {
    check.count(16);
    const int64_t column = at % columns;
    const auto output = static_cast<size_t>(depthwise ? column : at / row);
    const auto input = static_cast<size_t>(depthwise ? column * channels / outputs : column);
    const auto scale = static_cast<double>(scales.size() == 1 ? scales[0] : scales[output]);
    const auto exact = static_cast<double>(values[static_cast<size_t>(at)]);
    const double level = std::clamp(std::round(exact / scale), -127.0, 127.0);
    result[output] += (exact - level * scale) * means[input];
  }
  return result;
}

void correct(ir::Graph& graph, int n, const std::vector<double>& shift) {
  ir::Subgraph& subgraph = graph.subgraphs[0];
  ir::Node& node = subgraph.nodes[static_cast<size_t>(n)];
  if (node.inputs.size() < 3) node.inputs.resize(3, ir::kAbsent);
  ir::Value corrected;
  std::vector<float> bias(shift.size(), 0.0F);
  if (node.inputs[2] != ir::kAbsent) {
    const ir::Value& given = subgraph.values[static_cast<size_t>(node.inputs[2])];
    const Floats floats(given);
    std::copy(floats.values().begin(), floats.values().end(), bias.begin());
    corrected.name = given.name;
    corrected.shape = given.shape;
  } else {
    corrected.name = subgraph.values[static_cast<size_t>(node.outputs[0])].name + "/bias";
    corrected.shape = Shape{static_cast<int64_t>(shift.size())};
  }
  for (size_t i = 0; i < bias.size(); ++i) bias[i] = static_cast<float>(static_cast<double>(bias[i]) + shift[i]);
  const auto bytes = std::as_bytes(std::span(bias));
  corrected.has_rank = true;
  corrected.constant = true;
  corrected.source = ir::owned_source({bytes.begin(), bytes.end()});
  node.inputs[2] = static_cast<int>(subgraph.values.size());
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
    if (!is_integer(treatments[0][n].mode) || !is_known(node) || node.inputs.size() < 2) continue;
    const ir::Value& weights = subgraph.values[static_cast<size_t>(node.inputs[1])];
    if (!weights.constant || weights.dtype != DType::kFloat32 || weights.sparsity) continue;
    const ops::QuantizationRule& rule = ops::registry().find(node.code, node.op)->quantize;
    const bool per_channel = options.per_channel && (options.per_channel_dense || node.op != "FULLY_CONNECTED");
    std::vector<double> shift;
    {
      const Floats floats(weights);
      const int axis = per_channel && rule.weights_axis < weights.shape.rank() ? rule.weights_axis : -1;
      shift = shifts(node, weights, floats.values(), weight_scales(floats.values(), weights.shape, axis),
                     means_of(0, node.inputs[0]));
    }
    const bool has_bias = node.inputs.size() > 2 && node.inputs[2] != ir::kAbsent;
    const bool fits = !has_bias || subgraph.values[static_cast<size_t>(node.inputs[2])].shape.elements() ==
                                       static_cast<int64_t>(shift.size());
    const bool finite = std::all_of(shift.begin(), shift.end(), [](double s) { return std::isfinite(s); });
    if (shift.empty() || !fits || !finite) continue;
    correct(graph, static_cast<int>(n), shift);
    ++corrected;
  }
  return corrected;
}

}  // namespace leadline::quantize
