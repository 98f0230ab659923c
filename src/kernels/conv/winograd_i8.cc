// SPDX-License-Identifier: Apache-2.0
// Exact Winograd on 8-bit values in int16. Transforms have no fractions: those of filters are multiplied out. For
// F(2x2) an input tile's transform adds up 4 values of 9 bits, a filter's is at most 9 times the filter's bound; for
// F(4x4) the factors are 100 and 49: all of them fit int16. Sums of their products are int32 modulo 2^32, and the
// transform back gives a multiple of the plain sum: of 4, or of 9 and a power of two up to 64. The odd factor has an
// inverse; a shift takes the other off. So sums of up to 2^29 or 2^25 are exact, which conv_method_i8() makes sure of.
#include "kernels/conv/winograd.h"
#include "kernels/gemm/gemm_i8.h"
#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/winograd_i8.cc"
#ifndef HWY_WANT_AVX3_DL
#define HWY_WANT_AVX3_DL
#endif
#include "kernels/all_targets.h"
#include "kernels/conv/winograd-inl.h"
#include "kernels/gemm/dot_i8-inl.h"
#include "kernels/gemm/output_i8-inl.h"
#include "kernels/gemm/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace leadline::kernels {
namespace HWY_NAMESPACE {
namespace {

using DShort = hn::ScalableTag<int16_t>;
using VShort = hn::Vec<DShort>;
using DSum = hn::RebindToUnsigned<D32>;  // wraps around without being undefined on any target
using VSum = hn::Vec<DSum>;
constexpr int64_t kLanes = HWY_LANES(int32_t);
constexpr int64_t kPanel = 2 * kLanes;
constexpr int kPair = 2;  // neighbours in k that one multiply takes

#if HWY_TARGET == HWY_AVX3_DL
using Pairs = V32;
HWY_INLINE Pairs load_pairs(const int16_t* b) { return hn::Load(D32(), reinterpret_cast<const int32_t*>(b)); }
HWY_INLINE Sum multiply_pairs(VA a, Pairs b, Sum sum) {
  __m512i raw = sum.raw;  // as in dot_i8-inl.h
  asm("vpdpwssd %2, %1, %0" : "+v"(raw) : "v"(a.raw), "v"(b.raw));
  return Sum{raw};
}
#elif HWY_TARGET == HWY_AVX2
using Pairs = VB;
HWY_INLINE Pairs load_pairs(const int16_t* b) { return hn::Load(D16(), b); }
HWY_INLINE Sum multiply_pairs(VA a, Pairs b, Sum sum) {
  // Written out, because g++ 12 adds up in another register and moves the sum back: 8 moves to 12 products.
  const __m256i products = _mm256_madd_epi16(a.raw, b.raw);
  __m256i raw = sum.raw;
  asm("vpaddd %1, %0, %0" : "+x"(raw) : "x"(products));
  return Sum{raw};
}
#else
using Pairs = VB;
HWY_INLINE Pairs load_pairs(const int16_t* b) {
#if HWY_TARGET == HWY_SCALAR
  return {b[0], b[1]};
#else
  return hn::Load(D16(), b);
#endif
}
HWY_INLINE Sum multiply_pairs(VA a, Pairs b, Sum sum) { return multiply_accumulate(a, b, sum); }
#endif

/// Rows tiles times Vectors vectors of columns at one position. `a` has pairs of int16 as words.
template <int Rows, int Vectors>
HWY_NOINLINE void multiply_tile(const int32_t* a, int64_t lda, const int16_t* b, int64_t steps, int32_t* sums) {
  const D32 d;
  Accumulators<Sum, Rows, Vectors> acc;
  unroll<Rows>([&](auto r)
                   HWY_ATTR { unroll<Vectors>([&](auto v) HWY_ATTR { acc.template at<r, v>() = zero_sum(); }); });
  for (int64_t i = 0; i < steps; ++i, b += Vectors * kLanes * kPair) {
    Accumulators<Pairs, 1, Vectors> bv;
    unroll<Vectors>([&](auto v) HWY_ATTR { bv.template at<0, v>() = load_pairs(b + v * kLanes * kPair); });
    unroll<Rows>([&](auto r) HWY_ATTR {
      const VA av = broadcast_a(a + r * lda + i);
      unroll<Vectors>([&](auto v) HWY_ATTR {
        acc.template at<r, v>() = multiply_pairs(av, bv.template at<0, v>(), acc.template at<r, v>());
      });
    });
  }
  unroll<Rows>([&](auto r) HWY_ATTR {
    unroll<Vectors>([&](auto v)
                        HWY_ATTR { hn::Store(total(acc.template at<r, v>()), d, sums + (r * Vectors + v) * kLanes); });
  });
}

using Multiply = void (*)(const int32_t*, int64_t, const int16_t*, int64_t, int32_t*);
/// By the number of vectors, less one, then by that of rows, less one.
using Products = Multiply[2][WinogradGrid::kRows];
constexpr Products kProducts = {{multiply_tile<1, 1>, multiply_tile<2, 1>, multiply_tile<3, 1>, multiply_tile<4, 1>,
                                 multiply_tile<5, 1>, multiply_tile<6, 1>},
                                {multiply_tile<1, 2>, multiply_tile<2, 2>, multiply_tile<3, 2>, multiply_tile<4, 2>,
                                 multiply_tile<5, 2>, multiply_tile<6, 2>}};

#if LEADLINE_SHARES_AVX512

// Products are all that differs with VNNI.
using N_AVX3::pack;

void run(const ConvI8& conv, const WinogradPart& part, std::byte* workspace) {
  N_AVX3::run_conv(conv, part, workspace, kProducts);
}

void run_hybrid(const ConvHybrid& conv, const WinogradPart& part, std::byte* workspace) {
  N_AVX3::run_hybrid_conv(conv, part, workspace, kProducts);
}

#else

/// A filter of 8 bits: bytes that `flip` makes unsigned, and the zero point of those.
struct Filter {
  const uint8_t* values;
  uint8_t flip;
  int32_t zero_point;
};

template <class Tile>
void pack_tiles(const ConvShape& s, const Filter& filter, std::byte* packed, const WinogradPack& part) {
  pack_filters<Tile, kPair>(
      DShort(), s, winograd_grid_i8(s), part, reinterpret_cast<int16_t*>(packed),
      [&](int64_t at) { return static_cast<int16_t>((filter.values[at] ^ filter.flip) - filter.zero_point); },
      [](const VShort* in, VShort* out) HWY_ATTR { Tile::filter_whole(in, out); });
}

void pack(const ConvShape& s, const void* values, bool is_unsigned, int32_t zero_point, std::byte* packed,
          const WinogradPack& part) {
  const int flip = is_unsigned ? 0 : 0x80;
  const Filter filter{static_cast<const uint8_t*>(values), static_cast<uint8_t>(flip), zero_point + flip};
  s.method == ConvMethod::kWinograd4 ? pack_tiles<WinogradFourWhole>(s, filter, packed, part)
                                     : pack_tiles<WinogradTwo>(s, filter, packed, part);
}

/// An input of 8 bits: bytes that `flip` makes signed, and the zero point of those.
struct Input {
  const void* values;
  uint8_t flip;
  int32_t zero_point;

  Input(const void* bytes, bool is_unsigned, int32_t zero)
      : values(bytes), flip(is_unsigned ? 0x80 : 0), zero_point(zero - flip) {}
};

/// Transforms what one tile sees, in vectors of DPart; position p's channels go to out + p * stride. The zero point is
/// taken off in the end, from the one position that sees it. kWhole: there are channels for a whole vector.
template <class Tile, class DPart, bool kWhole>
HWY_NOINLINE void transform_tile(const uint8_t* const* pixels, int64_t channels, uint8_t flip, int32_t zero_point,
                                 int16_t* out, int64_t stride) {
  using V = hn::Vec<DPart>;
  const DPart d;
  const hn::Rebind<int8_t, DPart> d8;
  const auto flips = hn::Set(d8, static_cast<int8_t>(flip));
  const V zero = hn::Set(d, static_cast<int16_t>(zero_point * Tile::kOfOnes * Tile::kOfOnes));
  for_each_vector<kWhole>(d, channels, [&](int64_t c, auto part) HWY_ATTR {
    transform_square<Tile::kWindow, Tile::kWindow, V>(
        [d](const V* in, V* result) HWY_ATTR { Tile::input(d, in, result); },
        [&](auto row, auto column) HWY_ATTR {
          const auto* from = reinterpret_cast<const int8_t*>(pixels[row * Tile::kWindow + column]) + c;
          return hn::PromoteTo(d, hn::Xor(load_channels(d8, from, channels, part), flips));
        },
        [&](auto row, auto column, V value) HWY_ATTR {
          if constexpr (row == 1 && column == 1) value = hn::Sub(value, zero);
          hn::StoreU(value, d, out + (row * Tile::kWindow + column) * stride + c);
        });
  });
}

/// Transforms the sums of `count` tiles for one vector of columns back and hands them to the output stage.
template <class Tile, class Stage>
void finish_tiles(const ConvShape& s, const WinogradGrid& grid, const WinogradPart& part, const Stage& stage,
                  const int32_t* bias, int64_t first, int64_t count, int64_t col, const int32_t* sums, int64_t width) {
  const D32 d;
  const DSum du;
  const int64_t columns_left = s.out_c - col;
  const V32 bias_vector = bias == nullptr ? hn::Zero(d) : load_some(d, bias + col, columns_left);
  const auto columns = stage.columns(col, columns_left);
  for (int64_t t = 0; t < count; ++t) {
    const TileClip clip = tile_clip<Tile>(s, tile_place(grid, first + t), part);
    const int32_t* from = sums + t * width;
    transform_square<Tile::kWindow, Tile::kSide, VSum>(
        [du](const VSum* in, VSum* out) HWY_ATTR { Tile::output(du, in, out); },
        [&](auto row, auto column) HWY_ATTR {
          return hn::BitCast(du, hn::Load(d, from + (row * Tile::kWindow + column) * grid.sums_stride()));
        },
        [&](auto row, auto column, VSum value) HWY_ATTR {
          if (row < clip.row_begin || row >= clip.row_end || column >= clip.columns) return;
          if constexpr (Tile::kInverse != 1) value = hn::Mul(value, hn::Set(du, Tile::kInverse));
          constexpr int kShift = Tile::kShift[row] + Tile::kShift[column];
          const V32 sum = hn::Add(hn::ShiftRight<kShift>(hn::BitCast(d, value)), bias_vector);
          stage.store(columns, sum, clip.first + row * s.out_w + column, col, columns_left);
        });
  }
}

using Transform = void (*)(const uint8_t* const*, int64_t, uint8_t, int32_t, int16_t*, int64_t);

template <class Tile>
Transform transform_of(int64_t channels) {
  using Few = hn::CappedTag<int16_t, 8>;
  constexpr bool kWhole = !std::is_same_v<Few, DShort>;  // where they are the same, one function is enough
  const bool few = channels < int64_t{HWY_LANES(int16_t)};
  return few ? transform_tile<Tile, Few, false> : transform_tile<Tile, DShort, kWhole>;
}

template <class Tile, class Stage>
void run_tiles(const ConvShape& s, const Input& input, const std::byte* filters, const int32_t* bias,
               const Stage& stage, const WinogradPart& part, std::byte* workspace, const Products& products) {
  constexpr int kPositions = Tile::kWindow * Tile::kWindow;
  const WinogradGrid grid = winograd_grid_i8(s);
  auto* inputs = reinterpret_cast<int16_t*>(workspace);
  auto* sums = reinterpret_cast<int32_t*>(workspace + grid.sums_offset());
  auto* padding = reinterpret_cast<uint8_t*>(workspace + grid.padding_offset());
  std::fill_n(padding, s.in_c, static_cast<uint8_t>(input.zero_point ^ input.flip));
  const int64_t words = grid.depth() / kPair;
  const Transform transform = transform_of<Tile>(s.in_c);
  for_each_block(grid, part, [&](int64_t first, int64_t count) HWY_ATTR {
    for (int64_t t = 0; t < count && part.columns.begin == 0; ++t) {
      const uint8_t* pixels[kPositions];
      tile_pixels<Tile>(s, tile_place(grid, first + t), static_cast<const uint8_t*>(input.values), padding, pixels);
      transform(pixels, s.in_c, input.flip, input.zero_point, inputs + t * grid.depth(), grid.input_stride());
    }
    for (int64_t col = part.columns.begin; col < part.columns.end; col += kPanel) {
      const int64_t vectors = s.out_c - col > kLanes ? 2 : 1;
      const int64_t width = vectors * kLanes;
      const Multiply* multiply = products[vectors - 1];
      const int16_t* filter = reinterpret_cast<const int16_t*>(filters) + col * kPositions * grid.depth();
      for (int64_t p = 0; p < kPositions; ++p) {
        const auto* a = reinterpret_cast<const int32_t*>(inputs + p * grid.input_stride());
        for (int64_t t = 0; t < count; t += WinogradGrid::kRows) {
          multiply[std::min(WinogradGrid::kRows, count - t) - 1](a + t * words, words,
                                                                 filter + p * grid.depth() * width, words,
                                                                 sums + p * grid.sums_stride() + t * width);
        }
      }
      for (int64_t v = 0; v < vectors; ++v) {
        finish_tiles<Tile>(s, grid, part, stage, bias, first, count, col + v * kLanes, sums + v * kLanes, width);
      }
    }
  });
}

template <class Stage>
void run_with(const ConvShape& s, const Input& input, const std::byte* filters, const int32_t* bias, const Stage& stage,
              const WinogradPart& part, std::byte* workspace, const Products& products) {
  s.method == ConvMethod::kWinograd4
      ? run_tiles<WinogradFourWhole>(s, input, filters, bias, stage, part, workspace, products)
      : run_tiles<WinogradTwo>(s, input, filters, bias, stage, part, workspace, products);
}

void run_conv(const ConvI8& conv, const WinogradPart& part, std::byte* workspace, const Products& products) {
  RequantizedOutput out;
  out.c = conv.output;
  out.c_unsigned = conv.output_unsigned;
  out.ldc = conv.shape.out_c;
  out.scale = conv.scale;
  out.zero_point = conv.output_zero_point;
  out.lo = conv.lo;
  out.hi = conv.hi;
  const Input input{conv.input, conv.input_unsigned, conv.input_zero_point};
  run_with(conv.shape, input, conv.filter, conv.bias, RequantizedStage<D32>(out), part, workspace, products);
}

/// All tiles belong to the same batch item.
void run_hybrid_conv(const ConvHybrid& conv, const WinogradPart& part, std::byte* workspace, const Products& products) {
  const ConvShape& s = conv.shape;
  const WinogradGrid grid = winograd_grid_i8(s);
  const int64_t batch = part.tiles.begin / (grid.rows() * grid.columns());
  DequantizedOutput out;
  out.c = conv.output;
  out.ldc = s.out_c;
  out.row_scale = conv.input_scale + batch;
  out.row_scale_stride = 0;
  out.scale = conv.scale;
  out.bias = conv.bias;
  out.lo = conv.lo;
  out.hi = conv.hi;
  const int32_t zero_point = conv.input_zero_point == nullptr ? 0 : conv.input_zero_point[batch];
  run_with(s, Input{conv.input, false, zero_point}, conv.filter, nullptr, DequantizedStage<D32>(out), part, workspace,
           products);
}

void run(const ConvI8& conv, const WinogradPart& part, std::byte* workspace) {
  run_conv(conv, part, workspace, kProducts);
}

void run_hybrid(const ConvHybrid& conv, const WinogradPart& part, std::byte* workspace) {
  run_hybrid_conv(conv, part, workspace, kProducts);
}

#endif  // LEADLINE_SHARES_AVX512

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace leadline::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace leadline::kernels {
namespace {
HWY_EXPORT(pack);
HWY_EXPORT(run);
HWY_EXPORT(run_hybrid);
}  // namespace

void winograd_pack(const ConvShape& s, const int8_t* filter, int32_t zero_point, std::byte* packed,
                   const WinogradPack& part) noexcept {
  HWY_DYNAMIC_DISPATCH(pack)(s, filter, false, zero_point, packed, part);
}
void winograd_pack(const ConvShape& s, const uint8_t* filter, int32_t zero_point, std::byte* packed,
                   const WinogradPack& part) noexcept {
  HWY_DYNAMIC_DISPATCH(pack)(s, filter, true, zero_point, packed, part);
}
void winograd_part(const ConvI8& conv, const WinogradPart& part, std::byte* workspace) noexcept {
  HWY_DYNAMIC_DISPATCH(run)(conv, part, workspace);
}
void winograd_part(const ConvHybrid& conv, const WinogradPart& part, std::byte* workspace) noexcept {
  const WinogradGrid grid = winograd_grid_i8(conv.shape);
  const int64_t image = grid.rows() * grid.columns();
  WinogradPart item = part;
  for (; item.tiles.begin < part.tiles.end; item.tiles.begin = item.tiles.end) {
    item.tiles.end = std::min(part.tiles.end, (item.tiles.begin / image + 1) * image);
    HWY_DYNAMIC_DISPATCH(run_hybrid)(conv, item, workspace);
  }
}

}  // namespace leadline::kernels
#endif  // HWY_ONCE
