// SPDX-License-Identifier: Apache-2.0
// float32 gemm: register tiles of up to 6 rows by 2 vectors (fewer rows take more vectors, so that enough
// independent sums are under way), B in panels of 2 vectors, k in blocks that keep a panel in the first-level cache.
#include "kernels/gemm/gemm_f32.h"

#include <algorithm>
#include <cstring>

#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm/gemm_f32.cc"
#include "kernels/all_targets.h"
#include "kernels/gemm/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace leadline::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr int64_t kLanes = HWY_LANES(float);
constexpr int64_t kPanel = 2 * kLanes;  // columns of a panel; the last one may have kLanes only

// A panel holds k rows of its columns; all panels before it are kPanel wide, so it begins at element col * k.
int64_t panel_width(int64_t n, int64_t col) { return n - col > kLanes ? kPanel : kLanes; }

template <typename Read>
void pack_with(int64_t n, int64_t k, float* packed, IndexRange columns, IndexRange depth, Read read) {
  for (int64_t col = columns.begin; col < columns.end; col += kPanel) {
    const int64_t width = panel_width(n, col);
    const int64_t used = std::min(width, n - col);
    float* out = packed + col * k + depth.begin * width;
    for (int64_t i = depth.begin; i < depth.end; ++i, out += width) {
      for (int64_t j = 0; j < used; ++j) out[j] = read(col + j, i);
      for (int64_t j = used; j < width; ++j) out[j] = 0.0F;
    }
  }
}

// Whole panels are read a cache line of one column at a time: with the columns a power of two apart, lines of
// different columns would drive each other out of the cache.
void pack_nk(const float* b, int64_t ldb, int64_t n, int64_t k, std::byte* packed, IndexRange columns,
             IndexRange depth) {
  constexpr int64_t kLine = 16;
  auto* panels = reinterpret_cast<float*>(packed);
  const int64_t whole = std::min(columns.end, n / kPanel * kPanel);
  int64_t col = columns.begin;
  for (; col < whole; col += kPanel) {
    for (int64_t i0 = depth.begin; i0 < depth.end; i0 += kLine) {
      const int64_t count = std::min(kLine, depth.end - i0);
      for (int64_t j = 0; j < kPanel; ++j) {
        const float* from = b + (col - columns.begin + j) * ldb + i0 - depth.begin;
        float* to = panels + col * k + i0 * kPanel + j;
        for (int64_t i = 0; i < count; ++i) to[i * kPanel] = from[i];
      }
    }
  }
  pack_with(n, k, panels, {col, columns.end}, depth,
            [=](int64_t c, int64_t i) { return b[(c - columns.begin) * ldb + i - depth.begin]; });
}

void pack_kn(const float* b, int64_t ldb, int64_t n, int64_t k, std::byte* packed, IndexRange columns,
             IndexRange depth) {
  const D d;
  auto* panels = reinterpret_cast<float*>(packed);
  const int64_t whole = std::min(columns.end, n / kPanel * kPanel);
  int64_t col = columns.begin;
  for (; col < whole; col += kPanel) {
    float* to = panels + col * k + depth.begin * kPanel;
    for (int64_t i = depth.begin; i < depth.end; ++i, to += kPanel) {
      const float* from = b + (i - depth.begin) * ldb + col - columns.begin;
      hn::Store(hn::LoadU(d, from), d, to);
      hn::Store(hn::LoadU(d, from + kLanes), d, to + kLanes);
    }
  }
  pack_with(n, k, panels, {col, columns.end}, depth,
            [=](int64_t c, int64_t i) { return b[(i - depth.begin) * ldb + c - columns.begin]; });
}

float f16_to_f32(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000U) << 16;
  const uint32_t magnitude = bits & 0x7FFFU;
  uint32_t out = 0;
  if (magnitude >= 0x7C00U) {  // infinity and NaN keep their payload
    out = 0x7F800000U | ((magnitude & 0x3FFU) << 13);
  } else if (magnitude >= 0x0400U) {
    out = (magnitude << 13) + (112U << 23);  // exponent bias 127 instead of 15
  } else {
    const float value = static_cast<float>(magnitude) * 0x1p-24F;  // zero or subnormal: exact
    std::memcpy(&out, &value, sizeof(out));
  }
  out |= sign;
  float value = 0;
  std::memcpy(&value, &out, sizeof(value));
  return value;
}

void pack_f16(const uint16_t* b, int64_t ldb, int64_t n, int64_t k, std::byte* packed, IndexRange columns,
              IndexRange depth) {
  pack_with(n, k, reinterpret_cast<float*>(packed), columns, depth,
            [=](int64_t col, int64_t i) { return f16_to_f32(b[(col - columns.begin) * ldb + i - depth.begin]); });
}

// A k block of the product, as one tile needs it.
struct Block {
  int64_t k = 0;             // first k of the block
  int64_t depth = 0;         // number of k in the block
  int64_t panel_stride = 0;  // elements from one panel to the next
  bool first = true;         // start from the bias, not from C
  bool last = true;          // clamp
};

// One tile: Rows rows of A times Vectors vectors of columns, from column `col`. Vectors == 1 is the narrow last
// panel; otherwise the tile spans Vectors / 2 panels.
template <int Rows, int Vectors>
HWY_NOINLINE void tile(const GemmF32& g, const Block& block, const float* a, const float* b, float* c, int64_t col) {
  const D d;
  constexpr int64_t kWidth = Vectors == 1 ? kLanes : kPanel;
  const int64_t next_row = g.a_packed ? 1 : g.lda;
  const int64_t next_k = g.a_packed ? kGemmTileRows : 1;
  const int64_t ldc = g.ldc;
  const int64_t columns = g.n - col;
  Accumulators<V, Rows, Vectors> acc;
  if (block.first) {
    unroll<Vectors>([&](auto v) HWY_ATTR {
      const V start = g.bias == nullptr ? hn::Zero(d) : load_some(d, g.bias + col + v * kLanes, columns - v * kLanes);
      unroll<Rows>([&](auto r) HWY_ATTR { acc.template at<r, v>() = start; });
    });
  } else {
    unroll<Rows>([&](auto r) HWY_ATTR {
      unroll<Vectors>([&](auto v) HWY_ATTR {
        acc.template at<r, v>() = load_some(d, c + r * ldc + v * kLanes, columns - v * kLanes);
      });
    });
  }
  const int64_t panel_stride = block.panel_stride;
  for (int64_t i = 0; i < block.depth; ++i, a += next_k) {
    if constexpr (Rows == 1) {
      const V av = hn::Set(d, *a);
      unroll<Vectors>([&](auto v) HWY_ATTR {
        const V bv = hn::Load(d, b + (v / 2) * panel_stride + (v % 2) * kLanes);
        acc.template at<0, v>() = hn::MulAdd(av, bv, acc.template at<0, v>());
      });
    } else {
      Accumulators<V, 1, Vectors> bv;
      unroll<Vectors>([&](auto v) HWY_ATTR {
        bv.template at<0, v>() = hn::Load(d, b + (v / 2) * panel_stride + (v % 2) * kLanes);
      });
      unroll<Rows>([&](auto r) HWY_ATTR {
        const V av = hn::Set(d, a[r * next_row]);
        unroll<Vectors>([&](auto v) HWY_ATTR {
          acc.template at<r, v>() = hn::MulAdd(av, bv.template at<0, v>(), acc.template at<r, v>());
        });
      });
    }
    b += kWidth;
  }
  const V lo = hn::Set(d, g.lo);
  const V hi = hn::Set(d, g.hi);
  unroll<Rows>([&](auto r) HWY_ATTR {
    unroll<Vectors>([&](auto v) HWY_ATTR {
      V out = acc.template at<r, v>();
      if (block.last) out = clamp_keeping_nan(out, lo, hi);
      store_some(out, d, c + r * ldc + v * kLanes, columns - v * kLanes);
    });
  });
}

#if HWY_TARGET == HWY_AVX3
// The last columns where the upper half of their last vector is empty: Whole vectors and half a one. In AVX-512 half a
// vector takes half the time.
template <int Rows, int Whole>
HWY_NOINLINE void half_tile(const GemmF32& g, const Block& block, const float* a, const float* b, float* c,
                            int64_t col) {
  const D d;
  const hn::Half<D> dh;
  using VH = hn::Vec<hn::Half<D>>;
  constexpr int64_t kWidth = Whole == 0 ? kLanes : kPanel;
  const int64_t next_row = g.a_packed ? 1 : g.lda;
  const int64_t next_k = g.a_packed ? kGemmTileRows : 1;
  const int64_t ldc = g.ldc;
  const int64_t count = g.n - col - Whole * kLanes;
  Accumulators<V, Rows, Whole + 1> acc;  // the last of a row is not used
  Accumulators<VH, Rows, 1> half;
  const VH half_bias = g.bias == nullptr ? hn::Zero(dh) : load_some(dh, g.bias + col + Whole * kLanes, count);
  unroll<Rows>([&](auto r) HWY_ATTR {
    half.template at<r, 0>() = block.first ? half_bias : load_some(dh, c + r * ldc + Whole * kLanes, count);
    unroll<Whole>([&](auto v) HWY_ATTR {
      const V bias = g.bias == nullptr ? hn::Zero(d) : hn::LoadU(d, g.bias + col + v * kLanes);
      acc.template at<r, v>() = block.first ? bias : hn::LoadU(d, c + r * ldc + v * kLanes);
    });
  });
  for (int64_t i = 0; i < block.depth; ++i, a += next_k, b += kWidth) {
    const VH bh = hn::Load(dh, b + Whole * kLanes);
    unroll<Rows>([&](auto r) HWY_ATTR {
      const V av = hn::Set(d, a[r * next_row]);
      unroll<Whole>([&](auto v) HWY_ATTR {
        acc.template at<r, v>() = hn::MulAdd(av, hn::Load(d, b + v * kLanes), acc.template at<r, v>());
      });
      half.template at<r, 0>() = hn::MulAdd(hn::LowerHalf(dh, av), bh, half.template at<r, 0>());
    });
  }
  const V lo = hn::Set(d, g.lo);
  const V hi = hn::Set(d, g.hi);
  unroll<Rows>([&](auto r) HWY_ATTR {
    unroll<Whole>([&](auto v) HWY_ATTR {
      V out = acc.template at<r, v>();
      if (block.last) out = clamp_keeping_nan(out, lo, hi);
      hn::StoreU(out, d, c + r * ldc + v * kLanes);
    });
    VH out = half.template at<r, 0>();
    if (block.last) out = clamp_keeping_nan(out, hn::LowerHalf(dh, lo), hn::LowerHalf(dh, hi));
    float* to = c + r * ldc + Whole * kLanes;
    count == static_cast<int64_t>(hn::Lanes(dh)) ? hn::StoreU(out, dh, to) : store_part(out, dh, to, count);
  });
}

// Whether half_tile does the columns from `col` on.
bool ends_in_half(int64_t columns) {
  return columns <= kLanes / 2 || (columns > kLanes && columns <= kLanes + kLanes / 2);
}
#endif

// All column tiles of Wide vectors, then of one panel, then the narrow last one, for one tile of Rows rows.
template <int Rows, int Wide>
void row_tile(const GemmF32& g, const Block& block, const float* a, float* c, int64_t col, int64_t col_end) {
  const float* b = reinterpret_cast<const float*>(g.b);
  if constexpr (Wide > 2) {
    for (; col_end - col > (Wide - 1) * kLanes; col += Wide * kLanes) {
      tile<Rows, Wide>(g, block, a, b + col * g.k + block.k * kPanel, c + col, col);
    }
  }
  for (; col_end - col > kLanes; col += kPanel) {
    const float* panel = b + col * g.k + block.k * kPanel;
#if HWY_TARGET == HWY_AVX3
    if (g.n - col < kPanel && ends_in_half(g.n - col)) return half_tile<Rows, 1>(g, block, a, panel, c + col, col);
#endif
    tile<Rows, 2>(g, block, a, panel, c + col, col);
  }
#if HWY_TARGET == HWY_AVX3
  if (col < col_end && ends_in_half(g.n - col)) {
    return half_tile<Rows, 0>(g, block, a, b + col * g.k + block.k * kLanes, c + col, col);
  }
#endif
  if (col < col_end) tile<Rows, 1>(g, block, a, b + col * g.k + block.k * kLanes, c + col, col);
}

void rows_by_columns(const GemmF32& g, const Block& block, int64_t rows, const float* a, float* c, int64_t col,
                     int64_t col_end) {
  switch (rows) {
    case 1:
      return row_tile<1, 8>(g, block, a, c, col, col_end);
    case 2:
      return row_tile<2, 4>(g, block, a, c, col, col_end);
    case 3:
      return row_tile<3, 2>(g, block, a, c, col, col_end);
    case 4:
      return row_tile<4, 2>(g, block, a, c, col, col_end);
    case 5:
      return row_tile<5, 2>(g, block, a, c, col, col_end);
    default:
      return row_tile<6, 2>(g, block, a, c, col, col_end);
  }
}

// 256 k of a panel are 16 KiB with AVX2: half of the first-level cache. 96 rows of such a block of A fit the second.
constexpr int64_t kDepth = kGemmDepthBlock;
constexpr int64_t kRows = kGemmRowBlock;
static_assert(kRows % kGemmTileRows == 0);

void slice(const GemmF32& g, int64_t row_begin, int64_t row_end, int64_t col_begin, int64_t col_end, int64_t k_begin,
           int64_t k_end, bool first, bool last) {
  const int64_t next_k = g.a_packed ? kGemmTileRows : 1;
  const bool few_rows = row_end - row_begin <= kGemmTileRows;
  const int64_t depth = few_rows ? std::max<int64_t>(k_end - k_begin, 1) : kDepth;
  // With one tile of rows there is nothing to reuse a panel for, and wide tiles need many columns.
  const int64_t width = few_rows ? std::max(col_end - col_begin, kPanel) : kPanel;
  for (int64_t r0 = row_begin; r0 < row_end; r0 += kRows) {
    const int64_t r1 = std::min(row_end, r0 + kRows);
    int64_t k0 = k_begin;
    do {
      const int64_t k1 = std::min(k_end, k0 + depth);
      const Block block{k0, k1 - k0, kPanel * g.k, first && k0 == k_begin, last && k1 == k_end};
      for (int64_t col = col_begin; col < col_end;) {
        const int64_t next = std::min(col_end, col + width);
        for (int64_t r = r0; r < r1; r += kGemmTileRows) {
          rows_by_columns(g, block, std::min(kGemmTileRows, r1 - r), g.a + r * g.lda + (k0 - k_begin) * next_k,
                          g.c + r * g.ldc, col, next);
        }
        col = next;
      }
      k0 = k1;
    } while (k0 < k_end);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace leadline::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace leadline::kernels {

HWY_EXPORT(pack_nk);
HWY_EXPORT(pack_kn);
HWY_EXPORT(pack_f16);
HWY_EXPORT(slice);

int64_t packed_bytes_f32(int64_t n, int64_t k) noexcept {
  return (n + 15) / 16 * 16 * k * static_cast<int64_t>(sizeof(float));
}

// Tiles of kGemmTileRows rows, k after k. A tile that has fewer rows still begins at its first row times k.
void pack_f32_rows(const float* a, int64_t lda, int64_t m, int64_t k, float* packed) noexcept {
  constexpr int64_t kGroup = 16;  // rows of the source that are read side by side
  for (int64_t k0 = 0; k0 < k; k0 += kGroup) {
    const int64_t k1 = std::min(k, k0 + kGroup);
    for (int64_t row = 0; row < m; row += kGemmTileRows) {
      float* to = packed + row * k + k0 * kGemmTileRows;
      if (m - row >= kGemmTileRows) {
        for (int64_t i = k0; i < k1; ++i, to += kGemmTileRows) {
          std::memcpy(to, a + i * lda + row, kGemmTileRows * sizeof(float));
        }
      } else {
        for (int64_t i = k0; i < k1; ++i, to += kGemmTileRows) std::copy_n(a + i * lda + row, m - row, to);
      }
    }
  }
}

void pack_f32(const float* b, int64_t ldb, int64_t n, int64_t k, std::byte* packed, IndexRange columns,
              IndexRange depth) noexcept {
  HWY_DYNAMIC_DISPATCH(pack_nk)(b, ldb, n, k, packed, columns, depth);
}

void pack_f32_from_f16(const uint16_t* b, int64_t ldb, int64_t n, int64_t k, std::byte* packed, IndexRange columns,
                       IndexRange depth) noexcept {
  HWY_DYNAMIC_DISPATCH(pack_f16)(b, ldb, n, k, packed, columns, depth);
}

void pack_f32_kn(const float* b, int64_t ldb, int64_t n, int64_t k, std::byte* packed, IndexRange columns,
                 IndexRange depth) noexcept {
  HWY_DYNAMIC_DISPATCH(pack_kn)(b, ldb, n, k, packed, columns, depth);
}

void gemm_f32_slice(const GemmF32& g, int64_t row_begin, int64_t row_end, int64_t col_begin, int64_t col_end,
                    int64_t k_begin, int64_t k_end) noexcept {
  HWY_DYNAMIC_DISPATCH(slice)(g, row_begin, row_end, col_begin, col_end, k_begin, k_end, k_begin == 0, k_end == g.k);
}

void gemm_f32_part(const GemmF32& g, int64_t row_begin, int64_t row_end, int64_t col_begin, int64_t col_end, bool first,
                   bool last) noexcept {
  HWY_DYNAMIC_DISPATCH(slice)(g, row_begin, row_end, col_begin, col_end, 0, g.k, first, last);
}

void gemm_f32_range(const GemmF32& g, int64_t row_begin, int64_t row_end, int64_t col_begin, int64_t col_end) noexcept {
  gemm_f32_slice(g, row_begin, row_end, col_begin, col_end, 0, g.k);
}

}  // namespace leadline::kernels
#endif  // HWY_ONCE
