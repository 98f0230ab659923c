// SPDX-License-Identifier: Apache-2.0
// float32 products of operands that are computed while running: BATCH_MATMUL, and FULLY_CONNECTED with such weights.
#pragma once

#include <array>
#include <limits>
#include <memory>

#include "ops/op.h"

namespace leadline::ops {

/// The products of one run: `batches` of [m, k] times [k, n].
struct Products {
  int64_t m = 0, n = 0, k = 0;
  bool adj_x = false;  // left-hand matrices are [k, m]
  bool adj_y = false;  // right-hand matrices are [n, k]
  int64_t lhs_matrices = 1, rhs_matrices = 1, batches = 1;
  Shape batch;
  std::array<int64_t, kMaxRank> lhs_step{}, rhs_step{};  // in matrices, per dimension of `batch`; 0 where stretched

  int64_t lhs_matrix(int64_t index) const { return matrix(lhs_step, index); }
  int64_t rhs_matrix(int64_t index) const { return matrix(rhs_step, index); }

 private:
  int64_t matrix(const std::array<int64_t, kMaxRank>& step, int64_t index) const {
    int64_t result = 0;
    for (int axis = batch.rank() - 1; axis >= 0; --axis) {
      result += index % batch[axis] * step[static_cast<size_t>(axis)];
      index /= batch[axis];
    }
    return result;
  }
};

/// What is done with the sums.
struct FloatFinish {
  int bias = -1;  // input that holds it as float32; -1: none
  float lo = -std::numeric_limits<float>::infinity();
  float hi = std::numeric_limits<float>::infinity();
};

/// Inputs 0 and 1 times each other, as they are in memory; scratch is at most 16 MiB whatever their size.
std::unique_ptr<Kernel> make_float_matmul(PrepareContext& c, const Products& products, const FloatFinish& finish = {});

}  // namespace leadline::ops
