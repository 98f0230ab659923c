// SPDX-License-Identifier: Apache-2.0
#include "passes/renumber.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace leadline::passes {

void renumber_values(ir::Graph& graph, int index, std::span<const int> number) {
  ir::Subgraph& subgraph = graph.subgraphs[static_cast<size_t>(index)];
  const auto kept = number.size() - static_cast<size_t>(std::count(number.begin(), number.end(), ir::kAbsent));
  std::vector<ir::Value> values(kept);
  for (size_t v = 0; v < number.size(); ++v) {
    if (number[v] != ir::kAbsent) values[static_cast<size_t>(number[v])] = std::move(subgraph.values[v]);
  }
  subgraph.values = std::move(values);
  const auto renumber = [&](std::vector<int>& list) {
    for (int& v : list) {
      if (v != ir::kAbsent) v = number[static_cast<size_t>(v)];
    }
  };
  renumber(subgraph.inputs);
  renumber(subgraph.outputs);
  for (ir::Node& node : subgraph.nodes) {
    renumber(node.inputs);
    renumber(node.outputs);
    renumber(node.intermediates);
  }
  for (ir::Value& value : subgraph.values) {
    Quantization& q = value.quantization;
    if (q.block_size <= 0) continue;
    q.block_scales = number[static_cast<size_t>(q.block_scales)];
    if (q.block_zero_points >= 0) q.block_zero_points = number[static_cast<size_t>(q.block_zero_points)];
  }
  for (ir::Signature& signature : graph.signatures) {
    if (signature.subgraph != index) continue;
    for (auto* entries : {&signature.inputs, &signature.outputs}) {
      for (auto& [name, v] : *entries) v = number[static_cast<size_t>(v)];
    }
  }
}

}  // namespace leadline::passes
