// SPDX-License-Identifier: Apache-2.0
// Words in which layers and foreign ops say what they compute: thin functions over ops::GraphBuilder that name tensors
// after their origin ("model/layer/Op") and work with unknown dimensions.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ops/graph_builder.h"

namespace leadline::importing {

using ops::Dims;

class Emitter {
 public:
  explicit Emitter(ops::GraphBuilder& builder) : builder_(builder) {}

  ops::GraphBuilder& builder() { return builder_; }
  Dims dims(int x) const { return builder_.dims(x); }
  int rank(int x) const { return static_cast<int>(builder_.dims(x).size()); }
  DType dtype(int x) const { return builder_.value(x).dtype; }
  /// An axis of `x` counted from the front; throws when there is no such axis.
  int axis(int x, int64_t axis) const;
  std::vector<int32_t> axes(int x, const std::vector<int64_t>& axes) const;

  /// Tensors that follow are called `prefix`/...
  void set_prefix(std::string prefix) { prefix_ = std::move(prefix); }
  const std::string& prefix() const { return prefix_; }
  std::string name(std::string_view what) const;

  // Constants.
  int scalar(float value) { return floats({value}, {}); }
  /// A number of the type of `like`.
  int scalar_like(int like, double value);
  int floats(const std::vector<float>& values, const Dims& dims);
  int floats(const std::vector<float>& values) { return floats(values, {static_cast<int64_t>(values.size())}); }
  int ints(const std::vector<int32_t>& values);
  int integer(int32_t value);

  // Arithmetic.
  int unary(const char* op, int x) { return builder_.node(op, {x}, name(op)); }
  int binary(const char* op, int a, int b) { return builder_.node(op, {a, b}, name(op)); }
  int compare(const char* op, int a, int b) { return builder_.node(op, {a, b}, name(op), DType::kBool); }
  int add(int a, int b) { return binary("ADD", a, b); }
  int sub(int a, int b) { return binary("SUB", a, b); }
  int mul(int a, int b) { return binary("MUL", a, b); }
  int div(int a, int b) { return binary("DIV", a, b); }
  int add(int a, double b) { return add(a, scalar_like(a, b)); }
  int mul(int a, double b) { return mul(a, scalar_like(a, b)); }
  int select(int condition, int a, int b);
  int cast(int x, DType to);
  /// `op` is MEAN, SUM, REDUCE_MAX, ...
  int reduce(const char* op, int x, const std::vector<int32_t>& axes, bool keep_dims);
  int softmax(int x);
  int matmul(int a, int b, bool adj_a = false, bool adj_b = false);
  /// The last axis of `x` with weights [units, size]; other axes stay. `bias` may be ir::kAbsent.
  int fully_connected(int x, int weights, int bias);

  // Movement.
  int transpose(int x, const std::vector<int>& permutation);
  /// Sizes of the result, -1 for at most one that follows from the others.
  int reshape(int x, const Dims& target);
  /// Whether these sizes say all that a reshape needs: none is unknown, or one that follows from the others.
  static bool is_target(const Dims& sizes);
  /// The sizes of `x` from `begin` to `end` (exclusive) as an int32 vector, a constant when they are known.
  int shape_part(int x, int begin, int end);
  /// `x` with the sizes of `sizes` in order; entry {tensor, axis} is that tensor's size there, {-1, n} is n.
  using Size = std::pair<int, int64_t>;
  int reshape_like(int x, const std::vector<Size>& sizes);
  int sizes_vector(const std::vector<Size>& sizes);
  int expand_dims(int x, int axis);
  int squeeze(int x, int axis);
  int concat(const std::vector<int>& parts, int axis);
  int pad(int x, const std::vector<std::pair<int64_t, int64_t>>& before_after, double value = 0.0);
  /// Along one axis from `begin` to `end`; an end of INT64_MAX is the axis's own.
  int slice(int x, int axis, int64_t begin, int64_t end, int64_t step = 1);
  /// Element `index` along `axis`, which is removed.
  int take(int x, int axis, int64_t index);
  int gather(int x, int indices, int axis);
  std::vector<int> split(int x, int axis, int parts);
  int reverse(int x, int axis);
  int tile(int x, const std::vector<int32_t>& repeats);

 private:
  ops::GraphBuilder& builder_;
  std::string prefix_;
};

}  // namespace leadline::importing
