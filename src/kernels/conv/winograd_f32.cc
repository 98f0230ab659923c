// SPDX-License-Identifier: Apache-2.0
// float32 Winograd convolution. Every output is one fixed chain of operations on its tile, so bands and threads do not
// change it. Outputs of a tile that are not finite are computed again without the transforms, which would spread a NaN
// or an infinity to neighbours and may overflow where plain sums do not.
#include "core/half.h"
#include "kernels/conv/winograd.h"
#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/winograd_f32.cc"
#include "kernels/all_targets.h"
#include "kernels/conv/winograd-inl.h"
#include "kernels/gemm/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace leadline::kernels {
namespace HWY_NAMESPACE {
namespace {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr int64_t kLanes = HWY_LANES(float);
constexpr int64_t kPanel = 2 * kLanes;

template <class Tile>
void pack_tiles(const ConvShape& s, const void* filter, bool half, std::byte* packed, const WinogradPack& part) {
  const D d;
  pack_filters<Tile, 1>(
      d, s, winograd_grid_f32(s), part, reinterpret_cast<float*>(packed),
      [=](int64_t at) {
        return half ? half_to_float(static_cast<const uint16_t*>(filter)[at]) : static_cast<const float*>(filter)[at];
      },
      [d](const V* in, V* out) HWY_ATTR { Tile::filter(d, in, out); });
}

/// Filters of float, or of half.
void pack(const ConvShape& s, const void* filter, bool half, std::byte* packed, const WinogradPack& part) {
  s.method == ConvMethod::kWinograd4 ? pack_tiles<WinogradFour>(s, filter, half, packed, part)
                                     : pack_tiles<WinogradTwo>(s, filter, half, packed, part);
}

/// Transforms what one tile sees, in vectors of DPart; position p's channels go to out + p * stride.
/// kWhole: there are channels for a whole vector.
template <class Tile, class DPart, bool kWhole>
HWY_NOINLINE void transform_tile(const float* const* pixels, int64_t channels, float* out, int64_t stride) {
  using VPart = hn::Vec<DPart>;
  const DPart d;
  for_each_vector<kWhole>(d, channels, [&](int64_t c, auto part) HWY_ATTR {
    transform_square<Tile::kWindow, Tile::kWindow, VPart>(
        [d](const VPart* in, VPart* result) HWY_ATTR { Tile::input(d, in, result); },
        [&](auto row, auto column)
            HWY_ATTR { return load_channels(d, pixels[row * Tile::kWindow + column] + c, channels, part); },
        [&](auto row, auto column, VPart value)
            HWY_ATTR { hn::StoreU(value, d, out + (row * Tile::kWindow + column) * stride + c); });
  });
}

/// Rows tiles times Vectors vectors of columns at one position.
template <int Rows, int Vectors>
HWY_NOINLINE void multiply_tile(const float* a, int64_t lda, const float* b, int64_t depth, float* sums) {
  const D d;
  Accumulators<V, Rows, Vectors> acc;
  unroll<Rows>([&](auto r)
                   HWY_ATTR { unroll<Vectors>([&](auto v) HWY_ATTR { acc.template at<r, v>() = hn::Zero(d); }); });
  for (int64_t i = 0; i < depth; ++i, b += Vectors * kLanes) {
    Accumulators<V, 1, Vectors> bv;
    unroll<Vectors>([&](auto v) HWY_ATTR { bv.template at<0, v>() = hn::Load(d, b + v * kLanes); });
    unroll<Rows>([&](auto r) HWY_ATTR {
      const V av = hn::Set(d, a[r * lda + i]);
      unroll<Vectors>([&](auto v) HWY_ATTR {
        acc.template at<r, v>() = hn::MulAdd(av, bv.template at<0, v>(), acc.template at<r, v>());
      });
    });
  }
  unroll<Rows>([&](auto r) HWY_ATTR {
    unroll<Vectors>([&](auto v) HWY_ATTR { hn::Store(acc.template at<r, v>(), d, sums + (r * Vectors + v) * kLanes); });
  });
}

using Multiply = void (*)(const float*, int64_t, const float*, int64_t, float*);
constexpr Multiply kTwoVectors[] = {multiply_tile<1, 2>, multiply_tile<2, 2>, multiply_tile<3, 2>,
                                    multiply_tile<4, 2>, multiply_tile<5, 2>, multiply_tile<6, 2>};
constexpr Multiply kOneVector[] = {multiply_tile<1, 1>, multiply_tile<2, 1>, multiply_tile<3, 1>,
                                   multiply_tile<4, 1>, multiply_tile<5, 1>, multiply_tile<6, 1>};

/// Where one vector of output channels comes from and goes to.
struct Columns {
  int64_t col = 0;
  int64_t count = 0;  // channels from col on; may exceed a vector
  V bias;
  V lo;
  V hi;
};

template <class Tile>
HWY_INLINE void store_output(const ConvF32& conv, const TileClip& clip, const Columns& columns, int64_t row,
                             int64_t column, V value) {
  if (row < clip.row_begin || row >= clip.row_end || column >= clip.columns) return;
  const int64_t pixel = clip.first + row * conv.shape.out_w + column;
  store_some(clamp_keeping_nan(value, columns.lo, columns.hi), D(),
             conv.output + pixel * conv.shape.out_c + columns.col, columns.count);
}

/// Transforms one tile's sums back. False when an output is not finite.
template <class Tile>
HWY_NOINLINE bool finish_tile(const ConvF32& conv, const TileClip& clip, const Columns& columns, const float* sums,
                              int64_t stride) {
  const D d;
  V check = hn::Zero(d);
  transform_square<Tile::kWindow, Tile::kSide, V>(
      [d](const V* in, V* out) HWY_ATTR { Tile::output(d, in, out); },
      [&](auto row, auto column) HWY_ATTR { return hn::Load(d, sums + (row * Tile::kWindow + column) * stride); },
      [&](auto row, auto column, V value) HWY_ATTR {
        const V out = hn::Add(value, columns.bias);
        check = hn::MulAdd(out, hn::Zero(d), check);  // NaN from the first that is not finite
        store_output<Tile>(conv, clip, columns, row, column, out);
      });
  return hn::AllTrue(d, hn::Eq(check, check));
}

/// The tile's outputs by plain sums over the window, with filters taken back from their transform. `filter` is the
/// vector at the panel's first position and k; `step` and `stride` lead to the next k and position.
template <class Tile>
HWY_NOINLINE void redo_tile(const ConvF32& conv, const TileClip& clip, const Columns& columns,
                            const float* const* pixels, const float* filter, int64_t step, int64_t stride) {
  const D d;
  V sums[Tile::kSide * Tile::kSide];
  for (V& sum : sums) sum = columns.bias;
  for (int64_t k = 0; k < conv.shape.in_c; ++k) {
    V taps[9];
    transform_square<Tile::kWindow, 3, V>(
        [d](const V* in, V* out) HWY_ATTR { Tile::filter_back(d, in, out); },
        [&](auto row, auto column)
            HWY_ATTR { return hn::Load(d, filter + (row * Tile::kWindow + column) * stride + k * step); },
        [&](auto row, auto column, V value) HWY_ATTR { taps[row * 3 + column] = value; });
    for (int y = 0; y < Tile::kSide; ++y) {
      for (int x = 0; x < Tile::kSide; ++x) {
        for (int tap = 0; tap < 9; ++tap) {
          const float* pixel = pixels[(y + tap / 3) * Tile::kWindow + x + tap % 3];
          sums[y * Tile::kSide + x] = hn::MulAdd(hn::Set(d, pixel[k]), taps[tap], sums[y * Tile::kSide + x]);
        }
      }
    }
  }
  for (int y = 0; y < Tile::kSide; ++y) {
    for (int x = 0; x < Tile::kSide; ++x) {
      store_output<Tile>(conv, clip, columns, y, x, sums[y * Tile::kSide + x]);
    }
  }
}

template <class Tile>
void run_as(const ConvF32& conv, const WinogradPart& part, std::byte* workspace) {
  const D d;
  const ConvShape& s = conv.shape;
  const WinogradGrid grid = winograd_grid_f32(s);
  constexpr int kPositions = Tile::kWindow * Tile::kWindow;
  auto* inputs = reinterpret_cast<float*>(workspace);
  auto* sums = reinterpret_cast<float*>(workspace + grid.sums_offset());
  auto* padding = reinterpret_cast<float*>(workspace + grid.padding_offset());
  std::fill_n(padding, s.in_c, 0.0F);
  const float* pixels[kPositions];
  using Few = hn::CappedTag<float, 8>;
  constexpr bool kWhole = !std::is_same_v<Few, D>;  // where they are the same, one function is enough
  const auto transform = s.in_c >= kLanes ? transform_tile<Tile, D, kWhole> : transform_tile<Tile, Few, false>;
  for_each_block(grid, part, [&](int64_t first, int64_t count) HWY_ATTR {
    for (int64_t t = 0; t < count && part.columns.begin == 0; ++t) {
      tile_pixels<Tile>(s, tile_place(grid, first + t), conv.input, padding, pixels);
      transform(pixels, s.in_c, inputs + t * grid.depth(), grid.input_stride());
    }
    for (int64_t col = part.columns.begin; col < part.columns.end; col += kPanel) {
      const int64_t vectors = s.out_c - col > kLanes ? 2 : 1;
      const int64_t width = vectors * kLanes;
      const Multiply* multiply = vectors == 2 ? kTwoVectors : kOneVector;
      const float* filter = reinterpret_cast<const float*>(conv.filter) + col * kPositions * grid.depth();
      for (int64_t p = 0; p < kPositions; ++p) {
        for (int64_t t = 0; t < count; t += WinogradGrid::kRows) {
          multiply[std::min(WinogradGrid::kRows, count - t) - 1](
              inputs + p * grid.input_stride() + t * grid.depth(), grid.depth(), filter + p * grid.depth() * width,
              grid.depth(), sums + p * grid.sums_stride() + t * width);
        }
      }
      for (int64_t v = 0; v < vectors; ++v) {
        Columns columns;
        columns.col = col + v * kLanes;
        columns.count = s.out_c - columns.col;
        columns.bias = conv.bias == nullptr ? hn::Zero(d) : load_some(d, conv.bias + columns.col, columns.count);
        columns.lo = hn::Set(d, conv.lo);
        columns.hi = hn::Set(d, conv.hi);
        for (int64_t t = 0; t < count; ++t) {
          const TilePlace place = tile_place(grid, first + t);
          const TileClip clip = tile_clip<Tile>(s, place, part);
          if (HWY_LIKELY(finish_tile<Tile>(conv, clip, columns, sums + t * width + v * kLanes, grid.sums_stride()))) {
            continue;
          }
          tile_pixels<Tile>(s, place, conv.input, padding, pixels);
          redo_tile<Tile>(conv, clip, columns, pixels, filter + v * kLanes, width, grid.depth() * width);
        }
      }
    }
  });
}

void run(const ConvF32& conv, const WinogradPart& part, std::byte* workspace) {
  conv.shape.method == ConvMethod::kWinograd4 ? run_as<WinogradFour>(conv, part, workspace)
                                              : run_as<WinogradTwo>(conv, part, workspace);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace leadline::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace leadline::kernels {
namespace {
HWY_EXPORT(pack);
HWY_EXPORT(run);
}  // namespace

void winograd_pack(const ConvShape& s, const float* filter, std::byte* packed, const WinogradPack& part) noexcept {
  HWY_DYNAMIC_DISPATCH(pack)(s, filter, false, packed, part);
}
void winograd_pack(const ConvShape& s, const uint16_t* filter, std::byte* packed, const WinogradPack& part) noexcept {
  HWY_DYNAMIC_DISPATCH(pack)(s, filter, true, packed, part);
}
void winograd_part(const ConvF32& conv, const WinogradPart& part, std::byte* workspace) noexcept {
  HWY_DYNAMIC_DISPATCH(run)(conv, part, workspace);
}

}  // namespace leadline::kernels
#endif  // HWY_ONCE
