// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution in 8 bits, exact. A block of channels (a vector of bytes) is computed one stretch of an output
// row at a time, in two steps: the rows of the input that the filter covers are interleaved column by column, so that
// a 32-bit lane holds two or four taps of one channel; then each output multiplies the columns it covers by weights
// interleaved the same way. Neighbouring outputs share the columns, and padding becomes columns like any other. Where
// the lanes have room for one more row of the input, the next row of the output uses the same columns.
// The sums go to one of two output stages: 8-bit levels, or real numbers (dynamic range).
// Inside, all bytes are unsigned: int8 is shifted by 128, zero points with it.
#include <algorithm>
#include <type_traits>
#include <utility>

#include "kernels/depthwise/depthwise.h"
#include "kernels/depthwise/plain.h"
#include "kernels/depthwise/taps.h"
#ifndef HWY_WANT_AVX3_DL
#define HWY_WANT_AVX3_DL
#endif
#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/depthwise/depthwise_i8.cc"
#include "kernels/all_targets.h"
#include "kernels/depthwise/interleave-inl.h"
#include "kernels/depthwise/stages-inl.h"
#include "kernels/gemm/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace leadline::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR

#if HWY_TARGET == HWY_AVX3_DL
constexpr bool kFourTaps = true;  // vpdpbusd
#else
constexpr bool kFourTaps = false;
#endif
constexpr int64_t kMinBlock = 16;
constexpr int64_t kMaxBlock = HWY_LANES(uint8_t);
constexpr int64_t kColumnBytes = 16 * 1024;  // half of the smallest first-level cache
constexpr int64_t kWeightBytes = 16 * 1024;
constexpr int64_t kMaxBlocks = 8;  // whose weights are kept at the same time

template <int kChannels>
using BytesTag = hn::CappedTag<uint8_t, kChannels>;
template <int kChannels>
using SumsTag = hn::Repartition<int32_t, BytesTag<kChannels>>;

/// Sets of weights, one for each output row that shares the columns: the second is shifted down by one tap.
constexpr int64_t sets_of(const DepthwiseShape& s, int64_t rows) {
  return s.stride_h == 1 && s.dilation_h == 1 && s.filter_h % rows != 0 ? 2 : 1;
}

constexpr int64_t groups_of(const DepthwiseShape& s, int64_t rows) { return (s.filter_h + rows - 1) / rows; }

/// Input columns that `pixels` neighbouring outputs cover.
constexpr int64_t columns_of(const DepthwiseShape& s, int64_t pixels) {
  return (pixels - 1) * s.stride_w + (s.filter_w - 1) * s.dilation_w + 1;
}

/// Channels of the largest block whose columns and weights fit the buffers, taking `rows` taps at a time; 0 if none.
int64_t largest_block(const DepthwiseShape& s, int64_t rows) {
  if (s.multiplier != 1 || s.taps() > kMaxTaps || s.in_c < kMinBlock / 2) return 0;
  if (s.stride_w > kColumnBytes || s.dilation_w > kColumnBytes) return 0;
  const int64_t groups = groups_of(s, rows);
  for (int64_t channels = kMaxBlock; channels >= kMinBlock; channels /= 2) {
    const bool fits = groups * columns_of(s, kGroupPixels) * channels * 4 <= kColumnBytes &&
                      sets_of(s, rows) * groups * s.filter_w * channels * 4 <= kWeightBytes;
    if (fits) return channels;
  }
  return 0;
}

/// Computes rows of the output. kFour: four taps at a time, for signed filters whose zero point is 0; else two.
template <bool kFour, class Stage>
class Band {
 public:
  /// Of `conv`, only what comes before the output is used.
  Band(const DepthwiseI8& conv, const Stage& stage, int64_t largest)
      : conv_(conv),
        stage_(stage),
        s_(conv.shape),
        largest_(largest),
        groups_(groups_of(s_, kRows)),
        sets_(sets_of(s_, kRows)),
        flip_(conv.is_unsigned ? 0 : 0x80),
        input_zero_(static_cast<uint8_t>(conv.input_zero_point + flip_)) {
    std::fill_n(padding_, kMaxBlock, static_cast<uint8_t>(input_zero_ ^ flip_));
  }

  void run(const DepthwisePart& part) {
    for (int64_t c = part.channels.begin; c < part.channels.end;) {
      c = take_blocks(c, part.channels.end);
      int64_t together = 1;
      for (int64_t row = part.rows.begin; row < part.rows.end; row += together) {
        together = std::min({sets_, part.rows.end - row, s_.out_h - row % s_.out_h});
        set_row(row, together);
        for (int64_t i = 0; i < block_count_; ++i) {
          const Block& block = blocks_[i];
          with_size(block.channels, [&](auto channels) { run_rows<channels>(block, row, together, part.columns); });
        }
      }
    }
  }

 private:
  using Element = typename Stage::Element;
  static constexpr bool kReal = std::is_same_v<Element, float>;
  static constexpr int kRows = kFour ? 4 : 2;  // rows of the filter in one 32-bit lane

  struct Block {
    int64_t channel, channels;  // a block larger than the tensor stands for fewer: see load()
    uint8_t* weights;           // [set][group][filter column][4 vectors]
    int32_t* offset;            // bias - input zero point * sum of the filter
    float* scale;
    float* bias;  // of real outputs
  };

  template <typename Body>
  static HWY_INLINE void with_size(int64_t channels, const Body& body) {
    if constexpr (kMaxBlock >= 64) {
      if (channels == 64) return body(std::integral_constant<int, 64>{});
    }
    if constexpr (kMaxBlock >= 32) {
      if (channels == 32) return body(std::integral_constant<int, 32>{});
    }
    body(std::integral_constant<int, 16>{});
  }

  /// Bytes of a block's channels. A tensor with fewer uses its first and its last ones, half a block each.
  template <int kChannels, bool kHalves>
  HWY_INLINE hn::Vec<BytesTag<kChannels>> load(const uint8_t* from) const {
    const BytesTag<kChannels> d;
    if constexpr (kHalves) {
      const hn::Half<BytesTag<kChannels>> half;
      return hn::Combine(d, hn::LoadU(half, from + s_.in_c - kChannels / 2), hn::LoadU(half, from));
    } else {
      return hn::LoadU(d, from);
    }
  }

  /// Where the channel at `at` of a block is in the tensor, counted from the block's first.
  template <int kChannels>
  HWY_INLINE int64_t place(int64_t at) const {
    return at < kChannels / 2 ? at : at + std::min<int64_t>(0, s_.in_c - kChannels);
  }

  template <int kChannels>
  HWY_INLINE void store(hn::Vec<BytesTag<kChannels>> v, uint8_t* to) const {
    const BytesTag<kChannels> d;
    if (HWY_LIKELY(s_.in_c >= kChannels)) return hn::StoreU(v, d, to);
    const hn::Half<BytesTag<kChannels>> half;
    hn::StoreU(hn::LowerHalf(half, v), half, to);
    hn::StoreU(hn::UpperHalf(half, v), half, to + s_.in_c - kChannels / 2);
  }

  /// Stores real numbers of a vector that begins with the block's channel kAt, ordered as interleave_four() leaves
  /// them: 128 bits hold four neighbours, the next 128 bits those 16 channels on.
  template <int kChannels, int kAt, class D>
  HWY_INLINE void store_reals(D d, hn::Vec<D> v, float* to) const {
    constexpr int kLanes = static_cast<int>(hn::MaxLanes(D()));
    if constexpr (kLanes == 4) {
      hn::StoreU(v, d, to + place<kChannels>(kAt));
    } else {
      const hn::Half<D> half;
      store_reals<kChannels, kAt>(half, hn::LowerHalf(half, v), to);
      store_reals<kChannels, kAt + 2 * kLanes>(half, hn::UpperHalf(half, v), to);
    }
  }

  /// Prepares the next blocks from channel `c` on, up to `end`, and returns the first channel they leave. The last
  /// block overlaps the one before it where it must; both give the same values.
  int64_t take_blocks(int64_t c, int64_t end) {
    const int64_t bytes_per_channel = sets_ * groups_ * s_.filter_w * 4;
    int64_t taken = 0;
    for (block_count_ = 0; c < end && block_count_ < kMaxBlocks; ++block_count_) {
      int64_t channels = kMinBlock;
      while (channels < largest_ && channels < end - c) channels *= 2;
      if ((taken + channels) * bytes_per_channel > kWeightBytes) break;
      Block& block = blocks_[block_count_];
      block.channel = std::max<int64_t>(0, std::min(c, end - channels));
      block.channels = channels;
      block.weights = weights_ + taken * bytes_per_channel;
      block.offset = offsets_ + taken;
      block.scale = scales_ + taken;
      block.bias = kReal ? biases_ + taken : nullptr;
      with_size(channels, [&](auto size) { prepare<size>(block); });
      c = block.channel + channels;
      taken += channels;
    }
    return c;
  }

  template <int kChannels>
  HWY_NOINLINE void prepare(const Block& block) {
    if (s_.in_c < kChannels) {
      interleave_filter<kChannels, true>(block);
    } else {
      interleave_filter<kChannels, false>(block);
    }
    const SumsTag<kChannels> d;
    alignas(64) uint8_t ones[kChannels];
    for (int i = 0; i < kChannels; ++i) ones[i] = kFour || i % 2 == 0 ? 1 : 0;
    constexpr int64_t kLanes = kChannels / 4;
    for (int64_t j = 0; j < 4; ++j) {
      int32_t* offset = block.offset + j * kLanes;
      for (int64_t i = 0; i < kLanes; i += 4) {
        const int64_t channel = block.channel + place<kChannels>((i + j) * 4);
        copy_four(stage_.scale(), channel, block.scale + j * kLanes + i);
        copy_four(conv_.bias, channel, offset + i);
        if constexpr (kReal) copy_four(stage_.bias(), channel, block.bias + j * kLanes + i);
      }
      Sum<kFour, SumsTag<kChannels>> sum;
      sum.set(hn::Zero(d));
      const uint8_t* weights = block.weights + j * kChannels;
      for (int64_t i = 0; i < groups_ * s_.filter_w; ++i, weights += 4 * kChannels) {
        sum.add(ones, hn::Load(d, reinterpret_cast<const int32_t*>(weights)));
      }
      const auto zeros = hn::Mul(sum.total(), hn::Set(d, int32_t{input_zero_}));
      hn::Store(hn::Sub(hn::Load(d, offset), zeros), d, offset);
    }
  }

  /// Four values from `channel` on; zeros if there are none.
  template <typename Value>
  static void copy_four(const Value* values, int64_t channel, Value* to) {
    if (values == nullptr) {
      std::fill_n(to, 4, Value{0});
    } else {
      std::copy_n(values + channel, 4, to);
    }
  }

  template <int kChannels, bool kHalves>
  HWY_INLINE void interleave_filter(const Block& block) const {
    const BytesTag<kChannels> d8;
    const hn::Repartition<int16_t, BytesTag<kChannels>> d16;
    const auto* filter = static_cast<const uint8_t*>(conv_.filter) + block.channel;
    // Four taps multiply signed bytes as they are. Two become 16 bits first, and lose the zero point there.
    const int weight_flip = kFour ? 0 : flip_;
    const auto flip = hn::Set(d8, static_cast<uint8_t>(weight_flip));
    const auto filter_zero = static_cast<int16_t>(conv_.filter_zero_point + weight_flip);
    const auto no_tap = hn::Set(d8, static_cast<uint8_t>(filter_zero));
    uint8_t* to = block.weights;
    for (int64_t set = 0; set < sets_; ++set) {
      for (int64_t g = 0; g < groups_; ++g) {
        for (int64_t kx = 0; kx < s_.filter_w; ++kx, to += 4 * kChannels) {
          const auto tap = [&](int64_t r) HWY_ATTR {
            const int64_t ky = g * kRows + r - set;
            if (ky < 0 || ky >= s_.filter_h) return no_tap;
            return hn::Xor(load<kChannels, kHalves>(filter + (ky * s_.filter_w + kx) * s_.in_c), flip);
          };
          if constexpr (kFour) {
            interleave_four(d8, tap(0), tap(1), tap(2), tap(3), to);
          } else {
            interleave_two(d8, tap(0), tap(1), to);
            for (int j = 0; j < 4; ++j) {
              auto* pairs = reinterpret_cast<int16_t*>(to + j * kChannels);
              hn::Store(hn::Sub(hn::Load(d16, pairs), hn::Set(d16, filter_zero)), d16, pairs);
            }
          }
        }
      }
    }
  }

  /// Points at the rows of the input that `together` output rows from `row` (counted over the batch) cover.
  void set_row(int64_t row, int64_t together) {
    const int64_t y = row % s_.out_h * s_.stride_h - s_.pad_top;
    const auto* image = static_cast<const uint8_t*>(conv_.input) + row / s_.out_h * s_.in_h * s_.in_w * s_.in_c;
    for (int64_t ky = 0; ky < groups_ * kRows; ++ky) {
      const int64_t in_y = y + ky * s_.dilation_h;
      const bool inside = ky < s_.filter_h + together - 1 && in_y >= 0 && in_y < s_.in_h;
      rows_[ky] = inside ? image + in_y * s_.in_w * s_.in_c : nullptr;
    }
  }

  template <int kChannels>
  HWY_NOINLINE void run_rows(const Block& block, int64_t row, int64_t together, IndexRange pixels) {
    const int64_t column_bytes = groups_ * kChannels * 4;
    const int64_t spare = kColumnBytes / column_bytes - columns_of(s_, 1);
    const int64_t most = std::min(pixels.size(), spare / s_.stride_w + 1);
    const int64_t stretches = (pixels.size() + most - 1) / most;
    Element* out = stage_.output() + row * s_.out_w * s_.in_c + block.channel;
    for (int64_t i = 0; i < stretches; ++i) {
      const int64_t begin = pixels.begin + pixels.size() * i / stretches;
      const int64_t end = pixels.begin + pixels.size() * (i + 1) / stretches;
      const int64_t columns = columns_of(s_, end - begin);
      for (int64_t g = 0; g < groups_; ++g) {
        if (s_.in_c < kChannels) {
          fill_columns<kChannels, true>(block, g, begin * s_.stride_w - s_.pad_left, columns);
        } else {
          fill_columns<kChannels, false>(block, g, begin * s_.stride_w - s_.pad_left, columns);
        }
      }
      for (int64_t set = 0; set < together; ++set) {
        multiply_any<kChannels>(block, set, columns, end - begin, out + (set * s_.out_w + begin) * s_.in_c);
      }
    }
  }

  template <int kChannels>
  HWY_INLINE void multiply_any(const Block& block, int64_t set, int64_t columns, int64_t pixels, Element* out) const {
    const int64_t stride = s_.dilation_w == 1 ? s_.stride_w : 0;
    if (stride == 1 && s_.filter_w == 3) return multiply<kChannels, 3, 1>(block, set, columns, pixels, out);
    if (stride == 2 && s_.filter_w == 3) return multiply<kChannels, 3, 2>(block, set, columns, pixels, out);
    if (stride == 1 && s_.filter_w == 5) return multiply<kChannels, 5, 1>(block, set, columns, pixels, out);
    if (stride == 2 && s_.filter_w == 5) return multiply<kChannels, 5, 2>(block, set, columns, pixels, out);
    multiply<kChannels, 0, 0>(block, set, columns, pixels, out);
  }

  /// Interleaves the rows of group `g` at input columns [first, first + columns).
  template <int kChannels, bool kHalves>
  HWY_NOINLINE void fill_columns(const Block& block, int64_t g, int64_t first, int64_t columns) {
    const BytesTag<kChannels> d8;
    const int64_t begin = std::clamp<int64_t>(-first, 0, columns);
    const int64_t end = std::clamp<int64_t>(s_.in_w - first, begin, columns);
    uint8_t* HWY_RESTRICT to = columns_ + g * columns * 4 * kChannels;
    const uint8_t* from[kRows];
    int64_t step[kRows];
    for (int r = 0; r < kRows; ++r) {
      const uint8_t* row = rows_[g * kRows + r];
      from[r] = row == nullptr ? padding_ : row + (first + begin) * s_.in_c + block.channel;
      step[r] = row == nullptr ? 0 : s_.in_c;
    }
    const auto flip = hn::Set(d8, static_cast<uint8_t>(flip_));
    const auto next = [&](int r) HWY_ATTR {
      const auto bytes = hn::Xor(load<kChannels, kHalves>(from[r]), flip);
      from[r] += step[r];
      return bytes;
    };
    fill_padding<kChannels>(to, begin);
    to += begin * 4 * kChannels;
    for (int64_t x = begin; x < end; ++x, to += 4 * kChannels) {
      if constexpr (kFour) {
        const auto a = next(0);
        const auto b = next(1);
        const auto c = next(2);
        const auto e = next(3);
        interleave_four(d8, a, b, c, e, to);
      } else {
        const auto a = next(0);
        const auto b = next(1);
        interleave_two(d8, a, b, to);
      }
    }
    fill_padding<kChannels>(to, columns - end);
  }

  template <int kChannels>
  void fill_padding(uint8_t* to, int64_t columns) const {
    if (kFour) {
      std::fill_n(to, columns * 4 * kChannels, input_zero_);
    } else {
      std::fill_n(reinterpret_cast<int16_t*>(to), columns * 2 * kChannels, int16_t{input_zero_});
    }
  }

  /// Outputs of `pixels` neighbouring pixels. kWidth and kStride: of the filter, without dilation; 0 for any.
  template <int kChannels, int kWidth, int kStride>
  HWY_NOINLINE void multiply(const Block& block, int64_t set, int64_t columns, int64_t pixels, Element* out) const {
    constexpr int64_t kColumn = 4 * kChannels;
    const Outputs<kChannels> outputs{.weights = block.weights + set * groups_ * s_.filter_w * kColumn,
                                     .offset = block.offset,
                                     .scale = block.scale,
                                     .bias = block.bias,
                                     .groups = groups_,
                                     .group_bytes = columns * kColumn,
                                     .width = kWidth == 0 ? s_.filter_w : kWidth,
                                     .stride = kStride == 0 ? s_.stride_w * kColumn : kStride * kColumn,
                                     .dilation = kStride == 0 ? s_.dilation_w * kColumn : kColumn,
                                     .stage = typename Stage::template Vectors<SumsTag<kChannels>>(stage_)};
    const auto at = [&](int64_t x) { return columns_ + x * s_.stride_w * kColumn; };
    const bool whole = pixels >= kGroupPixels;
    for (int64_t x = 0; !whole && x < pixels; ++x) {
      multiply_one<kChannels>(outputs, at(x), out + x * s_.in_c);
    }
    for (int64_t x = 0; whole && x < pixels; x += kGroupPixels) {
      x = std::min(x, pixels - kGroupPixels);  // the last group overlaps the one before it
      multiply_some<kWidth, kStride, kGroupPixels>(outputs, at(x), out + x * s_.in_c);
    }
  }

  template <int kChannels>
  struct Outputs {
    const uint8_t* weights;
    const int32_t* offset;
    const float* scale;
    const float* bias;
    int64_t groups, group_bytes, width, stride, dilation;
    typename Stage::template Vectors<SumsTag<kChannels>> stage;
  };

  /// One pixel of a row too short for groups of them: any filter, so that there is one instance of it.
  template <int kChannels>
  HWY_NOINLINE void multiply_one(const Outputs<kChannels>& o, const uint8_t* columns, Element* out) const {
    multiply_some<0, 0, 1>(o, columns, out);
  }

  template <int kWidth, int kStride, int kPixels, int kChannels>
  HWY_INLINE void multiply_some(const Outputs<kChannels>& o, const uint8_t* columns, Element* out) const {
    Accumulators<hn::Vec<SumsTag<kChannels>>, kPixels, 4> values;
    multiply_vector<0, kWidth, kStride>(o, columns, values, out);
    multiply_vector<1, kWidth, kStride>(o, columns, values, out);
    multiply_vector<2, kWidth, kStride>(o, columns, values, out);
    multiply_vector<3, kWidth, kStride>(o, columns, values, out);
    if constexpr (!kReal) {
      const BytesTag<kChannels> d8;
      const auto flip = hn::Set(d8, static_cast<uint8_t>(flip_ ^ 0x80));
      unroll<kPixels>([&](auto p) HWY_ATTR {
        const auto bytes = pack_bytes(d8, values.template at<p, 0>(), values.template at<p, 1>(),
                                      values.template at<p, 2>(), values.template at<p, 3>());
        store<kChannels>(hn::Xor(bytes, flip), out + p * s_.in_c);
      });
    }
  }

  /// The j-th vector of channels of each pixel: stores real numbers, and leaves levels in `values` to be packed.
  template <int j, int kWidth, int kStride, int kChannels, int kPixels>
  HWY_INLINE void multiply_vector(const Outputs<kChannels>& o, const uint8_t* columns,
                                  Accumulators<hn::Vec<SumsTag<kChannels>>, kPixels, 4>& values, Element* out) const {
    const SumsTag<kChannels> d;
    constexpr int64_t kColumn = 4 * kChannels;
    const int64_t stride = kStride == 0 ? o.stride : kStride * kColumn;
    const auto offset = hn::Load(d, o.offset + j * (kChannels / 4));
    Sum<kFour, SumsTag<kChannels>> sums[kPixels];
    unroll<kPixels>([&](auto p) HWY_ATTR { sums[p].set(offset); });
    const uint8_t* weights = o.weights + j * kChannels;
    columns += j * kChannels;
    for (int64_t g = 0; g < o.groups; ++g, columns += o.group_bytes) {
      if constexpr (kWidth != 0) {
        unroll<kWidth>([&](auto kx)
                           HWY_ATTR { add_tap(columns + kx * kColumn, stride, weights + kx * kColumn, sums); });
        weights += kWidth * kColumn;
      } else {
        const uint8_t* column = columns;
        for (int64_t kx = 0; kx < o.width; ++kx, column += o.dilation, weights += kColumn) {
          add_tap(column, stride, weights, sums);
        }
      }
    }
    const hn::RebindToFloat<SumsTag<kChannels>> df;
    const auto scale = hn::Load(df, o.scale + j * (kChannels / 4));
    if constexpr (kReal) {
      const auto bias = hn::Load(df, o.bias + j * (kChannels / 4));
      unroll<kPixels>([&](auto p) HWY_ATTR {
        store_reals<kChannels, 4 * j>(df, o.stage(sums[p].total(), scale, bias), out + p * s_.in_c);
      });
    } else {
      unroll<kPixels>([&](auto p) HWY_ATTR { values.template at<p, j>() = o.stage(sums[p].total(), scale); });
    }
  }

  template <class D32, int kPixels>
  static HWY_INLINE void add_tap(const uint8_t* column, int64_t stride, const uint8_t* weights,
                                 Sum<kFour, D32> (&sums)[kPixels]) {
    const auto weight = hn::Load(D32(), reinterpret_cast<const int32_t*>(weights));
    add_pixels(column, stride, weight, sums, std::make_integer_sequence<int, kPixels>{});
  }

  // Not a lambda: in the largest instances the compiler would leave it out of line, and the sums in memory.
  template <class D32, int kPixels, int... kPixel>
  static HWY_INLINE void add_pixels(const uint8_t* column, int64_t stride, hn::Vec<D32> weight,
                                    Sum<kFour, D32> (&sums)[kPixels], std::integer_sequence<int, kPixel...>) {
    (sums[kPixel].add(column + kPixel * stride, weight), ...);
  }

  const DepthwiseI8& conv_;
  const Stage& stage_;
  const DepthwiseShape& s_;
  const int64_t largest_;
  const int64_t groups_;  // of kRows rows of the filter
  const int64_t sets_;
  const int flip_;  // turns bytes of the tensors into unsigned ones
  const uint8_t input_zero_;
  int64_t block_count_ = 0;
  Block blocks_[kMaxBlocks];
  const uint8_t* rows_[kMaxTaps + 3];  // null outside the input
  alignas(64) uint8_t padding_[kMaxBlock];
  alignas(64) int32_t offsets_[kMaxBlocks * kMaxBlock];
  alignas(64) float scales_[kMaxBlocks * kMaxBlock];
  alignas(64) float biases_[kReal ? kMaxBlocks * kMaxBlock : 1];
  alignas(64) uint8_t weights_[kWeightBytes];
  alignas(64) uint8_t columns_[kColumnBytes];
};

template <typename T, class Stage>
void band_of(const DepthwiseI8& conv, const Stage& stage, const DepthwisePart& part) {
  const DepthwiseShape& s = conv.shape;
  const bool four_taps = kFourTaps && !conv.is_unsigned && conv.filter_zero_point == 0;
  const int64_t channels = largest_block(s, four_taps ? 4 : 2);
  if (channels == 0) {
    plain_band<T>(conv, stage, part);
  } else if (four_taps) {
    Band<kFourTaps, Stage>(conv, stage, channels).run(part);
  } else if constexpr (!kFourTaps || !(Stage::kSymmetric || LEADLINE_SHARES_AVX512)) {
    Band<false, Stage>(conv, stage, channels).run(part);
  }
}

#else

template <typename T, class Stage>
void band_of(const DepthwiseI8& conv, const Stage& stage, const DepthwisePart& part) {
  plain_band<T>(conv, stage, part);
}

#endif  // HWY_TARGET != HWY_SCALAR

/// What comes before the output.
DepthwiseI8 sums_of(const DepthwiseHybrid& conv) {
  DepthwiseI8 sums;
  sums.shape = conv.shape;
  sums.input = conv.input;
  sums.input_zero_point = conv.input_zero_point;
  sums.filter = conv.filter;
  return sums;
}

void band(const DepthwiseI8& conv, const DepthwisePart& part) {
#if LEADLINE_SHARES_AVX512
  // Two taps at a time are multiplied as without VNNI.
  if (conv.is_unsigned || conv.filter_zero_point != 0) return N_AVX3::band(conv, part);
#endif
  conv.is_unsigned ? band_of<uint8_t>(conv, LevelStage(conv), part) : band_of<int8_t>(conv, LevelStage(conv), part);
}

void hybrid_band(const DepthwiseHybrid& conv, const DepthwisePart& part) {
  const DepthwiseI8 sums = sums_of(conv);
  band_of<int8_t>(sums, RealStage(conv), part);
}

void run_taps(const DepthwiseI8& conv, int64_t output, IndexRange taps, int32_t& sum) {
  conv.is_unsigned ? run_taps_of<uint8_t>(conv, LevelStage(conv), output, taps, sum)
                   : run_taps_of<int8_t>(conv, LevelStage(conv), output, taps, sum);
}

void run_hybrid_taps(const DepthwiseHybrid& conv, int64_t output, IndexRange taps, int32_t& sum) {
  run_taps_of<int8_t>(sums_of(conv), RealStage(conv), output, taps, sum);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace leadline::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace leadline::kernels {
namespace {
HWY_EXPORT(band);
HWY_EXPORT(hybrid_band);
HWY_EXPORT(run_taps);
HWY_EXPORT(run_hybrid_taps);
}  // namespace

void depthwise_part(const DepthwiseI8& conv, const DepthwisePart& part) noexcept {
  HWY_DYNAMIC_DISPATCH(band)(conv, part);
}
void depthwise_part(const DepthwiseHybrid& conv, const DepthwisePart& part) noexcept {
  HWY_DYNAMIC_DISPATCH(hybrid_band)(conv, part);
}

void depthwise_taps(const DepthwiseI8& conv, int64_t output, IndexRange taps, int32_t& sum) noexcept {
  HWY_DYNAMIC_DISPATCH(run_taps)(conv, output, taps, sum);
}
void depthwise_taps(const DepthwiseHybrid& conv, int64_t output, IndexRange taps, int32_t& sum) noexcept {
  HWY_DYNAMIC_DISPATCH(run_hybrid_taps)(conv, output, taps, sum);
}

}  // namespace leadline::kernels
#endif  // HWY_ONCE
