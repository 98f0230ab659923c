// SPDX-License-Identifier: Apache-2.0
// The arithmetic every naive convolution and matrix product shares: how products are summed and how a sum becomes
// an output. These loops are the oracle of the fast kernels and run the forms that have none; they stay simple.
// Invariant: sums of integers wrap instead of overflowing, so no operand can cause undefined behaviour.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "core/index_range.h"
#include "kernels/quant/fixed_point.h"
#include "kernels/quant/rounding.h"

namespace leadline::kernels::reference {

/// Zero point of the activations: the same for all rows, or chosen per row while running.
struct FixedZero {
  int32_t value = 0;
  int32_t operator()(int64_t /*row*/) const { return value; }
};
struct RowZero {
  const int32_t* zero_points = nullptr;
  int32_t operator()(int64_t row) const { return zero_points[row]; }
};

template <typename T>
T wrapping_add(T a, T b) {
  using Unsigned = std::make_unsigned_t<T>;
  return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
}

/// acc + (x - x_zero) * (w - w_zero). Zero points do not apply to real numbers.
template <typename Acc, typename X, typename W>
Acc multiply_add(Acc acc, X x, int32_t x_zero, W w, int32_t w_zero) {
  if constexpr (std::is_floating_point_v<Acc>) {
    return acc + x * w;
  } else {
    return wrapping_add<Acc>(acc, static_cast<Acc>(x - x_zero) * static_cast<Acc>(w - w_zero));
  }
}

/// Clamps; NaN becomes `lo`, so that the result may be converted to an integer.
inline float clamp_level(float value, float lo, float hi) { return value > lo ? (value < hi ? value : hi) : lo; }

/// Real numbers: bias and fused activation.
struct FinishFloat {
  using Acc = float;
  const float* bias = nullptr;  // null: none
  float lo = 0;
  float hi = 0;
  float operator()(float acc, int64_t /*row*/, int64_t channel) const {
    const float sum = bias != nullptr ? acc + bias[channel] : acc;
    return sum < lo ? lo : (sum > hi ? hi : sum);
  }
};

/// 8-bit quantization: one factor per channel in float32, ties to even, as XNNPACK does.
template <typename Out>
struct FinishQuantized {
  using Acc = int32_t;
  const int32_t* bias = nullptr;  // null: none
  const float* scale = nullptr;
  int32_t zero_point = 0;
  int32_t lo = 0;
  int32_t hi = 0;
  int64_t step = 1;  // between the scales of neighbouring channels; 0: one scale for all
  Out operator()(int32_t acc, int64_t /*row*/, int64_t channel) const {
    const int32_t sum = bias != nullptr ? wrapping_add(acc, bias[channel]) : acc;
    const float level = clamp_level(static_cast<float>(sum) * scale[channel * step],
                                    static_cast<float>(lo - zero_point), static_cast<float>(hi - zero_point));
    return static_cast<Out>(static_cast<int32_t>(round_even(level)) + zero_point);
  }
};

/// How TFLite takes sums of int16 activations to output levels.
enum class WideRounding : uint8_t {
  kShortFactor,  ///< fixed-point factors of 16 bits
  kNarrowSum,    ///< the sum is taken to 32 bits first: with an int32 bias
  kReal,         ///< in float64: FULLY_CONNECTED
};

/// int16 activations.
struct FinishWide {
  using Acc = int64_t;
  const int32_t* bias32 = nullptr;
  const int64_t* bias64 = nullptr;
  const Multiplier* multiplier = nullptr;
  WideRounding rounding = WideRounding::kShortFactor;
  int32_t zero_point = 0;
  int32_t lo = 0;
  int32_t hi = 0;
  int64_t step = 1;              // as in FinishQuantized
  const double* real = nullptr;  // kReal: in place of the multipliers
  int16_t operator()(int64_t acc, int64_t /*row*/, int64_t channel) const {
    int64_t sum = acc;
    if (bias32 != nullptr) sum = wrapping_add<int64_t>(sum, bias32[channel]);
    if (bias64 != nullptr) sum = wrapping_add<int64_t>(sum, bias64[channel]);
    return static_cast<int16_t>(std::clamp<int64_t>(int64_t{scaled(sum, channel * step)} + zero_point, lo, hi));
  }
  int32_t scaled(int64_t sum, int64_t at) const {
    switch (rounding) {
      case WideRounding::kShortFactor:
        return multiply_wide(sum, multiplier[at]);
      case WideRounding::kNarrowSum:
        return multiply(saturate_i32(sum), multiplier[at]);
      case WideRounding::kReal:
        break;
    }
    return static_cast<int32_t>(
        std::clamp(std::round(static_cast<double>(sum) * real[at]), -2147483648.0, 2147483647.0));
  }
};

/// Dynamic range: activations were quantized per row while running, weights are quantized per channel.
struct FinishHybrid {
  using Acc = int32_t;
  const float* row_scale = nullptr;
  const float* scale = nullptr;
  const float* bias = nullptr;  // null: none
  float lo = 0;
  float hi = 0;
  int64_t step = 1;  // as in FinishQuantized
  float operator()(int32_t acc, int64_t row, int64_t channel) const {
    const float product = static_cast<float>(acc) * row_scale[row] * scale[channel * step];
    const float sum = bias != nullptr ? product + bias[channel] : product;
    return sum < lo ? lo : (sum > hi ? hi : sum);
  }
};

/// The plain sum.
struct FinishInt32 {
  using Acc = int32_t;
  int32_t operator()(int32_t acc, int64_t /*row*/, int64_t /*channel*/) const { return acc; }
};

/// Computes outputs [begin, end) of a Conv, TransposeConv or Matmul.
template <typename Sums>
void compute_outputs(const Sums& sums, int64_t begin, int64_t end) noexcept {
  const int64_t depth = sums.depth();
  auto output = sums.at(begin);
  for (int64_t index = begin; index < end; ++index, sums.next(output)) {
    sums.write(index, output, sums.add(output, {0, depth}, typename Sums::Acc{0}));
  }
}

/// One output, a range of its depth at a time: adds that to `acc`, and writes the output after the last.
template <typename Sums>
void add_to_output(const Sums& sums, int64_t index, IndexRange range, typename Sums::Acc& acc) noexcept {
  const auto output = sums.at(index);
  acc = sums.add(output, range, acc);
  if (range.end == sums.depth()) sums.write(index, output, acc);
}

}  // namespace leadline::kernels::reference
