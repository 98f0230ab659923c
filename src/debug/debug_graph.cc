// SPDX-License-Identifier: Apache-2.0
// make_debug_graph(): the form TensorFlow's debugger takes.
#include "core/cancel.h"
#include "core/error.h"
#include "debug/comparison_graph.h"
#include "debug/match.h"
#include "debug/twin.h"
#include "io/flexbuffer_map_builder.h"
#include "ir/verifier.h"
#include "ops/registry.h"

namespace leadline::debug {
namespace {

size_t at(int index) { return static_cast<size_t>(index); }

void add_verify(ir::Subgraph& target, int value, int expected, std::span<const std::byte> options) {
  ir::Value difference;
  difference.name = fmt::format("NumericVerify/{}:{}", target.values[at(value)].name, value);
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
      target.nodes.push_back(q.nodes[n]);
      const int index = static_cast<int>(n);
      if (changes_type_only(q.nodes[n]) || !twins.obstacle(index).empty()) continue;
      const auto verifiable = [&](int v) {
        return is_quantized(q.values[at(v)]) && dtype_bits(q.values[at(v)].dtype) >= 8;
      };
      bool any = false;
      for (int v : q.nodes[n].outputs) any = any || verifiable(v);
      if (!any) continue;
      const std::vector<int> expected = twins.add(index, mapped);
      for (size_t i = 0; i < expected.size(); ++i) {
        if (verifiable(q.nodes[n].outputs[i])) add_verify(target, q.nodes[n].outputs[i], expected[i], options);
      }
    }
  }
  ir::verify(graph);
  return graph;
}

}  // namespace leadline::debug
