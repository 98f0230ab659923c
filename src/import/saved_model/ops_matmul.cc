// SPDX-License-Identifier: Apache-2.0
// Products of matrices. Constant right sides become the weights of FULLY_CONNECTED.
#include "import/einsum.h"
#include "import/saved_model/op_functions.h"
#include "ops/batch_matmul.h"

namespace leadline::saved_model {
namespace {

bool is_constant(OpCall& call, int value) { return call.builder().value(value).constant; }

/// A RESHAPE to rows that keeps the last axis is not needed in front of FULLY_CONNECTED: tf.tensordot writes one.
int before_rows(OpCall& call, int x) {
  const FlatNode* rows = call.made_by(call.node.inputs[0], "Reshape", 2);
  if (rows == nullptr) return x;
  const int original = call.value(rows->inputs[0]);
  const Dims before = call.e.dims(original);
  return before.size() > 2 && before.back() > 0 && before.back() == call.e.dims(x).back() ? original : x;
}

std::vector<int> swap_last(int rank) {
  std::vector<int> order;
  for (int i = 0; i < rank; ++i) order.push_back(i);
  std::swap(order[static_cast<size_t>(rank) - 1], order[static_cast<size_t>(rank) - 2]);
  return order;
}

}  // namespace

Outputs matmul(OpCall& call) {
  Emitter& e = call.e;
  const int a = call.in(0);
  const int b = call.in(1);
  require(e.rank(a) == 2 && e.rank(b) == 2, kBad, "inputs have rank {} and {}, expected 2", e.rank(a), e.rank(b));
  const bool turn_a = call.attr_bool("transpose_a", false);
  const bool turn_b = call.attr_bool("transpose_b", false);
  if (!is_constant(call, b) || e.dtype(a) != DType::kFloat32) return {e.matmul(a, b, turn_a, turn_b)};
  const int weights = turn_b ? b : e.transpose(b, {1, 0});
  const int64_t units = e.dims(weights)[0];
  const int rows = turn_a ? e.transpose(a, {1, 0}) : a;
  const int x = turn_a ? rows : before_rows(call, rows);
  const int y = e.fully_connected(x, weights, ir::kAbsent);
  return {x == rows ? y : e.reshape(y, {e.dims(rows)[0], units})};
}

Outputs batch_matmul(OpCall& call) {
  Emitter& e = call.e;
  const int a = call.in(0);
  const int b = call.in(1);
  const bool turn_a = call.attr_bool("adj_x", false);
  const bool turn_b = call.attr_bool("adj_y", false);
  require(e.rank(a) >= 2 && e.rank(b) >= 2, kBad, "inputs have rank {} and {}, expected 2 or more", e.rank(a),
          e.rank(b));
  if (const DType sums = call.attr_type("Tout", e.dtype(a)); sums != e.dtype(a)) {
    ops::BatchMatmulAttributes attributes;
    attributes.adj_x = turn_a;
    attributes.adj_y = turn_b;
    return {call.builder().node("BATCH_MATMUL", {a, b}, call.name(), attributes, sums)};  // of int8 without scales
  }
  if (!is_constant(call, b) || e.rank(b) != 2 || e.dtype(a) != DType::kFloat32) {
    return {e.matmul(a, b, turn_a, turn_b)};
  }
  const int x = turn_a ? e.transpose(a, swap_last(e.rank(a))) : a;
  return {e.fully_connected(x, turn_b ? b : e.transpose(b, {1, 0}), ir::kAbsent)};
}

Outputs einsum(OpCall& call) {
  std::vector<int> operands;
  for (size_t i = 0; i < call.inputs.size(); ++i) operands.push_back(call.in(i));
  return {importing::einsum(call.e, call.attr_text("equation", ""), operands)};
}

}  // namespace leadline::saved_model
