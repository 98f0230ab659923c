// SPDX-License-Identifier: Apache-2.0
// Both kinds read a few rows of the matrix side by side, from first to last byte: memory is what limits them.
#include "kernels/gemm/gemv_f32.h"

#include <algorithm>

#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm/gemv_f32.cc"
#include "kernels/all_targets.h"
#include "kernels/gemm/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace leadline::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr int64_t kLanes = HWY_LANES(float);
constexpr int64_t kChunk = 2048;  // sums that stay in the first-level cache
static_assert(2 * kLanes <= kDotsState && kDotsDepthGrain % (2 * kLanes) == 0);

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

void rows(const float* x, const float* b, int64_t ldb, int64_t n, int64_t k, float* y, bool add) {
  constexpr int kRows = 8;
  for (int64_t j = 0; j < n; j += kChunk) {
    const int64_t count = std::min(kChunk, n - j);
    int64_t i = 0;
    for (; i + kRows <= k; i += kRows) {
      add_rows<kRows>(x + i, b + i * ldb + j, ldb, count, i == 0 && !add, y + j);
    }
    for (; i < k; ++i) add_rows<1>(x + i, b + i * ldb + j, ldb, count, i == 0 && !add, y + j);
    if (k == 0 && !add) std::fill(y + j, y + j + count, 0.0F);
  }
}

// Dot products of Rows rows with x over k in [begin, end); the sums are in `state` before and after, unless these are
// all k. The sums of a row do not depend on Rows.
template <int Rows>
void some_dots(const float* x, const float* b, int64_t ldb, int64_t k, int64_t begin, int64_t end, float* state,
               float* y) {
  const D d;
  Accumulators<V, Rows, 2> sums;
  if (HWY_LIKELY(begin == 0)) {
    unroll<Rows>([&](auto r) HWY_ATTR { sums.template at<r, 0>() = sums.template at<r, 1>() = hn::Zero(d); });
  } else {
    unroll<Rows>([&](auto r) HWY_ATTR {
      sums.template at<r, 0>() = hn::LoadU(d, state + r * kDotsState);
      sums.template at<r, 1>() = hn::LoadU(d, state + r * kDotsState + kLanes);
    });
  }
  int64_t i = begin;
  for (; i + 2 * kLanes <= end; i += 2 * kLanes) {
    const V x0 = hn::LoadU(d, x + i);
    const V x1 = hn::LoadU(d, x + i + kLanes);
    unroll<Rows>([&](auto r) HWY_ATTR {
      sums.template at<r, 0>() = hn::MulAdd(hn::LoadU(d, b + r * ldb + i), x0, sums.template at<r, 0>());
      sums.template at<r, 1>() = hn::MulAdd(hn::LoadU(d, b + r * ldb + i + kLanes), x1, sums.template at<r, 1>());
    });
  }
  if (HWY_UNLIKELY(end < k)) {
    unroll<Rows>([&](auto r) HWY_ATTR {
      hn::StoreU(sums.template at<r, 0>(), d, state + r * kDotsState);
      hn::StoreU(sums.template at<r, 1>(), d, state + r * kDotsState + kLanes);
    });
    return;
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

void dots(const float* x, const float* b, int64_t ldb, int64_t n, int64_t k, int64_t begin, int64_t end, float* state,
          float* y) {
  constexpr int kRows = 4;
  const int64_t step = state == nullptr ? 0 : kDotsState;
  int64_t j = 0;
  for (; j + kRows <= n; j += kRows) {
    some_dots<kRows>(x, b + j * ldb, ldb, k, begin, end, state + j * step, y + j);
  }
  for (; j < n; ++j) some_dots<1>(x, b + j * ldb, ldb, k, begin, end, state + j * step, y + j);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace leadline::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace leadline::kernels {

namespace {

HWY_EXPORT(rows);
HWY_EXPORT(dots);

}  // namespace

void gemv_rows_f32(const float* x, const float* b, int64_t ldb, int64_t n, int64_t k, float* y, bool add) noexcept {
  HWY_DYNAMIC_DISPATCH(rows)(x, b, ldb, n, k, y, add);
}

void gemv_dots_f32(const float* x, const float* b, int64_t ldb, int64_t n, int64_t k, float* y) noexcept {
  HWY_DYNAMIC_DISPATCH(dots)(x, b, ldb, n, k, 0, k, nullptr, y);
}

void gemv_dots_f32_slice(const float* x, const float* b, int64_t ldb, int64_t n, int64_t k, int64_t k_begin,
                         int64_t k_end, float* state, float* y) noexcept {
  HWY_DYNAMIC_DISPATCH(dots)(x, b, ldb, n, k, k_begin, k_end, state, y);
}

}  // namespace leadline::kernels
#endif  // HWY_ONCE
