// SPDX-License-Identifier: Apache-2.0
// Naive contractions of the kernels (kernels/reference), cut into pieces and split over threads.
#pragma once

#include "core/thread_pool.h"
#include "kernels/reference/contraction.h"

namespace leadline::ops {

/// All outputs of a reference::Conv, TransposeConv or Matmul.
template <typename Sums>
void run_reference(const Sums& sums, ThreadPool& pool) {
  constexpr double kMacCost = 1.5;
  constexpr double kOutputCost = 16;
  constexpr double kLongSum = 1 << 22;
  const double cost = static_cast<double>(sums.depth()) * kMacCost;
  if (cost <= kLongSum) {
    return pool.for_pieces(sums.outputs(), cost + kOutputCost,
                           [&](int64_t begin, int64_t end) { kernels::reference::compute_outputs(sums, begin, end); });
  }
  pool.for_pieces(sums.outputs(), kWholePiece, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      typename Sums::Acc acc = 0;
      for_pieces(sums.depth(), kMacCost,
                 [&](int64_t from, int64_t to) { kernels::reference::add_to_output(sums, i, {from, to}, acc); });
    }
  });
}

}  // namespace leadline::ops
