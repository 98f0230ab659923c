// SPDX-License-Identifier: Apache-2.0
#include "quantize/sparsify.h"

#include <algorithm>
#include <set>

#include "core/cancel.h"
#include "core/charge.h"
#include "ir/sources.h"
#include "ops/registry.h"

namespace leadline::quantize {
namespace {

constexpr int kSparseVersion = 8;  // of FULLY_CONNECTED
constexpr int64_t kIndexBytes = sizeof(int32_t);

/// A matrix without the blocks that are zero; a block lies in one row.
struct Compressed {
  int64_t block = 1;
  std::vector<int32_t> segments = {0};
  std::vector<int32_t> indices;
  std::vector<std::byte> values;

  int64_t bytes() const {
    return static_cast<int64_t>(values.size()) + kIndexBytes * static_cast<int64_t>(segments.size() + indices.size());
  }
};

/// The sign of a zero does not count.
bool is_zero(std::span<const std::byte> element, DType dtype) {
  const size_t last = element.size() - 1;
  for (size_t i = 0; i < element.size(); ++i) {
    const std::byte sign = dtype == DType::kFloat32 && i == last ? std::byte{0x80} : std::byte{0};
    if ((element[i] & ~sign) != std::byte{0}) return false;
  }
  return true;
}

Compressed compress(std::span<const std::byte> dense, const Shape& shape, DType dtype, int64_t block) {
  Compressed result;
  result.block = block;
  const auto element = static_cast<size_t>(dtype_bits(dtype) / 8);
  const size_t step = static_cast<size_t>(block) * element;
  PacedCheck check;
  for (int64_t row = 0; row < shape[0]; ++row) {
    for (int64_t b = 0; b < shape[1] / block; ++b) {
      check.count(block);
      const auto part = dense.subspan(static_cast<size_t>(row * (shape[1] / block) + b) * step, step);
      bool zero = true;
      for (size_t at = 0; at < step && zero; at += element) zero = is_zero(part.subspan(at, element), dtype);
      if (zero) continue;
      result.indices.push_back(static_cast<int32_t>(b));
      result.values.insert(result.values.end(), part.begin(), part.end());
    }
    result.segments.push_back(static_cast<int32_t>(result.indices.size()));
  }
  return result;
}

/// Nothing when dense is smallest.
std::optional<Compressed> choose(std::span<const std::byte> dense, const Shape& shape, DType dtype) {
  const auto bytes = static_cast<int64_t>(dense.size());
  const bool floats = dtype == DType::kFloat32;
  const int64_t block = floats ? 4 : 16;
  std::optional<Compressed> blocks;
  if (shape[1] % block == 0) blocks = compress(dense, shape, dtype, block);
  if (!floats) return blocks && blocks->bytes() < bytes ? blocks : std::nullopt;
  Compressed elements = compress(dense, shape, dtype, 1);
  // Blocks run faster: they may be half as large again.
  if (blocks && blocks->bytes() < bytes && 2 * blocks->bytes() <= 3 * elements.bytes()) return blocks;
  return elements.bytes() < bytes ? std::optional(std::move(elements)) : std::nullopt;
}

void store(ir::Graph& graph, ir::Value& value, Compressed compressed) {
  auto sparsity = std::make_shared<ir::Sparsity>();
  sparsity->traversal_order = {0, 1};
  sparsity->dimensions.push_back({true, static_cast<int32_t>(value.shape[0]), {}, {}});
  sparsity->dimensions.push_back({false, 0, std::move(compressed.segments), std::move(compressed.indices)});
  if (compressed.block > 1) {
    sparsity->traversal_order.push_back(2);
    sparsity->block_map = {1};
    sparsity->dimensions.push_back({true, static_cast<int32_t>(compressed.block), {}, {}});
  }
  value.sparsity = std::move(sparsity);
  value.source = nullptr;
  graph.storage.push_back(std::make_shared<const std::vector<std::byte>>(std::move(compressed.values)));
  value.data = *graph.storage.back();
}

/// Weights that only dense layers read whose kernels take them sparse, each with the node.
std::vector<std::pair<int, int>> candidates(const ir::Subgraph& subgraph) {
  std::vector<std::pair<int, int>> found;
  std::vector<int> readers(subgraph.values.size());
  for (const ir::Node& node : subgraph.nodes) {
    for (const int v : node.inputs) {
      if (v != ir::kAbsent) ++readers[static_cast<size_t>(v)];
    }
  }
  for (size_t n = 0; n < subgraph.nodes.size(); ++n) {
    const ir::Node& node = subgraph.nodes[n];
    const ops::OpDef* op = ops::row_of(node);
    if (op == nullptr || op->contraction.kind != ops::ContractionKind::kDense) continue;
    const int v = node.inputs[static_cast<size_t>(op->contraction.weights)];
    const ir::Value& weights = subgraph.value(v);
    const ir::Value& input = subgraph.value(node.inputs[0]);
    const bool fits =
        (weights.dtype == DType::kFloat32 || weights.dtype == DType::kInt8) && input.dtype == weights.dtype;
    if (weights.constant && fits && !weights.sparsity && weights.shape.rank() == 2 &&
        readers[static_cast<size_t>(v)] == 1) {
      found.emplace_back(static_cast<int>(n), v);
    }
  }
  return found;
}

}  // namespace

std::vector<ModelOptimization> sparsify(ir::Graph& graph, const std::shared_ptr<Budget>& budget) {
  std::set<ModelOptimization> used;
  for (ir::Subgraph& subgraph : graph.subgraphs) {
    for (const auto& [n, v] : candidates(subgraph)) {
      ir::Value& value = subgraph.value(v);
      const ir::Source source = ir::source_of(graph, value);
      // The dense weights, and at worst twice as much on the way to a sparse form.
      const Charge charge(budget, MemoryCategory::kModelFile, 3 * source->bytes() + ir::extra_bytes(*source));
      std::optional<Compressed> compressed = choose(ir::read_all(*source), value.shape, value.dtype);
      if (!compressed) continue;
      used.insert(compressed->block > 1 ? ModelOptimization::kBlockSparsity : ModelOptimization::kRandomSparsity);
      store(graph, value, std::move(*compressed));
      ir::Node& node = subgraph.nodes[static_cast<size_t>(n)];
      node.version = std::max(node.version, kSparseVersion);
    }
  }
  return {used.begin(), used.end()};
}

}  // namespace leadline::quantize
