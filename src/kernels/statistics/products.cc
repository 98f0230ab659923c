// SPDX-License-Identifier: Apache-2.0
#include "kernels/statistics/products.h"

#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/statistics/products.cc"
#include "kernels/all_targets.h"

HWY_BEFORE_NAMESPACE();
namespace leadline::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

void add_scaled(float factor, const float* values, int64_t count, float* sums) {
  const hn::ScalableTag<float> d;
  const auto factors = hn::Set(d, factor);
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    // Not MulAdd: CPUs without it would come to another sum.
    hn::StoreU(hn::Add(hn::LoadU(d, sums + i), hn::Mul(factors, hn::LoadU(d, values + i))), d, sums + i);
  }
  for (; i < count; ++i) sums[i] += factor * values[i];
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace leadline::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace leadline::kernels {

HWY_EXPORT(add_scaled);

void add_scaled(float factor, const float* values, int64_t count, float* sums) noexcept {
  HWY_DYNAMIC_DISPATCH(add_scaled)(factor, values, count, sums);
}

}  // namespace leadline::kernels
#endif
