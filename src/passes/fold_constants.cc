// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/rethrow_if_fatal.h"
#include "ops/inference.h"
#include "passes/editor.h"
#include "passes/passes.h"

namespace leadline::passes {
namespace {

/// Larger results stay nodes, unless a source can make them: a file should not grow for a BROADCAST_TO.
constexpr int64_t kLargestResult = int64_t{1} << 16;

/// Ops that give their input another shape.
/// The node's result as a source; null when its op has none.
ir::Source compose(Editor& e, const ir::Node& node) {
  const ir::Value& in = e.value(node.inputs[0]);
  const ir::Value& out = e.value(node.outputs[0]);
  if (dtype_bits(in.dtype) < 8 || in.quantization.quantized() || out.quantization.quantized()) return nullptr;
  if (is_reshape(node)) return e.source_of(node.inputs[0]);
  if (node.op == op::kTranspose) {
    const auto order = e.ints(node.inputs[1]);
    if (!order) return nullptr;
    std::vector<int> permutation;
    for (int64_t axis : *order) permutation.push_back(static_cast<int>(axis < 0 ? axis + in.shape.rank() : axis));
    return ir::transposed_source(e.source_of(node.inputs[0]), in.shape, permutation, dtype_bits(in.dtype) / 8);
  }
  const bool converts = node.op == op::kCast || (node.op == op::kDequantize && in.dtype == DType::kFloat16);
  // Saturation is the kernels' own business: only conversions that no rule about it can touch.
  const bool exact = out.dtype == DType::kFloat32 || out.dtype == DType::kFloat64;
  if (converts && exact && ir::convertible(in.dtype, out.dtype)) {
    return ir::converted_source(e.source_of(node.inputs[0]), in.dtype, out.dtype);
  }
  return nullptr;
}

bool fold_small(Editor& e, ops::Inference& inference, int n) {
  const ir::Node& node = e.node(n);
  const std::vector<int> inputs = node.inputs;
  for (int v : inputs) {
    if (v == ir::kAbsent || e.value(v).source == nullptr) continue;
    if (e.value(v).source->bytes() > kLargestResult) return false;
    e.materialize(v);
  }
  std::optional<std::vector<std::vector<std::byte>>> results;
  try {
    results = inference.compute(n, kLargestResult);
  } catch (const Error& error) {
    rethrow_if_fatal(error);
    return false;  // running the node reports it better
  }
  if (!results) return false;
  const std::vector<int> outputs = node.outputs;
  e.remove(n);
  for (size_t i = 0; i < outputs.size(); ++i) {
    ir::Value& value = e.change_value(outputs[i]);
    value.shape = inference.fact(outputs[i]).shape;
    value.signature.reset();
    e.make_constant(outputs[i], std::move((*results)[i]));
  }
  return true;
}

bool fold(Editor& e, ops::Inference& inference, int n) {
  const ir::Node& node = e.node(n);
  if (node.inputs.empty() || node.outputs.empty() || !is_pure(e.graph(), e.subgraph(), node)) return false;
  if (std::any_of(node.outputs.begin(), node.outputs.end(), [&](int v) { return e.is_output(v); })) return false;
  if (!std::all_of(node.inputs.begin(), node.inputs.end(),
                   [&](int v) { return v == ir::kAbsent || e.is_constant(v); })) {
    return false;
  }
  if (fold_small(e, inference, n)) return true;
  if (node.inputs[0] == ir::kAbsent || node.outputs.size() != 1) return false;
  const ir::Value& out = e.value(node.outputs[0]);
  const auto bytes = storage_bytes(out.dtype, out.shape);
  ir::Source source = out.signature ? nullptr : compose(e, node);
  if (source == nullptr || bytes != source->bytes()) return false;
  const int result = node.outputs[0];
  e.remove(n);
  e.make_constant(result, std::move(source));
  return true;
}

}  // namespace

int fold_constants(PassTarget target) {
  return for_each_subgraph(target, [&](Editor& editor, int s) {
    ops::Inference inference(editor.graph(), s);
    return for_each_node(editor, [&](Editor& e, int n) { return fold(e, inference, n); });
  });
}

}  // namespace leadline::passes
