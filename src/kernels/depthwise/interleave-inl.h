// SPDX-License-Identifier: Apache-2.0
// Taps of 8-bit depthwise filters side by side in 32-bit lanes, sums of their products, and the way back to bytes.
// Compiled once per instruction set.
#include <hwy/highway.h>

#include <cstdint>

#if defined(LEADLINE_KERNELS_DEPTHWISE_INTERLEAVE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef LEADLINE_KERNELS_DEPTHWISE_INTERLEAVE_INL_H
#undef LEADLINE_KERNELS_DEPTHWISE_INTERLEAVE_INL_H
#else
#define LEADLINE_KERNELS_DEPTHWISE_INTERLEAVE_INL_H
#endif

HWY_BEFORE_NAMESPACE();
namespace leadline::kernels {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

namespace hn = hwy::HWY_NAMESPACE;

/// Four vectors of int32 lanes from up to four vectors of bytes. In each 128-bit lane of vector j are channels
/// 4j to 4j + 3 of the lane's 16: packing the four vectors to bytes restores the order.
template <class D8, class V8 = hn::Vec<D8>>
HWY_INLINE void interleave_four(D8 d, V8 a, V8 b, V8 c, V8 e, uint8_t* HWY_RESTRICT to) {
  const hn::Repartition<uint16_t, D8> d16;
  const auto store = [&](auto v, int j) HWY_ATTR { hn::Store(hn::BitCast(d, v), d, to + j * hn::MaxLanes(d)); };
  const auto low_ab = hn::BitCast(d16, hn::InterleaveLower(d, a, b));
  const auto high_ab = hn::BitCast(d16, hn::InterleaveUpper(d, a, b));
  const auto low_ce = hn::BitCast(d16, hn::InterleaveLower(d, c, e));
  const auto high_ce = hn::BitCast(d16, hn::InterleaveUpper(d, c, e));
  store(hn::InterleaveLower(d16, low_ab, low_ce), 0);
  store(hn::InterleaveUpper(d16, low_ab, low_ce), 1);
  store(hn::InterleaveLower(d16, high_ab, high_ce), 2);
  store(hn::InterleaveUpper(d16, high_ab, high_ce), 3);
}

/// The same of two vectors, each byte becoming 16 bits.
template <class D8, class V8 = hn::Vec<D8>>
HWY_INLINE void interleave_two(D8 d, V8 a, V8 b, uint8_t* HWY_RESTRICT to) {
  const V8 zero = hn::Zero(d);
  const V8 low = hn::InterleaveLower(d, a, b);
  const V8 high = hn::InterleaveUpper(d, a, b);
  hn::Store(hn::InterleaveLower(d, low, zero), d, to);
  hn::Store(hn::InterleaveUpper(d, low, zero), d, to + hn::MaxLanes(d));
  hn::Store(hn::InterleaveLower(d, high, zero), d, to + 2 * hn::MaxLanes(d));
  hn::Store(hn::InterleaveUpper(d, high, zero), d, to + 3 * hn::MaxLanes(d));
}

/// Four vectors of int32 in the range of int8, ordered as interleave_four() leaves them, as bytes.
template <class D8, class V32>
HWY_INLINE hn::Vec<D8> pack_bytes([[maybe_unused]] D8 d, V32 a, V32 b, V32 c, V32 e) {
  const hn::Repartition<int16_t, D8> d16;
  const auto low = hn::ReorderDemote2To(d16, a, b);
  const auto high = hn::ReorderDemote2To(d16, c, e);
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
  if constexpr (hn::MaxLanes(D8()) == 64) return hn::Vec<D8>{_mm512_packs_epi16(low.raw, high.raw)};
#endif
#if HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86
  if constexpr (hn::MaxLanes(D8()) == 32) return hn::Vec<D8>{_mm256_packs_epi16(low.raw, high.raw)};
#endif
#if HWY_ARCH_X86
  if constexpr (hn::MaxLanes(D8()) == 16) return hn::Vec<D8>{_mm_packs_epi16(low.raw, high.raw)};
#else
  const hn::Half<hn::RebindToSigned<D8>> half;
  return hn::BitCast(d, hn::Combine(hn::RebindToSigned<D8>(), hn::DemoteTo(half, high), hn::DemoteTo(half, low)));
#endif
}

/// Sums of a vector of channels; `other` stays zero on x86.
template <bool kFour, class D32>
struct Sum {
  using V32 = hn::Vec<D32>;
  V32 value;
  V32 other;
  HWY_INLINE void set(V32 start) {
    value = start;
    other = hn::Zero(D32());
  }
  HWY_INLINE void add(const uint8_t* column, V32 weight) {
    const V32 input = hn::Load(D32(), reinterpret_cast<const int32_t*>(column));
    if constexpr (kFour) {
#if HWY_TARGET == HWY_AVX3_DL
      // Highway 1.0.3 does not name AVX512_VNNI in this target's attributes; its CPU detection does require it.
      asm("vpdpbusd %2, %1, %0" : "+v"(value.raw) : "v"(input.raw), "v"(weight.raw));
#endif
    } else {
      const hn::Repartition<int16_t, D32> d16;
      value = hn::ReorderWidenMulAccumulate(D32(), hn::BitCast(d16, input), hn::BitCast(d16, weight), value, other);
    }
  }
  HWY_INLINE V32 total() const {
    if constexpr (kFour) return value;
    return hn::RearrangeToOddPlusEven(value, other);
  }
};

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace HWY_NAMESPACE
}  // namespace leadline::kernels
HWY_AFTER_NAMESPACE();

#endif
