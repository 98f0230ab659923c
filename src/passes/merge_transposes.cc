// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "ops/batch_matmul.h"
#include "passes/editor.h"
#include "passes/passes.h"

namespace leadline::passes {
namespace {

/// Whether the node exchanges the last two axes and leaves the others.
bool turns_matrices(Editor& e, const ir::Node& node) {
  if (node.op != op::kTranspose) return false;
  auto axes = e.ints(node.inputs[1]);
  if (!axes || axes->size() < 2) return false;
  std::vector<int64_t> wanted(axes->size());
  std::iota(wanted.begin(), wanted.end(), 0);
  std::swap(wanted[wanted.size() - 1], wanted[wanted.size() - 2]);
  for (int64_t& axis : *axes) axis = axis < 0 ? axis + static_cast<int64_t>(axes->size()) : axis;
  return *axes == wanted;
}

bool merge_pair(Editor& e, int n) {
  if (e.node(n).op != op::kBatchMatmul) return false;
  auto changed = ir::attributes_as<ops::BatchMatmulAttributes>(e.node(n));
  bool any = false;
  for (int i : {0, 1}) {
    const int v = e.node(n).inputs[static_cast<size_t>(i)];
    const int before = e.producer(v);
    if (before < 0 || e.value(v).dtype != DType::kFloat32 || !turns_matrices(e, e.node(before))) continue;
    if (e.value(e.node(before).inputs[0]).variable) continue;
    bool& flag = i == 0 ? changed.adj_x : changed.adj_y;
    flag = !flag;
    e.set_input(n, i, e.node(before).inputs[0]);
    any = true;
  }
  if (any) e.set_attributes(n, std::make_shared<ops::BatchMatmulAttributes>(changed));
  return any;
}

}  // namespace

int merge_transposes(PassTarget target) { return for_each_node(target, merge_pair); }

}  // namespace leadline::passes
