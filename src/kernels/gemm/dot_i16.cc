// SPDX-License-Identifier: Apache-2.0
// Pairs of products are added in 32 bits, where they lie in [-2^31 + 2^16, 2^31]: one value more than int32 has. With
// kOffset added they are unsigned numbers of 32 bits, which are added up in 64.
#include "kernels/gemm/dot_i16.h"

#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm/dot_i16.cc"
#include "kernels/all_targets.h"
#include "kernels/gemm/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace leadline::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

int64_t plain_dot(const int16_t* a, const int16_t* b, int64_t begin, int64_t end) {
  int64_t sum = 0;
  for (int64_t i = begin; i < end; ++i) sum += int64_t{a[i]} * b[i];
  return sum;
}

#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR

constexpr int32_t kOffset = 0x7FFF0000;

template <int Rows>
HWY_INLINE void dots_of(const int16_t* a, const int16_t* b, int64_t ldb, int64_t k, int64_t* sums) {
  const hn::ScalableTag<int16_t> d16;
  const hn::Repartition<int32_t, decltype(d16)> d32;
  const hn::Repartition<uint64_t, decltype(d16)> d64;
  constexpr int64_t kLanes = HWY_LANES(int16_t);
  const auto offset = hn::Set(d32, kOffset);
  const auto low = hn::Set(d64, uint64_t{0xFFFFFFFF});
  Accumulators<hn::Vec<decltype(d64)>, 1, Rows> acc;
  unroll<Rows>([&](auto r) HWY_ATTR { acc.template at<0, r>() = hn::Zero(d64); });
  int64_t i = 0;
  for (; i + kLanes <= k; i += kLanes) {
    const auto left = hn::LoadU(d16, a + i);
    unroll<Rows>([&](auto r) HWY_ATTR {
      auto unused = offset;
      const auto pairs =
          hn::BitCast(d64, hn::ReorderWidenMulAccumulate(d32, left, hn::LoadU(d16, b + r * ldb + i), offset, unused));
      auto& sum = acc.template at<0, r>();
      sum = hn::Add(sum, hn::Add(hn::And(pairs, low), hn::ShiftRight<32>(pairs)));
    });
  }
  const int64_t offsets = i / 2 * kOffset;
  unroll<Rows>([&](auto r) HWY_ATTR {
    const auto total = static_cast<int64_t>(hn::GetLane(hn::SumOfLanes(d64, acc.template at<0, r>())));
    sums[r] = total - offsets + plain_dot(a, b + r * ldb, i, k);
  });
}

void dots(const int16_t* a, const int16_t* b, int64_t ldb, int64_t n, int64_t k, int64_t* sums) {
  int64_t j = 0;
  for (; j + 4 <= n; j += 4) dots_of<4>(a, b + j * ldb, ldb, k, sums + j);
  for (; j < n; ++j) dots_of<1>(a, b + j * ldb, ldb, k, sums + j);
}

#else

void dots(const int16_t* a, const int16_t* b, int64_t ldb, int64_t n, int64_t k, int64_t* sums) {
  for (int64_t j = 0; j < n; ++j) sums[j] = plain_dot(a, b + j * ldb, 0, k);
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

void dots_i16(const int16_t* a, const int16_t* b, int64_t ldb, int64_t n, int64_t k, int64_t* sums) noexcept {
  HWY_DYNAMIC_DISPATCH(dots)(a, b, ldb, n, k, sums);
}

}  // namespace leadline::kernels
#endif  // HWY_ONCE
