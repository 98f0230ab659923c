// SPDX-License-Identifier: Apache-2.0
#include "ops/loops/copy.h"

namespace leadline::ops {
namespace {

/// Of an item of a run: bytes, elements, or columns of a tile.
double item_cost(const kernels::CopyPlan& plan) {
  switch (plan.form) {
    case kernels::CopyPlan::Form::kBytes:
      return kByteCost;
    case kernels::CopyPlan::Form::kRepeat:
      return kByteCost * static_cast<double>(plan.element_bytes);
    case kernels::CopyPlan::Form::kElements:
      return 1;
    case kernels::CopyPlan::Form::kTranspose:
      break;
  }
  return kernels::kCopyTile;
}

}  // namespace

void copy_strided(const kernels::StridedCopy& block, int64_t element_bytes, const std::byte* from, std::byte* to,
                  ThreadPool& pool) {
  constexpr double kPointCost = 4;
  const kernels::CopyPlan plan = kernels::plan_copy(block, element_bytes);
  const IndexRange run{0, plan.run};
  const double cost = item_cost(plan) * static_cast<double>(plan.run) + kPointCost;
  pool.for_pieces(plan.points, cost, [&](int64_t begin, int64_t end) {
    for_boxes<2>({{{{begin, end}}, {run, kernels::kCopyTile}}}, cost / static_cast<double>(plan.run),
                 [&](const auto& box) { kernels::copy_range(plan, from, to, box[0], box[1]); });
  });
}

}  // namespace leadline::ops
