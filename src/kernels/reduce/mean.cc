// SPDX-License-Identifier: Apache-2.0
// Column sums with Highway. An Op takes kUnit columns at once: start(), add() of up to kPartRows rows to a part,
// fold() of the part into the sum, finish(). Columns beyond a multiple of kUnit are computed with the last kUnit ones.
#include "kernels/reduce/mean.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/reduce/reduce.h"
#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduce/mean.cc"
#include "kernels/all_targets.h"

HWY_BEFORE_NAMESPACE();
namespace leadline::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kPartRows = SumOp<float>::kPartSteps;  // of float sums
constexpr int kParts = SumOp<float>::kLanes;             // independent sums of a row

static_assert(kColumnSumRows % kPartRows == 0 && kAddRowGrain % (kPartRows * kParts) == 0);

void column_mean(const ColumnSums<float>& c, double divisor, int64_t column, IndexRange rows, ColumnState* state) {
  double sum = rows.begin == 0 ? 0.0 : state->sums[column];
  for (int64_t r0 = rows.begin; r0 < rows.end; r0 += kPartRows) {
    float part = 0.0F;
    for (int64_t r = r0; r < std::min(rows.end, r0 + kPartRows); ++r) part += c.in[r * c.stride + column];
    sum += static_cast<double>(part);
  }
  if (rows.end < c.rows) {
    state->sums[column] = sum;
  } else {
    c.out[column] = static_cast<float>(sum / divisor);
  }
}

template <typename T>
void column_level(const ColumnSums<T>& c, const MeanLevel& m, int64_t column, IndexRange rows, ColumnState* state) {
  int32_t sum = rows.begin == 0 ? m.offset : static_cast<int32_t>(state->sums[column]);
  for (int64_t r = rows.begin; r < rows.end; ++r) sum += c.in[r * c.stride + column];
  if (rows.end < c.rows) {
    state->sums[column] = sum;
    return;
  }
  const float level =
      std::clamp(static_cast<float>(sum) * m.scale, static_cast<float>(std::numeric_limits<T>::min() - m.zero_point),
                 static_cast<float>(std::numeric_limits<T>::max() - m.zero_point));
  c.out[column] = static_cast<T>(static_cast<int32_t>(std::lrint(level)) + m.zero_point);
}

void mean_few_f32(const ColumnSums<float>& c, double divisor, IndexRange rows, ColumnState* state) {
  for (int64_t i = 0; i < c.columns; ++i) column_mean(c, divisor, i, rows, state);
}

template <typename T>
void mean_few_8(const ColumnSums<T>& c, const MeanLevel& m, IndexRange rows, ColumnState* state) {
  for (int64_t i = 0; i < c.columns; ++i) column_level(c, m, i, rows, state);
}

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

void mean_f32(const ColumnSums<float>& c, double divisor, IndexRange rows, ColumnState* state) noexcept {
  mean_few_f32(c, divisor, rows, state);
}

template <typename T>
void mean_8(const ColumnSums<T>& c, const MeanLevel& m, IndexRange rows, ColumnState* state) noexcept {
  mean_few_8(c, m, rows, state);
}

double add_row(double sum, const float* in, int64_t count) noexcept {
  for (int64_t k = 0; k < count; k += kPartRows * kParts) {
    const int64_t n = std::min(count - k, kPartRows * kParts);
    float parts[kParts] = {};
    for (int64_t i = 0; i < n; ++i) parts[i % kParts] += in[k + i];
    for (const float part : parts) sum += static_cast<double>(part);
  }
  return sum;
}

#else

/// All of a vector, or 16 bytes of it.
template <typename T, bool kSmall>
using TagOf = std::conditional_t<kSmall, hn::CappedTag<T, 16 / sizeof(T)>, hn::ScalableTag<T> >;

template <class V>
struct Halves {
  V low, high;
};

template <class D>
struct MeanF32 {
  using T = float;
  using DD = hn::Repartition<double, D>;
  using Part = hn::Vec<D>;
  using Sum = Halves<hn::Vec<DD> >;
  static constexpr int64_t kUnit = hn::MaxLanes(D());
  static constexpr int64_t kRows = kPartRows;

  explicit MeanF32(double by) : divisor(hn::Set(DD(), by)) {}
  HWY_INLINE Part part() const { return hn::Zero(D()); }
  HWY_INLINE Sum start() const { return {hn::Zero(DD()), hn::Zero(DD())}; }
  HWY_INLINE Sum load(const ColumnState& state, int64_t at) const {
    return {hn::LoadU(DD(), state.sums + at), hn::LoadU(DD(), state.sums + at + kUnit / 2)};
  }
  HWY_INLINE void save(const Sum& sum, ColumnState& state, int64_t at) const {
    hn::StoreU(sum.low, DD(), state.sums + at);
    hn::StoreU(sum.high, DD(), state.sums + at + kUnit / 2);
  }
  HWY_INLINE Part add(Part part, const float* in) const { return hn::Add(part, hn::LoadU(D(), in)); }
  HWY_INLINE void fold(Sum& sum, Part part) const {
    const hn::Half<D> half;
    sum.low = hn::Add(sum.low, hn::PromoteTo(DD(), hn::LowerHalf(half, part)));
    sum.high = hn::Add(sum.high, hn::PromoteTo(DD(), hn::UpperHalf(half, part)));
  }
  HWY_INLINE void finish(const Sum& sum, float* out) const {
    const hn::Half<D> half;
    hn::StoreU(hn::DemoteTo(half, hn::Div(sum.low, divisor)), half, out);
    hn::StoreU(hn::DemoteTo(half, hn::Div(sum.high, divisor)), half, out + kUnit / 2);
  }

  hn::Vec<DD> divisor;
};

/// Parts have 16 bits, which 256 rows fill at most.
template <typename Type, class D>
struct Mean8 {
  using T = Type;
  using D32 = hn::Repartition<int32_t, D>;
  using DF = hn::RebindToFloat<D32>;
  using Part = hn::Vec<D>;
  using Sum = Halves<hn::Vec<D32> >;
  static constexpr int64_t kUnit = hn::MaxLanes(D());
  static constexpr int64_t kRows = 256;

  explicit Mean8(const MeanLevel& m)
      : offset(hn::Set(D32(), m.offset)),
        zero(hn::Set(D32(), m.zero_point)),
        scale(hn::Set(DF(), m.scale)),
        lo(hn::Set(DF(), static_cast<float>(std::numeric_limits<T>::min() - m.zero_point))),
        hi(hn::Set(DF(), static_cast<float>(std::numeric_limits<T>::max() - m.zero_point))) {}
  HWY_INLINE Part part() const { return hn::Zero(D()); }
  HWY_INLINE Sum start() const { return {offset, offset}; }
  HWY_INLINE Sum load(const ColumnState& state, int64_t at) const {
    const auto* sums = reinterpret_cast<const int32_t*>(state.sums) + at;
    return {hn::LoadU(D32(), sums), hn::LoadU(D32(), sums + kUnit / 2)};
  }
  HWY_INLINE void save(const Sum& sum, ColumnState& state, int64_t at) const {
    auto* sums = reinterpret_cast<int32_t*>(state.sums) + at;
    hn::StoreU(sum.low, D32(), sums);
    hn::StoreU(sum.high, D32(), sums + kUnit / 2);
  }
  HWY_INLINE Part add(Part part, const T* in) const {
    return hn::Add(part, hn::PromoteTo(D(), hn::LoadU(hn::Rebind<T, D>(), in)));
  }
  HWY_INLINE void fold(Sum& sum, Part part) const {
    const hn::Half<D> half;
    sum.low = hn::Add(sum.low, hn::PromoteTo(D32(), hn::LowerHalf(half, part)));
    sum.high = hn::Add(sum.high, hn::PromoteTo(D32(), hn::UpperHalf(half, part)));
  }
  HWY_INLINE void store(hn::Vec<D32> sum, T* out) const {
    const hn::Rebind<T, D32> narrow;
    const auto level = hn::Min(hn::Max(hn::Mul(hn::ConvertTo(DF(), sum), scale), lo), hi);
    hn::StoreU(hn::DemoteTo(narrow, hn::Add(hn::NearestInt(level), zero)), narrow, out);
  }
  HWY_INLINE void finish(const Sum& sum, T* out) const {
    store(sum.low, out);
    store(sum.high, out + kUnit / 2);
  }

  hn::Vec<D32> offset, zero;
  hn::Vec<DF> scale, lo, hi;
};

/// kUnits times kUnit columns from `column` on; their sums are at `slot` of the state.
template <int kUnits, class Op, typename T>
HWY_INLINE void mean_units(const Op& op, const ColumnSums<T>& c, int64_t column, IndexRange rows, ColumnState* state,
                           int64_t slot) {
  typename Op::Sum sums[kUnits];
  if (HWY_LIKELY(rows.begin == 0)) {
#pragma GCC unroll 4
    for (int k = 0; k < kUnits; ++k) sums[k] = op.start();
  } else {
#pragma GCC unroll 4
    for (int k = 0; k < kUnits; ++k) sums[k] = op.load(*state, slot + k * Op::kUnit);
  }
  const T* in = c.in + rows.begin * c.stride + column;
  for (int64_t row = rows.begin; row < rows.end;) {
    const int64_t end = std::min(rows.end, row + Op::kRows);
    typename Op::Part parts[kUnits];
#pragma GCC unroll 4
    for (int k = 0; k < kUnits; ++k) parts[k] = op.part();
    for (; row < end; ++row, in += c.stride) {
#pragma GCC unroll 4
      for (int k = 0; k < kUnits; ++k) parts[k] = op.add(parts[k], in + k * Op::kUnit);
    }
#pragma GCC unroll 4
    for (int k = 0; k < kUnits; ++k) op.fold(sums[k], parts[k]);
  }
  if (HWY_UNLIKELY(rows.end < c.rows)) {
    for (int k = 0; k < kUnits; ++k) op.save(sums[k], *state, slot + k * Op::kUnit);
    return;
  }
#pragma GCC unroll 4
  for (int k = 0; k < kUnits; ++k) op.finish(sums[k], c.out + column + k * Op::kUnit);
}

template <class Op>
HWY_INLINE void mean_columns(const Op& op, const ColumnSums<typename Op::T>& c, IndexRange rows, ColumnState* state) {
  int64_t i = 0;
  for (; i + 4 * Op::kUnit <= c.columns; i += 4 * Op::kUnit) mean_units<4>(op, c, i, rows, state, i);
  for (; i + Op::kUnit <= c.columns; i += Op::kUnit) mean_units<1>(op, c, i, rows, state, i);
  // The last columns overlap those before them, but their sums do not.
  if (i < c.columns) mean_units<1>(op, c, c.columns - Op::kUnit, rows, state, i);
}

void mean_f32(const ColumnSums<float>& c, double divisor, IndexRange rows, ColumnState* state) noexcept {
  using Wide = MeanF32<TagOf<float, false> >;
  using Narrow = MeanF32<TagOf<float, true> >;
  if (c.columns >= Wide::kUnit) return mean_columns(Wide(divisor), c, rows, state);
  if (c.columns >= Narrow::kUnit) return mean_columns(Narrow(divisor), c, rows, state);
  mean_few_f32(c, divisor, rows, state);
}

template <typename T>
void mean_8(const ColumnSums<T>& c, const MeanLevel& m, IndexRange rows, ColumnState* state) noexcept {
  using Lane = std::conditional_t<std::is_signed_v<T>, int16_t, uint16_t>;
  using Wide = Mean8<T, TagOf<Lane, false> >;
  using Narrow = Mean8<T, TagOf<Lane, true> >;
  static_assert(Wide::kUnit <= 64 && kColumnSumRows % Wide::kRows == 0);
  if (c.columns >= Wide::kUnit) return mean_columns(Wide(m), c, rows, state);
  if (c.columns >= Narrow::kUnit) return mean_columns(Narrow(m), c, rows, state);
  mean_few_8(c, m, rows, state);
}

double add_row(double sum, const float* in, int64_t count) noexcept {
  using D = hn::CappedTag<float, kParts>;
  constexpr int kLanes = hn::MaxLanes(D());
  constexpr int kVectors = kParts / kLanes;
  const D d;
  for (int64_t k = 0; k < count; k += kPartRows * kParts) {
    const int64_t end = std::min(count, k + kPartRows * kParts);
    hn::Vec<D> v[kVectors];
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) v[j] = hn::Zero(d);
    int64_t i = k;
    for (; i + kParts <= end; i += kParts) {
#pragma GCC unroll 4
      for (int j = 0; j < kVectors; ++j) v[j] = hn::Add(v[j], hn::LoadU(d, in + i + j * kLanes));
    }
    HWY_ALIGN float parts[kParts];
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) hn::Store(v[j], d, parts + j * kLanes);
    for (int j = 0; i < end; ++i, ++j) parts[j] += in[i];
    for (const float part : parts) sum += static_cast<double>(part);
  }
  return sum;
}

#endif

MeanColumnsF32 choose_f32() { return mean_f32; }
MeanColumns8<int8_t> choose_i8() { return mean_8<int8_t>; }
MeanColumns8<uint8_t> choose_u8() { return mean_8<uint8_t>; }
AddRowF32 choose_row() { return add_row; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace leadline::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace leadline::kernels {

HWY_EXPORT(choose_f32);
HWY_EXPORT(choose_i8);
HWY_EXPORT(choose_u8);
HWY_EXPORT(choose_row);

MeanColumnsF32 mean_columns_f32() noexcept { return HWY_DYNAMIC_DISPATCH(choose_f32)(); }
template <>
MeanColumns8<int8_t> mean_columns_8<int8_t>() noexcept {
  return HWY_DYNAMIC_DISPATCH(choose_i8)();
}
template <>
MeanColumns8<uint8_t> mean_columns_8<uint8_t>() noexcept {
  return HWY_DYNAMIC_DISPATCH(choose_u8)();
}
AddRowF32 add_row_f32() noexcept { return HWY_DYNAMIC_DISPATCH(choose_row)(); }

}  // namespace leadline::kernels
#endif
