// SPDX-License-Identifier: Apache-2.0
// Both kinds read a few rows of the matrix side by side, from first to last byte: memory is what limits them.
#include "kernels/gemm/gemv_f32.h"

#include <algorithm>

#include "core/cancel.h"
#include "kernels/gemm/split.h"
#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm/gemv_f32.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/gemm/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace leadline::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr int64_t kLanes = HWY_LANES(float);
constexpr int64_t kChunk = 2048;              // sums that stay in the first-level cache
constexpr int64_t kDepth = int64_t{1} << 18;  // values of a row between two questions whether to go on

// y[0..n) += x[0..Rows) * rows of B, or = for the first rows.
template <int Rows>
void add_rows(const float* x, const float* b, int64_t ldb, int64_t n, bool first, float* y) {
  const D d;
  for (int64_t j = 0; j < n; j += kLanes) {
    const int64_t left = n - j;
    V sum = first ? hn::Zero(d) : load_some(d, y + j, left);
    unroll<Rows>([&](auto r)
                     HWY_ATTR { sum = hn::MulAdd(hn::Set(d, x[r]), load_some(d, b + r * ldb + j, left), sum); });
    store_some(sum, d, y + j, left);
  }
}

void rows(const float* x, const float* b, int64_t ldb, int64_t n, int64_t k, float* y) {
  constexpr int kRows = 8;
  PacedCheck check;
  for (int64_t j = 0; j < n; j += kChunk) {
    const int64_t count = std::min(kChunk, n - j);
    int64_t i = 0;
    for (; i + kRows <= k; i += kRows) {
      check.count((count / kLanes + 1) * kRows);
      add_rows<kRows>(x + i, b + i * ldb + j, ldb, count, i == 0, y + j);
    }
    for (; i < k; ++i) add_rows<1>(x + i, b + i * ldb + j, ldb, count, i == 0, y + j);
    if (k == 0) std::fill(y + j, y + j + count, 0.0F);
  }
}

// Dot products of Rows rows with x. The sums of a row do not depend on Rows.
template <int Rows>
void some_dots(const float* x, const float* b, int64_t ldb, int64_t k, float* y) {
  const D d;
  Accumulators<V, Rows, 2> sums;
  unroll<Rows>([&](auto r) HWY_ATTR { sums.template at<r, 0>() = sums.template at<r, 1>() = hn::Zero(d); });
  int64_t i = 0;
  while (i + 2 * kLanes <= k) {
    if (i > 0) check_cancelled();
    const int64_t end = i + std::min(kDepth, (k - i) / (2 * kLanes) * (2 * kLanes));
    for (; i < end; i += 2 * kLanes) {
      const V x0 = hn::LoadU(d, x + i);
      const V x1 = hn::LoadU(d, x + i + kLanes);
      unroll<Rows>([&](auto r) HWY_ATTR {
        sums.template at<r, 0>() = hn::MulAdd(hn::LoadU(d, b + r * ldb + i), x0, sums.template at<r, 0>());
        sums.template at<r, 1>() = hn::MulAdd(hn::LoadU(d, b + r * ldb + i + kLanes), x1, sums.template at<r, 1>());
      });
    }
  }
  for (; i < k; i += kLanes) {
    const V x0 = load_some(d, x + i, k - i);
    unroll<Rows>([&](auto r) HWY_ATTR {
      sums.template at<r, 0>() = hn::MulAdd(load_some(d, b + r * ldb + i, k - i), x0, sums.template at<r, 0>());
    });
  }
  unroll<Rows>([&](auto r) HWY_ATTR {
    y[r] = hn::GetLane(hn::SumOfLanes(d, hn::Add(sums.template at<r, 0>(), sums.template at<r, 1>())));
  });
}

void dots(const float* x, const float* b, int64_t ldb, int64_t n, int64_t k, float* y) {
  constexpr int kRows = 4;
  int64_t j = 0;
  PacedCheck check;
  for (; j + kRows <= n; j += kRows) {
    check.count(k);
    some_dots<kRows>(x, b + j * ldb, ldb, k, y + j);
  }
  for (; j < n; ++j) some_dots<1>(x, b + j * ldb, ldb, k, y + j);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace leadline::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace leadline::kernels {

namespace {

constexpr int64_t kGemvGrain = 16;  // outputs of a part: a cache line

HWY_EXPORT(rows);
HWY_EXPORT(dots);

}  // namespace

void gemv_rows_f32(const float* x, const float* b, int64_t ldb, int64_t n, int64_t k, float* y, ThreadPool& pool) {
  const GemmSplit split = split_gemm(1, n, k, kGemvGrain, pool.size());
  pool.parallel_for(split.parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      const PartRange columns = part_range(n, kGemvGrain, split.parts, part);
      HWY_DYNAMIC_DISPATCH(rows)
      (x, b + columns.begin, ldb, columns.end - columns.begin, k, y + columns.begin);
    }
  });
}

void gemv_dots_f32(const float* x, const float* b, int64_t ldb, int64_t n, int64_t k, float* y, ThreadPool& pool) {
  const GemmSplit split = split_gemm(1, n, k, kGemvGrain, pool.size());
  pool.parallel_for(split.parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      const PartRange range = part_range(n, kGemvGrain, split.parts, part);
      HWY_DYNAMIC_DISPATCH(dots)(x, b + range.begin * ldb, ldb, range.end - range.begin, k, y + range.begin);
    }
  });
}

}  // namespace leadline::kernels
#endif  // HWY_ONCE
