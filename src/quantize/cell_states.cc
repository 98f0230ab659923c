// SPDX-License-Identifier: Apache-2.0
#include "quantize/cell_states.h"

#include <algorithm>

#include "ops/loops/lstm_float.h"
#include "ops/op_ids.h"
#include "ops/sequence_lstm.h"
#include "quantize/recurrent.h"

namespace leadline::quantize {
namespace {

constexpr int kOutputGateWeights = int{kLstmInputWeights} + int{ops::kOutputGate};  // always there
constexpr int kOutputGateRecurrent = int{kLstmRecurrentWeights} + int{ops::kOutputGate};

bool is_sequence(const ir::Node& node) { return ir::is_one_of(node.op, {op::kUnidirectionalSequenceLstm}); }

/// Floats of working memory: states and output of a row, and the workspace of a step.
int64_t floats_for(int64_t inputs, int64_t cells, int64_t outputs) {
  const auto scratch = ops::lstm_scratch_bytes(inputs, 0, cells, outputs);
  return cells + 2 * outputs + (scratch + 3) / 4;
}

const float* floats(const ObservedNode& node, int i) {
  if (i >= static_cast<int>(node.inputs.size())) return nullptr;
  const ObservedTensor& tensor = node.inputs[static_cast<size_t>(i)];
  if (tensor.index < 0 || tensor.dtype != DType::kFloat32) return nullptr;
  return reinterpret_cast<const float*>(tensor.data.data());
}

/// Whether all that is given is float32.
bool is_float(const ObservedNode& node) {
  return std::all_of(node.inputs.begin(), node.inputs.end(), [](const ObservedTensor& tensor) {
    return tensor.index < 0 || (tensor.dtype == DType::kFloat32 && tensor.data.data() != nullptr);
  });
}

ops::LstmCell cell_of(const ObservedNode& node, const ops::SequenceLstmAttributes& attributes) {
  const auto matrix = [&](int i) {
    kernels::WeightMatrix result;
    result.f32 = floats(node, i);
    return result;
  };
  ops::LstmCell cell;
  cell.inputs = node.inputs[kOutputGateWeights].shape[1];
  cell.cells = node.inputs[kOutputGateWeights].shape[0];
  const Shape& recurrent = node.inputs[kOutputGateRecurrent].shape;
  cell.outputs = recurrent[recurrent.rank() - 1];
  for (int g = 0; g < 4; ++g) {
    ops::LstmGate& gate = cell.gates[static_cast<size_t>(g)];
    gate.input = matrix(kLstmInputWeights + g);
    gate.recurrent = matrix(kLstmRecurrentWeights + g);
    gate.recurrent.diagonal = gate.recurrent.present() && recurrent.rank() == 1;
    if (g != ops::kCellGate) gate.peephole = matrix(kLstmPeephole + (g == ops::kOutputGate ? 2 : g));
    gate.bias = floats(node, kLstmBias + g);
    gate.norm = floats(node, kLstmNorm + g);
  }
  cell.projection = matrix(kLstmProjection);
  cell.projection_bias = floats(node, kLstmProjectionBias);
  cell.activation = static_cast<kernels::CellActivation>(attributes.activation);
  cell.cell_clip = attributes.cell_clip;
  cell.projection_clip = attributes.proj_clip;
  return cell;
}

}  // namespace

int64_t CellStates::bytes(const ir::Graph& graph) {
  int64_t most = 0;
  for (const ir::Subgraph& subgraph : graph.subgraphs) {
    for (const ir::Node& node : subgraph.nodes) {
      if (!is_sequence(node)) continue;
      const auto shape = [&](int i) { return subgraph.value(node.inputs[static_cast<size_t>(i)]).shape; };
      if (node.inputs[kOutputGateWeights] == ir::kAbsent || node.inputs[kOutputGateRecurrent] == ir::kAbsent) continue;
      const Shape weights = shape(kOutputGateWeights);
      const Shape recurrent = shape(kOutputGateRecurrent);
      if (weights.rank() != 2 || recurrent.rank() < 1) continue;
      most = std::max(most, floats_for(weights[1], weights[0], recurrent[recurrent.rank() - 1]));
    }
  }
  return most * static_cast<int64_t>(sizeof(float));
}

void CellStates::replay(const ObservedNode& observed,
                        const std::function<void(int tensor, std::span<const float>)>& see) {
  const ir::Node& node =
      graph_.subgraphs[static_cast<size_t>(observed.subgraph)].nodes[static_cast<size_t>(observed.node)];
  if (!is_sequence(node) || !is_float(observed)) return;
  const auto& attributes = ir::attributes_as<ops::SequenceLstmAttributes>(node);
  const ops::LstmCell cell = cell_of(observed, attributes);
  memory_.resize(static_cast<size_t>(floats_for(cell.inputs, cell.cells, cell.outputs)));
  float* const cell_state = memory_.data();
  float* const output_state = cell_state + cell.cells;
  float* const output = output_state + cell.outputs;
  auto* const scratch = reinterpret_cast<std::byte*>(output + cell.outputs);
  const Shape& in = observed.inputs[0].shape;
  const int64_t batch = in[attributes.time_major ? 1 : 0];
  const int64_t steps = in[attributes.time_major ? 0 : 1];
  const float* const input = floats(observed, 0);
  for (int64_t row = 0; row < batch; ++row) {
    std::copy_n(floats(observed, kLstmCellState) + row * cell.cells, cell.cells, cell_state);
    std::copy_n(floats(observed, kLstmOutputState) + row * cell.outputs, cell.outputs, output_state);
    for (int64_t step = 0; step < steps; ++step) {
      const int64_t place = attributes.time_major ? step * batch + row : row * steps + step;
      ops::lstm_step(cell, input + place * cell.inputs, nullptr, output_state, cell_state, output, scratch);
      see(observed.inputs[kLstmCellState].index, {cell_state, static_cast<size_t>(cell.cells)});
    }
  }
}

}  // namespace leadline::quantize
