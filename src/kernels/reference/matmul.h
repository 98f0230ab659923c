// SPDX-License-Identifier: Apache-2.0
// Naive matrix product with free strides, for every number format.
#pragma once

#include <cstdint>

#include "core/index_range.h"
#include "kernels/reference/contraction.h"

namespace leadline::kernels::reference {

/// C[m, n] = A[m, k] * B[k, n]; strides count elements.
struct MatmulShape {
  int64_t m = 0, n = 0, k = 0;
  int64_t a_row = 0, a_depth = 1;     // A(i, d) at i * a_row + d * a_depth
  int64_t b_column = 0, b_depth = 1;  // B(d, j) at j * b_column + d * b_depth
  int64_t c_row = 0;                  // C(i, j) at i * c_row + j
};

/// `row` of the zero point and the finish is first_row + the row in A.
template <typename A, typename B, typename Zero, typename Finish, typename C>
struct Matmul {
  using Acc = typename Finish::Acc;
  struct Output {
    int64_t row = 0, column = 0;
  };

  MatmulShape s;
  const A* a = nullptr;
  Zero a_zero;
  const B* b = nullptr;
  int32_t b_zero = 0;
  Finish finish;
  C* c = nullptr;
  int64_t first_row = 0;

  int64_t outputs() const { return s.m * s.n; }
  int64_t depth() const { return s.k; }
  Output at(int64_t index) const { return {index / s.n, index % s.n}; }
  void next(Output& o) const {
    if (++o.column < s.n) return;
    o.column = 0;
    ++o.row;
  }
  /// Adds the products in a range of depth().
  Acc add(const Output& o, IndexRange range, Acc acc) const {
    const int32_t zero = a_zero(first_row + o.row);
    const A* left = a + o.row * s.a_row;
    const B* right = b + o.column * s.b_column;
    for (int64_t d = range.begin; d < range.end; ++d) {
      acc = multiply_add(acc, left[d * s.a_depth], zero, right[d * s.b_depth], b_zero);
    }
    return acc;
  }
  void write(int64_t /*index*/, const Output& o, Acc acc) const {
    c[o.row * s.c_row + o.column] = finish(acc, first_row + o.row, o.column);
  }
};

}  // namespace leadline::kernels::reference
