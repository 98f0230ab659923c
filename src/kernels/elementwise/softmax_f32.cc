// SPDX-License-Identifier: Apache-2.0
// Softmax rows with Highway: maximum, exponentials and their sum, scaling. Short ends of rows go through a buffer.
#include "kernels/elementwise/softmax_f32.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/softmax_f32.cc"
#include "kernels/all_targets.h"
#include "kernels/elementwise/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace leadline::kernels {
namespace HWY_NAMESPACE {
namespace {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr int64_t kLanes = HWY_LANES(float);

/// A vector of in[0, left) followed by `filler`.
HWY_INLINE V load_part(const float* in, int64_t left, float filler) {
  const D d;
  HWY_ALIGN float buffer[kLanes];
  hn::Store(hn::Set(d, filler), d, buffer);
  std::memcpy(buffer, in, static_cast<size_t>(left) * sizeof(float));
  return hn::Load(d, buffer);
}

HWY_INLINE void store_part(V v, float* out, int64_t left) {
  const D d;
  HWY_ALIGN float buffer[kLanes];
  hn::Store(v, d, buffer);
  std::memcpy(out, buffer, static_cast<size_t>(left) * sizeof(float));
}

HWY_INLINE float row_max(const float* in, int64_t count) {
  const D d;
  V most = hn::Set(d, in[0]);
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) most = hn::Max(most, hn::LoadU(d, in + i));
  if (i < count) most = hn::Max(most, load_part(in + i, count - i, in[0]));
  return hn::GetLane(hn::MaxOfLanes(d, most));
}

/// e^x, where x <= 0 when kNegative.
template <bool kNegative>
HWY_INLINE V exponential(V x) {
  return kNegative ? exp_negative_f32(D(), x) : exp_f32(D(), x);
}

/// Sum of e^(beta (in - most)); keeps the terms in `out` when kStore. kNegative: beta is not negative.
template <bool kStore, bool kNegative>
HWY_INLINE float exp_sum(const float* in, float* out, int64_t count, float most, float beta) {
  const D d;
  const V shift = hn::Set(d, most);
  const V factor = hn::Set(d, beta);
  V sum = hn::Zero(d);
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const V e = exponential<kNegative>(hn::Mul(hn::Sub(hn::LoadU(d, in + i), shift), factor));
    if (kStore) hn::StoreU(e, d, out + i);
    sum = hn::Add(sum, e);
  }
  if (i < count) {
    const V e = exponential<kNegative>(hn::Mul(hn::Sub(load_part(in + i, count - i, most), shift), factor));
    if (kStore) store_part(e, out + i, count - i);
    sum = hn::Add(sum, hn::IfThenElseZero(hn::FirstN(d, static_cast<size_t>(count - i)), e));
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

/// A row of at most one vector.
HWY_INLINE void short_softmax(const float* in, float* out, int64_t count, float beta) {
  const D d;
  const V x = load_part(in, count, in[0]);
  const V e = exp_f32(d, hn::Mul(hn::Sub(x, hn::MaxOfLanes(d, x)), hn::Set(d, beta)));
  const V terms = hn::IfThenElseZero(hn::FirstN(d, static_cast<size_t>(count)), e);
  store_part(hn::Div(terms, hn::SumOfLanes(d, terms)), out, count);
}

HWY_INLINE float stored_exp_sum(const float* in, float* out, int64_t count, float most, float beta) {
  return beta >= 0.0F ? exp_sum<true, true>(in, out, count, most, beta)
                      : exp_sum<true, false>(in, out, count, most, beta);
}

HWY_INLINE void multiply(float* out, int64_t count, float by) {
  const D d;
  const V factor = hn::Set(d, by);
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) hn::StoreU(hn::Mul(hn::LoadU(d, out + i), factor), d, out + i);
  if (i < count) store_part(hn::Mul(load_part(out + i, count - i, 0.0F), factor), out + i, count - i);
}

void softmax(const float* in, float* out, int64_t count, float beta) noexcept {
  if (count <= kLanes) return short_softmax(in, out, count, beta);
  const float most = row_max(in, count);
  const float sum = stored_exp_sum(in, out, count, most, beta);
  multiply(out, count, 1.0F / sum);
}

/// in - most - log_sum
HWY_INLINE void subtract(const float* in, float* out, int64_t count, float most, float log_of_sum) {
  const D d;
  const V shift = hn::Set(d, most);
  const V log_sum = hn::Set(d, log_of_sum);
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    hn::StoreU(hn::Sub(hn::Sub(hn::LoadU(d, in + i), shift), log_sum), d, out + i);
  }
  if (i < count) {
    store_part(hn::Sub(hn::Sub(load_part(in + i, count - i, most), shift), log_sum), out + i, count - i);
  }
}

void log_softmax(const float* in, float* out, int64_t count, float /*beta*/) noexcept {
  const float most = row_max(in, count);
  subtract(in, out, count, most, std::log(exp_sum<false, true>(in, nullptr, count, most, 1.0F)));
}

float block_max(const float* in, int64_t count) noexcept { return row_max(in, count); }
float block_exp_sum(const float* in, float* out, int64_t count, float most, float beta) noexcept {
  return stored_exp_sum(in, out, count, most, beta);
}
float block_log_sum(const float* in, int64_t count, float most) noexcept {
  return exp_sum<false, true>(in, nullptr, count, most, 1.0F);
}
void multiply_block(float* out, int64_t count, float by) noexcept { multiply(out, count, by); }
void subtract_block(const float* in, float* out, int64_t count, float most, float log_sum) noexcept {
  subtract(in, out, count, most, log_sum);
}

SoftmaxF32 choose() {
  return {softmax, log_softmax, block_max, block_exp_sum, block_log_sum, multiply_block, subtract_block};
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace leadline::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace leadline::kernels {

HWY_EXPORT(choose);

SoftmaxF32 softmax_f32() noexcept { return HWY_DYNAMIC_DISPATCH(choose)(); }

}  // namespace leadline::kernels
#endif
