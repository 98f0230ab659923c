// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution in 8 bits, exact: taps in pairs, so that one multiply takes two products of each channel.
// The sums go to one of two output stages: 8-bit levels, or real numbers (dynamic range).
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "kernels/depthwise/depthwise.h"
#include "kernels/depthwise/taps.h"
#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/depthwise/depthwise_i8.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/gemm/output_i8-inl.h"
#include "kernels/gemm/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace leadline::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
int32_t sum_at(const DepthwiseI8& conv, int64_t row, int64_t x, int64_t oc) {
  const DepthwiseShape& s = conv.shape;
  const T* image = static_cast<const T*>(conv.input) + row / s.out_h * s.in_h * s.in_w * s.in_c + oc / s.multiplier;
  const T* filter = static_cast<const T*>(conv.filter) + oc;
  auto sum = static_cast<uint32_t>(conv.bias == nullptr ? 0 : conv.bias[oc]);
  for (int64_t ky = 0; ky < s.filter_h; ++ky) {
    const int64_t in_y = row % s.out_h * s.stride_h - s.pad_top + ky * s.dilation_h;
    if (in_y < 0 || in_y >= s.in_h) continue;
    for (int64_t kx = 0; kx < s.filter_w; ++kx) {
      const int64_t in_x = x * s.stride_w - s.pad_left + kx * s.dilation_w;
      if (in_x < 0 || in_x >= s.in_w) continue;
      sum += static_cast<uint32_t>((image[(in_y * s.in_w + in_x) * s.in_c] - conv.input_zero_point) *
                                   (filter[(ky * s.filter_w + kx) * s.out_c()] - conv.filter_zero_point));
    }
  }
  return static_cast<int32_t>(sum);
}

/// Output stage of DepthwiseI8. Stages have plain(), for one sum, and vector code for D32: Columns, what they need for
/// one vector of channels, and store().
template <typename T>
class LevelStage {
 public:
  using Element = T;
  explicit LevelStage(const DepthwiseI8& conv) : conv_(conv) {}
  T* output() const { return static_cast<T*>(conv_.output); }
  T plain(int32_t sum, int64_t oc) const {
    const auto lo = static_cast<float>(conv_.lo - conv_.output_zero_point);
    const auto hi = static_cast<float>(conv_.hi - conv_.output_zero_point);
    const float scaled = static_cast<float>(sum) * conv_.scale[oc];
    const auto rounded = static_cast<int32_t>(std::nearbyintf(std::clamp(scaled, lo, hi)));
    return static_cast<T>(rounded + conv_.output_zero_point);
  }
  template <class D32>
  class Vectors {
   public:
    using Columns = hn::Vec<hn::RebindToFloat<D32>>;  // scales
    HWY_INLINE explicit Vectors(const LevelStage& stage)
        : scale_(stage.conv_.scale), requantize_(stage.conv_.output_zero_point, stage.conv_.lo, stage.conv_.hi) {}
    HWY_INLINE Columns columns(int64_t channel) const { return hn::LoadU(hn::RebindToFloat<D32>(), scale_ + channel); }
    HWY_INLINE void store(Columns scale, hn::Vec<D32> sum, T* out) const {
      const hn::Rebind<T, D32> d8;
      hn::StoreU(hn::DemoteTo(d8, requantize_(sum, scale)), d8, out);
    }

   private:
    const float* scale_;
    Requantizer<D32> requantize_;
  };

 private:
  const DepthwiseI8& conv_;
};

/// Output stage of DepthwiseHybrid.
class RealStage {
 public:
  using Element = float;
  explicit RealStage(const DepthwiseHybrid& conv) : conv_(conv) {}
  float* output() const { return conv_.output; }
  float plain(int32_t sum, int64_t oc) const {
    const float scaled = static_cast<float>(sum) * conv_.scale[oc] * conv_.input_scale;
    return std::min(std::max(scaled + (conv_.bias == nullptr ? 0.0F : conv_.bias[oc]), conv_.lo), conv_.hi);
  }
  template <class D32>
  class Vectors {
   public:
    using DF = hn::RebindToFloat<D32>;
    using VF = hn::Vec<DF>;
    struct Columns {
      VF scale;
      VF bias;
    };
    HWY_INLINE explicit Vectors(const RealStage& stage)
        : scale_(stage.conv_.scale),
          bias_(stage.conv_.bias),
          input_scale_(hn::Set(DF(), stage.conv_.input_scale)),
          lo_(hn::Set(DF(), stage.conv_.lo)),
          hi_(hn::Set(DF(), stage.conv_.hi)) {}
    HWY_INLINE Columns columns(int64_t channel) const {
      return {hn::LoadU(DF(), scale_ + channel), bias_ == nullptr ? hn::Zero(DF()) : hn::LoadU(DF(), bias_ + channel)};
    }
    HWY_INLINE void store(const Columns& columns, hn::Vec<D32> sum, float* out) const {
      const VF scaled = hn::Mul(hn::Mul(hn::ConvertTo(DF(), sum), columns.scale), input_scale_);
      hn::StoreU(clamp_keeping_nan(hn::Add(scaled, columns.bias), lo_, hi_), DF(), out);
    }

   private:
    const float* scale_;
    const float* bias_;
    VF input_scale_;
    VF lo_;
    VF hi_;
  };

 private:
  const DepthwiseHybrid& conv_;
};

template <typename T, class Stage>
void plain_band(const DepthwiseI8& conv, const Stage& stage, int64_t row_begin, int64_t row_end) {
  const DepthwiseShape& s = conv.shape;
  typename Stage::Element* out = stage.output() + row_begin * s.out_w * s.out_c();
  for (int64_t row = row_begin; row < row_end; ++row) {
    for (int64_t x = 0; x < s.out_w; ++x) {
      for (int64_t oc = 0; oc < s.out_c(); ++oc) *out++ = stage.plain(sum_at<T>(conv, row, x, oc), oc);
    }
  }
}

#if HWY_TARGET != HWY_SCALAR

// 8 channels are enough: wider vectors would need a shuffle across lanes to bring two taps side by side.
using D32 = hn::CappedTag<int32_t, 8>;
using D16 = hn::Repartition<int16_t, D32>;
using V32 = hn::Vec<D32>;
using V16 = hn::Vec<D16>;
constexpr int64_t kLanes = HWY_MIN(HWY_LANES(int32_t), 8);

/// Channels of two taps as int16, side by side: Vectors vectors of kLanes channels.
template <int Vectors, typename T>
HWY_INLINE Accumulators<V16, 1, Vectors> load_pair(const T* first, const T* second) {
  const hn::Rebind<T, D32> d_one;
  const hn::Rebind<T, D16> d_two;
  Accumulators<V16, 1, Vectors> pair;
  if constexpr (Vectors == 1) {
    const auto a = hn::ZeroExtendVector(d_two, hn::LoadU(d_one, first));
    const auto b = hn::ZeroExtendVector(d_two, hn::LoadU(d_one, second));
    pair.template at<0, 0>() = hn::PromoteTo(D16(), hn::InterleaveLower(d_two, a, b));
  } else {
    const auto a = hn::LoadU(d_two, first);
    const auto b = hn::LoadU(d_two, second);
    pair.template at<0, 0>() = hn::PromoteTo(D16(), hn::InterleaveLower(d_two, a, b));
    pair.template at<0, 1>() = hn::PromoteTo(D16(), hn::InterleaveUpper(d_two, a, b));
  }
  return pair;
}

/// What does not change from pixel to pixel of a chunk.
template <typename T>
struct Chunk {
  int64_t channel = 0;
  T input_padding[kChunkChannels];
  T filter_padding[kChunkChannels];
  int32_t offset[kChunkChannels];  // bias - input zero point * sum of the filter, so that raw inputs can be multiplied
};

template <typename T>
void set_offsets(const DepthwiseI8& conv, int64_t count, Chunk<T>& chunk) {
  const DepthwiseShape& s = conv.shape;
  const T* filter = static_cast<const T*>(conv.filter) + chunk.channel;
  std::fill_n(chunk.offset, count, 0);
  for (int64_t tap = 0; tap < s.taps(); ++tap, filter += s.in_c) {
    for (int64_t c = 0; c < count; ++c) chunk.offset[c] += filter[c] - conv.filter_zero_point;
  }
  for (int64_t c = 0; c < count; ++c) {
    // kMaxTaps bounds the product; the bias may be anything.
    const auto bias = static_cast<uint32_t>(conv.bias == nullptr ? 0 : conv.bias[chunk.channel + c]);
    chunk.offset[c] = static_cast<int32_t>(bias - static_cast<uint32_t>(chunk.offset[c] * conv.input_zero_point));
  }
}

// Vectors vectors of channels from `c` (counted from the chunk) for the group's pixels; stores `pixels` of them.
template <int Vectors, typename T, class Stage>
HWY_INLINE void channels(const DepthwiseI8& conv, const typename Stage::template Vectors<D32>& stage,
                         const Chunk<T>& chunk, const T* const* taps, int64_t c, int64_t pixels,
                         typename Stage::Element* out) {
  const D32 d;
  const int64_t stride = conv.shape.in_c;
  const int64_t count = conv.shape.taps();
  const T* filter = static_cast<const T*>(conv.filter) + chunk.channel + c;
  const V16 filter_zero = hn::Set(D16(), static_cast<int16_t>(conv.filter_zero_point));
  Accumulators<V32, kGroupPixels, Vectors> even;
  Accumulators<V32, kGroupPixels, Vectors> odd;  // stays zero on x86
  unroll<kGroupPixels>([&](auto p) HWY_ATTR {
    unroll<Vectors>([&](auto v) HWY_ATTR { even.template at<p, v>() = odd.template at<p, v>() = hn::Zero(d); });
  });
  for (int64_t tap = 0; tap < count; tap += 2, taps += 2 * kGroupPixels, filter += 2 * stride) {
    const T* second = tap + 1 < count ? filter + stride : chunk.filter_padding;
    auto weight = load_pair<Vectors>(filter, second);
    unroll<Vectors>([&](auto v)
                        HWY_ATTR { weight.template at<0, v>() = hn::Sub(weight.template at<0, v>(), filter_zero); });
    unroll<kGroupPixels>([&](auto p) HWY_ATTR {
      auto input = load_pair<Vectors>(taps[p] + c, taps[kGroupPixels + p] + c);
      unroll<Vectors>([&](auto v) HWY_ATTR {
        V32 other = odd.template at<p, v>();
        even.template at<p, v>() = hn::ReorderWidenMulAccumulate(
            d, input.template at<0, v>(), weight.template at<0, v>(), even.template at<p, v>(), other);
        odd.template at<p, v>() = other;
      });
    });
  }
  unroll<Vectors>([&](auto v) HWY_ATTR {
    const int64_t at = c + v * kLanes;
    const V32 offset = hn::LoadU(d, chunk.offset + at);
    const auto columns = stage.columns(chunk.channel + at);
    unroll<kGroupPixels>([&](auto p) HWY_ATTR {
      if (p >= pixels) return;
      const V32 sum = hn::Add(hn::RearrangeToOddPlusEven(even.template at<p, v>(), odd.template at<p, v>()), offset);
      stage.store(columns, sum, out + p * stride + at);
    });
  });
}

template <typename T, class Stage>
void fast_band(const DepthwiseI8& conv, const Stage& stage, int64_t row_begin, int64_t row_end) {
  const DepthwiseShape& s = conv.shape;
  Chunk<T> chunk;
  std::fill_n(chunk.input_padding, kChunkChannels, static_cast<T>(conv.input_zero_point));
  std::fill_n(chunk.filter_padding, kChunkChannels, static_cast<T>(conv.filter_zero_point));
  TapTable<T> table(s, static_cast<const T*>(conv.input), chunk.input_padding);
  const typename Stage::template Vectors<D32> vectors(stage);
  const int64_t count = std::min(kChunkChannels, s.in_c);
  for (int64_t c0 = 0; c0 < s.in_c; c0 += kChunkChannels) {
    chunk.channel = chunk_begin(c0, s.in_c);
    set_offsets(conv, count, chunk);
    for (int64_t row = row_begin; row < row_end; ++row) {
      table.set_row(row, chunk.channel);
      for (int64_t x = 0; x < s.out_w; x += kGroupPixels) {
        table.set_pixels(x);
        const int64_t pixels = std::min(kGroupPixels, s.out_w - x);
        typename Stage::Element* out = stage.output() + (row * s.out_w + x) * s.in_c + chunk.channel;
        int64_t c = 0;
        for (; c + 2 * kLanes <= count; c += 2 * kLanes) {
          channels<2, T, Stage>(conv, vectors, chunk, table.pointers(), c, pixels, out);
        }
        for (; c + kLanes <= count; c += kLanes) {
          channels<1, T, Stage>(conv, vectors, chunk, table.pointers(), c, pixels, out);
        }
        // The last vector overlaps the one before it; both give the same values.
        if (c < count) channels<1, T, Stage>(conv, vectors, chunk, table.pointers(), count - kLanes, pixels, out);
      }
    }
  }
}

template <typename T, class Stage>
void band_of(const DepthwiseI8& conv, const Stage& stage, int64_t row_begin, int64_t row_end) {
  const DepthwiseShape& s = conv.shape;
  if (s.multiplier != 1 || s.taps() > kMaxTaps || s.in_c < kLanes) {
    plain_band<T>(conv, stage, row_begin, row_end);
  } else {
    fast_band<T>(conv, stage, row_begin, row_end);
  }
}

#else

template <typename T, class Stage>
void band_of(const DepthwiseI8& conv, const Stage& stage, int64_t row_begin, int64_t row_end) {
  plain_band<T>(conv, stage, row_begin, row_end);
}

#endif  // HWY_TARGET != HWY_SCALAR

void band(const DepthwiseI8& conv, int64_t row_begin, int64_t row_end) {
  if (conv.is_unsigned) {
    band_of<uint8_t>(conv, LevelStage<uint8_t>(conv), row_begin, row_end);
  } else {
    band_of<int8_t>(conv, LevelStage<int8_t>(conv), row_begin, row_end);
  }
}

void hybrid_band(const DepthwiseHybrid& conv, int64_t row_begin, int64_t row_end) {
  DepthwiseI8 sums;  // what comes before the output
  sums.shape = conv.shape;
  sums.input = conv.input;
  sums.input_zero_point = conv.input_zero_point;
  sums.filter = conv.filter;
  band_of<int8_t>(sums, RealStage(conv), row_begin, row_end);
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
}  // namespace

void depthwise_i8_band(const DepthwiseI8& conv, int64_t row_begin, int64_t row_end) {
  HWY_DYNAMIC_DISPATCH(band)(conv, row_begin, row_end);
}

void depthwise_hybrid_band(const DepthwiseHybrid& conv, int64_t row_begin, int64_t row_end) {
  HWY_DYNAMIC_DISPATCH(hybrid_band)(conv, row_begin, row_end);
}

void depthwise_i8(const DepthwiseI8& conv, ThreadPool& pool) {
  pool.parallel_for(conv.shape.rows(), min_rows_per_part(conv.shape),
                    [&](int64_t begin, int64_t end) { depthwise_i8_band(conv, begin, end); });
}

void depthwise_hybrid(const DepthwiseHybrid& conv, ThreadPool& pool) {
  pool.parallel_for(conv.shape.rows(), min_rows_per_part(conv.shape),
                    [&](int64_t begin, int64_t end) { depthwise_hybrid_band(conv, begin, end); });
}

}  // namespace leadline::kernels
#endif  // HWY_ONCE
