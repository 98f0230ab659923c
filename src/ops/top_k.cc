// SPDX-License-Identifier: Apache-2.0
// TOPK_V2: the k largest elements of each row, largest first; of equal ones the first; NaN counts as the smallest.
#include <algorithm>
#include <limits>
#include <type_traits>

#include "ops/common.h"
#include "ops/families.h"
#include "ops/movement.h"
#include "ops/quantization_rules.h"

namespace leadline::ops {
namespace {

void infer_top_k(InferContext& c) {
  c.require_input_type(0, {DType::kFloat32, DType::kUInt8, DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64});
  c.require_input_type(1, {DType::kInt32, DType::kInt16});
  require_same_type(c, c.input(0), c.output(0));
  c.require_output_type(1, {DType::kInt32, DType::kInt16});
  require_elements(c, 1, 1);
  const Shape& input = c.input(0).shape;
  c.require(input.rank() >= 1, "the input is a scalar, expected at least a vector");
  if (!c.known(1)) return c.defer();
  const int64_t k = std::max<int64_t>(0, known_ints(c, 1)[0]);
  const int64_t row = input[input.rank() - 1];
  c.require(k <= row, "k is {}, but a row has {} elements", k, row);
  const int64_t largest =
      c.output(1).dtype() == DType::kInt16 ? std::numeric_limits<int16_t>::max() : std::numeric_limits<int32_t>::max();
  c.require(k == 0 || row <= largest, "a row of {} elements needs a wider index type than {}", row,
            dtype_name(c.output(1).dtype()));
  Shape output = input;
  output.set(input.rank() - 1, k);
  c.set_output_shape(0, output);
  c.set_output_shape(1, output);
}

/// A total order, so that the result does not depend on how it is found.
template <typename T>
bool comes_first(const T* values, int64_t a, int64_t b) {
  if constexpr (std::is_floating_point_v<T>) {
    const bool a_nan = values[a] != values[a];
    const bool b_nan = values[b] != values[b];
    if (a_nan != b_nan) return b_nan;
    if (a_nan) return a < b;
  }
  return values[a] != values[b] ? values[a] > values[b] : a < b;
}

/// The indices output holds a heap whose top is the last of the k best so far: no other memory is needed.
template <typename T, typename Index>
void top_of_row(const T* values, int64_t row, int64_t k, T* best, Index* indices) {
  const auto first = [values](Index a, Index b) { return comes_first(values, a, b); };
  constexpr double kHeapCost = 64;
  for_items(k, kHeapCost, [&](int64_t i) {
    indices[i] = static_cast<Index>(i);
    std::push_heap(indices, indices + i + 1, first);
  });
  for_items(row - k, 16, [&](int64_t i) {
    const auto index = static_cast<Index>(k + i);
    if (!first(index, indices[0])) return;
    std::pop_heap(indices, indices + k, first);
    indices[k - 1] = index;
    std::push_heap(indices, indices + k, first);
  });
  for_items(k, kHeapCost, [&](int64_t i) { std::pop_heap(indices, indices + k - i, first); });
  for_items(k, 2, [&](int64_t i) { best[i] = values[indices[i]]; });
}

template <typename T, typename Index>
std::unique_ptr<Kernel> top_k_kernel(int64_t rows, int64_t row, int64_t k) {
  return make_kernel([=](RunContext& c) {
    if (k == 0 || rows == 0) return;
    const T* values = c.input(0).as<T>();
    T* best = c.output(0).mutable_as<T>();
    Index* indices = c.output(1).mutable_as<Index>();
    c.pool().for_pieces(rows, 4 * static_cast<double>(row), [=](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) top_of_row(values + r * row, row, k, best + r * k, indices + r * k);
    });
  });
}

std::unique_ptr<Kernel> prepare_top_k(PrepareContext& c) {
  const Shape& input = c.input(0).shape;
  const int last = input.rank() - 1;
  const int64_t k = c.output(0).shape[last];
  const int64_t rows = span_elements(input, 0, last);
  const bool narrow = c.output(1).dtype() == DType::kInt16;
  return visit_numeric(c, c.input(0).dtype(), [&](auto value) {
    using T = decltype(value);
    return narrow ? top_k_kernel<T, int16_t>(rows, input[last], k) : top_k_kernel<T, int32_t>(rows, input[last], k);
  });
}

}  // namespace

void register_top_k(Registry& registry) {
  registry.add({.id = op::kTopKV2,
                .max_version = 3,
                .min_inputs = 2,
                .max_inputs = 2,
                .required_inputs = 2,
                .min_outputs = 2,
                .max_outputs = 2,
                .options = builtin_options(34),
                .infer = infer_top_k,
                .prepare = prepare_top_k,
                .quantize = same_scale_rule({.int8 = 2, .int16 = 3}),
                .types = "f32 u8 i8 i16 i32 i64"});
}

}  // namespace leadline::ops
