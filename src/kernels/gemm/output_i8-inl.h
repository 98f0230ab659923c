// SPDX-License-Identifier: Apache-2.0
// Output stages of the 8-bit gemm on vectors of int32 sums. Compiled once per instruction set.
// Each stage has Columns, what it needs for one vector of columns (loaded once for all rows of a tile), and store().
#include <hwy/highway.h>

#include "kernels/gemm/gemm_i8.h"
#include "kernels/gemm/tile-inl.h"

#if defined(LEADLINE_KERNELS_GEMM_OUTPUT_I8_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef LEADLINE_KERNELS_GEMM_OUTPUT_I8_INL_H
#undef LEADLINE_KERNELS_GEMM_OUTPUT_I8_INL_H
#else
#define LEADLINE_KERNELS_GEMM_OUTPUT_I8_INL_H
#endif

HWY_BEFORE_NAMESPACE();
namespace leadline::kernels {
namespace HWY_NAMESPACE {

/// clamp(round_half_even(acc * scale) + zero_point) as int32, for bounds in the range of an 8-bit type.
template <class D32>
class Requantizer {
 public:
  using DF = hwy::HWY_NAMESPACE::RebindToFloat<D32>;
  using VF = hwy::HWY_NAMESPACE::Vec<DF>;
  using VI = hwy::HWY_NAMESPACE::Vec<D32>;
  HWY_INLINE Requantizer(int32_t zero_point, int32_t lo, int32_t hi)
      : lo_(hwy::HWY_NAMESPACE::Set(DF(), static_cast<float>(lo - zero_point))),
        hi_(hwy::HWY_NAMESPACE::Set(DF(), static_cast<float>(hi - zero_point))),
        round_(hwy::HWY_NAMESPACE::Set(DF(), 0x1.8p23F)),
        back_(hwy::HWY_NAMESPACE::Set(D32(), zero_point - 0x4B400000)) {}
  // The bounds are integers, so clamping before the rounding changes nothing. What is left is below 2^9, and adding
  // 1.5 * 2^23 (bits 0x4B400000) rounds it to an integer, ties to even, in the low bits of the sum. NearestInt does the
  // same but spends four more instructions on values out of range.
  HWY_INLINE VI operator()(VI acc, VF scale) const {
    namespace hn = hwy::HWY_NAMESPACE;
    const VF scaled = hn::Mul(hn::ConvertTo(DF(), acc), scale);
    const VF rounded = hn::Add(hn::Min(hn::Max(scaled, lo_), hi_), round_);
    return hn::Add(hn::BitCast(D32(), rounded), back_);
  }

 private:
  VF lo_;
  VF hi_;
  VF round_;
  VI back_;
};

template <class D32>
class AccumulatorStage {
 public:
  using VI = hwy::HWY_NAMESPACE::Vec<D32>;
  struct Columns {};
  explicit AccumulatorStage(const AccumulatorOutput& out) : c_(out.c), ldc_(out.ldc) {}
  HWY_INLINE Columns columns(int64_t /*col*/, int64_t /*count*/) const { return {}; }
  HWY_INLINE void store(const Columns& /*columns*/, VI acc, int64_t row, int64_t col, int64_t count) const {
    store_some(acc, D32(), c_ + row * ldc_ + col, count);
  }

 private:
  int32_t* c_;
  int64_t ldc_;
};

template <class D32, typename T>
class RequantizedStage {
 public:
  using DF = hwy::HWY_NAMESPACE::RebindToFloat<D32>;
  using VI = hwy::HWY_NAMESPACE::Vec<D32>;
  struct Columns {
    hwy::HWY_NAMESPACE::Vec<DF> scale;
  };
  explicit RequantizedStage(const RequantizedOutput& out)
      : requantize_(out.zero_point, out.lo, out.hi), c_(static_cast<T*>(out.c)), ldc_(out.ldc), scale_(out.scale) {}
  HWY_INLINE Columns columns(int64_t col, int64_t count) const { return {load_some(DF(), scale_ + col, count)}; }
  HWY_INLINE void store(const Columns& columns, VI acc, int64_t row, int64_t col, int64_t count) const {
    namespace hn = hwy::HWY_NAMESPACE;
    const hn::Rebind<T, D32> d8;
    store_some(hn::DemoteTo(d8, requantize_(acc, columns.scale)), d8, c_ + row * ldc_ + col, count);
  }

 private:
  Requantizer<D32> requantize_;
  T* c_;
  int64_t ldc_;
  const float* scale_;
};

template <class D32>
class DequantizedStage {
 public:
  using DF = hwy::HWY_NAMESPACE::RebindToFloat<D32>;
  using VI = hwy::HWY_NAMESPACE::Vec<D32>;
  using VF = hwy::HWY_NAMESPACE::Vec<DF>;
  struct Columns {
    VF scale;
    VF bias;
  };
  explicit DequantizedStage(const DequantizedOutput& out)
      : out_(out), lo_(hwy::HWY_NAMESPACE::Set(DF(), out.lo)), hi_(hwy::HWY_NAMESPACE::Set(DF(), out.hi)) {}
  HWY_INLINE Columns columns(int64_t col, int64_t count) const {
    return {load_some(DF(), out_.scale + col, count),
            out_.bias == nullptr ? hwy::HWY_NAMESPACE::Zero(DF()) : load_some(DF(), out_.bias + col, count)};
  }
  HWY_INLINE void store(const Columns& columns, VI acc, int64_t row, int64_t col, int64_t count) const {
    namespace hn = hwy::HWY_NAMESPACE;
    const VF scaled = hn::Mul(hn::ConvertTo(DF(), acc), hn::Set(DF(), out_.row_scale[row * out_.row_scale_stride]));
    const VF value = hn::MulAdd(scaled, columns.scale, columns.bias);
    store_some(clamp_keeping_nan(value, lo_, hi_), DF(), out_.c + row * out_.ldc + col, count);
  }

 private:
  DequantizedOutput out_;
  VF lo_;
  VF hi_;
};

}  // namespace HWY_NAMESPACE
}  // namespace leadline::kernels
HWY_AFTER_NAMESPACE();

#endif
