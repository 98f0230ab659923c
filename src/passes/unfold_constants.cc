// SPDX-License-Identifier: Apache-2.0
#include "passes/unfold_constants.h"

#include <algorithm>
#include <cstring>

#include "core/charge.h"
#include "ir/sources.h"
#include "ops/registry.h"

namespace leadline::passes {
namespace {

constexpr int64_t kLarge = 64 << 10;

bool is_candidate(const ir::Value& value) {
  const bool fills = value.dtype == DType::kFloat32 || value.dtype == DType::kInt32 || value.dtype == DType::kInt64;
  return value.constant && fills && !value.sparsity && !value.quantization.quantized() &&
         ir::constant_bytes(value) > kLarge;
}

/// By value: whether some node needs it to be constant, as weights are.
std::vector<bool> weights_of(const ir::Subgraph& subgraph) {
  std::vector<bool> result(subgraph.values.size());
  for (const ir::Node& node : subgraph.nodes) {
    const ops::OpDef* op = ops::row_of(node);
    if (op != nullptr && op->contraction.kind == ops::ContractionKind::kNone && op->quantize.table < 0) continue;
    for (const int v : node.inputs) {
      if (v != ir::kAbsent) result[static_cast<size_t>(v)] = true;
    }
  }
  return result;
}

bool all_equal(std::span<const std::byte> bytes, size_t element) {
  // Equal to itself shifted by one element: all elements are the first.
  return std::memcmp(bytes.data(), bytes.data() + element, bytes.size() - element) == 0;
}

int add_constant(ir::Graph& graph, ir::Subgraph& subgraph, std::string name, DType dtype, const Shape& shape,
                 std::span<const std::byte> bytes) {
  graph.storage.push_back(std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end()));
  ir::Value value;
  value.name = std::move(name);
  value.dtype = dtype;
  value.shape = shape;
  value.has_rank = true;
  value.constant = true;
  value.data = *graph.storage.back();
  subgraph.values.push_back(std::move(value));
  return static_cast<int>(subgraph.values.size()) - 1;
}

int unfold(ir::Graph& graph, ir::Subgraph& subgraph, const std::shared_ptr<Budget>& budget) {
  const std::vector<bool> weights = weights_of(subgraph);
  std::vector<ir::Node> fills;
  for (size_t v = 0; v < weights.size(); ++v) {
    if (weights[v] || !is_candidate(subgraph.values[v])) continue;
    const ir::Source source = ir::source_of(graph, subgraph.values[v]);
    const Charge charge(budget, MemoryCategory::kModelFile, source->bytes() + ir::extra_bytes(*source));
    const std::vector<std::byte> bytes = ir::read_all(*source);
    const DType dtype = subgraph.values[v].dtype;
    const auto element = static_cast<size_t>(dtype_bits(dtype) / 8);
    if (!all_equal(bytes, element)) continue;
    const std::string name = subgraph.values[v].name;
    const Shape shape = subgraph.values[v].shape;
    const std::vector<int32_t> sizes(shape.begin(), shape.end());
    const int dims =
        add_constant(graph, subgraph, name + "/dims", DType::kInt32, {shape.rank()}, std::as_bytes(std::span(sizes)));
    const int number = add_constant(graph, subgraph, name + "/value", dtype, {}, std::span(bytes).first(element));
    ir::Value& value = subgraph.values[v];
    value.constant = false;
    value.data = {};
    value.source = nullptr;
    fills.push_back(ops::make_node(op::kFill, {dims, number}, {static_cast<int>(v)}));
  }
  subgraph.nodes.insert(subgraph.nodes.begin(), fills.begin(), fills.end());
  return static_cast<int>(fills.size());
}

}  // namespace

int unfold_constants(ir::Graph& graph, const std::shared_ptr<Budget>& budget) {
  int count = 0;
  for (ir::Subgraph& subgraph : graph.subgraphs) count += unfold(graph, subgraph, budget);
  return count;
}

}  // namespace leadline::passes
