// SPDX-License-Identifier: Apache-2.0
// Winograd transforms on vectors of channels, and the walk over tiles that floats and integers share.
// Compiled once per instruction set. Indices of arrays of vectors are compile-time constants (see tile-inl.h).
#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/conv/winograd.h"
#include "kernels/gemm/tile-inl.h"

#if defined(LEADLINE_KERNELS_CONV_WINOGRAD_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef LEADLINE_KERNELS_CONV_WINOGRAD_INL_H
#undef LEADLINE_KERNELS_CONV_WINOGRAD_INL_H
#else
#define LEADLINE_KERNELS_CONV_WINOGRAD_INL_H
#endif

HWY_BEFORE_NAMESPACE();
namespace leadline::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// One-dimensional transforms of F(2,3): points 0, 1, -1 and infinity.
struct WinogradTwo {
  static constexpr int kSide = 2;
  static constexpr int kWindow = 4;
  // The output of filter_whole() is 2^kShift[row] * 2^kShift[column] / kInverse times the plain sum, modulo 2^32.
  static constexpr int kShift[] = {1, 1};
  static constexpr uint32_t kInverse = 1;
  // What input() makes of ones: zeros but at position 1.
  static constexpr int kOfOnes = 2;

  template <class D, class V>
  static HWY_INLINE void input(D /*d*/, const V* v, V* out) {
    out[0] = hn::Sub(v[0], v[2]);
    out[1] = hn::Add(v[1], v[2]);
    out[2] = hn::Sub(v[2], v[1]);
    out[3] = hn::Sub(v[1], v[3]);
  }
  template <class D, class V>
  static HWY_INLINE void output(D /*d*/, const V* v, V* out) {
    out[0] = hn::Add(hn::Add(v[0], v[1]), v[2]);
    out[1] = hn::Sub(hn::Sub(v[1], v[2]), v[3]);
  }
  /// Twice the transform, so that integers stay integers.
  template <class V>
  static HWY_INLINE void filter_whole(const V* v, V* out) {
    const V even = hn::Add(v[0], v[2]);
    out[0] = hn::Add(v[0], v[0]);
    out[1] = hn::Add(even, v[1]);
    out[2] = hn::Sub(even, v[1]);
    out[3] = hn::Add(v[2], v[2]);
  }
  template <class D, class V>
  static HWY_INLINE void filter(D d, const V* v, V* out) {
    const V half = hn::Set(d, 0.5F);
    const V even = hn::Add(v[0], v[2]);
    out[0] = v[0];
    out[1] = hn::Mul(half, hn::Add(even, v[1]));
    out[2] = hn::Mul(half, hn::Sub(even, v[1]));
    out[3] = v[2];
  }
  /// The filter again, from its transform; rounded.
  template <class D, class V>
  static HWY_INLINE void filter_back(D /*d*/, const V* v, V* out) {
    out[0] = v[0];
    out[1] = hn::Sub(v[1], v[2]);
    out[2] = v[3];
  }
};

/// F(4,3) for integers: points 0, 1, -1, 2, -2 and infinity, all fractions left to the end. An input tile's transform
/// is at most 100 times its values, a filter's 49 times.
struct WinogradFourWhole {
  static constexpr int kSide = 4;
  static constexpr int kWindow = 6;
  // As in WinogradTwo: the output is 24, 12, 6 or 6 times the sum in each direction, and 954437177 * 9 == 1.
  static constexpr int kShift[] = {3, 2, 1, 1};
  static constexpr uint32_t kInverse = 954437177;
  static constexpr int kOfOnes = -6;

  template <class D, class V>
  static HWY_INLINE void input(D /*d*/, const V* v, V* out) {
    const V even_a = hn::Sub(v[4], hn::ShiftLeft<2>(v[2]));
    const V odd_a = hn::Sub(v[3], hn::ShiftLeft<2>(v[1]));
    const V even_b = hn::Sub(v[4], v[2]);
    const V odd_b = hn::Add(hn::Sub(v[3], v[1]), hn::Sub(v[3], v[1]));
    out[0] = hn::Add(even_b, hn::ShiftLeft<2>(hn::Sub(v[0], v[2])));
    out[1] = hn::Add(even_a, odd_a);
    out[2] = hn::Sub(even_a, odd_a);
    out[3] = hn::Add(even_b, odd_b);
    out[4] = hn::Sub(even_b, odd_b);
    out[5] = hn::Sub(hn::Sub(v[5], v[3]), hn::Add(odd_b, odd_b));
  }
  template <class D, class V>
  static HWY_INLINE void output(D /*d*/, const V* v, V* out) {
    const V sum_a = hn::Add(v[1], v[2]);
    const V sum_b = hn::Add(v[3], v[4]);
    const V odd_a = hn::Sub(v[1], v[2]);
    const V odd_b = hn::Sub(v[3], v[4]);
    out[0] = hn::Add(v[0], hn::Sub(sum_b, hn::ShiftLeft<2>(sum_a)));
    out[1] = hn::Sub(odd_b, hn::Add(odd_a, odd_a));
    out[2] = hn::Sub(sum_b, sum_a);
    out[3] = hn::Add(v[5], hn::Sub(hn::Add(odd_b, odd_b), odd_a));
  }
  template <class V>
  static HWY_INLINE void filter_whole(const V* v, V* out) {
    const V twice_0 = hn::Add(v[0], v[0]);
    const V twice_2 = hn::Add(v[2], v[2]);
    const V even_a = hn::Add(v[0], v[2]);
    const V even_b = hn::Add(v[0], hn::Add(twice_2, twice_2));
    const V odd_b = hn::Add(v[1], v[1]);
    out[0] = hn::Add(twice_0, hn::Add(twice_0, twice_0));
    out[1] = hn::Add(even_a, v[1]);
    out[2] = hn::Sub(even_a, v[1]);
    out[3] = hn::Add(even_b, odd_b);
    out[4] = hn::Sub(even_b, odd_b);
    out[5] = hn::Add(twice_2, hn::Add(twice_2, twice_2));
  }
};

/// F(4,3) for floats: points 0, a, -a, b, -b and infinity with a^2 = 1/2, b^2 = 2. The error is a fifth of that with
/// the usual points 1 and 2, because the coefficients are closer together.
struct WinogradFour {
  static constexpr int kSide = 4;
  static constexpr int kWindow = 6;
  static constexpr float kA = 0.70710678118654752F;
  static constexpr float kB = 1.4142135623730950F;

  template <class D, class V>
  static HWY_INLINE void input(D d, const V* v, V* out) {
    const V two = hn::Set(d, 2.0F);
    const V half = hn::Set(d, 0.5F);
    const V middle = hn::Set(d, 2.5F);
    const V a = hn::Set(d, kA);
    const V b = hn::Set(d, kB);
    const V even_a = hn::NegMulAdd(two, v[2], v[4]);
    const V odd_a = hn::NegMulAdd(two, v[1], v[3]);
    const V even_b = hn::NegMulAdd(half, v[2], v[4]);
    const V odd_b = hn::NegMulAdd(half, v[1], v[3]);
    out[0] = hn::NegMulAdd(middle, v[2], hn::Add(v[0], v[4]));
    out[1] = hn::MulAdd(a, odd_a, even_a);
    out[2] = hn::NegMulAdd(a, odd_a, even_a);
    out[3] = hn::MulAdd(b, odd_b, even_b);
    out[4] = hn::NegMulAdd(b, odd_b, even_b);
    out[5] = hn::NegMulAdd(middle, v[3], hn::Add(v[1], v[5]));
  }
  template <class D, class V>
  static HWY_INLINE void output(D d, const V* v, V* out) {
    const V two = hn::Set(d, 2.0F);
    const V half = hn::Set(d, 0.5F);
    const V sum_a = hn::Add(v[1], v[2]);
    const V sum_b = hn::Add(v[3], v[4]);
    const V odd_a = hn::Mul(hn::Set(d, kA), hn::Sub(v[1], v[2]));
    const V odd_b = hn::Mul(hn::Set(d, kB), hn::Sub(v[3], v[4]));
    out[0] = hn::Add(v[0], hn::Add(sum_a, sum_b));
    out[1] = hn::Add(odd_a, odd_b);
    out[2] = hn::MulAdd(two, sum_b, hn::Mul(half, sum_a));
    out[3] = hn::Add(v[5], hn::MulAdd(two, odd_b, hn::Mul(half, odd_a)));
  }
  template <class D, class V>
  static HWY_INLINE void filter(D d, const V* v, V* out) {
    const V even_a = hn::Mul(hn::Set(d, -2.0F / 3), hn::MulAdd(hn::Set(d, 0.5F), v[2], v[0]));
    const V odd_a = hn::Mul(hn::Set(d, -2.0F / 3 * kA), v[1]);
    const V even_b = hn::Mul(hn::Set(d, 1.0F / 6), hn::MulAdd(hn::Set(d, 2.0F), v[2], v[0]));
    const V odd_b = hn::Mul(hn::Set(d, kB / 6), v[1]);
    out[0] = v[0];
    out[1] = hn::Add(even_a, odd_a);
    out[2] = hn::Sub(even_a, odd_a);
    out[3] = hn::Add(even_b, odd_b);
    out[4] = hn::Sub(even_b, odd_b);
    out[5] = v[2];
  }
  template <class D, class V>
  static HWY_INLINE void filter_back(D d, const V* v, V* out) {
    out[0] = v[0];
    out[1] = hn::Mul(hn::Set(d, -0.75F * kB), hn::Sub(v[1], v[2]));
    out[2] = v[5];
  }
};

/// Applies a transform from From to To values along the columns, then along the rows, of a From x From square:
/// load(row, column) returns its elements, store(row, column, v) takes those of the To x To result; indices are
/// constants.
template <int From, int To, class V, class Transform, class Load, class Store>
HWY_INLINE void transform_square(const Transform& transform, const Load& load, const Store& store) {
  V half[static_cast<size_t>(To) * From];
  unroll<From>([&](auto column) HWY_ATTR {
    V in[From];
    V out[To];
    unroll<From>([&](auto row) HWY_ATTR { in[row] = load(row, column); });
    transform(in, out);
    unroll<To>([&](auto row) HWY_ATTR { half[row * From + column] = out[row]; });
  });
  unroll<To>([&](auto row) HWY_ATTR {
    V out[To];
    transform(half + row * From, out);
    unroll<To>([&](auto column) HWY_ATTR { store(row, column, out[column]); });
  });
}

/// Calls body(c, std::false_type) for vectors of channels from c on; the last overlaps the one before it where channels
/// are not a multiple of a vector. With fewer channels than a vector, which kWhole rules out: body(0, std::true_type),
/// and what it stores beyond them must not matter.
template <bool kWhole, class D, class Body>
HWY_INLINE void for_each_vector(D d, int64_t channels, const Body& body) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if constexpr (!kWhole) {
    if (HWY_UNLIKELY(channels < lanes)) return body(0, std::true_type());
  }
  int64_t c = 0;
  for (; c + lanes <= channels; c += lanes) body(c, std::false_type());
  if (c < channels) body(channels - lanes, std::false_type());
}

/// One vector for a body of for_each_vector().
template <class D, typename T, class Part>
HWY_INLINE hn::Vec<D> load_channels(D d, const T* from, int64_t channels, Part /*part*/) {
  if constexpr (Part::value) return load_part(d, from, channels);
  return hn::LoadU(d, from);
}

/// Where a tile's output begins.
struct TilePlace {
  int64_t batch = 0;
  int64_t y = 0;
  int64_t x = 0;
};

HWY_INLINE TilePlace tile_place(const WinogradGrid& grid, int64_t tile) {
  const int64_t row = tile / grid.columns();
  return {row / grid.rows(), row % grid.rows() * grid.side(), tile % grid.columns() * grid.side()};
}

/// The pixels a tile sees, row by row; those outside the input are `padding`.
template <class Tile, typename T>
void tile_pixels(const ConvShape& s, const TilePlace& place, const T* input, const T* padding, const T** pixels) {
  const int64_t top = place.y - s.pad_top;
  const int64_t left = place.x - s.pad_left;
  for (int64_t i = 0; i < Tile::kWindow; ++i) {
    const int64_t y = top + i;
    const T* row = y >= 0 && y < s.in_h ? input + (place.batch * s.in_h + y) * s.in_w * s.in_c : nullptr;
    for (int64_t j = 0; j < Tile::kWindow; ++j) {
      const int64_t x = left + j;
      *pixels++ = row != nullptr && x >= 0 && x < s.in_w ? row + x * s.in_c : padding;
    }
  }
}

/// The outputs of a tile that exist and belong to the part: rows [row_begin, row_end) and columns [0, columns) of it,
/// the first of them at pixel `first`.
struct TileClip {
  int64_t row_begin = 0, row_end = 0;
  int64_t columns = 0;
  int64_t first = 0;  // pixel of row 0, column 0
};

template <class Tile>
TileClip tile_clip(const ConvShape& s, const TilePlace& place, const WinogradPart& part) {
  const int64_t row = place.batch * s.out_h + place.y;
  TileClip clip;
  clip.row_begin = std::clamp<int64_t>(part.rows.begin - row, 0, Tile::kSide);
  clip.row_end = std::min(std::clamp<int64_t>(part.rows.end - row, 0, Tile::kSide), s.out_h - place.y);
  clip.columns = std::min<int64_t>(Tile::kSide, s.out_w - place.x);
  clip.first = row * s.out_w + place.x;
  return clip;
}

/// Calls body(tile, count) for the blocks of a part.
template <class Body>
HWY_INLINE void for_each_block(const WinogradGrid& grid, const WinogradPart& part, const Body& body) {
  const int64_t step = winograd_block(grid, part.tiles.size());
  for (int64_t tile = part.tiles.begin; tile < part.tiles.end; tile += step) {
    body(tile, std::min(step, part.tiles.end - tile));
  }
}

/// Packs filters: for each panel of columns, for each position, for each step of k. `taps(index)` returns a weight;
/// a step holds Group neighbours in k of each column.
template <class Tile, int Group, class D, class Taps, class Transform>
void pack_filters(D d, const ConvShape& s, const WinogradGrid& grid, const WinogradPack& part, hn::TFromD<D>* packed,
                  const Taps& taps, const Transform& transform) {
  using T = hn::TFromD<D>;
  using V = hn::Vec<D>;
  constexpr int64_t kColumns = HWY_LANES(int32_t);  // of a vector of sums
  constexpr int64_t kStep = kColumns * Group;
  constexpr int kPositions = Tile::kWindow * Tile::kWindow;
  // Weights are read a cache line at a time: taps and columns are often a power of two apart, and their lines drive
  // each other out of the cache.
  constexpr int64_t kAtOnce = 16;
  HWY_ALIGN T gathered[kAtOnce / Group * 9 * 2 * kStep];
  const int64_t n = s.out_c;
  const int64_t k = s.in_c;
  const int64_t depth = grid.depth();
  const int64_t end = part.depth.end == k ? depth : part.depth.end;
  for (int64_t col = part.columns.begin; col < part.columns.end; col += 2 * kColumns) {
    const int64_t width = n - col > kColumns ? 2 * kStep : kStep;
    const int64_t position_stride = depth / Group * width;
    T* out = packed + col * kPositions * depth + part.depth.begin / Group * width;
    for (int64_t k0 = part.depth.begin; k0 < end; k0 += kAtOnce) {
      const int64_t k1 = std::min(end, k0 + kAtOnce);
      for (int tap = 0; tap < 9; ++tap) {
        for (int64_t j = 0; j < width / Group; ++j) {
          T* to = gathered + tap * width + j * Group;
          for (int64_t i = k0; i < k1; ++i) {
            to[(i - k0) / Group * 9 * width + (i - k0) % Group] =
                col + j < n && i < k
                    ? taps(((col - part.columns.begin + j) * 9 + tap) * part.stride + i - part.depth.begin)
                    : T{0};
          }
        }
      }
      for (int64_t step = 0; step < (k1 - k0) / Group; ++step, out += width) {
        const T* from = gathered + step * 9 * width;
        for (int64_t i = 0; i < width; i += static_cast<int64_t>(hn::Lanes(d))) {
          transform_square<3, Tile::kWindow, V>(
              transform,
              [&](auto row, auto column) HWY_ATTR { return hn::Load(d, from + (row * 3 + column) * width + i); },
              [&](auto row, auto column, V value)
                  HWY_ATTR { hn::Store(value, d, out + (row * Tile::kWindow + column) * position_stride + i); });
        }
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace leadline::kernels
HWY_AFTER_NAMESPACE();

#endif
