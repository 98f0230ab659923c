// SPDX-License-Identifier: Apache-2.0
// Quantized rows with Highway. Fixed-point products need 64 bits: even and odd lanes are multiplied apart, and the
// rounding of rounding_doubling_high_mul is floor((p + 2^30) / 2^31), whose low half one logical shift gives.
#include "kernels/elementwise/quantized.h"

#include <cstring>

#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/quantized.cc"
#include "kernels/all_targets.h"

HWY_BEFORE_NAMESPACE();
namespace leadline::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

template <typename T, typename Op>
void row(const Op& op, const T* a, int64_t a_step, const T* b, int64_t b_step, T* out, int64_t count) noexcept {
  for (int64_t i = 0; i < count; ++i) out[i] = static_cast<T>(op(a[i * a_step], b[i * b_step]));
}

#else

using D = hn::ScalableTag<int32_t>;
using V = hn::Vec<D>;
constexpr int64_t kLanes = HWY_LANES(int32_t);

HWY_INLINE V high_mul(V a, V b) {
  const D d;
  const hn::RepartitionToWide<D> wide;
  const hn::RebindToUnsigned<decltype(wide)> bits;
  const auto nudge = hn::Set(wide, int64_t{1} << 30);
  const auto odd = [](V v) HWY_ATTR {
    const D narrow;
    const hn::RebindToUnsigned<hn::RepartitionToWide<D> > u64;
    return hn::BitCast(narrow, hn::ShiftRight<32>(hn::BitCast(u64, v)));
  };
  const auto even_product = hn::BitCast(bits, hn::Add(hn::MulEven(a, b), nudge));
  const auto odd_product = hn::BitCast(bits, hn::Add(hn::MulEven(odd(a), odd(b)), nudge));
  // Bits 31..62 of a product become a lane: shifted down for even lanes, up by one for odd lanes.
  const V even_lanes = hn::BitCast(d, hn::ShiftRight<31>(even_product));
  const V odd_lanes = hn::BitCast(d, hn::Add(odd_product, odd_product));
  return hn::OddEven(odd_lanes, even_lanes);
}

/// x * multiplier; the left shift must not overflow.
struct Scale {
  explicit Scale(Multiplier m)
      : value(hn::Set(D(), m.value)),
        left(m.shift > 0 ? m.shift : 0),
        right(m.shift < 0 ? -m.shift : 0),
        mask(hn::Set(D(), static_cast<int32_t>((int64_t{1} << right) - 1))) {}

  HWY_INLINE V operator()(V x) const {
    const V product = high_mul(hn::ShiftLeftSame(x, left), value);
    // Rounds to nearest, ties away from zero: one more when the remainder passes half, less one for negatives.
    const V remainder = hn::And(product, mask);
    const V threshold = hn::Sub(hn::ShiftRight<1>(mask), hn::BroadcastSignBit(product));
    const V carry = hn::VecFromMask(D(), hn::Gt(remainder, threshold));
    return hn::Sub(hn::ShiftRightSame(product, right), carry);
  }

  V value;
  int left;
  int right;
  V mask;
};

template <typename T>
HWY_INLINE V load(const T* in) {
  return hn::PromoteTo(D(), hn::LoadU(hn::Rebind<T, D>(), in));
}

/// Takes values in the range of T.
template <typename T>
HWY_INLINE void store(V v, T* out) {
  const hn::Rebind<T, D> narrow;
#if HWY_TARGET == HWY_AVX3
  if constexpr (sizeof(T) == 1) {
    hn::StoreU(hn::Vec<decltype(narrow)>{_mm512_cvtepi32_epi8(v.raw)}, narrow, out);
  } else {
    hn::StoreU(hn::Vec<decltype(narrow)>{_mm512_cvtepi32_epi16(v.raw)}, narrow, out);
  }
#else
  hn::StoreU(hn::DemoteTo(narrow, v), narrow, out);
#endif
}

struct AddVector {
  explicit AddVector(const QuantizedAdd& op)
      : a_zero(hn::Set(D(), op.a_zero_point)),
        b_zero(hn::Set(D(), op.b_zero_point)),
        zero(hn::Set(D(), op.zero_point)),
        lo(hn::Set(D(), op.lo)),
        hi(hn::Set(D(), op.hi)),
        a(op.a),
        b(op.b),
        output(op.output),
        left_shift(op.left_shift),
        subtract(op.subtract) {}

  HWY_INLINE V first(V x) const { return a(hn::ShiftLeftSame(hn::Sub(x, a_zero), left_shift)); }
  HWY_INLINE V second(V y) const {
    const V scaled = b(hn::ShiftLeftSame(hn::Sub(y, b_zero), left_shift));
    return subtract ? hn::Neg(scaled) : scaled;
  }
  HWY_INLINE V combine(V x, V y) const { return hn::Min(hn::Max(hn::Add(output(hn::Add(x, y)), zero), lo), hi); }

  V a_zero, b_zero, zero, lo, hi;
  Scale a, b, output;
  int left_shift;
  bool subtract;
};

struct MulVector {
  explicit MulVector(const QuantizedMul& op)
      : a_zero(hn::Set(D(), op.a_zero_point)),
        b_zero(hn::Set(D(), op.b_zero_point)),
        zero(hn::Set(D(), op.zero_point)),
        lo(hn::Set(D(), op.lo)),
        hi(hn::Set(D(), op.hi)),
        output(op.output) {}

  HWY_INLINE V first(V x) const { return hn::Sub(x, a_zero); }
  HWY_INLINE V second(V y) const { return hn::Sub(y, b_zero); }
  HWY_INLINE V combine(V x, V y) const { return hn::Min(hn::Max(hn::Add(output(hn::Mul(x, y)), zero), lo), hi); }

  V a_zero, b_zero, zero, lo, hi;
  Scale output;
};

struct DirectAddVector {
  explicit DirectAddVector(const DirectAdd& op)
      : a(hn::Set(D(), op.a)),
        b(hn::Set(D(), op.b)),
        bias(hn::Set(D(), op.bias)),
        zero(hn::Set(D(), op.zero_point)),
        lo(hn::Set(D(), op.lo)),
        hi(hn::Set(D(), op.hi)),
        shift(op.shift) {}

  HWY_INLINE V first(V x) const { return hn::Add(hn::Mul(x, a), bias); }
  HWY_INLINE V second(V y) const { return hn::Mul(y, b); }
  HWY_INLINE V combine(V x, V y) const {
    return hn::Min(hn::Max(hn::Add(hn::ShiftRightSame(hn::Add(x, y), shift), zero), lo), hi);
  }

  V a, b, bias, zero, lo, hi;
  int shift;
};

struct DirectMulVector {
  explicit DirectMulVector(const DirectMul& op)
      : a_zero(hn::Set(D(), op.a_zero_point)),
        b_zero(hn::Set(D(), op.b_zero_point)),
        zero(hn::Set(D(), op.zero_point - 0x4B400000)),
        scale(hn::Set(hn::RebindToFloat<D>(), op.scale)),
        lo(hn::Set(hn::RebindToFloat<D>(), static_cast<float>(op.lo - op.zero_point))),
        hi(hn::Set(hn::RebindToFloat<D>(), static_cast<float>(op.hi - op.zero_point))) {}

  HWY_INLINE V first(V x) const { return hn::Sub(x, a_zero); }
  HWY_INLINE V second(V y) const { return hn::Sub(y, b_zero); }
  HWY_INLINE V combine(V x, V y) const {
    const hn::RebindToFloat<D> df;
    const auto product = hn::Mul(hn::ConvertTo(df, hn::Mul(x, y)), scale);
    // Adding 1.5 * 2^23 (bits 0x4B400000) rounds to even in the low bits, as in the 8-bit gemm.
    const auto rounded = hn::Add(hn::Min(hn::Max(product, lo), hi), hn::Set(df, 0x1.8p23F));
    return hn::Add(hn::BitCast(D(), rounded), zero);
  }

  V a_zero, b_zero, zero;
  hn::Vec<hn::RebindToFloat<D> > scale, lo, hi;
};

template <typename Op>
struct VectorOf;
template <>
struct VectorOf<QuantizedAdd> {
  using Type = AddVector;
};
template <>
struct VectorOf<QuantizedMul> {
  using Type = MulVector;
};
template <>
struct VectorOf<DirectAdd> {
  using Type = DirectAddVector;
};
template <>
struct VectorOf<DirectMul> {
  using Type = DirectMulVector;
};

/// True when no intermediate value of `op` leaves 32 bits, whatever the operands of type T.
template <typename T>
bool fits(const QuantizedAdd& op) {
  // Operands of 9 (int16: 16) bits with their sign, shifted to 29 (31), scaled by at most 1/2 each; their sum needs
  // headroom for the left shift.
  constexpr int kMostShift = sizeof(T) == 1 ? 20 : 15;
  return op.left_shift <= kMostShift && op.a.shift <= 0 && op.b.shift <= 0 && op.output.shift <= 0;
}
template <typename T>
bool fits(const QuantizedMul& op) {
  return op.output.shift <= (sizeof(T) == 1 ? 14 : 0);  // products have 18 (31) bits
}
template <typename T>
bool fits(const DirectAdd&) {
  return true;
}
template <typename T>
bool fits(const DirectMul&) {
  return true;
}

template <typename T, typename Vector, bool kRepeatA, bool kRepeatB, typename Op>
HWY_INLINE void run(const Op& op, const T* a, const T* b, T* out, int64_t count) noexcept {
  const Vector f(op);
  const V first_a = f.first(hn::Set(D(), static_cast<int32_t>(*a)));
  const V first_b = f.second(hn::Set(D(), static_cast<int32_t>(*b)));
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const V x = kRepeatA ? first_a : f.first(load(a + i));
    const V y = kRepeatB ? first_b : f.second(load(b + i));
    store(f.combine(x, y), out + i);
  }
  if (i == count) return;
  const size_t rest = static_cast<size_t>(count - i) * sizeof(T);
  T buffer_a[kLanes] = {};
  T buffer_b[kLanes] = {};
  if (!kRepeatA) std::memcpy(buffer_a, a + i, rest);
  if (!kRepeatB) std::memcpy(buffer_b, b + i, rest);
  store(f.combine(kRepeatA ? first_a : f.first(load(buffer_a)), kRepeatB ? first_b : f.second(load(buffer_b))),
        buffer_a);
  std::memcpy(out + i, buffer_a, rest);
}

template <typename T, typename Op>
void row(const Op& op, const T* a, int64_t a_step, const T* b, int64_t b_step, T* out, int64_t count) noexcept {
  using Vector = typename VectorOf<Op>::Type;
  if (count <= 0) return;
  if (!fits<T>(op)) {
    for (int64_t i = 0; i < count; ++i) out[i] = static_cast<T>(op(a[i * a_step], b[i * b_step]));
  } else if (b_step == 0) {
    run<T, Vector, false, true>(op, a, b, out, count);
  } else if (a_step == 0) {
    run<T, Vector, true, false>(op, a, b, out, count);
  } else {
    run<T, Vector, false, false>(op, a, b, out, count);
  }
}

#endif

QuantizedRow<int8_t, QuantizedAdd> add_int8() { return row<int8_t, QuantizedAdd>; }
QuantizedRow<uint8_t, QuantizedAdd> add_uint8() { return row<uint8_t, QuantizedAdd>; }
QuantizedRow<int16_t, QuantizedAdd> add_int16() { return row<int16_t, QuantizedAdd>; }
QuantizedRow<int8_t, QuantizedMul> mul_int8() { return row<int8_t, QuantizedMul>; }
QuantizedRow<uint8_t, QuantizedMul> mul_uint8() { return row<uint8_t, QuantizedMul>; }
QuantizedRow<int16_t, QuantizedMul> mul_int16() { return row<int16_t, QuantizedMul>; }
QuantizedRow<int8_t, DirectAdd> direct_add_int8() { return row<int8_t, DirectAdd>; }
QuantizedRow<uint8_t, DirectAdd> direct_add_uint8() { return row<uint8_t, DirectAdd>; }
QuantizedRow<int8_t, DirectMul> direct_mul_int8() { return row<int8_t, DirectMul>; }
QuantizedRow<uint8_t, DirectMul> direct_mul_uint8() { return row<uint8_t, DirectMul>; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace leadline::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace leadline::kernels {

HWY_EXPORT(add_int8);
HWY_EXPORT(add_uint8);
HWY_EXPORT(add_int16);
HWY_EXPORT(mul_int8);
HWY_EXPORT(mul_uint8);
HWY_EXPORT(mul_int16);
HWY_EXPORT(direct_add_int8);
HWY_EXPORT(direct_add_uint8);
HWY_EXPORT(direct_mul_int8);
HWY_EXPORT(direct_mul_uint8);

template <>
QuantizedRow<int8_t, QuantizedAdd> quantized_row<int8_t, QuantizedAdd>() noexcept {
  return HWY_DYNAMIC_DISPATCH(add_int8)();
}
template <>
QuantizedRow<uint8_t, QuantizedAdd> quantized_row<uint8_t, QuantizedAdd>() noexcept {
  return HWY_DYNAMIC_DISPATCH(add_uint8)();
}
template <>
QuantizedRow<int16_t, QuantizedAdd> quantized_row<int16_t, QuantizedAdd>() noexcept {
  return HWY_DYNAMIC_DISPATCH(add_int16)();
}
template <>
QuantizedRow<int8_t, QuantizedMul> quantized_row<int8_t, QuantizedMul>() noexcept {
  return HWY_DYNAMIC_DISPATCH(mul_int8)();
}
template <>
QuantizedRow<uint8_t, QuantizedMul> quantized_row<uint8_t, QuantizedMul>() noexcept {
  return HWY_DYNAMIC_DISPATCH(mul_uint8)();
}
template <>
QuantizedRow<int16_t, QuantizedMul> quantized_row<int16_t, QuantizedMul>() noexcept {
  return HWY_DYNAMIC_DISPATCH(mul_int16)();
}
template <>
QuantizedRow<int8_t, DirectAdd> quantized_row<int8_t, DirectAdd>() noexcept {
  return HWY_DYNAMIC_DISPATCH(direct_add_int8)();
}
template <>
QuantizedRow<uint8_t, DirectAdd> quantized_row<uint8_t, DirectAdd>() noexcept {
  return HWY_DYNAMIC_DISPATCH(direct_add_uint8)();
}
template <>
QuantizedRow<int8_t, DirectMul> quantized_row<int8_t, DirectMul>() noexcept {
  return HWY_DYNAMIC_DISPATCH(direct_mul_int8)();
}
template <>
QuantizedRow<uint8_t, DirectMul> quantized_row<uint8_t, DirectMul>() noexcept {
  return HWY_DYNAMIC_DISPATCH(direct_mul_uint8)();
}

}  // namespace leadline::kernels
#endif
