// SPDX-License-Identifier: Apache-2.0
#include "import/emitter.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "ops/batch_matmul.h"
#include "ops/cast.h"
#include "ops/concatenation.h"
#include "ops/fully_connected.h"
#include "ops/gather.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/shape.h"
#include "ops/slice.h"
#include "ops/softmax.h"
#include "ops/split.h"

namespace leadline::importing {
namespace {

int32_t narrow(int64_t value) {
  require(value >= INT32_MIN && value <= INT32_MAX, kBadModel, "a size of {} does not fit in 32 bits", value);
  return static_cast<int32_t>(value);
}

/// Names of ops as TensorFlow has them, which is how tensors are called in files of its converter.
std::string tensor_word(std::string_view op) {
  const auto is_small = [](char c) { return c >= 'a' && c <= 'z'; };
  if (std::any_of(op.begin(), op.end(), is_small)) return std::string(op);
  std::string word;
  bool up = true;
  for (const char c : op) {
    if (c == '_') {
      up = true;
      continue;
    }
    word += up || c < 'A' || c > 'Z' ? c : static_cast<char>(c - 'A' + 'a');
    up = false;
  }
  return word;
}

}  // namespace

std::string Emitter::name(std::string_view what) const { return fmt::format("{}/{}", prefix_, tensor_word(what)); }

int Emitter::axis(int x, int64_t axis) const {
  const int r = rank(x);
  require(axis >= -r && axis < r, kBadModel, "axis {} of a tensor of rank {}", axis, r);
  return static_cast<int>(axis < 0 ? axis + r : axis);
}

std::vector<int32_t> Emitter::axes(int x, const std::vector<int64_t>& list) const {
  std::vector<int32_t> result;
  for (const int64_t a : list) result.push_back(axis(x, a));
  std::sort(result.begin(), result.end());
  require(std::adjacent_find(result.begin(), result.end()) == result.end(), kBadModel, "an axis is named twice");
  return result;
}

int Emitter::scalar_like(int like, double value) {
  const auto whole = [&] { return value >= -2147483648.0 && value <= 2147483647.0 ? value : 0.0; };
  switch (dtype(like)) {
    case DType::kInt32:
      return integer(static_cast<int32_t>(whole()));
    case DType::kInt64:
      return builder_.constant(name("Const"), DType::kInt64, {}, std::vector<int64_t>{static_cast<int64_t>(whole())});
    case DType::kFloat32:
      return scalar(static_cast<float>(value));
    default:
      fail(ErrorCode::kUnsupported, "arithmetic with a constant is not converted for type {}", dtype_name(dtype(like)));
  }
}

int Emitter::floats(const std::vector<float>& values, const Dims& dims) {
  return builder_.constant(name("Const"), DType::kFloat32, dims, values);
}

int Emitter::ints(const std::vector<int32_t>& values) {
  return builder_.constant(name("Const"), DType::kInt32, {static_cast<int64_t>(values.size())}, values);
}

int Emitter::integer(int32_t value) {
  return builder_.constant(name("Const"), DType::kInt32, {}, std::vector<int32_t>{value});
}

int Emitter::select(int condition, int a, int b) {
  return builder_.node("SELECT_V2", {condition, a, b}, name("Select"), dtype(a));
}

int Emitter::cast(int x, DType to) {
  if (dtype(x) == to) return x;
  ops::CastAttributes attributes;
  attributes.in_data_type = dtype(x);
  attributes.out_data_type = to;
  return builder_.node("CAST", {x}, name("Cast"), attributes, to);
}

int Emitter::reduce(const char* op, int x, const std::vector<int32_t>& axes, bool keep_dims) {
  ops::ReduceAttributes attributes;
  attributes.keep_dims = keep_dims;
  return builder_.node(op, {x, ints(axes)}, name(op), attributes);
}

int Emitter::softmax(int x) {
  ops::SoftmaxAttributes attributes;
  attributes.beta = 1.0F;
  return builder_.node("SOFTMAX", {x}, name("Softmax"), attributes);
}

int Emitter::matmul(int a, int b, bool adj_a, bool adj_b) {
  ops::BatchMatmulAttributes attributes;
  attributes.adj_x = adj_a;
  attributes.adj_y = adj_b;
  return builder_.node("BATCH_MATMUL", {a, b}, name("BatchMatMul"), attributes);
}

int Emitter::fully_connected(int x, int weights, int bias) {
  auto attributes = std::make_shared<ops::FullyConnectedAttributes>();
  attributes->keep_num_dims = rank(x) != 2;
  std::vector<int> inputs = {x, weights, bias};
  ops::NodeSpec spec;
  spec.op = "FULLY_CONNECTED";
  spec.inputs = inputs;
  spec.outputs = {{name("MatMul")}};
  spec.version = attributes->keep_num_dims ? 5 : 1;
  if (bias == ir::kAbsent) spec.version = std::max(spec.version, 6);
  spec.attributes = attributes;
  return builder_.add(std::move(spec))[0];
}

int Emitter::transpose(int x, const std::vector<int>& permutation) {
  std::vector<int32_t> order(permutation.begin(), permutation.end());
  if (std::is_sorted(order.begin(), order.end())) return x;
  return builder_.node("TRANSPOSE", {x, ints(order)}, name("Transpose"));
}

/// Nothing follows from a size of 0.
bool Emitter::is_target(const Dims& sizes) {
  const auto unknown = std::count(sizes.begin(), sizes.end(), -1);
  return unknown == 0 || (unknown == 1 && std::count(sizes.begin(), sizes.end(), 0) == 0);
}

int Emitter::reshape(int x, const Dims& target) {
  const bool same = builder_.has_rank(x) && dims(x) == target;
  if (same && std::count(target.begin(), target.end(), -1) <= 1) return x;
  std::vector<int32_t> sizes;
  for (const int64_t size : target) sizes.push_back(narrow(size));
  ops::ReshapeAttributes attributes;
  attributes.new_shape = sizes;
  return builder_.node("RESHAPE", {x, ints(sizes)}, name("Reshape"), attributes);
}

int Emitter::shape_part(int x, int begin, int end) {
  const Dims all = dims(x);
  std::vector<int32_t> known;
  for (int i = begin; i < end; ++i) known.push_back(narrow(all[static_cast<size_t>(i)]));
  if (std::count(known.begin(), known.end(), -1) == 0) return ints(known);
  ops::ShapeAttributes attributes;
  attributes.out_type = DType::kInt32;
  const int shape = builder_.node("SHAPE", {x}, name("Shape"), attributes, DType::kInt32);
  return slice(shape, 0, begin, end);
}

int Emitter::sizes_vector(const std::vector<Size>& sizes) {
  std::vector<int> parts;
  for (const auto& [tensor, value] : sizes) {
    const auto a = static_cast<int>(value);
    parts.push_back(tensor < 0 ? ints({narrow(value)}) : shape_part(tensor, a, a + 1));
  }
  return parts.size() == 1 ? parts[0] : concat(parts, 0);
}

int Emitter::reshape_like(int x, const std::vector<Size>& sizes) {
  Dims target;
  for (const auto& [tensor, value] : sizes) {
    target.push_back(tensor < 0 ? value : dims(tensor)[static_cast<size_t>(value)]);
  }
  if (is_target(target)) return reshape(x, target);
  return builder_.node("RESHAPE", {x, sizes_vector(sizes)}, name("Reshape"));
}

int Emitter::expand_dims(int x, int axis) {
  Dims target = dims(x);
  target.insert(target.begin() + axis, 1);
  if (is_target(target)) return reshape(x, target);
  return builder_.node("EXPAND_DIMS", {x, integer(axis)}, name("ExpandDims"));
}

int Emitter::squeeze(int x, int axis) {
  Dims target = dims(x);
  require(target[static_cast<size_t>(axis)] == 1, kBadModel, "axis {} has size {}, not 1", axis,
          target[static_cast<size_t>(axis)]);
  target.erase(target.begin() + axis);
  if (is_target(target)) return reshape(x, target);
  ops::SqueezeAttributes attributes;
  attributes.squeeze_dims = {axis};
  return builder_.node("SQUEEZE", {x}, name("Squeeze"), attributes);
}

int Emitter::concat(const std::vector<int>& parts, int axis) {
  require(!parts.empty(), kBadModel, "nothing to concatenate");
  if (parts.size() == 1) return parts[0];
  ops::ConcatenationAttributes attributes;
  attributes.axis = axis;
  return builder_.node("CONCATENATION", parts, name("Concat"), attributes);
}

int Emitter::pad(int x, const std::vector<std::pair<int64_t, int64_t>>& before_after, double value) {
  std::vector<int32_t> sizes;
  bool any = false;
  for (const auto& [before, after] : before_after) {
    require(before >= 0 && after >= 0, kBadModel, "padding of {} and {}", before, after);
    sizes.push_back(narrow(before));
    sizes.push_back(narrow(after));
    any = any || before != 0 || after != 0;
  }
  if (!any) return x;
  const int paddings =
      builder_.constant(name("Paddings"), DType::kInt32, {static_cast<int64_t>(before_after.size()), 2}, sizes);
  if (value == 0.0) return builder_.node("PAD", {x, paddings}, name("Pad"));
  return builder_.node("PADV2", {x, paddings, scalar_like(x, value)}, name("Pad"));
}

int Emitter::slice(int x, int axis, int64_t begin, int64_t end, int64_t step) {
  const auto r = static_cast<size_t>(rank(x));
  std::vector<int32_t> from(r, 0);
  std::vector<int32_t> to(r, 0);
  std::vector<int32_t> steps(r, 1);
  const auto all = static_cast<int32_t>((1U << r) - 1);
  const auto bit = static_cast<int32_t>(1U << static_cast<unsigned>(axis));
  from[static_cast<size_t>(axis)] = narrow(begin);
  to[static_cast<size_t>(axis)] = end == INT64_MAX ? 0 : narrow(end);
  steps[static_cast<size_t>(axis)] = narrow(step);
  ops::StridedSliceAttributes attributes;
  attributes.begin_mask = all & ~bit;
  attributes.end_mask = end == INT64_MAX ? all : all & ~bit;
  return builder_.node("STRIDED_SLICE", {x, ints(from), ints(to), ints(steps)}, name("StridedSlice"), attributes);
}

int Emitter::take(int x, int axis, int64_t index) {
  const auto r = static_cast<size_t>(rank(x));
  std::vector<int32_t> from(r, 0);
  std::vector<int32_t> to(r, 0);
  const auto bit = static_cast<int32_t>(1U << static_cast<unsigned>(axis));
  from[static_cast<size_t>(axis)] = narrow(index);
  to[static_cast<size_t>(axis)] = narrow(index + 1);  // not read for the axis that is removed
  ops::StridedSliceAttributes attributes;
  attributes.begin_mask = attributes.end_mask = static_cast<int32_t>((1U << r) - 1) & ~bit;
  attributes.shrink_axis_mask = bit;
  const int steps = ints(std::vector<int32_t>(r, 1));
  return builder_.node("STRIDED_SLICE", {x, ints(from), ints(to), steps}, name("StridedSlice"), attributes);
}

int Emitter::gather(int x, int indices, int axis) {
  ops::GatherAttributes attributes;
  attributes.axis = axis;
  return builder_.node("GATHER", {x, indices}, name("GatherV2"), attributes);
}

std::vector<int> Emitter::split(int x, int axis, int parts) {
  if (parts == 1) return {x};
  const auto size = dims(x)[static_cast<size_t>(axis)];
  require(parts > 0 && parts <= 4096 && size % parts == 0, kBadModel,
          "an axis of {} does not split into {} equal parts", size, parts);
  auto attributes = std::make_shared<ops::SplitAttributes>();
  attributes->num_splits = parts;
  ops::NodeSpec spec;
  spec.op = "SPLIT";
  spec.inputs = {integer(axis), x};
  spec.outputs.assign(static_cast<size_t>(parts), {name("Split"), dtype(x)});
  spec.attributes = attributes;
  return builder_.add(std::move(spec));
}

int Emitter::reverse(int x, int axis) { return builder_.node("REVERSE_V2", {x, ints({axis})}, name("ReverseV2")); }

int Emitter::tile(int x, const std::vector<int32_t>& repeats) {
  return builder_.node("TILE", {x, ints(repeats)}, name("Tile"));
}

}  // namespace leadline::importing
