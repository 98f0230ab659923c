// SPDX-License-Identifier: Apache-2.0
#include "kernels/quant/dynamic.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/quant/rounding.h"
#include "kernels/quant/row_quantize.h"
#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/quant/dynamic.cc"
#include "kernels/all_targets.h"
#include "kernels/quant/row_quantize-inl.h"

#ifndef LEADLINE_KERNELS_QUANT_DYNAMIC_PARAMETERS
#define LEADLINE_KERNELS_QUANT_DYNAMIC_PARAMETERS
namespace leadline::kernels {
namespace {

constexpr float kLowest = -128.0F;
constexpr float kHighest = 127.0F;

/// XNNPACK's choice. Inline, because rows may be short.
inline DynamicQuantization cover(RowRange range) {
  const float lo = std::min(0.0F, range.min);
  const float hi = std::max(0.0F, range.max);
  const float levels_per_unit = lo == hi ? 1.0F : (kHighest - kLowest) / (hi - lo);
  const float lo_level = lo * levels_per_unit;
  const float hi_level = hi * levels_per_unit;
  // The end whose rounding hurts less decides where zero falls.
  float zero = (kLowest + lo_level) + (kHighest + hi_level) > 0.0F ? kLowest - lo_level : kHighest - hi_level;
  zero = zero > kLowest ? std::min(zero, kHighest) : kLowest;  // also for NaN
  return {1.0F / levels_per_unit, static_cast<int32_t>(round_even(zero))};
}

}  // namespace
}  // namespace leadline::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace leadline::kernels {
namespace HWY_NAMESPACE {
namespace {

RowRange range(const float* values, int64_t count) { return row::range_of(values, count); }

void levels(const float* values, int64_t count, const RowPlan& plan, int8_t* quantized) {
  switch (plan.levels) {
    case RowPlan::Levels::kEven:
      return row::write_levels(values, count, row::EvenLevel(plan.inverse, plan.zero_point), quantized);
    case RowPlan::Levels::kCut:
      return row::write_levels(values, count, row::CutLevel(plan.inverse, plan.zero_point), quantized);
    case RowPlan::Levels::kAway:
      return row::write_levels(values, count, row::AwayLevel(plan.inverse), quantized);
    case RowPlan::Levels::kZero:
      std::fill_n(quantized, count, int8_t{0});
      return;
  }
}

/// Rows whose parameters are computed side by side.
constexpr int64_t kBlockRows = 16;
static_assert(kBlockRows % row::kLanes == 0);

struct BlockRanges {
  HWY_ALIGN float min[kBlockRows] = {};
  HWY_ALIGN float max[kBlockRows] = {};
};
struct BlockParameters {
  HWY_ALIGN float scale[kBlockRows];
  HWY_ALIGN float inverse[kBlockRows];
  HWY_ALIGN int32_t zero_point[kBlockRows];
};

/// cover() for a block of rows, with the same bits. The ranges hold 0.
HWY_INLINE void cover_block(const BlockRanges& ranges, BlockParameters& parameters) {
  namespace hn = hwy::HWY_NAMESPACE;
  const row::DF d;
  const row::DI di;
  const row::VF one = hn::Set(d, 1.0F);
  const row::VF lowest = hn::Set(d, kLowest);
  const row::VF highest = hn::Set(d, kHighest);
  for (int64_t i = 0; i < kBlockRows; i += row::kLanes) {
    const row::VF lo = hn::Load(d, ranges.min + i);
    const row::VF hi = hn::Load(d, ranges.max + i);
    const row::VF levels = hn::Div(hn::Set(d, kHighest - kLowest), hn::Sub(hi, lo));
    const row::VF levels_per_unit = hn::IfThenElse(hn::Eq(lo, hi), one, levels);
    const row::VF lo_level = hn::Mul(lo, levels_per_unit);
    const row::VF hi_level = hn::Mul(hi, levels_per_unit);
    const auto at_low_end = hn::Gt(hn::Add(hn::Add(lowest, lo_level), hn::Add(highest, hi_level)), hn::Zero(d));
    const row::VF zero = hn::IfThenElse(at_low_end, hn::Sub(lowest, lo_level), hn::Sub(highest, hi_level));
    const row::VF level = row::at_most(row::at_least(zero, lowest), highest);
    const row::VI bits = hn::BitCast(di, hn::Add(level, hn::Set(d, row::kRound)));
    const row::VF scale = hn::Div(one, levels_per_unit);
    hn::Store(hn::Sub(bits, hn::Set(di, row::kRoundBits)), di, parameters.zero_point + i);
    hn::Store(scale, d, parameters.scale + i);
    hn::Store(hn::Div(one, scale), d, parameters.inverse + i);
  }
}

/// Short rows spend more on their parameters than on their values, so these are computed for many at a time.
void short_rows(const float* values, int64_t begin, int64_t end, int64_t size, int8_t* quantized,
                RowParameters parameters) {
  for (int64_t first = begin; first < end; first += kBlockRows) {
    const int64_t rows = std::min(kBlockRows, end - first);
    BlockRanges ranges;
    BlockParameters block;
    for (int64_t i = 0; i < rows; ++i) {
      const RowRange range = row::range_of(values + (first + i) * size, size);
      ranges.min[i] = range.min;
      ranges.max[i] = range.max;
    }
    cover_block(ranges, block);
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t at = first + i;
      parameters.scale[at] = block.scale[i];
      parameters.zero_point[at] = block.zero_point[i];
      row::write_levels(values + at * size, size, row::EvenLevel(block.inverse[i], block.zero_point[i]),
                        quantized + at * size);
    }
  }
}

void xnnpack_rows(const float* values, int64_t begin, int64_t end, int64_t size, int8_t* quantized,
                  RowParameters parameters) {
  constexpr int64_t kShort = 256;  // a block of rows stays in the first-level cache
  if (size <= kShort && end - begin > 1) return short_rows(values, begin, end, size, quantized, parameters);
  for (int64_t i = begin; i < end; ++i) {
    const float* from = values + i * size;
    const DynamicQuantization q = cover(row::range_of(from, size));
    parameters.scale[i] = q.scale;
    parameters.zero_point[i] = q.zero_point;
    row::write_levels(from, size, row::EvenLevel(1.0F / q.scale, q.zero_point), quantized + i * size);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace leadline::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace leadline::kernels {
namespace {

HWY_EXPORT(range);
HWY_EXPORT(levels);
HWY_EXPORT(xnnpack_rows);

}  // namespace

DynamicQuantization dynamic_quantization(float min, float max) noexcept { return cover({min, max}); }

RowPlan plan_row(RowRule rule, const RowRange& range) noexcept {
  using Levels = RowPlan::Levels;
  if (rule == RowRule::kXnnpack) {
    const DynamicQuantization q = cover(range);
    return {Levels::kEven, q.scale, q.zero_point, 1.0F / q.scale};
  }
  const auto [min, max] = range;
  if (min == max || !std::isfinite(max - min)) return {};
  if (rule == RowRule::kTfliteSymmetric) {
    const float reach = std::max(-min, max);
    return {Levels::kAway, reach / 127.0F, 0, 127.0F / reach};
  }
  // The zero point is taken from the end of the range where it loses less.
  const double scale = static_cast<double>(max - min) / 255.0;
  const double from_min = -128.0 - min / scale;
  const double from_max = 127.0 - max / scale;
  const double chosen = 128.0 + std::abs(min / scale) < 127.0 + std::abs(max / scale) ? from_min : from_max;
  const auto step = static_cast<float>(scale);
  return {Levels::kCut, step, static_cast<int32_t>(std::round(std::clamp(chosen, -128.0, 127.0))),
          static_cast<float>(1.0 / step)};
}

RowRange row_range(const float* values, int64_t count) noexcept { return HWY_DYNAMIC_DISPATCH(range)(values, count); }

RowRange join(const RowRange& a, const RowRange& b) noexcept {
  return {std::min(a.min, b.min), std::max(a.max, b.max)};
}

void write_levels(const float* values, int64_t count, const RowPlan& plan, int8_t* quantized) noexcept {
  HWY_DYNAMIC_DISPATCH(levels)(values, count, plan, quantized);
}

void quantize_rows(const float* values, IndexRange rows, int64_t size, int8_t* quantized, RowParameters parameters,
                   RowRule rule) noexcept {
  if (rule == RowRule::kXnnpack) {
    return HWY_DYNAMIC_DISPATCH(xnnpack_rows)(values, rows.begin, rows.end, size, quantized, parameters);
  }
  for (int64_t i = rows.begin; i < rows.end; ++i) {
    const RowPlan plan = plan_row(rule, row_range(values + i * size, size));
    write_levels(values + i * size, size, plan, quantized + i * size);
    parameters.scale[i] = plan.scale;
    parameters.zero_point[i] = plan.zero_point;
  }
}

}  // namespace leadline::kernels
#endif  // HWY_ONCE
