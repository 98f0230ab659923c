// SPDX-License-Identifier: Apache-2.0
// Layer normalization with Highway: sums in as many lanes as four vectors have, then one walk that writes.
#include "kernels/reduce/layer_norm.h"

#include <algorithm>
#include <cmath>

#include "core/cancel.h"
#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduce/layer_norm.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace leadline::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr int64_t kLanes = HWY_LANES(float);
constexpr int64_t kPiece = int64_t{1} << 18;  // values between two questions whether to go on

/// The end of the whole groups of `group` values in the piece that begins at i. Asks before all but the first.
HWY_INLINE int64_t piece_end(int64_t i, int64_t count, int64_t group) {
  if (i > 0) check_cancelled();
  return i + std::min(kPiece, (count - i) / group * group);
}

HWY_INLINE float lanes_sum(V a, V b, V c, V e) {
  const D d;
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(a, b), hn::Add(c, e))));
}

HWY_INLINE float sum(const float* in, int64_t count) {
  const D d;
  V s[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  int64_t i = 0;
  while (i + 4 * kLanes <= count) {
    const int64_t end = piece_end(i, count, 4 * kLanes);
    for (; i < end; i += 4 * kLanes) {
      for (int k = 0; k < 4; ++k) s[k] = hn::Add(s[k], hn::LoadU(d, in + i + k * kLanes));
    }
  }
  for (; i + kLanes <= count; i += kLanes) s[0] = hn::Add(s[0], hn::LoadU(d, in + i));
  float total = lanes_sum(s[0], s[1], s[2], s[3]);
  for (; i < count; ++i) total += in[i];
  return total;
}

HWY_INLINE float sum_of_squares(const float* in, int64_t count, float mean) {
  const D d;
  const V m = hn::Set(d, mean);
  V s[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  int64_t i = 0;
  while (i + 4 * kLanes <= count) {
    const int64_t end = piece_end(i, count, 4 * kLanes);
    for (; i < end; i += 4 * kLanes) {
      for (int k = 0; k < 4; ++k) {
        const V x = hn::Sub(hn::LoadU(d, in + i + k * kLanes), m);
        s[k] = hn::MulAdd(x, x, s[k]);
      }
    }
  }
  for (; i + kLanes <= count; i += kLanes) {
    const V x = hn::Sub(hn::LoadU(d, in + i), m);
    s[0] = hn::MulAdd(x, x, s[0]);
  }
  float total = lanes_sum(s[0], s[1], s[2], s[3]);
  for (; i < count; ++i) total += (in[i] - mean) * (in[i] - mean);
  return total;
}

void row(const float* in, const float* gain, const float* shift, float* out, int64_t count, float epsilon) {
  const D d;
  const float n = static_cast<float>(count);
  const float mean = sum(in, count) / n;
  const float scale = 1.0F / std::sqrt(sum_of_squares(in, count, mean) / n + epsilon);
  const V m = hn::Set(d, mean);
  const V s = hn::Set(d, scale);
  int64_t i = 0;
  while (i + kLanes <= count) {
    const int64_t end = piece_end(i, count, kLanes);
    for (; i < end; i += kLanes) {
      V x = hn::Mul(hn::Sub(hn::LoadU(d, in + i), m), s);
      if (gain != nullptr) x = hn::Mul(x, hn::LoadU(d, gain + i));
      if (shift != nullptr) x = hn::Add(x, hn::LoadU(d, shift + i));
      hn::StoreU(x, d, out + i);
    }
  }
  for (; i < count; ++i) {
    float x = (in[i] - mean) * scale;
    if (gain != nullptr) x *= gain[i];
    if (shift != nullptr) x += shift[i];
    out[i] = x;
  }
}

LayerNormRow choose() { return row; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace leadline::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace leadline::kernels {

HWY_EXPORT(choose);

LayerNormRow layer_norm_row() { return HWY_DYNAMIC_DISPATCH(choose)(); }

}  // namespace leadline::kernels
#endif
