// SPDX-License-Identifier: Apache-2.0
// Both sides are widened to int16, where the zero point fits, and multiplied in pairs. What the last vector of a row
// has too much belongs to the next row and meets zeros; only at the end of the matrix it is copied first.
#include "kernels/recurrent/dots_i8.h"

#include <algorithm>
#include <cstring>

#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/recurrent/dots_i8.cc"
#include "kernels/all_targets.h"
#include "kernels/gemm/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace leadline::kernels {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR

void dots(const int8_t* x, int32_t zero_point, const int8_t* b, int64_t rows, int64_t k, int32_t* sums) {
  for (int64_t r = 0; r < rows; ++r) {
    sums[r] = 0;
    for (int64_t i = 0; i < k; ++i) sums[r] += (x[i] - zero_point) * b[r * k + i];
  }
}

#else

namespace hn = hwy::HWY_NAMESPACE;
using D16 = hn::ScalableTag<int16_t>;
using D8 = hn::Rebind<int8_t, D16>;
using D32 = hn::Repartition<int32_t, D16>;
constexpr int64_t kLanes = HWY_LANES(int16_t);

// The vector: whole vectors of it, and what is left, widened and less the zero point.
struct Vector {
  Vector(const int8_t* values, int32_t zero, int64_t count)
      : x(values), zero_point(zero), whole(count / kLanes * kLanes) {
    std::fill(rest, rest + kLanes, int16_t{0});
    for (int64_t i = whole; i < count; ++i) rest[i - whole] = static_cast<int16_t>(values[i] - zero);
  }
  const int8_t* x;
  int32_t zero_point;
  int64_t whole;
  HWY_ALIGN int16_t rest[kLanes];
};

HWY_INLINE hn::Vec<D16> widen(const int8_t* from) { return hn::PromoteTo(D16(), hn::LoadU(D8(), from)); }

// Products of Rows rows; `rest` is what the last vector of the first row is read from.
template <int Rows>
HWY_INLINE void some_dots(const Vector& v, const int8_t* b, int64_t ldb, bool has_rest, const int8_t* rest,
                          int32_t* sums) {
  const D16 d16;
  const D32 d32;
  const auto zero = hn::Set(d16, static_cast<int16_t>(v.zero_point));
  Accumulators<hn::Vec<D32>, Rows, 2> acc;  // the second one only where a multiply does not add its pairs up
  unroll<Rows>([&](auto r) HWY_ATTR { acc.template at<r, 0>() = acc.template at<r, 1>() = hn::Zero(d32); });
  const auto add = [&](hn::Vec<D16> x, const int8_t* from) HWY_ATTR {
    unroll<Rows>([&](auto r) HWY_ATTR {
      const hn::Vec<D16> weights = widen(from + r * ldb);
      acc.template at<r, 0>() =
          hn::ReorderWidenMulAccumulate(D32(), x, weights, acc.template at<r, 0>(), acc.template at<r, 1>());
    });
  };
  for (int64_t i = 0; i < v.whole; i += kLanes) add(hn::Sub(widen(v.x + i), zero), b + i);
  if (has_rest) add(hn::Load(d16, v.rest), rest);
  unroll<Rows>([&](auto r) HWY_ATTR {
    const auto both = hn::Add(acc.template at<r, 0>(), acc.template at<r, 1>());
    sums[r] = hn::GetLane(hn::SumOfLanes(d32, both));
  });
}

void dots(const int8_t* x, int32_t zero_point, const int8_t* b, int64_t rows, int64_t k, int32_t* sums) {
  constexpr int kRows = 4;
  const Vector v(x, zero_point, k);
  const bool has_rest = v.whole < k;
  const int8_t* const end = b + rows * k;
  int64_t r = 0;
  for (; r + kRows <= rows; r += kRows) {
    const int8_t* row = b + r * k;
    if (has_rest && end - (row + (kRows - 1) * k + v.whole) < kLanes) break;
    some_dots<kRows>(v, row, k, has_rest, row + v.whole, sums + r);
  }
  for (; r < rows; ++r) {
    const int8_t* row = b + r * k;
    int8_t rest[kLanes] = {};
    if (has_rest) std::memcpy(rest, row + v.whole, static_cast<size_t>(k - v.whole));
    some_dots<1>(v, row, k, has_rest, rest, sums + r);
  }
}

#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace leadline::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace leadline::kernels {
namespace {

HWY_EXPORT(dots);

}  // namespace

void dots_i8(const int8_t* x, int32_t zero_point, const int8_t* b, int64_t rows, int64_t k, int32_t* sums) noexcept {
  HWY_DYNAMIC_DISPATCH(dots)(x, zero_point, b, rows, k, sums);
}

}  // namespace leadline::kernels
#endif  // HWY_ONCE
