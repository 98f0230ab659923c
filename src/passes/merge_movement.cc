// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "passes/editor.h"
#include "passes/passes.h"

namespace leadline::passes {
namespace {

/// Equal sizes in every run, when both have the same number of elements.
bool same_shape(const ir::Value& a, const ir::Value& b) {
  const auto dims = dims_of(a);
  return dims == dims_of(b) && std::count(dims.begin(), dims.end(), -1) <= 1;
}

bool same_type(const ir::Value& a, const ir::Value& b) {
  return a.dtype == b.dtype && a.quantization == b.quantization;
}

std::optional<std::vector<int64_t>> permutation(Editor& e, const ir::Node& node) {
  auto axes = e.ints(node.inputs[1]);
  if (!axes) return {};
  for (int64_t& axis : *axes) axis = axis < 0 ? axis + static_cast<int64_t>(axes->size()) : axis;
  return axes;
}

/// True when the node's output is its first input.
bool changes_nothing(Editor& e, const ir::Node& node) {
  const ir::Value& in = e.value(node.inputs[0]);
  const ir::Value& out = e.value(node.outputs[0]);
  if (!same_type(in, out)) return false;
  if (is_reshape(node)) return same_shape(in, out);
  if (node.op == op::kCast || (node.op == op::kQuantize && in.quantization.quantized())) return true;
  if (node.op == op::kTranspose) {
    const auto axes = permutation(e, node);
    return axes && std::is_sorted(axes->begin(), axes->end());
  }
  if (ir::is_one_of(node.op, {op::kPad, op::kPadV2, op::kMirrorPad})) {
    const auto pads = e.ints(node.inputs[1]);
    return pads && std::all_of(pads->begin(), pads->end(), [](int64_t pad) { return pad == 0; });
  }
  return false;
}

/// Only the last of several reshapes counts. SQUEEZE and EXPAND_DIMS depend on what is before them and become RESHAPE.
bool join_reshapes(Editor& e, int n, int before) {
  const ir::Node& node = e.node(n);
  const ir::Node& inner = e.node(before);
  if (!is_reshape(node) || !is_reshape(inner)) return false;
  if (!same_type(e.value(inner.inputs[0]), e.value(node.outputs[0]))) return false;
  if (node.op == op::kReshape) {
    if (node.inputs.size() > 1 && !e.is_constant(node.inputs[1])) return false;
    e.set_input(n, 0, inner.inputs[0]);
    return true;
  }
  const auto dims = dims_of(e.value(node.outputs[0]));
  if (std::count(dims.begin(), dims.end(), -1) > 1 || std::count(dims.begin(), dims.end(), 0) > 0) return false;
  const std::vector<int32_t> sizes(dims.begin(), dims.end());
  const auto count = static_cast<int64_t>(sizes.size());
  const int shape = e.add_constant(e.value(node.outputs[0]).name + "/shape", DType::kInt32, {count}, sizes);
  e.become(n, op::kReshape, {inner.inputs[0], shape});
  return true;
}

bool join_transposes(Editor& e, int n, int before) {
  const ir::Node& node = e.node(n);
  const ir::Node& inner = e.node(before);
  if (node.op != op::kTranspose || inner.op != op::kTranspose) return false;
  const auto outer_axes = permutation(e, node);
  const auto inner_axes = permutation(e, inner);
  if (!outer_axes || !inner_axes || outer_axes->size() != inner_axes->size()) return false;
  std::vector<int32_t> axes;
  for (int64_t axis : *outer_axes) {
    axes.push_back(static_cast<int32_t>((*inner_axes)[static_cast<size_t>(axis)]));
  }
  const int order =
      e.add_constant(e.value(node.inputs[1]).name, DType::kInt32, {static_cast<int64_t>(axes.size())}, axes);
  e.set_inputs(n, {inner.inputs[0], order});
  return true;
}

bool rewrite(Editor& e, int n) {
  const ir::Node& node = e.node(n);
  // For runs: reshapes cost nothing, and what the file says of shapes need not be true.
  if (e.for_runs() && !ir::is_one_of(node.op, {op::kTranspose, op::kCast, op::kQuantize})) return false;
  if (node.inputs.empty() || node.inputs[0] == ir::kAbsent || node.outputs.size() != 1) return false;
  if (e.value(node.inputs[0]).variable || e.value(node.outputs[0]).variable) return false;
  if (changes_nothing(e, node)) {
    const int in = node.inputs[0];
    const int out = node.outputs[0];
    if (!e.replace(out, in)) return false;
    if (!e.removed(n)) e.remove(n);
    return true;
  }
  if (e.for_runs()) return false;
  const int before = e.producer(node.inputs[0]);
  if (before < 0 || e.node(before).inputs.empty() || e.value(e.node(before).inputs[0]).variable) return false;
  return join_reshapes(e, n, before) || join_transposes(e, n, before);
}

}  // namespace

int merge_movement(PassTarget target) { return for_each_node(target, rewrite); }

}  // namespace leadline::passes
