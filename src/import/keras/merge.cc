// SPDX-License-Identifier: Apache-2.0
// Layers that make one tensor of several.
#include <algorithm>

#include "import/einsum.h"
#include "import/keras/importer.h"
#include "import/keras/layer_functions.h"

namespace leadline::keras {
namespace {

/// Inputs of lower rank get axes after the batch, as Keras does it.
std::vector<int> same_rank(Call& call) {
  Emitter& e = call.e;
  int rank = 0;
  for (const int x : call.inputs) rank = std::max(rank, e.rank(x));
  std::vector<int> result;
  for (int x : call.inputs) {
    while (e.rank(x) < rank) x = e.expand_dims(x, std::min(1, e.rank(x)));
    result.push_back(x);
  }
  return result;
}

int merge(Call& call, const char* op) {
  const std::vector<int> parts = same_rank(call);
  require(!parts.empty(), kBad, "the layer is called with nothing to merge");
  int result = parts[0];
  for (size_t i = 1; i < parts.size(); ++i) result = call.e.binary(op, result, parts[i]);
  return result;
}

int normalized(Emitter& e, int x, int axis) {
  const int square = e.reduce("SUM", e.mul(x, x), {axis}, true);
  return e.mul(x, e.unary("RSQRT", e.binary("MAXIMUM", square, e.scalar(1e-12F))));
}

}  // namespace

Outputs add_layer(Call& call) { return {merge(call, "ADD")}; }
Outputs multiply_layer(Call& call) { return {merge(call, "MUL")}; }
Outputs maximum_layer(Call& call) { return {merge(call, "MAXIMUM")}; }
Outputs minimum_layer(Call& call) { return {merge(call, "MINIMUM")}; }

Outputs subtract_layer(Call& call) {
  require(call.inputs.size() == 2, kBad, "the layer is called with {} tensors, it needs 2", call.inputs.size());
  return {merge(call, "SUB")};
}

/// Part of keras.applications.InceptionResNetV2: the first tensor and a share of the second.
Outputs custom_scale_layer(Call& call) {
  require(call.inputs.size() == 2, kBad, "the layer is called with {} tensors, it needs 2", call.inputs.size());
  return {call.e.add(call.inputs[0], call.e.mul(call.inputs[1], call.config.number("scale", 1.0)))};
}

Outputs average_layer(Call& call) {
  const int sum = merge(call, "ADD");
  return {call.e.mul(sum, 1.0 / static_cast<double>(call.inputs.size()))};
}

namespace {

/// Along time, masks follow each other. Along another axis a step counts in Keras 3 when it counts in any tensor (one
/// without a mask counts always), in Keras 2 when it counts in all.
int concatenated_mask(Call& call, int axis) {
  Emitter& e = call.e;
  std::vector<int> masks;
  for (const int x : call.inputs) {
    if (const int mask = call.importer.mask_of(x); mask >= 0) masks.push_back(mask);
  }
  if (masks.empty()) return -1;
  const bool all = masks.size() == call.inputs.size();
  if (axis == 1) {
    call.refuse_if(!all, "puts sequences with and without a mask after each other, which is not converted");
    return e.concat(masks, 1);
  }
  const bool keras_2 = call.importer.is_keras_2();
  if (!all && !keras_2) return -1;
  int merged = masks[0];
  for (const int mask : masks) {
    if (mask != merged) merged = e.compare(keras_2 ? "LOGICAL_AND" : "LOGICAL_OR", merged, mask);
  }
  return merged;
}

}  // namespace

Outputs concatenate_layer(Call& call) {
  const int axis = call.e.axis(call.x(), call.config.integer("axis", -1));
  const int y = call.e.concat(call.inputs, axis);
  call.importer.set_mask(y, concatenated_mask(call, axis));
  return {y};
}

/// A product over one axis of each tensor; the first axis is the batch.
Outputs dot_layer(Call& call) {
  Emitter& e = call.e;
  int a = call.input(0);
  int b = call.input(1);
  const std::vector<int64_t> axes = call.config.integers("axes", 2, -1);
  const int axis_a = e.axis(a, axes[0]);
  const int axis_b = e.axis(b, axes[1]);
  if (call.config.boolean("normalize", false)) {
    a = normalized(e, a, axis_a);
    b = normalized(e, b, axis_b);
  }
  const int rank_a = e.rank(a);
  const int rank_b = e.rank(b);
  require(rank_a >= 2 && rank_b >= 2 && axis_a != 0 && axis_b != 0 && rank_a <= 6 && rank_b <= 6, kBad,
          "axes {} and {} of tensors of rank {} and {} are multiplied", axis_a, axis_b, rank_a, rank_b);
  if (rank_a > 3 || rank_b > 3) {  // letters are axes: the batch is a, the sum is over k
    std::string left = "a";
    std::string right = "a";
    std::string result = "a";
    for (int i = 1; i < rank_a; ++i) left += i == axis_a ? 'k' : static_cast<char>('m' + i);
    for (int i = 1; i < rank_b; ++i) right += i == axis_b ? 'k' : static_cast<char>('A' + i);
    for (const char c : left.substr(1) + right.substr(1)) result += c == 'k' ? "" : std::string(1, c);
    return {importing::einsum(call.e, left + "," + right + "->" + result, {a, b})};
  }
  if (rank_a == 2 && rank_b == 2) return {e.reduce("SUM", e.mul(a, b), {1}, true)};
  if (rank_a == 2) a = e.expand_dims(a, 1);
  if (rank_b == 2) b = e.expand_dims(b, 2);
  const bool adj_a = rank_a == 3 && axis_a == 1;
  const bool adj_b = rank_b == 3 && axis_b == 2;
  const int product = e.matmul(a, b, adj_a, adj_b);
  if (rank_a == 2) return {e.squeeze(product, 1)};
  if (rank_b == 2) return {e.squeeze(product, 2)};
  return {product};
}

}  // namespace leadline::keras
