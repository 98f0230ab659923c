// SPDX-License-Identifier: Apache-2.0
// Layer normalization with Highway: sums in as many lanes as four vectors have, then one walk that writes.
#include "kernels/reduce/layer_norm.h"

#include <algorithm>
#include <cmath>

#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduce/layer_norm.cc"
#include "kernels/all_targets.h"

HWY_BEFORE_NAMESPACE();
namespace leadline::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr int64_t kLanes = HWY_LANES(float);

HWY_INLINE float lanes_sum(V a, V b, V c, V e) {
  const D d;
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(a, b), hn::Add(c, e))));
}

/// The values themselves.
struct Plain {
  HWY_INLINE V add(V sum, V x) const { return hn::Add(sum, x); }
  HWY_INLINE float add(float sum, float x) const { return sum + x; }
};

/// The squares of their distances from the mean.
struct Squares {
  HWY_INLINE explicit Squares(float of) : mean(of), means(hn::Set(D(), of)) {}
  HWY_INLINE V add(V sum, V x) const {
    const V distance = hn::Sub(x, means);
    return hn::MulAdd(distance, distance, sum);
  }
  HWY_INLINE float add(float sum, float x) const { return sum + (x - mean) * (x - mean); }
  float mean;
  V means;
};

/// Adds whole groups of four vectors from i on.
template <class Term>
HWY_INLINE int64_t add_groups(const Term& term, const float* in, int64_t i, int64_t end, V (&s)[4]) {
  const D d;
  for (; i + 4 * kLanes <= end; i += 4 * kLanes) {
    for (int k = 0; k < 4; ++k) s[k] = term.add(s[k], hn::LoadU(d, in + i + k * kLanes));
  }
  return i;
}

/// Adds the rest of a row, from i on, and all lanes.
template <class Term>
HWY_INLINE float add_rest(const Term& term, const float* in, int64_t i, int64_t count, V (&s)[4]) {
  const D d;
  for (; i + kLanes <= count; i += kLanes) s[0] = term.add(s[0], hn::LoadU(d, in + i));
  float total = lanes_sum(s[0], s[1], s[2], s[3]);
  for (; i < count; ++i) total = term.add(total, in[i]);
  return total;
}

template <class Term>
HWY_INLINE float sum(const Term& term, const float* in, int64_t count) {
  const D d;
  V s[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  const int64_t i = add_groups(term, in, 0, count, s);
  return add_rest(term, in, i, count, s);
}

template <class Term>
HWY_INLINE void add_range(const Term& term, const float* in, int64_t count, IndexRange range, LayerNormSums& sums) {
  const D d;
  static_assert(4 * kLanes <= 64);
  V s[4];
  for (int k = 0; k < 4; ++k) s[k] = hn::LoadU(d, sums.lanes + k * kLanes);
  const int64_t i = add_groups(term, in, range.begin, range.end, s);
  if (range.end == count) sums.total = add_rest(term, in, i, count, s);
  for (int k = 0; k < 4; ++k) hn::StoreU(s[k], d, sums.lanes + k * kLanes);
}

void add(const float* in, int64_t count, IndexRange range, LayerNormSums& sums) noexcept {
  add_range(Plain(), in, count, range, sums);
}

void add_squares(const float* in, int64_t count, IndexRange range, float mean, LayerNormSums& sums) noexcept {
  add_range(Squares(mean), in, count, range, sums);
}

void write(const float* in, const float* gain, const float* shift, float* out, IndexRange range, float mean,
           float scale) noexcept {
  const D d;
  const V m = hn::Set(d, mean);
  const V s = hn::Set(d, scale);
  int64_t i = range.begin;
  for (; i + kLanes <= range.end; i += kLanes) {
    V x = hn::Mul(hn::Sub(hn::LoadU(d, in + i), m), s);
    if (gain != nullptr) x = hn::Mul(x, hn::LoadU(d, gain + i));
    if (shift != nullptr) x = hn::Add(x, hn::LoadU(d, shift + i));
    hn::StoreU(x, d, out + i);
  }
  for (; i < range.end; ++i) {
    float x = (in[i] - mean) * scale;
    if (gain != nullptr) x *= gain[i];
    if (shift != nullptr) x += shift[i];
    out[i] = x;
  }
}

void row(const float* in, const float* gain, const float* shift, float* out, int64_t count, float epsilon) noexcept {
  const float n = static_cast<float>(count);
  const float mean = sum(Plain(), in, count) / n;
  const float scale = 1.0F / std::sqrt(sum(Squares(mean), in, count) / n + epsilon);
  write(in, gain, shift, out, {0, count}, mean, scale);
}

LayerNorm choose() { return {row, add, add_squares, write}; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace leadline::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace leadline::kernels {

HWY_EXPORT(choose);

LayerNorm layer_norm() noexcept { return HWY_DYNAMIC_DISPATCH(choose)(); }

}  // namespace leadline::kernels
#endif
