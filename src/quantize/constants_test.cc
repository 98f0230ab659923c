// SPDX-License-Identifier: Apache-2.0
#include "quantize/constants.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "core/error.h"
#include "core/half.h"
#include "quantize/parameters.h"

namespace leadline::quantize {
namespace {

/// A constant whose floats have to be read, as those of compressed files.
FloatConstant constant(const Shape& shape, const std::vector<float>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  FloatConstant made;
  made.source = ir::owned_source({bytes.begin(), bytes.end()});
  made.shape = shape;
  return made;
}

template <typename T>
std::vector<T> read(const ir::Source& source) {
  const std::vector<std::byte> bytes = ir::read_all(*source);
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

TEST(WeightScales, OneForEachSliceOfTheAxis) {
  const FloatConstant weights = constant({3, 2}, {1.0F, -2.0F, 3.0F, -4.0F, 5.0F, 6.0F});
  const auto scales = [&](int axis) { return weight_scales(weights, axis, 8, Arithmetic::kDouble); };
  EXPECT_EQ(scales(0), (std::vector<float>{2.0F / 127, 4.0F / 127, 6.0F / 127}));
  EXPECT_EQ(scales(1), (std::vector<float>{5.0F / 127, 6.0F / 127}));
  EXPECT_EQ(scales(-1), (std::vector<float>{6.0F / 127}));
}

TEST(WeightScales, ASliceOfZerosHasAPositiveOne) {
  const FloatConstant weights = constant({2, 2}, {0.0F, 0.0F, 1.0F, 1.0F});
  EXPECT_EQ(weight_scales(weights, 0, 8, Arithmetic::kDouble)[0], 0.5e-6F / 127);
  EXPECT_EQ(weight_scales(weights, 0, 8, Arithmetic::kSingle)[0], 1.0F / 127);
}

TEST(WeightScales, RefusesWhatIsNotFiniteInSinglePrecision) {
  const FloatConstant weights = constant({2}, {1.0F, std::numeric_limits<float>::quiet_NaN()});
  EXPECT_THROW(weight_scales(weights, -1, 8, Arithmetic::kSingle), Error);
  EXPECT_EQ(weight_scales(weights, -1, 8, Arithmetic::kDouble), std::vector<float>{1.0F / 127});
}

TEST(QuantizedSource, RoundsHalvesAwayFromZeroAndClamps) {
  const auto source = quantized_source(constant({5}, {0.25F, -0.25F, 0.24F, 100.0F, -100.0F}),
                                       {DType::kInt8, symmetric({0.5F}, 0), true});
  EXPECT_EQ(read<int8_t>(source), (std::vector<int8_t>{1, -1, 0, 127, -127}));
  const auto full = quantized_source(constant({2}, {-100.0F, 1.0F}), {DType::kInt8, per_tensor({0.5F, 3}), false});
  EXPECT_EQ(read<int8_t>(full), (std::vector<int8_t>{-128, 5}));
}

TEST(QuantizedSource, TakesTheScaleOfEachChannel) {
  const auto source =
      quantized_source(constant({2, 2}, {1.0F, 1.0F, 1.0F, 1.0F}), {DType::kInt8, symmetric({0.5F, 0.25F}, 1), true});
  EXPECT_EQ(read<int8_t>(source), (std::vector<int8_t>{2, 4, 2, 4}));
  EXPECT_EQ(ir::extra_bytes(*source), 16);
}

TEST(QuantizedSource, WideIntegersSaturateAndNanIsZero) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto wide =
      quantized_source(constant({4}, {1e30F, -1e30F, nan, 2.0F}), {DType::kInt64, symmetric({0.5F}, 0), false});
  EXPECT_EQ(read<int64_t>(wide), (std::vector<int64_t>{INT64_MAX, INT64_MIN, 0, 4}));
  const auto narrow = quantized_source(constant({2}, {1e30F, -1e30F}), {DType::kInt32, symmetric({0.5F}, 0), false});
  EXPECT_EQ(read<int32_t>(narrow), (std::vector<int32_t>{INT32_MAX, INT32_MIN}));
}

TEST(QuantizedSource, RefusesScalesThatDoNotFit) {
  EXPECT_THROW(quantized_source(constant({1}, {1.0F}), {DType::kInt8, symmetric({1.0F, 2.0F}, 0), true}), Error);
  EXPECT_THROW(quantized_source(constant({2}, {1.0F}), {DType::kInt8, symmetric({1.0F}, 0), true}), Error);
}

TEST(QuantizedSource, TheTwoArithmeticsDifferInTheLastBit) {
  // 0.35 / 0.1 is 3.5 in single precision; in double precision, of the same floats, it is just below.
  const FloatConstant value = constant({1}, {0.35F});
  const Quantization tenth = symmetric({0.1F}, 0);
  EXPECT_EQ(read<int8_t>(quantized_source(value, {DType::kInt8, tenth, true, Arithmetic::kSingle}))[0], 4);
  EXPECT_EQ(read<int8_t>(quantized_source(value, {DType::kInt8, tenth, true, Arithmetic::kDouble}))[0], 3);
}

TEST(QuantizedSource, PacksNibbles) {
  const FloatConstant value = constant({5}, {-7.0F, 0.5F, 1.5F, -2.5F, 7.0F});
  const std::vector<float> scales = weight_scales(value, -1, 4, Arithmetic::kSingle);
  EXPECT_EQ(scales, std::vector<float>{1.0F});
  const LevelRule rule{DType::kInt4, symmetric(scales, 0), true, Arithmetic::kSingle};
  EXPECT_EQ(read<uint8_t>(quantized_source(value, rule)), (std::vector<uint8_t>{0x19, 0xD2, 0x07}));  // -7, 1; 2, -3; 7
}

TEST(HalfSource, KeepsLargeValuesFinite) {
  const FloatConstant value = constant({3}, {1e9F, -std::numeric_limits<float>::infinity(), 0.1F});
  const auto halves = read<uint16_t>(half_source(value));
  EXPECT_EQ(half_to_float(halves[0]), 65504.0F);
  EXPECT_EQ(half_to_float(halves[1]), -65504.0F);
  EXPECT_NEAR(half_to_float(halves[2]), 0.1F, 1e-4F);
}

}  // namespace
}  // namespace leadline::quantize
