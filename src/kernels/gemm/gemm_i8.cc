// SPDX-License-Identifier: Apache-2.0
// 8-bit gemm: blocks of rows of A are prepared in the workspace (dot_i8-inl.h) or read where they are, then register
// tiles of up to 6 rows by 2 vectors run over panels of B, as in the float gemm, and hand their sums to an output
// stage.
#include "kernels/gemm/gemm_i8.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "core/buffer.h"
#include "kernels/gemm/layout_i8.h"
#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm/gemm_i8.cc"
#ifndef HWY_WANT_AVX3_DL
#define HWY_WANT_AVX3_DL
#endif
#include "kernels/all_targets.h"
#include "kernels/gemm/dot_i8-inl.h"
#include "kernels/gemm/output_i8-inl.h"
#include "kernels/gemm/tile-inl.h"

#ifndef LEADLINE_KERNELS_GEMM_I8_ROWS
#define LEADLINE_KERNELS_GEMM_I8_ROWS
namespace leadline::kernels {
namespace {

// Rows of A prepared at a time: about 64 KiB, so that they stay in the second-level cache while B passes by.
int64_t rows_per_block(int64_t row_bytes) {
  return std::clamp(65536 / std::max<int64_t>(row_bytes, 1) / kGemmTileRows * kGemmTileRows, kGemmTileRows,
                    int64_t{96});
}

// Beside the prepared rows, the workspace holds two terms for each of at most 96 rows.
struct RowTerms {
  int32_t zero_point[96];  // of the prepared row, where it is not taken off yet
  int32_t b_term[96];      // b_zero_point * sum of (a - za)
};

// What lies there for a deep product.
struct DeepSums {
  int32_t sums[kGemmColumnGrain];
};
static_assert(sizeof(DeepSums) <= sizeof(RowTerms));

}  // namespace
}  // namespace leadline::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace leadline::kernels {
namespace HWY_NAMESPACE {
namespace {

constexpr int64_t kLanes = HWY_LANES(int32_t);
constexpr int64_t kPanel = 2 * kLanes;

// b_zero_point * sum of (a - za) over the first `count` values of a row, modulo 2^32.
HWY_INLINE int32_t b_term(const GemmI8& g, int64_t row, int64_t count, int32_t zero_point) {
  if (g.b_zero_point == 0) return 0;
  const int64_t sum = unsigned_sum(static_cast<const uint8_t*>(g.a) + row * g.lda, count, g.a_unsigned ? 0 : 0x80) -
                      (zero_point + (g.a_unsigned ? 0 : 128)) * count;
  return static_cast<int32_t>(static_cast<uint32_t>(sum) * static_cast<uint32_t>(g.b_zero_point));
}

void set_terms(const GemmI8& g, int64_t row, int64_t rows, RowTerms& terms) {
  for (int64_t r = 0; r < rows; ++r) {
    const int32_t zero_point = g.a_row_zero_points == nullptr ? g.a_zero_point : g.a_row_zero_points[row + r];
    terms.zero_point[r] = kUnsignedA ? zero_point + (g.a_unsigned ? 0 : 128) : 0;
    terms.b_term[r] = b_term(g, row + r, g.k, zero_point);
  }
}

template <typename T>
void prepare(const GemmI8& g, int64_t row, int64_t rows, int32_t* words) {
  for (int64_t r = 0; r < rows; ++r) {
    const T* a = static_cast<const T*>(g.a) + (row + r) * g.lda;
    const int32_t zero_point = g.a_row_zero_points == nullptr ? g.a_zero_point : g.a_row_zero_points[row + r];
    prepare_row(a, g.k, zero_point, words + r * row_words(g.k));
  }
}

// What a tile reads of A.
struct TileRows {
  const uint8_t* a = nullptr;  // groups of 4 bytes, prepared or not
  int64_t stride = 0;          // bytes from row to row
  const int32_t* zero_points = nullptr;
  const int32_t* b_terms = nullptr;
  bool uniform = false;  // one zero point for all rows, and no b_terms
};

// Adds the products of one group of k to the sums [.., First..First + Vectors).
template <int Rows, int Vectors, bool Flip, int First, int Sums>
HWY_INLINE void add_group(const uint8_t* a, int64_t stride, const int8_t* b, int64_t panel_stride,
                          Accumulators<Sum, Rows, Sums>& acc) {
  if constexpr (Rows == 1) {
    const VA av = broadcast_bytes<Flip>(a);
    unroll<Vectors>([&](auto v) HWY_ATTR {
      const VB bv = load_b(b + (v / 2) * panel_stride + (v % 2) * kLanes * kGroup);
      acc.template at<0, First + v>() = multiply_accumulate(av, bv, acc.template at<0, First + v>());
    });
  } else {
    Accumulators<VB, 1, Vectors> bv;
    unroll<Vectors>([&](auto v) HWY_ATTR {
      bv.template at<0, v>() = load_b(b + (v / 2) * panel_stride + (v % 2) * kLanes * kGroup);
    });
    unroll<Rows>([&](auto r) HWY_ATTR {
      const VA av = broadcast_bytes<Flip>(a + r * stride);
      unroll<Vectors>([&](auto v) HWY_ATTR {
        acc.template at<r, First + v>() =
            multiply_accumulate(av, bv.template at<0, v>(), acc.template at<r, First + v>());
      });
    });
  }
}

// Into how many each sum of a tile is split over k, so that there are enough to keep a multiplier busy: integers do not
// mind the order.
constexpr int splits(int sums) { return !kUnsignedA ? 1 : sums <= 2 ? 4 : sums <= 4 ? 2 : 1; }

// The sums of Rows rows times Vectors vectors of columns from `col`, without their zero points: those of split s are at
// [.., s * Vectors..].
template <int Rows, int Vectors, bool Flip, int Sums>
HWY_INLINE void multiply(const GemmI8& g, const TileRows& rows, int64_t col, Accumulators<Sum, Rows, Sums>& acc) {
  constexpr int kSplit = Sums / Vectors;
  constexpr int64_t kStep = (Vectors == 1 ? kLanes : kPanel) * kGroup;
  constexpr int64_t kWord = sizeof(int32_t);
  const int64_t groups = (g.k + kGroup - 1) / kGroup;
  const int64_t panel_stride = kPanel * groups * kGroup;
  const int8_t* b = reinterpret_cast<const int8_t*>(g.b + panels_offset(g.n)) + col * groups * kGroup;
  const uint8_t* a = rows.a;
  const int64_t stride = rows.stride;
  unroll<Rows>([&](auto r) HWY_ATTR { unroll<Sums>([&](auto v) HWY_ATTR { acc.template at<r, v>() = zero_sum(); }); });
  int64_t i = 0;
  if constexpr (kSplit > 1) {
    for (; i + kSplit <= groups; i += kSplit, a += kSplit * kWord, b += kSplit * kStep) {
      unroll<kSplit>([&](auto s) HWY_ATTR {
        add_group<Rows, Vectors, Flip, s * Vectors>(a + s * kWord, stride, b + s * kStep, panel_stride, acc);
      });
    }
  }
  for (; i < groups; ++i, a += kWord, b += kStep) {
    add_group<Rows, Vectors, Flip, 0>(a, stride, b, panel_stride, acc);
  }
  if constexpr (kSplit > 1) {
    unroll<Rows>([&](auto r) HWY_ATTR {
      unroll<Sums - Vectors>([&](auto v) HWY_ATTR {
        V32& sum = acc.template at<r, v % Vectors>();
        sum = hn::Add(sum, acc.template at<r, v + Vectors>());
      });
    });
  }
}

HWY_INLINE V32 column_sums(const GemmI8& g, int64_t col) {
  return hn::Load(D32(), reinterpret_cast<const int32_t*>(g.b) + col);
}

// Where a tile of sums goes on its way to the output stage: row-major, kTileVectors vectors in all.
constexpr int64_t kTileVectors = 12;

// One tile of prepared rows, apart from the output stages: every tile is compiled once instead of once a stage. Those
// that most of the work is done in have a version that needs no memory: whole_tile.
template <int Rows, int Vectors>
HWY_NOINLINE void tile(const GemmI8& g, const TileRows& rows, int64_t col, int32_t* sums) {
  static_assert(Rows * Vectors <= kTileVectors);
  const D32 d;
  Accumulators<Sum, Rows, Vectors * splits(Rows * Vectors)> acc;
  multiply<Rows, Vectors, false>(g, rows, col, acc);
  unroll<Rows>([&](auto r) HWY_ATTR {
    const V32 b_term = hn::Set(d, rows.b_terms[r]);
    unroll<Vectors>([&](auto v) HWY_ATTR {
      V32 sum = hn::Sub(total(acc.template at<r, v>()), b_term);
      if constexpr (kUnsignedA) {
        sum = hn::Sub(sum, hn::Mul(column_sums(g, col + v * kLanes), hn::Set(d, rows.zero_points[r])));
      }
      hn::Store(sum, d, sums + (r * Vectors + v) * kLanes);
    });
  });
}

// The sums of a tile of kGemmTileRows rows that is cut at the right, one vector of columns after the other.
template <class Stage>
HWY_NOINLINE void finish_cut_tile(const GemmI8& g, const Stage& stage, const TileRows& rows, const int32_t* sums,
                                  int64_t vectors, int64_t row, int64_t col) {
  const D32 d;
  for (int64_t v = 0; v < vectors && col < g.n; ++v, col += kLanes) {
    const int64_t count = g.n - col;
    const V32 bias = g.bias == nullptr ? hn::Zero(d) : load_some(d, g.bias + col, count);
    const V32 of_ones = kUnsignedA ? column_sums(g, col) : hn::Zero(d);
    const auto columns = stage.columns(col, count);
    for (int64_t r = 0; r < kGemmTileRows; ++r) {
      const V32 sum = hn::Add(hn::Load(d, sums + (r * vectors + v) * kLanes), bias);
      const V32 terms = hn::Add(hn::Mul(of_ones, hn::Set(d, rows.zero_points[r])), hn::Set(d, rows.b_terms[r]));
      stage.store(columns, hn::Sub(sum, terms), row + r, col, count);
    }
  }
}

// One tile of kGemmTileRows rows, straight to the output.
template <int Vectors, bool Flip, class Stage>
HWY_NOINLINE void whole_tile(const GemmI8& g, const Stage& stage, const TileRows& rows, int64_t row, int64_t col) {
  constexpr int kRows = kGemmTileRows;
  const D32 d;
  Accumulators<Sum, kRows, Vectors> acc;
  multiply<kRows, Vectors, Flip>(g, rows, col, acc);
  if (HWY_UNLIKELY(g.n - col < Vectors * kLanes)) {
    HWY_ALIGN int32_t sums[kRows * Vectors * kLanes];
    unroll<kRows>([&](auto r) HWY_ATTR {
      unroll<Vectors>(
          [&](auto v) HWY_ATTR { hn::Store(total(acc.template at<r, v>()), d, sums + (r * Vectors + v) * kLanes); });
    });
    return finish_cut_tile(g, stage, rows, sums, Vectors, row, col);
  }
  typename Stage::Columns columns[Vectors];
  V32 offset[Vectors];
  V32 of_ones[Vectors];
  unroll<Vectors>([&](auto v) HWY_ATTR {
    const int64_t at = col + v * kLanes;
    columns[v] = stage.columns(at, kLanes);
    offset[v] = g.bias == nullptr ? hn::Zero(d) : hn::LoadU(d, g.bias + at);
    of_ones[v] = kUnsignedA ? column_sums(g, at) : hn::Zero(d);
  });
  if (rows.uniform) {
    if constexpr (kUnsignedA) {
      unroll<Vectors>([&](auto v) HWY_ATTR {
        offset[v] = hn::Sub(offset[v], hn::Mul(of_ones[v], hn::Set(d, rows.zero_points[0])));
      });
    }
    unroll<kRows>([&](auto r) HWY_ATTR {
      V32 sums[Vectors];
      unroll<Vectors>([&](auto v) HWY_ATTR { sums[v] = hn::Add(total(acc.template at<r, v>()), offset[v]); });
      stage.template store_whole<Vectors>(columns, sums, row + r, col);
    });
  } else {
    unroll<kRows>([&](auto r) HWY_ATTR {
      V32 sums[Vectors];
      const V32 b_term = hn::Set(d, rows.b_terms[r]);
      const V32 zero_point = hn::Set(d, rows.zero_points[r]);
      unroll<Vectors>([&](auto v) HWY_ATTR {
        sums[v] = hn::Sub(hn::Add(total(acc.template at<r, v>()), offset[v]), b_term);
        if constexpr (kUnsignedA) sums[v] = hn::Sub(sums[v], hn::Mul(of_ones[v], zero_point));
      });
      stage.template store_whole<Vectors>(columns, sums, row + r, col);
    });
  }
}

// Columns of the widest tile for this many rows that starts at `col`, counted in vectors.
int vectors_of_tile(int64_t rows, int64_t columns) {
  if (rows == 1 && columns > 7 * kLanes) return 8;
  if (rows == 2 && columns > 3 * kLanes) return 4;
  return columns > kLanes ? 2 : 1;
}

void run_tile(const GemmI8& g, const TileRows& rows, int64_t count, int vectors, int64_t col, int32_t* sums) {
  using Tile = void (*)(const GemmI8&, const TileRows&, int64_t, int32_t*);
  static constexpr Tile kTwo[] = {tile<1, 2>, tile<2, 2>, tile<3, 2>, tile<4, 2>, tile<5, 2>};
  static constexpr Tile kOne[] = {tile<1, 1>, tile<2, 1>, tile<3, 1>, tile<4, 1>, tile<5, 1>};
  const Tile chosen = vectors == 8   ? tile<1, 8>
                      : vectors == 4 ? tile<2, 4>
                      : vectors == 2 ? kTwo[count - 1]
                                     : kOne[count - 1];
  chosen(g, rows, col, sums);
}

// Adds the bias to a tile of sums and hands it to the stage.
template <class Stage>
HWY_INLINE void finish_tile(const GemmI8& g, const Stage& stage, const int32_t* sums, int64_t rows, int vectors,
                            int64_t row, int64_t col) {
  const D32 d;
  for (int v = 0; v < vectors; ++v, col += kLanes) {
    const int64_t count = g.n - col;
    if (count <= 0) return;
    const V32 bias = g.bias == nullptr ? hn::Zero(d) : load_some(d, g.bias + col, count);
    const auto columns = stage.columns(col, count);
    for (int64_t r = 0; r < rows; ++r) {
      const V32 sum = hn::Add(hn::Load(d, sums + (r * vectors + v) * kLanes), bias);
      stage.store(columns, sum, row + r, col, count);
    }
  }
}

// How many of a block's rows tiles read where they are. Signed ones cost an instruction more for each tile of columns
// then; with many columns it is cheaper to prepare them once.
int64_t rows_in_place(const GemmI8& g, int64_t rows, int64_t columns) {
  constexpr int64_t kFewColumns = 128;
  const bool readable = g.a_slack || g.k % kGroup == 0;
  const bool worth = g.a_unsigned || columns <= kFewColumns;
  return kUnsignedA && readable && worth ? rows / kGemmTileRows * kGemmTileRows : 0;
}

template <class Stage>
void run_whole_tile(const GemmI8& g, const Stage& stage, const TileRows& rows, bool flip, int vectors, int64_t row,
                    int64_t col) {
  if constexpr (kUnsignedA) {
    if (flip) {
      return vectors == 2 ? whole_tile<2, true>(g, stage, rows, row, col)
                          : whole_tile<1, true>(g, stage, rows, row, col);
    }
  }
  vectors == 2 ? whole_tile<2, false>(g, stage, rows, row, col) : whole_tile<1, false>(g, stage, rows, row, col);
}

template <class Stage>
void range_with(const GemmI8& g, const Stage& stage, int64_t row_begin, int64_t row_end, int64_t col_begin,
                int64_t col_end, std::byte* workspace) {
  const int64_t lda = row_words(g.k);
  const int64_t block = rows_per_block(lda * static_cast<int64_t>(sizeof(int32_t)));
  RowTerms& terms = *reinterpret_cast<RowTerms*>(workspace);
  auto* words = reinterpret_cast<int32_t*>(workspace + align_up(sizeof(RowTerms)));
  HWY_ALIGN int32_t sums[kTileVectors * kLanes];
  for (int64_t r0 = row_begin; r0 < row_end; r0 += block) {
    const int64_t rows = std::min(block, row_end - r0);
    const int64_t in_place = rows_in_place(g, rows, col_end - col_begin);
    set_terms(g, r0, rows, terms);
    if (g.a_unsigned) {
      prepare<uint8_t>(g, r0 + in_place, rows - in_place, words);
    } else {
      prepare<int8_t>(g, r0 + in_place, rows - in_place, words);
    }
    int vectors = 2;
    for (int64_t col = col_begin; col < col_end; col += vectors * kLanes) {
      // Wide tiles only where all rows of the block are one tile: otherwise its rows would differ in width.
      vectors = vectors_of_tile(rows, col_end - col);
      for (int64_t r = 0; r < rows; r += kGemmTileRows) {
        const int64_t tile_rows = std::min(kGemmTileRows, rows - r);
        TileRows tile_of{.a = reinterpret_cast<const uint8_t*>(words + (r - in_place) * lda),
                         .stride = lda * static_cast<int64_t>(sizeof(int32_t)),
                         .zero_points = terms.zero_point + r,
                         .b_terms = terms.b_term + r,
                         .uniform = g.a_row_zero_points == nullptr && g.b_zero_point == 0};
        if (r < in_place) {
          tile_of.a = static_cast<const uint8_t*>(g.a) + (r0 + r) * g.lda;
          tile_of.stride = g.lda;
        }
        if (tile_rows == kGemmTileRows) {
          run_whole_tile(g, stage, tile_of, r < in_place && !g.a_unsigned, vectors, r0 + r, col);
        } else {
          run_tile(g, tile_of, tile_rows, vectors, col, sums);
          finish_tile(g, stage, sums, tile_rows, vectors, r0 + r, col);
        }
      }
    }
  }
}

// Adds the products of prepared values at k in `depth` to the sums of one row and Vectors vectors of columns.
template <int Vectors>
HWY_NOINLINE void add_slice(const GemmI8& g, const uint8_t* a, IndexRange depth, int64_t col, int32_t* sums) {
  const D32 d;
  constexpr int64_t kStep = (Vectors == 1 ? kLanes : kPanel) * kGroup;
  const int64_t groups = (g.k + kGroup - 1) / kGroup;
  const int64_t end = (depth.end + kGroup - 1) / kGroup;
  int64_t i = depth.begin / kGroup;
  const int8_t* b = reinterpret_cast<const int8_t*>(g.b + panels_offset(g.n)) + col * groups * kGroup + i * kStep;
  Accumulators<Sum, 1, Vectors> acc;
  unroll<Vectors>([&](auto v) HWY_ATTR { acc.template at<0, v>() = zero_sum(); });
  for (; i < end; ++i, a += sizeof(int32_t), b += kStep) add_group<1, Vectors, false, 0>(a, 0, b, 0, acc);
  unroll<Vectors>([&](auto v) HWY_ATTR {
    int32_t* to = sums + v * kLanes;
    hn::Store(hn::Add(hn::Load(d, to), total(acc.template at<0, v>())), d, to);
  });
}

template <class Stage>
void deep_with(const GemmI8& g, const Stage& stage, const GemmSlice& slice, std::byte* workspace) {
  const D32 d;
  auto& sums = reinterpret_cast<DeepSums*>(workspace)->sums;
  auto* words = reinterpret_cast<int32_t*>(workspace + align_up(sizeof(RowTerms)));
  const int32_t zero_point = g.a_row_zero_points == nullptr ? g.a_zero_point : g.a_row_zero_points[slice.row];
  GemmI8 part_of_k = g;
  part_of_k.k = slice.depth.size();
  g.a_unsigned ? prepare<uint8_t>(part_of_k, slice.row, 1, words) : prepare<int8_t>(part_of_k, slice.row, 1, words);
  if (slice.depth.begin == 0) std::fill(std::begin(sums), std::end(sums), 0);
  const V32 of_b = hn::Set(d, b_term(g, slice.row, slice.depth.size(), zero_point));
  const V32 of_a = hn::Set(d, kUnsignedA ? zero_point + (g.a_unsigned ? 0 : 128) : 0);
  for (int64_t col = slice.columns.begin; col < slice.columns.end;) {
    int32_t* part = sums + (col - slice.columns.begin);
    const int64_t next = col + (g.n - col > kLanes ? kPanel : kLanes);
    const auto* a = reinterpret_cast<const uint8_t*>(words);
    next - col == kPanel ? add_slice<2>(g, a, slice.depth, col, part) : add_slice<1>(g, a, slice.depth, col, part);
    for (; col < next; col += kLanes, part += kLanes) {
      V32 sum = hn::Sub(hn::Load(d, part), of_b);
      hn::Store(sum, d, part);
      const int64_t count = g.n - col;
      if (slice.depth.end < g.k || count <= 0) continue;
      if constexpr (kUnsignedA) sum = hn::Sub(sum, hn::Mul(column_sums(g, col), of_a));
      if (g.bias != nullptr) sum = hn::Add(sum, load_some(d, g.bias + col, count));
      stage.store(stage.columns(col, count), sum, slice.row, col, count);
    }
  }
}

void range_accumulators(const GemmI8& g, const AccumulatorOutput& out, int64_t row_begin, int64_t row_end,
                        int64_t col_begin, int64_t col_end, std::byte* workspace) {
  range_with(g, AccumulatorStage<D32>(out), row_begin, row_end, col_begin, col_end, workspace);
}

void range_requantized(const GemmI8& g, const RequantizedOutput& out, int64_t row_begin, int64_t row_end,
                       int64_t col_begin, int64_t col_end, std::byte* workspace) {
  range_with(g, RequantizedStage<D32>(out), row_begin, row_end, col_begin, col_end, workspace);
}

void range_dequantized(const GemmI8& g, const DequantizedOutput& out, int64_t row_begin, int64_t row_end,
                       int64_t col_begin, int64_t col_end, std::byte* workspace) {
  range_with(g, DequantizedStage<D32>(out), row_begin, row_end, col_begin, col_end, workspace);
}

void deep_accumulators(const GemmI8& g, const AccumulatorOutput& out, const GemmSlice& slice, std::byte* workspace) {
  deep_with(g, AccumulatorStage<D32>(out), slice, workspace);
}

void deep_requantized(const GemmI8& g, const RequantizedOutput& out, const GemmSlice& slice, std::byte* workspace) {
  deep_with(g, RequantizedStage<D32>(out), slice, workspace);
}

void deep_dequantized(const GemmI8& g, const DequantizedOutput& out, const GemmSlice& slice, std::byte* workspace) {
  deep_with(g, DequantizedStage<D32>(out), slice, workspace);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace leadline::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace leadline::kernels {
namespace {

HWY_EXPORT(range_accumulators);
HWY_EXPORT(range_requantized);
HWY_EXPORT(range_dequantized);
HWY_EXPORT(deep_accumulators);
HWY_EXPORT(deep_requantized);
HWY_EXPORT(deep_dequantized);

int64_t row_bytes(int64_t k) { return (k + 31) / 32 * 64; }

}  // namespace

int64_t gemm_i8_row_block(int64_t k) noexcept { return rows_per_block(row_bytes(k)); }

int64_t gemm_i8_workspace_bytes(int64_t m, int64_t k) noexcept {
  const int64_t terms = align_up(sizeof(RowTerms));
  if (k > kGemmMaxDepth) return terms + row_bytes(kGemmDeepSlice);
  return terms + std::min(m, gemm_i8_row_block(k)) * row_bytes(k);
}

void gemm_i8_range(const GemmI8& g, const AccumulatorOutput& out, int64_t row_begin, int64_t row_end, int64_t col_begin,
                   int64_t col_end, std::byte* workspace) noexcept {
  HWY_DYNAMIC_DISPATCH(range_accumulators)(g, out, row_begin, row_end, col_begin, col_end, workspace);
}
void gemm_i8_range(const GemmI8& g, const RequantizedOutput& out, int64_t row_begin, int64_t row_end, int64_t col_begin,
                   int64_t col_end, std::byte* workspace) noexcept {
  HWY_DYNAMIC_DISPATCH(range_requantized)(g, out, row_begin, row_end, col_begin, col_end, workspace);
}
void gemm_i8_range(const GemmI8& g, const DequantizedOutput& out, int64_t row_begin, int64_t row_end, int64_t col_begin,
                   int64_t col_end, std::byte* workspace) noexcept {
  HWY_DYNAMIC_DISPATCH(range_dequantized)(g, out, row_begin, row_end, col_begin, col_end, workspace);
}

void gemm_i8_deep(const GemmI8& g, const AccumulatorOutput& out, const GemmSlice& slice,
                  std::byte* workspace) noexcept {
  HWY_DYNAMIC_DISPATCH(deep_accumulators)(g, out, slice, workspace);
}
void gemm_i8_deep(const GemmI8& g, const RequantizedOutput& out, const GemmSlice& slice,
                  std::byte* workspace) noexcept {
  HWY_DYNAMIC_DISPATCH(deep_requantized)(g, out, slice, workspace);
}
void gemm_i8_deep(const GemmI8& g, const DequantizedOutput& out, const GemmSlice& slice,
                  std::byte* workspace) noexcept {
  HWY_DYNAMIC_DISPATCH(deep_dequantized)(g, out, slice, workspace);
}

}  // namespace leadline::kernels
#endif  // HWY_ONCE
