// SPDX-License-Identifier: Apache-2.0
// Table lookup with Highway. AVX-512 VBMI looks 128 bytes up at once. Elsewhere the table is 16 pieces of 16 bytes, and
// every byte is looked up in all of them: an index outside a piece has its top bit set, for which a shuffle returns 0.
#include "kernels/elementwise/lookup8.h"

#include <cstring>

#ifndef HWY_WANT_AVX3_DL
#define HWY_WANT_AVX3_DL
#endif
#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/lookup8.cc"
#include "kernels/all_targets.h"

HWY_BEFORE_NAMESPACE();
namespace leadline::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Vectors of 16 bytes win nothing over single loads: 46 instructions for 16 lookups.
#if HWY_TARGET != HWY_AVX2 && HWY_TARGET != HWY_AVX3 && HWY_TARGET != HWY_AVX3_DL

void row(const uint8_t* table, const uint8_t* in, uint8_t* out, int64_t count) noexcept {
#pragma GCC unroll 8
  for (int64_t i = 0; i < count; ++i) out[i] = table[in[i]];
}

#else

using D = hn::ScalableTag<uint8_t>;
using V = hn::Vec<D>;
constexpr int64_t kLanes = HWY_LANES(uint8_t);

#if HWY_TARGET == HWY_AVX3_DL

struct Table {
  explicit Table(const uint8_t* table) {
    for (int i = 0; i < 4; ++i) parts[i] = hn::LoadU(D(), table + i * kLanes);
  }

  HWY_INLINE V half(V index, V low, V high) const {
    // Highway 1.0.3 does not name AVX512_VBMI in this target's attributes, so the intrinsic is out of reach; the CPU
    // detection does require the instruction.
    asm("vpermi2b %2, %1, %0" : "+v"(index.raw) : "v"(low.raw), "v"(high.raw));
    return index;
  }
  template <int kCount>
  HWY_INLINE void operator()(V (&v)[kCount]) const {
    const hn::RebindToSigned<D> di;
#pragma GCC unroll 4
    for (V& index : v) {
      const auto upper = hn::RebindMask(D(), hn::MaskFromVec(hn::BitCast(di, index)));
      index = hn::IfThenElse(upper, half(index, parts[2], parts[3]), half(index, parts[0], parts[1]));
    }
  }

  V parts[4];
};

#else

/// Piece j holds what must change when the index passes 16 j, so that the xor of all pieces up to the index remains.
/// The first eight subtractions wrap: from 128 on an index is outside the pieces below it by 128, inside those above.
/// That is put right in the upper eight pieces, where the subtractions saturate and no small index comes back.
struct Table {
  explicit Table(const uint8_t* table) {
    const auto load = [table](int i) HWY_ATTR { return hn::LoadDup128(D(), table + 16 * i); };
    pieces[0] = load(0);
    for (int i = 1; i < 8; ++i) pieces[i] = hn::Xor(load(i - 1), load(i));
    pieces[8] = hn::Xor(hn::Xor(load(7), load(8)), load(0));
    for (int i = 9; i < 16; ++i) pieces[i] = hn::Xor(hn::Xor(load(i - 1), load(i)), pieces[i - 8]);
  }

  /// Several vectors at a time: the pieces do not fit into the registers of AVX2.
  template <int kCount>
  HWY_INLINE void operator()(V (&v)[kCount]) const {
    const hn::RebindToSigned<D> di;
    const V step = hn::Set(D(), 16);
    V result[kCount];
#pragma GCC unroll 4
    for (int k = 0; k < kCount; ++k) result[k] = hn::TableLookupBytesOr0(pieces[0], v[k]);
#pragma GCC unroll 16
    for (int i = 1; i < 16; ++i) {
      const V piece = pieces[i];
#pragma GCC unroll 4
      for (int k = 0; k < kCount; ++k) {
        v[k] = i <= 8 ? hn::Sub(v[k], step)
                      : hn::BitCast(D(), hn::SaturatedSub(hn::BitCast(di, v[k]), hn::BitCast(di, step)));
        result[k] = hn::Xor(result[k], hn::TableLookupBytesOr0(piece, v[k]));
      }
    }
#pragma GCC unroll 4
    for (int k = 0; k < kCount; ++k) v[k] = result[k];
  }

  V pieces[16];
};

#endif

template <int kCount>
HWY_INLINE void run(const Table& lookup, const uint8_t* in, uint8_t* out) {
  const D d;
  V v[kCount];
#pragma GCC unroll 4
  for (int k = 0; k < kCount; ++k) v[k] = hn::LoadU(d, in + k * kLanes);
  lookup(v);
#pragma GCC unroll 4
  for (int k = 0; k < kCount; ++k) hn::StoreU(v[k], d, out + k * kLanes);
}

void row(const uint8_t* table, const uint8_t* in, uint8_t* out, int64_t count) noexcept {
  int64_t i = 0;
  if (count >= 2 * kLanes) {
    const Table lookup(table);
    for (; i + 4 * kLanes <= count; i += 4 * kLanes) run<4>(lookup, in + i, out + i);
    for (; i + kLanes <= count; i += kLanes) run<1>(lookup, in + i, out + i);
  }
  for (; i < count; ++i) out[i] = table[in[i]];
}

#endif

Lookup8Row choose() { return row; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace leadline::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace leadline::kernels {

HWY_EXPORT(choose);

Lookup8Row lookup8_row() noexcept { return HWY_DYNAMIC_DISPATCH(choose)(); }

}  // namespace leadline::kernels
#endif
