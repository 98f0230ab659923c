// SPDX-License-Identifier: Apache-2.0
// make_debug_graph(): the form TensorFlow's debugger takes.
#include <algorithm>

#include "core/cancel.h"
#include "core/error.h"
#include "debug/comparison_graph.h"
#include "debug/index.h"
#include "debug/match.h"
#include "debug/twin.h"
#include "io/flexbuffer_map_builder.h"
#include "ir/verifier.h"
#include "ops/registry.h"

namespace leadline::debug {
namespace {

void add_verify(ir::Subgraph& target, int value, int expected, std::span<const std::byte> options) {
  ir::Value difference;  // named when the tensors have their numbers
  difference.dtype = DType::kFloat32;
  difference.shape = target.values[at(value)].shape;
  difference.signature = target.values[at(value)].signature;
  difference.has_rank = target.values[at(value)].has_rank;
  target.values.push_back(std::move(difference));
  const int output = static_cast<int>(target.values.size()) - 1;
  ir::Node node = ops::make_node(op::kNumericVerify, {value, expected}, {output});
  node.custom_options = options;
  target.nodes.push_back(std::move(node));
}

/// Numbers the tensors as TensorFlow does: inputs, constants, then results in the order of the nodes; and names those
/// of NumericVerify after the tensor that it looks at.
void number_tensors(ir::Graph& graph, size_t index) {
  ir::Subgraph& target = graph.subgraphs[index];
  const size_t count = target.values.size();
  std::vector<int> number(count, -1);
  std::vector<size_t> order;
  const auto take = [&](size_t v) {
    if (number[v] >= 0) return;
    number[v] = static_cast<int>(order.size());
    order.push_back(v);
  };
  for (int v : target.inputs) take(at(v));
  for (size_t v = 0; v < count; ++v) {
    if (target.values[v].constant) take(v);
  }
  for (const ir::Node& node : target.nodes) {
    for (int v : node.outputs) {
      if (v != ir::kAbsent) take(at(v));
    }
  }
  for (size_t v = 0; v < count; ++v) take(v);

  std::vector<ir::Value> values;
  values.reserve(count);
  for (const size_t v : order) values.push_back(std::move(target.values[v]));
  target.values = std::move(values);
  const auto renumber = [&](int& v) {
    if (v >= 0) v = number[at(v)];
  };
  const auto renumber_all = [&](std::vector<int>& list) { std::for_each(list.begin(), list.end(), renumber); };
  for (ir::Value& value : target.values) {
    renumber(value.quantization.block_scales);
    renumber(value.quantization.block_zero_points);
  }
  renumber_all(target.inputs);
  renumber_all(target.outputs);
  for (ir::Node& node : target.nodes) {
    renumber_all(node.inputs);
    renumber_all(node.outputs);
    renumber_all(node.intermediates);
    if (node.op != op::kNumericVerify) continue;
    std::string& name = target.values[at(node.outputs[0])].name;
    if (name.empty()) name = fmt::format("NumericVerify/{}:{}", target.values[at(node.inputs[0])].name, node.inputs[0]);
  }
  for (ir::Signature& signature : graph.signatures) {
    if (signature.subgraph != static_cast<int>(index)) continue;
    for (auto& [name, v] : signature.inputs) renumber(v);
    for (auto& [name, v] : signature.outputs) renumber(v);
  }
}

}  // namespace

ir::Graph make_debug_graph(const ir::Graph& reference, const ir::Graph& quantized) {
  ir::Graph graph = quantized;
  graph.storage.push_back(
      std::make_shared<const std::vector<std::byte>>(build_flex_map({{"log_if_failed", false}, {"tolerance", 5.0F}})));
  const std::span<const std::byte> options = *graph.storage.back();
  const size_t count = std::min(graph.subgraphs.size(), reference.subgraphs.size());
  for (size_t s = 0; s < count; ++s) {
    const ir::Subgraph& q = quantized.subgraphs[s];
    const ir::Subgraph& f = reference.subgraphs[s];
    if (q.inputs.size() != f.inputs.size()) continue;
    const Match match = match_subgraphs(q, f);
    ir::Subgraph& target = graph.subgraphs[s];
    target.nodes.clear();
    TwinBuilder twins(q, f, match, target, true);
    std::vector<int> mapped(q.values.size());
    for (size_t v = 0; v < mapped.size(); ++v) mapped[v] = static_cast<int>(v);
    PacedCheck check;
    for (size_t n = 0; n < q.nodes.size(); ++n) {
      check.count(1 << 13);
      const int index = static_cast<int>(n);
      const auto verifiable = [&](int v) {
        return is_quantized(q.values[at(v)]) && dtype_bits(q.values[at(v)].dtype) >= 8;
      };
      bool any = !changes_type_only(q.nodes[n]) && twins.obstacle(index).empty();
      any = any && std::any_of(q.nodes[n].outputs.begin(), q.nodes[n].outputs.end(), verifiable);
      // The float node stands before the quantized one, as in TensorFlow's debug models.
      const std::vector<int> expected = any ? twins.add(index, mapped) : std::vector<int>();
      target.nodes.push_back(q.nodes[n]);
      for (size_t i = 0; i < expected.size(); ++i) {
        if (verifiable(q.nodes[n].outputs[i])) add_verify(target, q.nodes[n].outputs[i], expected[i], options);
      }
    }
    number_tensors(graph, s);
  }
  ir::verify(graph);
  return graph;
}

}  // namespace leadline::debug
