// SPDX-License-Identifier: Apache-2.0
// Output stages of 8-bit depthwise filters: what becomes of the int32 sums. Compiled once per instruction set.
// A stage has plain(), for one sum, and Vectors, the same for a vector of sums whose scales and biases are given.
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/depthwise/depthwise.h"
#include "kernels/gemm/output_i8-inl.h"
#include "kernels/gemm/tile-inl.h"

#if defined(LEADLINE_KERNELS_DEPTHWISE_STAGES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef LEADLINE_KERNELS_DEPTHWISE_STAGES_INL_H
#undef LEADLINE_KERNELS_DEPTHWISE_STAGES_INL_H
#else
#define LEADLINE_KERNELS_DEPTHWISE_STAGES_INL_H
#endif

HWY_BEFORE_NAMESPACE();
namespace leadline::kernels {
namespace HWY_NAMESPACE {

/// Output stage of DepthwiseI8. Bytes are written as uint8_t, whichever of the two types they are.
class LevelStage {
 public:
  using Element = uint8_t;
  static constexpr bool kSymmetric = false;  // whether filters are always signed, with a zero point of 0
  explicit LevelStage(const DepthwiseI8& conv) : conv_(conv) {}
  uint8_t* output() const { return static_cast<uint8_t*>(conv_.output); }
  const float* scale() const { return conv_.scale; }
  const float* bias() const { return nullptr; }  // the sums have it
  uint8_t plain(int32_t sum, int64_t oc) const {
    const auto lo = static_cast<float>(conv_.lo - conv_.output_zero_point);
    const auto hi = static_cast<float>(conv_.hi - conv_.output_zero_point);
    const float scaled = static_cast<float>(sum) * conv_.scale[oc];
    const auto rounded = static_cast<int32_t>(std::nearbyintf(std::clamp(scaled, lo, hi)));
    return static_cast<uint8_t>(rounded + conv_.output_zero_point);
  }

  /// Levels in the range of int8: those of uint8 are lowered by 128.
  template <class D32>
  class Vectors {
   public:
    using VF = hwy::HWY_NAMESPACE::Vec<hwy::HWY_NAMESPACE::RebindToFloat<D32>>;
    using VI = hwy::HWY_NAMESPACE::Vec<D32>;
    HWY_INLINE explicit Vectors(const LevelStage& stage) : Vectors(stage.conv_, stage.conv_.is_unsigned ? 128 : 0) {}
    HWY_INLINE VI operator()(VI sum, VF scale) const { return requantize_(sum, scale); }

   private:
    HWY_INLINE Vectors(const DepthwiseI8& conv, int32_t to_signed)
        : requantize_(conv.output_zero_point - to_signed, conv.lo - to_signed, conv.hi - to_signed) {}
    Requantizer<D32> requantize_;
  };

 private:
  const DepthwiseI8& conv_;
};

/// Output stage of DepthwiseHybrid.
class RealStage {
 public:
  using Element = float;
  static constexpr bool kSymmetric = true;
  explicit RealStage(const DepthwiseHybrid& conv) : conv_(conv) {}
  float* output() const { return conv_.output; }
  const float* scale() const { return conv_.scale; }
  const float* bias() const { return conv_.bias; }
  float plain(int32_t sum, int64_t oc) const {
    const float scaled = static_cast<float>(sum) * conv_.scale[oc] * conv_.input_scale;
    return std::min(std::max(scaled + (conv_.bias == nullptr ? 0.0F : conv_.bias[oc]), conv_.lo), conv_.hi);
  }

  template <class D32>
  class Vectors {
   public:
    using DF = hwy::HWY_NAMESPACE::RebindToFloat<D32>;
    using VF = hwy::HWY_NAMESPACE::Vec<DF>;
    using VI = hwy::HWY_NAMESPACE::Vec<D32>;
    HWY_INLINE explicit Vectors(const RealStage& stage)
        : input_scale_(hwy::HWY_NAMESPACE::Set(DF(), stage.conv_.input_scale)),
          lo_(hwy::HWY_NAMESPACE::Set(DF(), stage.conv_.lo)),
          hi_(hwy::HWY_NAMESPACE::Set(DF(), stage.conv_.hi)) {}
    HWY_INLINE VF operator()(VI sum, VF scale, VF bias) const {
      namespace hn = hwy::HWY_NAMESPACE;
      const VF scaled = hn::Mul(hn::Mul(hn::ConvertTo(DF(), sum), scale), input_scale_);
      return clamp_keeping_nan(hn::Add(scaled, bias), lo_, hi_);
    }

   private:
    VF input_scale_;
    VF lo_;
    VF hi_;
  };

 private:
  const DepthwiseHybrid& conv_;
};

}  // namespace HWY_NAMESPACE
}  // namespace leadline::kernels
HWY_AFTER_NAMESPACE();

#endif
