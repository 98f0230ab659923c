// SPDX-License-Identifier: Apache-2.0
// The part of the 8-bit gemm that differs between instruction sets: how many k one multiply takes (kGroup), how a row
// of A is prepared for it, and the multiply itself. Compiled once per instruction set.
// With VNNI, A is u8 (int8 plus 128) and the zero point is taken off through the column sums of B; elsewhere A is
// int16 with the zero point already off, because 9 bits times 8 bits leave room for a pair of products.
#include <hwy/highway.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

#if defined(LEADLINE_KERNELS_GEMM_DOT_I8_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef LEADLINE_KERNELS_GEMM_DOT_I8_INL_H
#undef LEADLINE_KERNELS_GEMM_DOT_I8_INL_H
#else
#define LEADLINE_KERNELS_GEMM_DOT_I8_INL_H
#endif

HWY_BEFORE_NAMESPACE();
namespace leadline::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using D32 = hn::ScalableTag<int32_t>;
using V32 = hn::Vec<D32>;

#if HWY_TARGET == HWY_AVX3_DL

constexpr int kGroup = 4;
constexpr bool kUnsignedA = true;
using VB = V32;
using VA = V32;
using Sum = V32;

HWY_INLINE VB load_b(const int8_t* b) { return hn::Load(D32(), reinterpret_cast<const int32_t*>(b)); }
HWY_INLINE VA broadcast_a(const int32_t* a) { return hn::Set(D32(), *a); }
HWY_INLINE Sum zero_sum() { return hn::Zero(D32()); }
HWY_INLINE Sum multiply_accumulate(VA a, VB b, Sum sum) {
  // Highway 1.0.3 does not name AVX512_VNNI in this target's attributes, so the intrinsic is out of reach; its
  // CPU detection does require the instruction.
  __m512i raw = sum.raw;
  asm("vpdpbusd %2, %1, %0" : "+v"(raw) : "v"(a.raw), "v"(b.raw));
  return Sum{raw};
}
HWY_INLINE V32 total(Sum sum) { return sum; }

#elif HWY_TARGET == HWY_SCALAR

constexpr int kGroup = 2;
constexpr bool kUnsignedA = false;
struct Pair {
  int32_t first;
  int32_t second;
};
using VB = Pair;
using VA = Pair;
using Sum = V32;

HWY_INLINE VB load_b(const int8_t* b) { return {b[0], b[1]}; }
HWY_INLINE VA broadcast_a(const int32_t* a) {
  const auto word = static_cast<uint32_t>(*a);
  return {static_cast<int16_t>(word & 0xFFFFU), static_cast<int16_t>(word >> 16)};
}
HWY_INLINE Sum zero_sum() { return hn::Zero(D32()); }
HWY_INLINE Sum multiply_accumulate(VA a, VB b, Sum sum) {
  return hn::Add(sum, hn::Set(D32(), a.first * b.first + a.second * b.second));
}
HWY_INLINE V32 total(Sum sum) { return sum; }

#else

constexpr int kGroup = 2;
constexpr bool kUnsignedA = false;
using D16 = hn::Repartition<int16_t, D32>;
using VB = hn::Vec<D16>;
using VA = hn::Vec<D16>;

HWY_INLINE VB load_b(const int8_t* b) {
  const D16 d16;
  return hn::PromoteTo(d16, hn::Load(hn::Rebind<int8_t, D16>(), b));
}
HWY_INLINE VA broadcast_a(const int32_t* a) { return hn::BitCast(D16(), hn::Set(D32(), *a)); }
#if HWY_ARCH_X86
// Here the multiply adds its pairs up by itself; a second register per sum would only invite spills.
using Sum = V32;
HWY_INLINE Sum zero_sum() { return hn::Zero(D32()); }
HWY_INLINE Sum multiply_accumulate(VA a, VB b, Sum sum) {
  V32 unused = sum;
  sum = hn::ReorderWidenMulAccumulate(D32(), a, b, sum, unused);
#if HWY_TARGET != HWY_AVX3 && !defined(__clang__)
  // With 16 registers g++ 12 would compute all products of a step first and keep the sums in memory; a barrier without
  // instructions makes it finish one sum after the other.
  asm volatile("" : "+x"(sum.raw));
#endif
  return sum;
}
HWY_INLINE V32 total(Sum sum) { return sum; }
#else
struct Sum {
  V32 even;
  V32 odd;
};
HWY_INLINE Sum zero_sum() { return {hn::Zero(D32()), hn::Zero(D32())}; }
HWY_INLINE Sum multiply_accumulate(VA a, VB b, Sum sum) {
  sum.even = hn::ReorderWidenMulAccumulate(D32(), a, b, sum.even, sum.odd);
  return sum;
}
HWY_INLINE V32 total(Sum sum) { return hn::RearrangeToOddPlusEven(sum.even, sum.odd); }
#endif

#endif

/// int32 words of one prepared row of A. The same on every target, so that workspace sizes are.
constexpr int64_t row_words(int64_t k) { return (k + 31) / 32 * 16; }

/// The group of a row of bytes at `a`, for targets with kUnsignedA; every byte is exclusive-ored with 0x80 if Flip.
template <bool Flip>
HWY_INLINE VA broadcast_bytes(const uint8_t* a) {
  int32_t word = 0;
  std::memcpy(&word, a, sizeof(word));
#if HWY_TARGET == HWY_AVX3_DL
  const VA v = hn::Set(D32(), word);
  if constexpr (Flip) return hn::Xor(v, hn::Set(D32(), static_cast<int32_t>(0x80808080U)));
  return v;
#else
  return broadcast_a(&word);
#endif
}

/// Prepares k values of a row: u8 or int16, in the order of k. Behind them up to the next group lie zeros, or anything
/// where A is unsigned (B has zeros there).
template <typename T>
HWY_INLINE void prepare_row(const T* a, int64_t k, int32_t zero_point, int32_t* words) {
#if HWY_TARGET == HWY_AVX3_DL
  static_cast<void>(zero_point);
  auto* out = reinterpret_cast<uint8_t*>(words);
  const auto* from = reinterpret_cast<const uint8_t*>(a);
  const hn::ScalableTag<uint8_t> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto flip = hn::Set(d, std::is_signed_v<T> ? 0x80 : 0);
  int64_t i = 0;
  for (; i + lanes <= k; i += lanes) hn::StoreU(hn::Xor(hn::LoadU(d, from + i), flip), d, out + i);
  // row_words() leaves room for whole vectors.
  if (i < k) {
    const auto rest = hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(k - i)), d, from + i);
    hn::StoreU(hn::Xor(rest, flip), d, out + i);
  }
#else
  auto* out = reinterpret_cast<int16_t*>(words);
  const hn::ScalableTag<int16_t> d;
  const hn::Rebind<T, decltype(d)> d8;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto zero = hn::Set(d, static_cast<int16_t>(zero_point));
  int64_t i = 0;
  for (; i + lanes <= k; i += lanes) hn::StoreU(hn::Sub(hn::PromoteTo(d, hn::LoadU(d8, a + i)), zero), d, out + i);
  if (i < k && k >= lanes) {
    // The last vector overlaps the one before it.
    hn::StoreU(hn::Sub(hn::PromoteTo(d, hn::LoadU(d8, a + k - lanes)), zero), d, out + k - lanes);
    i = k;
  }
  for (; i < k; ++i) out[i] = static_cast<int16_t>(a[i] - zero_point);
  for (; i % kGroup != 0; ++i) out[i] = 0;
#endif
}

/// Sum of the row's bytes, each exclusive-ored with `flip` and then read as unsigned.
HWY_INLINE int64_t unsigned_sum(const uint8_t* row, int64_t count, uint8_t flip) {
  int64_t sum = 0;
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  const hn::ScalableTag<uint8_t> d;
  const hn::ScalableTag<uint64_t> d64;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto sums = hn::Zero(d64);
  for (; i + lanes <= count; i += lanes) {
    sums = hn::Add(sums, hn::SumsOf8(hn::Xor(hn::LoadU(d, row + i), hn::Set(d, flip))));
  }
  sum = static_cast<int64_t>(hn::GetLane(hn::SumOfLanes(d64, sums)));
#endif
  for (; i < count; ++i) sum += row[i] ^ flip;
  return sum;
}

}  // namespace HWY_NAMESPACE
}  // namespace leadline::kernels
HWY_AFTER_NAMESPACE();

#endif
