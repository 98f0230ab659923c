// SPDX-License-Identifier: Apache-2.0
// Reductions of the kernels, cut into pieces and split over threads.
// Invariant: results do not depend on pieces or threads.
#pragma once

#include "core/thread_pool.h"
#include "kernels/reduce/reduce.h"

namespace leadline::ops {

/// All outputs of a plan, in parallel over outputs or blocks of them. finish(Acc, output index) stores a result.
template <typename T, typename Op, typename Finish>
void reduce(ThreadPool& pool, const kernels::ReducePlan& plan, const Op& op, const T* in, const Finish& finish) {
  const auto values = static_cast<double>(plan.reduced_count);
  if (plan.inner_reduced) {
    if (values <= kLongPieceCost) {
      return pool.for_pieces(plan.kept.count, values, [&](int64_t begin, int64_t end) {
        kernels::reduce_rows(plan, op, in, begin, end, finish);
      });
    }
    return pool.for_pieces(plan.kept.count, kWholePiece, [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) {
        kernels::RowReduction<Op> state(op);
        for_boxes<2>({{{{0, plan.reduced.count}}, {{0, plan.inner}, kernels::kReduceGrain}}}, 1, [&](const auto& box) {
          if (box[1].size() == plan.inner) {
            return kernels::reduce_rows_of(plan, op, in, o, box[0].begin, box[0].end, state);
          }
          const T* row = in + plan.kept.offset(o) + plan.reduced.offset(box[0].begin);
          kernels::reduce_values(plan, op, row, box[1], state);
        });
        finish(state.acc, o);
      }
    });
  }
  const int64_t blocks = plan.kept.count * ((plan.inner + kernels::kReduceBlock - 1) / kernels::kReduceBlock);
  const double cost = values * kernels::kReduceBlock;
  if (cost <= kLongPieceCost) {
    return pool.for_pieces(
        blocks, cost, [&](int64_t begin, int64_t end) { kernels::reduce_columns(plan, op, in, begin, end, finish); });
  }
  pool.for_pieces(blocks, kWholePiece, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      kernels::ColumnReduction<Op> state(op);
      for_pieces(plan.reduced.count, kernels::kReduceBlock,
                 [&](int64_t from, int64_t to) { kernels::reduce_columns_of(plan, op, in, b, from, to, state); });
      kernels::finish_columns(plan, b, state, finish);
    }
  });
}

}  // namespace leadline::ops
