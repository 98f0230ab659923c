// SPDX-License-Identifier: Apache-2.0
#include "quantize/rounding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "core/half.h"
#include "quantize/gram.h"
#include "quantize/rotation.h"

namespace leadline::quantize {
namespace {

std::vector<float> normal(int64_t count, int seed) {
  std::mt19937 random(static_cast<unsigned>(seed));
  std::normal_distribution<float> distribution;
  std::vector<float> result(static_cast<size_t>(count));
  for (float& value : result) value = distribution(random);
  return result;
}

FloatConstant constant(const std::vector<float>& values, const Shape& shape) {
  return {.data = std::as_bytes(std::span(values)), .shape = shape};
}

/// Inputs that go up and down together, so that errors can make up for one another.
GramMatrix related(int64_t columns, int64_t groups = 1) {
  GramMatrix gram{0, 0, groups, columns, {}};
  for (int64_t g = 0; g < groups; ++g) {
    for (int64_t i = 0; i < columns; ++i) {
      for (int64_t j = i; j < columns; ++j) {
        const double value =
            (i == j ? 1.5 : 1.0) * (1.0 + static_cast<double>(i % 3)) * (1.0 + static_cast<double>(j % 3));
        gram.sums.push_back(static_cast<GramMatrix::Sum>(value * 0x1p64));
      }
    }
  }
  return gram;
}

/// e^T G e over all rows.
double cost(const GramMatrix& gram, const std::vector<float>& weights, const std::vector<std::byte>& levels, int bits,
            const std::vector<float>& scales) {
  std::vector<float> g(static_cast<size_t>(gram.columns * gram.columns));
  gram.expand(0, g);
  double sum = 0.0;
  const auto columns = static_cast<size_t>(gram.columns);
  for (size_t row = 0; row < weights.size() / columns; ++row) {
    std::vector<double> errors;
    for (size_t i = 0; i < columns; ++i) {
      const size_t at = row * columns + i;
      int level = static_cast<int8_t>(levels[bits == 4 ? at / 2 : at]);
      if (bits == 4) {
        level = static_cast<int>(levels[at / 2]) >> (at % 2 == 0 ? 0 : 4) & 0xF;
        if (level > 7) level -= 16;
      }
      errors.push_back(
          static_cast<double>(weights[at] - scales[scales.size() == 1 ? 0 : row] * static_cast<float>(level)));
    }
    for (size_t i = 0; i < columns; ++i) {
      for (size_t j = 0; j < columns; ++j) sum += errors[i] * errors[j] * static_cast<double>(g[i * columns + j]);
    }
  }
  return sum;
}

double cost_of(WeightRounding method, const GramMatrix& gram, const std::vector<float>& weights, const Shape& shape,
               int bits, int axis) {
  const Rounding rounding{method, 0, &gram};
  const std::vector<float> scales = weight_scales(constant(weights, shape), axis, bits, Arithmetic::kSingle, rounding);
  Quantization quantization;
  quantization.scale = scales;
  quantization.zero_point.assign(scales.size(), 0);
  const auto source = quantized_source(constant(weights, shape), {bits == 4 ? DType::kInt4 : DType::kInt8, quantization,
                                                                  true, Arithmetic::kSingle, rounding});
  return cost(gram, weights, ir::read_all(*source), bits, scales);
}

TEST(Rounding, LosesLessTheMoreItLooksAt) {
  const Shape shape{6, 24};
  const std::vector<float> weights = normal(6 * 24, 1);
  const GramMatrix gram = related(24);
  for (const int axis : {0, -1}) {
    for (const int bits : {4, 8}) {
      const double nearest = cost_of(WeightRounding::kNearest, gram, weights, shape, bits, axis);
      const double comq = cost_of(WeightRounding::kComq, gram, weights, shape, bits, axis);
      EXPECT_LT(comq, 0.65 * nearest) << bits << " bits, axis " << axis;
    }
  }
}

TEST(Rounding, ScalesCutOffWhatIsRare) {
  std::vector<float> weights = normal(2 * 512, 2);
  weights[5] = 12.0F;  // in the first row
  const Shape shape{2, 512};
  const auto nearest = weight_scales(constant(weights, shape), 0, 4, Arithmetic::kSingle);
  const auto mse = weight_scales(constant(weights, shape), 0, 4, Arithmetic::kSingle, {WeightRounding::kMse, 0});
  EXPECT_FLOAT_EQ(nearest[0], 12.0F / 7.0F);
  EXPECT_LT(mse[0], 0.6F * nearest[0]);
  EXPECT_LE(mse[1], nearest[1]);
  const auto planned = weight_scales(constant(weights, shape), 0, 4, Arithmetic::kSingle,
                                     {.method = WeightRounding::kMse, .planned = true});
  EXPECT_EQ(planned, nearest);
}

TEST(Rounding, RowsThatAreNotContiguousAndGroups) {
  // Depthwise: [1, 3, 3, 4] along axis 3, two channels for each input.
  const Shape shape{1, 3, 3, 4};
  const std::vector<float> weights = normal(36, 3);
  const GramMatrix gram = related(9, 2);
  const Rounding rounding{WeightRounding::kComq, 3, &gram};
  const auto scales = weight_scales(constant(weights, shape), 3, 8, Arithmetic::kDouble, rounding);
  ASSERT_EQ(scales.size(), 4U);
  Quantization quantization;
  quantization.scale = scales;
  quantization.zero_point.assign(4, 0);
  quantization.axis = 3;
  const auto bytes = ir::read_all(
      *quantized_source(constant(weights, shape), {DType::kInt8, quantization, true, Arithmetic::kDouble, rounding}));
  for (size_t i = 0; i < 36; ++i) {
    const auto level = static_cast<float>(static_cast<int8_t>(bytes[i]));
    EXPECT_NEAR(level * scales[i % 4], weights[i], 4.0F * scales[i % 4]) << i;
  }
}

TEST(Rounding, WithoutProductsWeightsGoToTheNearest) {
  const Shape shape{2, 16};
  const std::vector<float> weights = normal(32, 4);
  const GramMatrix empty{0, 0, 1, 16, {}};
  const GramMatrix other = related(8);
  for (const GramMatrix* gram : {static_cast<const GramMatrix*>(nullptr), &empty, &other}) {
    const Rounding rounding{WeightRounding::kComq, 0, gram};
    Quantization quantization;
    quantization.scale = {0.1F};
    quantization.zero_point = {0};
    const LevelRule rule{DType::kInt8, quantization, true, Arithmetic::kSingle, rounding};
    LevelRule nearest = rule;
    nearest.rounding = {};
    EXPECT_EQ(ir::read_all(*quantized_source(constant(weights, shape), rule)),
              ir::read_all(*quantized_source(constant(weights, shape), nearest)));
  }
}

TEST(Rounding, ProductsOfRotatedRows) {
  const Shape shape{4, 32};
  const std::vector<float> weights = normal(128, 5);
  const GramMatrix gram = related(32);
  const FloatConstant turned = rotated(constant(weights, shape), 16);
  const auto bytes = ir::read_all(*turned.source);
  std::vector<float> rows(128);
  std::memcpy(rows.data(), bytes.data(), bytes.size());
  const auto lost = [&](const Rounding& rounding) {
    Quantization quantization;
    quantization.scale = weight_scales(turned, 0, 4, Arithmetic::kSingle, rounding);
    quantization.zero_point.assign(4, 0);
    const auto levels =
        ir::read_all(*quantized_source(turned, {DType::kInt4, quantization, true, Arithmetic::kSingle, rounding}));
    std::vector<float> made(128);
    for (size_t i = 0; i < made.size(); ++i) {
      const int half = static_cast<int>(levels[i / 2]) >> (i % 2 == 0 ? 0 : 4) & 0xF;
      made[i] = static_cast<float>(half > 7 ? half - 16 : half) * quantization.scale[i / 32];
    }
    for (size_t i = 0; i < made.size(); i += 16) rotate(made.data() + i, 16);  // back
    std::vector<std::byte> zeros(128);
    for (size_t i = 0; i < made.size(); ++i) made[i] = weights[i] - made[i];
    return cost(gram, made, zeros, 8, {1.0F});
  };
  EXPECT_LT(lost({WeightRounding::kComq, 0, &gram, 16}), 0.4 * lost({WeightRounding::kNearest, 0, &gram, 16}));
}

TEST(Rounding, BlocksTakeProductsToo) {
  const Shape shape{3, 64};
  const std::vector<float> weights = normal(192, 6);
  const GramMatrix gram = related(64);
  const auto lost = [&](WeightRounding method) {
    const Rounding rounding{method, 0, &gram};
    const auto scales = ir::read_all(*block_scales_source(constant(weights, shape), 32, rounding));
    const auto levels = ir::read_all(*block_source(constant(weights, shape), 32, rounding));
    std::vector<float> errors(192);
    for (size_t i = 0; i < errors.size(); ++i) {
      uint16_t half;
      std::memcpy(&half, scales.data() + i / 32 * 2, 2);
      const int nibble = static_cast<int>(levels[i / 2]) >> (i % 2 == 0 ? 0 : 4) & 0xF;
      errors[i] = weights[i] - static_cast<float>(nibble > 7 ? nibble - 16 : nibble) * half_to_float(half);
      EXPECT_EQ(half & 7U, 0U) << "scales have the 7 bits of bfloat16";
    }
    return cost(gram, errors, std::vector<std::byte>(192), 8, {1.0F});
  };
  EXPECT_LT(lost(WeightRounding::kComq), 0.6 * lost(WeightRounding::kNearest));
}

}  // namespace
}  // namespace leadline::quantize
