// SPDX-License-Identifier: Apache-2.0
// Naive matrix product with free strides, for every number format.
#pragma once

#include <cstdint>

#include "core/cancel.h"
#include "kernels/reference/contraction.h"

namespace leadline::kernels::reference {

/// C[m, n] = A[m, k] * B[k, n]; strides count elements.
struct MatmulShape {
  int64_t m = 0, n = 0, k = 0;
  int64_t a_row = 0, a_depth = 1;     // A(i, d) at i * a_row + d * a_depth
  int64_t b_column = 0, b_depth = 1;  // B(d, j) at j * b_column + d * b_depth
  int64_t c_row = 0;                  // C(i, j) at i * c_row + j
};

/// Computes rows [row_begin, row_end) of C. `row` of the zero point and the finish is first_row + the row in A.
template <typename A, typename B, typename Zero, typename Finish, typename C>
void matmul(const MatmulShape& s, const A* a, Zero a_zero, const B* b, int32_t b_zero, const Finish& finish, C* c,
            int64_t row_begin, int64_t row_end, int64_t first_row = 0) {
  PacedCheck check;
  for (int64_t i = row_begin; i < row_end; ++i) {
    const int32_t zero = a_zero(first_row + i);
    for (int64_t j = 0; j < s.n; ++j) {
      typename Finish::Acc acc = 0;
      check.count(s.k + 1);
      in_pieces(s.k, PacedCheck::kEvery, [&](int64_t begin, int64_t end) {
        for (int64_t d = begin; d < end; ++d) {
          acc = multiply_add(acc, a[i * s.a_row + d * s.a_depth], zero, b[j * s.b_column + d * s.b_depth], b_zero);
        }
      });
      c[i * s.c_row + j] = finish(acc, first_row + i, j);
    }
  }
}

}  // namespace leadline::kernels::reference
