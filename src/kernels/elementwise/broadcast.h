// SPDX-License-Identifier: Apache-2.0
// The loop nest of every elementwise op with N inputs that broadcast.
//
// A plan drops dimensions of size 1 and merges neighbours that all inputs walk alike, so that tensors of one shape
// become a single row, and [.., C] with [C] becomes rows of C. Inside a row each input is either contiguous
// (step 1) or one repeated value (step 0). The output is contiguous and may be the memory of an input with as many
// elements: element i is written after element i of that input was read, and no other element of it is needed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "leadline/types.h"

namespace leadline::kernels {

template <size_t N>
struct BroadcastPlan {
  int rank = 1;
  std::array<int64_t, kMaxRank> dims{1};                      // outermost first
  std::array<std::array<int64_t, kMaxRank>, N> strides = {};  // in elements; 0 where an input is repeated
  int64_t elements = 1;

  int64_t row() const { return dims[static_cast<size_t>(rank - 1)]; }
  /// Step of input `k` inside a row: 0 or 1.
  int64_t step(size_t k) const { return strides[k][static_cast<size_t>(rank - 1)]; }
};

/// `output` is what the inputs broadcast to, apart from leading ones.
template <size_t N>
BroadcastPlan<N> plan_broadcast(const Shape& output, const std::array<Shape, N>& inputs) {
  BroadcastPlan<N> plan;
  plan.elements = output.elements();
  std::array<std::array<int64_t, kMaxRank>, N> strides = {};
  for (size_t k = 0; k < N; ++k) {
    int64_t stride = 1;
    for (int i = inputs[k].rank() - 1, j = output.rank() - 1; i >= 0 && j >= 0; --i, --j) {
      strides[k][static_cast<size_t>(j)] = inputs[k][i] == 1 ? 0 : stride;
      stride *= inputs[k][i];
    }
  }
  size_t used = 0;
  for (size_t axis = 0; axis < static_cast<size_t>(output.rank()); ++axis) {
    const int64_t size = output[static_cast<int>(axis)];
    if (size == 1) continue;
    bool merge = used > 0;
    for (size_t k = 0; merge && k < N; ++k) merge = plan.strides[k][used - 1] == strides[k][axis] * size;
    if (merge) {
      plan.dims[used - 1] *= size;
    } else {
      plan.dims[used++] = size;
    }
    for (size_t k = 0; k < N; ++k) plan.strides[k][used - 1] = strides[k][axis];
  }
  if (used == 0) {
    for (size_t k = 0; k < N; ++k) plan.strides[k][0] = 1;
    used = 1;
  }
  plan.rank = static_cast<int>(used);
  return plan;
}

/// Calls row(output_offset, input_offsets, count) for consecutive pieces of rows that cover the output elements
/// [begin, end) in order.
template <size_t N, typename Row>
void for_each_row(const BroadcastPlan<N>& plan, int64_t begin, int64_t end, const Row& row) {
  if (begin >= end) return;
  const auto inner = static_cast<size_t>(plan.rank - 1);
  const int64_t width = plan.row();
  std::array<int64_t, kMaxRank> index = {};
  std::array<int64_t, N> base = {};  // offsets of the row's first element
  int64_t rest = begin / width;
  for (size_t axis = inner; axis-- > 0;) {
    index[axis] = rest % plan.dims[axis];
    rest /= plan.dims[axis];
    for (size_t k = 0; k < N; ++k) base[k] += index[axis] * plan.strides[k][axis];
  }
  int64_t first = begin % width;
  while (true) {
    const int64_t count = width - first < end - begin ? width - first : end - begin;
    std::array<int64_t, N> offsets = base;
    if (first != 0) {
      for (size_t k = 0; k < N; ++k) offsets[k] += first * plan.step(k);
    }
    row(begin, offsets, count);
    begin += count;
    if (begin >= end) return;
    first = 0;
    for (size_t axis = inner; axis-- > 0;) {
      for (size_t k = 0; k < N; ++k) base[k] += plan.strides[k][axis];
      if (++index[axis] < plan.dims[axis]) break;
      for (size_t k = 0; k < N; ++k) base[k] -= plan.dims[axis] * plan.strides[k][axis];
      index[axis] = 0;
    }
  }
}

/// Writes what input `k` contributes to the output elements [begin, end).
template <size_t N, typename T>
void expand(const BroadcastPlan<N>& plan, size_t k, const T* in, int64_t begin, int64_t end, T* out) {
  const int64_t step = plan.step(k);
  for_each_row(plan, begin, end, [&](int64_t at, const std::array<int64_t, N>& from, int64_t count) {
    const T* source = in + from[k];
    T* target = out + (at - begin);
    for (int64_t i = 0; i < count; ++i) target[i] = source[i * step];
  });
}

/// out[i] = f(a[i * a_step], b[i * b_step]); steps are 0 or 1, not both 0 unless count is 1.
template <typename A, typename B, typename R, typename F>
void binary_row(const A* a, int64_t a_step, const B* b, int64_t b_step, R* out, int64_t count, const F& f) {
  if (b_step == 0) {
    const B y = *b;
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) out[i] = f(a[i], y);
  } else if (a_step == 0) {
    const A x = *a;
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) out[i] = f(x, b[i]);
  } else {
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) out[i] = f(a[i], b[i]);
  }
}

}  // namespace leadline::kernels
