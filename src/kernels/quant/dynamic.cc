// SPDX-License-Identifier: Apache-2.0
#include "kernels/quant/dynamic.h"

#include <algorithm>
#include <array>

#include "kernels/quant/rounding.h"
#include "kernels/quant/row_quantize.h"

namespace leadline::kernels {
namespace {

constexpr float kLowest = -128.0F;
constexpr float kHighest = 127.0F;

struct Range {
  float min = 0.0F;
  float max = 0.0F;
};

// Smallest and largest of the values and 0; NaN is skipped. Several lanes, since one chain of minima waits for itself.
Range range_of(const float* values, int64_t count) {
  constexpr int64_t kLanes = 16;
  std::array<float, kLanes> min{};
  std::array<float, kLanes> max{};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const float value = values[i + static_cast<int64_t>(lane)];
      min[lane] = value < min[lane] ? value : min[lane];
      max[lane] = value > max[lane] ? value : max[lane];
    }
  }
  for (; i < count; ++i) {
    min[0] = values[i] < min[0] ? values[i] : min[0];
    max[0] = values[i] > max[0] ? values[i] : max[0];
  }
  return {*std::min_element(min.begin(), min.end()), *std::max_element(max.begin(), max.end())};
}

}  // namespace

DynamicQuantization dynamic_quantization(float min, float max) {
  const float lo = std::min(0.0F, min);
  const float hi = std::max(0.0F, max);
  const float levels_per_unit = lo == hi ? 1.0F : (kHighest - kLowest) / (hi - lo);
  const float lo_level = lo * levels_per_unit;
  const float hi_level = hi * levels_per_unit;
  // The end whose rounding hurts less decides where zero falls.
  float zero = (kLowest + lo_level) + (kHighest + hi_level) > 0.0F ? kLowest - lo_level : kHighest - hi_level;
  zero = zero > kLowest ? std::min(zero, kHighest) : kLowest;  // also for NaN
  return {1.0F / levels_per_unit, static_cast<int32_t>(round_even(zero))};
}

DynamicQuantization quantize_row(const float* values, int64_t count, int8_t* quantized) {
  const Range range = range_of(values, count);
  const DynamicQuantization q = dynamic_quantization(range.min, range.max);
  const float inverse = 1.0F / q.scale;
  const auto zero = static_cast<float>(q.zero_point);
  const float lo = kLowest - zero;
  const float hi = kHighest - zero;
  for (int64_t i = 0; i < count; ++i) {
    const float level = values[i] * inverse;
    const float raised = level > lo ? level : lo;
    const float clamped = raised < hi ? raised : hi;
    quantized[i] = static_cast<int8_t>(static_cast<int32_t>(round_even(clamped) + zero));
  }
  return q;
}

void quantize_rows(const float* values, int64_t rows, int64_t size, int8_t* quantized, RowParameters parameters,
                   ThreadPool& pool, RowRule rule) {
  const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(size, 1));
  pool.parallel_for(rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const float* row = values + i * size;
      int8_t* levels = quantized + i * size;
      if (rule == RowRule::kXnnpack) {
        const DynamicQuantization q = quantize_row(row, size, levels);
        parameters.scale[i] = q.scale;
        parameters.zero_point[i] = q.zero_point;
      } else {
        const RowQuantization q = quantize_recurrent_row(row, size, rule == RowRule::kTfliteAsymmetric, levels);
        parameters.scale[i] = q.scale;
        parameters.zero_point[i] = q.zero_point;
      }
    }
  });
}

}  // namespace leadline::kernels
