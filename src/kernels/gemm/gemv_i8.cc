// SPDX-License-Identifier: Apache-2.0
// Dot products of 8-bit rows: four rows of B share each load of A. Integers do not mind the order of their sums.
#include "kernels/gemm/gemv_i8.h"

#include <algorithm>

#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm/gemv_i8.cc"
#ifndef HWY_WANT_AVX3_DL
#define HWY_WANT_AVX3_DL
#endif
#include "kernels/all_targets.h"
#include "kernels/gemm/dot_i8-inl.h"
#include "kernels/gemm/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace leadline::kernels {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_AVX3_DL

// A as u8: int8 plus 128.
template <typename T>
HWY_INLINE VA load_a(const T* a, int64_t count) {
  const hn::ScalableTag<uint8_t> d;
  const auto bytes = load_some(d, reinterpret_cast<const uint8_t*>(a), count);
  return hn::BitCast(D32(), hn::Xor(bytes, hn::Set(d, std::is_signed_v<T> ? 0x80 : 0)));
}
HWY_INLINE VB load_row(const int8_t* b, int64_t count) {
  return hn::BitCast(D32(), load_some(hn::ScalableTag<int8_t>(), b, count));
}
constexpr int64_t kStep = HWY_LANES(int8_t);
template <typename T>
constexpr int32_t kRaised = std::is_signed_v<T> ? 128 : 0;

#elif HWY_TARGET != HWY_SCALAR

template <typename T>
HWY_INLINE VA load_a(const T* a, int64_t count) {
  return hn::PromoteTo(D16(), load_some(hn::Rebind<T, D16>(), a, count));
}
HWY_INLINE VB load_row(const int8_t* b, int64_t count) { return load_a(b, count); }
constexpr int64_t kStep = HWY_LANES(int16_t);
template <typename T>
constexpr int32_t kRaised = 0;

#endif

/// Dot products of `a` with Rows rows of B, without the zero point.
template <int Rows, typename T>
HWY_NOINLINE void dots(const T* a, const int8_t* b, int64_t ldb, int64_t k, uint32_t* sums) {
#if HWY_TARGET == HWY_SCALAR
  for (int r = 0; r < Rows; ++r) {
    sums[r] = 0;
    for (int64_t i = 0; i < k; ++i) sums[r] += static_cast<uint32_t>(a[i] * b[r * ldb + i]);
  }
#else
  Accumulators<Sum, Rows, 2> acc;
  unroll<Rows>([&](auto r) HWY_ATTR { acc.template at<r, 0>() = acc.template at<r, 1>() = zero_sum(); });
  int64_t i = 0;
  for (; i + 2 * kStep <= k; i += 2 * kStep) {
    unroll<2>([&](auto half) HWY_ATTR {
      const VA av = load_a(a + i + half * kStep, kStep);
      unroll<Rows>([&](auto r) HWY_ATTR {
        const VB bv = load_row(b + r * ldb + i + half * kStep, kStep);
        acc.template at<r, half>() = multiply_accumulate(av, bv, acc.template at<r, half>());
      });
    });
  }
  for (; i < k; i += kStep) {
    const VA av = load_a(a + i, k - i);
    unroll<Rows>([&](auto r) HWY_ATTR {
      const VB bv = load_row(b + r * ldb + i, k - i);
      acc.template at<r, 0>() = multiply_accumulate(av, bv, acc.template at<r, 0>());
    });
  }
  unroll<Rows>([&](auto r) HWY_ATTR {
    const V32 both = hn::Add(total(acc.template at<r, 0>()), total(acc.template at<r, 1>()));
    sums[r] = static_cast<uint32_t>(hn::GetLane(hn::SumOfLanes(D32(), both)));
  });
#endif
}

template <typename T>
void run_as(const GemvI8& g, int64_t begin, int64_t end, int32_t* sums) {
#if HWY_TARGET == HWY_SCALAR
  const auto zero_point = static_cast<uint32_t>(g.zero_point);
#else
  const auto zero_point = static_cast<uint32_t>(g.zero_point + kRaised<T>);
#endif
  const T* a = static_cast<const T*>(g.a) + begin;
  constexpr int kRows = 4;
  for (int64_t j = 0; j < g.n; j += kRows) {
    const int8_t* b = g.b + j * g.ldb + begin;
    const int64_t rows = g.n - j < kRows ? g.n - j : kRows;
    uint32_t products[kRows] = {};
    if (rows == kRows) {
      dots<kRows>(a, b, g.ldb, end - begin, products);
    } else {
      for (int64_t r = 0; r < rows; ++r) dots<1>(a, b + r * g.ldb, g.ldb, end - begin, products + r);
    }
    for (int64_t r = 0; r < rows; ++r) {
      const uint32_t start =
          begin == 0 ? zero_point * (0U - static_cast<uint32_t>(g.b_sums[j + r])) : static_cast<uint32_t>(sums[j + r]);
      sums[j + r] = static_cast<int32_t>(start + products[r]);
    }
  }
}

void run(const GemvI8& g, int64_t begin, int64_t end, int32_t* sums) {
  g.a_unsigned ? run_as<uint8_t>(g, begin, end, sums) : run_as<int8_t>(g, begin, end, sums);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace leadline::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace leadline::kernels {
namespace {
HWY_EXPORT(run);
}  // namespace

void gemv_dots_i8(const GemvI8& g, int64_t k_begin, int64_t k_end, int32_t* sums) noexcept {
  HWY_DYNAMIC_DISPATCH(run)(g, k_begin, k_end, sums);
}

}  // namespace leadline::kernels
#endif  // HWY_ONCE
