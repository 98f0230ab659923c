// SPDX-License-Identifier: Apache-2.0
// Tiles of rows by one panel of columns: pairs of k are multiplied and added in int32, which holds kSliceDepth of the
// largest products, and slices of k are added up in float64.
#include "kernels/gemm/gemm_i16.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm/gemm_i16.cc"
#include "kernels/all_targets.h"
#include "kernels/gemm/finish_i16-inl.h"
#include "kernels/gemm/tile-inl.h"

#ifndef LEADLINE_KERNELS_GEMM_I16_SLICE
#define LEADLINE_KERNELS_GEMM_I16_SLICE
namespace leadline::kernels {
namespace {

// 480 * 2^15 * 2^7 < 2^31. A multiple of the pairs that a single row takes at a time.
constexpr int64_t kSliceDepth = 480;

}  // namespace
}  // namespace leadline::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace leadline::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D32 = hn::ScalableTag<int32_t>;
using V32 = hn::Vec<D32>;

#if HWY_TARGET == HWY_SCALAR

// The sums of Rows rows and one panel.
template <int Rows>
void tile(const GemmI16& g, int64_t row, const int8_t* b, double* sums) {
  for (int64_t r = 0; r < Rows; ++r) {
    const int16_t* a = g.a + (row + r) * g.lda;
    for (int64_t j = 0; j < kWidePanel; ++j) {
      int64_t sum = 0;
      for (int64_t k = 0; k < g.k; ++k) sum += int64_t{a[k]} * b[(k / 2 * kWidePanel + j) * 2 + k % 2];
      sums[r * kWidePanel + j] = static_cast<double>(sum);
    }
  }
}
constexpr int kFewRows = 1;

#else

using D16 = hn::Repartition<int16_t, D32>;
constexpr int kLanes = HWY_LANES(int32_t);
constexpr int kVectors = static_cast<int>(kWidePanel) / kLanes;
// Rows whose sums, with a panel of B, fit the registers.
constexpr int kTileRows = kVectors == 1 ? 12 : kVectors == 2 ? 6 : 3;
static_assert(kWideRows % kTileRows == 0);
constexpr int kFewRows = kTileRows / 3;

HWY_INLINE hn::Vec<D16> load_pairs(const int8_t* b) {
  const D16 d16;
  return hn::PromoteTo(d16, hn::Load(hn::Rebind<int8_t, D16>(), b));
}

HWY_INLINE hn::Vec<D16> broadcast_pair(const int16_t* a) {
  int32_t pair = 0;
  std::memcpy(&pair, a, sizeof pair);
  return hn::BitCast(D16(), hn::Set(D32(), pair));
}

HWY_INLINE V32 multiply_pairs(hn::Vec<D16> a, hn::Vec<D16> b, V32 sum) {
#if HWY_ARCH_X86
  // One register a sum: the multiply adds its pairs up by itself.
  V32 unused = sum;
  sum = hn::ReorderWidenMulAccumulate(D32(), a, b, sum, unused);
#if HWY_TARGET != HWY_AVX3 && !defined(__clang__)
  // As in dot_i8-inl.h: keeps g++ 12 from computing all products of a step first.
  asm volatile("" : "+x"(sum.raw));
#endif
  return sum;
#else
  V32 odd = hn::Zero(D32());
  const V32 even = hn::ReorderWidenMulAccumulate(D32(), a, b, hn::Zero(D32()), odd);
  return hn::Add(sum, hn::RearrangeToOddPlusEven(even, odd));
#endif
}

// Adds the products of the pair at `a` and `b` to the sums of Rows rows, of which set Set is used.
template <int Rows, int Sets, int Set>
HWY_INLINE void add_pair(const int16_t* a, int64_t lda, const int8_t* b,
                         Accumulators<V32, Rows, Sets * kVectors>& acc) {
  Accumulators<hn::Vec<D16>, 1, kVectors> bv;
  unroll<kVectors>([&](auto v) HWY_ATTR { bv.template at<0, v>() = load_pairs(b + v * kLanes * 2); });
  unroll<Rows>([&](auto r) HWY_ATTR {
    const auto av = broadcast_pair(a + r * lda);
    unroll<kVectors>([&](auto v) HWY_ATTR {
      V32& sum = acc.template at<r, Set * kVectors + v>();
      sum = multiply_pairs(av, bv.template at<0, v>(), sum);
    });
  });
}

// The sums of Rows rows and one panel.
template <int Rows>
HWY_NOINLINE void tile(const GemmI16& g, int64_t row, const int8_t* b, double* sums) {
  // Few rows have few sums: those of every other pair are kept apart, so that additions do not wait for each other.
  constexpr int kSets = Rows * kVectors <= 4 ? 4 : 1;
  const D32 d;
  const int16_t* a = g.a + row * g.lda;
  for (int64_t k0 = 0; k0 < g.k; k0 += kSliceDepth) {
    const int64_t pairs = (std::min(g.k - k0, kSliceDepth) + 1) / 2;
    Accumulators<V32, Rows, kSets * kVectors> acc;
    unroll<Rows>([&](auto r) HWY_ATTR {
      unroll<kSets * kVectors>([&](auto v) HWY_ATTR { acc.template at<r, v>() = hn::Zero(d); });
    });
    int64_t i = 0;
    if constexpr (kSets > 1) {
      for (; i + kSets <= pairs; i += kSets, a += 2 * kSets, b += kSets * 2 * kWidePanel) {
        unroll<kSets>([&](auto s)
                          HWY_ATTR { add_pair<Rows, kSets, s>(a + 2 * s, g.lda, b + s * 2 * kWidePanel, acc); });
      }
    }
    for (; i < pairs; ++i, a += 2, b += 2 * kWidePanel) add_pair<Rows, kSets, 0>(a, g.lda, b, acc);
    unroll<Rows>([&](auto r) HWY_ATTR {
      unroll<kVectors>([&](auto v) HWY_ATTR {
        V32 sum = acc.template at<r, v>();
        unroll<kSets - 1>([&](auto s) HWY_ATTR { sum = hn::Add(sum, acc.template at<r, (s + 1) * kVectors + v>()); });
        put_sums(d, sum, k0 > 0, sums + r * kWidePanel + v * kLanes);
      });
    });
  }
}

#endif

template <int Rows>
HWY_INLINE int64_t run_tiles(const GemmI16& g, int64_t row, int64_t end, int64_t col, const int8_t* b) {
  HWY_ALIGN double sums[kWideRows * kWidePanel];
  const int64_t count = std::min(kWidePanel, g.n - col);
  for (; row + Rows <= end; row += Rows) {
    tile<Rows>(g, row, b, sums);
    for (int64_t r = 0; r < Rows; ++r) {
      finish_panel(g.finish, sums + r * kWidePanel, col, count, g.c + (row + r) * g.ldc + col);
    }
  }
  return row;
}

void range(const GemmI16& g, IndexRange rows, IndexRange columns) {
  const int64_t panel_bytes = packed_bytes_i16(kWidePanel, g.k);
  // As many rows as stay in the first-level cache while the panels pass by.
  const int64_t block = std::max<int64_t>(1, 16384 / std::max<int64_t>(2 * g.k, 1) / kWideRows) * kWideRows;
  for (int64_t begin = rows.begin; begin < rows.end; begin += block) {
    const int64_t end = std::min(rows.end, begin + block);
    for (int64_t col = columns.begin; col < columns.end; col += kWidePanel) {
      const int8_t* b = reinterpret_cast<const int8_t*>(g.b) + col / kWidePanel * panel_bytes;
      int64_t row = begin;
#if HWY_TARGET != HWY_SCALAR
      row = run_tiles<kTileRows>(g, row, end, col, b);
#endif
      if constexpr (kFewRows > 1) row = run_tiles<kFewRows>(g, row, end, col, b);
      run_tiles<1>(g, row, end, col, b);
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace leadline::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace leadline::kernels {
namespace {

HWY_EXPORT(range);

}  // namespace

double wide_factor(Multiplier multiplier) noexcept {
  const int32_t reduced = multiplier.value < 0x7FFF0000 ? (multiplier.value + (1 << 15)) >> 16 : 0x7FFF;
  return std::ldexp(static_cast<double>(reduced), multiplier.shift - 15);
}

int64_t packed_bytes_i16(int64_t n, int64_t k) noexcept {
  return (n + kWidePanel - 1) / kWidePanel * kWidePanel * ((k + 1) / 2 * 2);
}

void pack_i16(const int8_t* b, WideStrides step, int64_t n, int64_t k, std::byte* packed, IndexRange columns,
              IndexRange depth) noexcept {
  const int64_t panel_bytes = packed_bytes_i16(kWidePanel, k);
  for (int64_t col = columns.begin; col < columns.end; col += kWidePanel) {
    auto* panel = reinterpret_cast<int8_t*>(packed) + col / kWidePanel * panel_bytes;
    const int64_t used = std::min(kWidePanel, n - col);
    for (int64_t d = depth.begin; d < depth.end; d += 2) {
      int8_t* pair = panel + d * kWidePanel;
      const int8_t* from = b + (col - columns.begin) * step.n + (d - depth.begin) * step.k;
      const bool both = d + 1 < k;
      for (int64_t j = 0; j < used; ++j, from += step.n) {
        pair[2 * j] = from[0];
        pair[2 * j + 1] = both ? from[step.k] : int8_t{0};
      }
      std::fill(pair + 2 * used, pair + 2 * kWidePanel, int8_t{0});
    }
  }
}

void gemm_i16_range(const GemmI16& g, IndexRange rows, IndexRange columns) noexcept {
  HWY_DYNAMIC_DISPATCH(range)(g, rows, columns);
}

}  // namespace leadline::kernels
#endif  // HWY_ONCE
