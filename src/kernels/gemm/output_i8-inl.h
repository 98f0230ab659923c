// SPDX-License-Identifier: Apache-2.0
// Output stages of the 8-bit gemm on vectors of int32 sums. Compiled once per instruction set.
// Each stage has Columns, what it needs for one vector of columns (loaded once for all rows of a tile), store() for a
// vector that may be cut, and store_whole() for neighbouring vectors of a row.
#include <hwy/highway.h>

#include <type_traits>

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

/// As store_some(), by masks where the CPU has them.
template <class D, typename T = hwy::HWY_NAMESPACE::TFromD<D>>
HWY_INLINE void store_cut(hwy::HWY_NAMESPACE::Vec<D> v, D d, T* to, int64_t count) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
  namespace hn = hwy::HWY_NAMESPACE;
  if (HWY_UNLIKELY(count < static_cast<int64_t>(hn::Lanes(d)))) {
    return hn::BlendedStore(v, hn::FirstN(d, static_cast<size_t>(count > 0 ? count : 0)), d, to);
  }
#endif
  store_some(v, d, to, count);
}

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
    return hwy::HWY_NAMESPACE::Add(without_zero_point(acc, scale), back_);
  }
  /// The low 16 bits are those of the result without its zero point, the high ones anything.
  HWY_INLINE VI without_zero_point(VI acc, VF scale) const {
    namespace hn = hwy::HWY_NAMESPACE;
    const VF scaled = hn::Mul(hn::ConvertTo(DF(), acc), scale);
    return hn::BitCast(D32(), hn::Add(hn::Min(hn::Max(scaled, lo_), hi_), round_));
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
    store_cut(acc, D32(), c_ + row * ldc_ + col, count);
  }
  template <int Vectors>
  HWY_INLINE void store_whole(const Columns* /*columns*/, const VI* acc, int64_t row, int64_t col) const {
    const auto lanes = static_cast<int64_t>(hwy::HWY_NAMESPACE::Lanes(D32()));
    int32_t* to = c_ + row * ldc_ + col;
    unroll<Vectors>([&](auto v) HWY_ATTR { hwy::HWY_NAMESPACE::StoreU(acc[v], D32(), to + v * lanes); });
  }

 private:
  int32_t* c_;
  int64_t ldc_;
};

/// Levels of 8 bits, signed or not: unsigned ones are computed 128 lower, as signed ones, and moved up as bytes.
template <class D32>
class RequantizedStage {
 public:
  using DF = hwy::HWY_NAMESPACE::RebindToFloat<D32>;
  using VI = hwy::HWY_NAMESPACE::Vec<D32>;
  struct Columns {
    hwy::HWY_NAMESPACE::Vec<DF> scale;
  };
  explicit RequantizedStage(const RequantizedOutput& out) : RequantizedStage(out, out.c_unsigned ? 128 : 0) {}
  HWY_INLINE Columns columns(int64_t col, int64_t count) const { return {load_some(DF(), scale_ + col, count)}; }
  HWY_INLINE void store(const Columns& columns, VI acc, int64_t row, int64_t col, int64_t count) const {
    store_cut(narrow(columns, acc), D8(), c_ + row * ldc_ + col, count);
  }
  template <int Vectors>
  HWY_INLINE void store_whole(const Columns* columns, const VI* acc, int64_t row, int64_t col) const {
    namespace hn = hwy::HWY_NAMESPACE;
    int8_t* to = c_ + row * ldc_ + col;
#if HWY_TARGET == HWY_AVX2
    if constexpr (Vectors == 2) {
      const __m256i a = requantize_(acc[0], columns[0].scale).raw;
      const __m256i b = requantize_(acc[1], columns[1].scale).raw;
      const __m256i words = _mm256_packs_epi32(a, b);
      const __m256i bytes = _mm256_packs_epi16(words, words);
      const __m256i in_order = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 0, 4, 1, 5));
      const __m128i moved = _mm_add_epi8(_mm256_castsi256_si128(in_order), _mm_set1_epi8(after_));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to), moved);
      return;
    }
#endif
    const auto lanes = static_cast<int64_t>(hn::Lanes(D32()));
    unroll<Vectors>([&](auto v) HWY_ATTR { hn::StoreU(narrow(columns[v], acc[v]), D8(), to + v * lanes); });
  }

 private:
  using D8 = hwy::HWY_NAMESPACE::Rebind<int8_t, D32>;
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
  static constexpr bool kZeroPointInBytes = true;
#else
  static constexpr bool kZeroPointInBytes = false;
#endif
  RequantizedStage(const RequantizedOutput& out, int32_t lower)
      : requantize_(out.zero_point - lower, out.lo - lower, out.hi - lower),
        c_(static_cast<int8_t*>(out.c)),
        ldc_(out.ldc),
        scale_(out.scale),
        after_(static_cast<int8_t>(kZeroPointInBytes ? out.zero_point : lower)) {}

  HWY_INLINE hwy::HWY_NAMESPACE::Vec<D8> narrow(const Columns& columns, VI acc) const {
    namespace hn = hwy::HWY_NAMESPACE;
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
    // The result is in range, so its low byte is all of it.
    const hn::Vec<D8> bytes{_mm512_cvtepi32_epi8(requantize_.without_zero_point(acc, columns.scale).raw)};
#else
    const hn::Vec<D8> bytes = hn::DemoteTo(D8(), requantize_(acc, columns.scale));
#endif
    return hn::Add(bytes, hn::Set(D8(), after_));
  }

  Requantizer<D32> requantize_;
  int8_t* c_;
  int64_t ldc_;
  const float* scale_;
  int8_t after_;  // added to the bytes, modulo 256: the zero point, or what takes unsigned levels to their place
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
    store_cut(clamp_keeping_nan(value, lo_, hi_), DF(), out_.c + row * out_.ldc + col, count);
  }
  template <int Vectors>
  HWY_INLINE void store_whole(const Columns* columns, const VI* acc, int64_t row, int64_t col) const {
    namespace hn = hwy::HWY_NAMESPACE;
    const auto lanes = static_cast<int64_t>(hn::Lanes(D32()));
    const VF row_scale = hn::Set(DF(), out_.row_scale[row * out_.row_scale_stride]);
    float* to = out_.c + row * out_.ldc + col;
    unroll<Vectors>([&](auto v) HWY_ATTR {
      const VF scaled = hn::Mul(hn::ConvertTo(DF(), acc[v]), row_scale);
      const VF value = hn::MulAdd(scaled, columns[v].scale, columns[v].bias);
      hn::StoreU(clamp_keeping_nan(value, lo_, hi_), DF(), to + v * lanes);
    });
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
