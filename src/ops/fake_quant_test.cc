// SPDX-License-Identifier: Apache-2.0
#include "ops/fake_quant.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ops/op_testing.h"

namespace leadline::ops {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

std::vector<float> quantized_values(float min, float max, int32_t bits, bool narrow, const std::vector<float>& values) {
  FakeQuantAttributes a;
  a.min = min;
  a.max = max;
  a.num_bits = bits;
  a.narrow_range = narrow;
  OpTester t("FAKE_QUANT");
  t.attributes(a).input<float>({static_cast<int64_t>(values.size())}, values).output(DType::kFloat32);
  t.run();
  return t.result<float>(0);
}

TEST(FakeQuant, RoundsToLevelsAndClamps) {
  // 2 bits: levels -1, 0, 1, 2; ties go up.
  EXPECT_EQ(quantized_values(-1, 2, 2, false, {-3, -0.5, -0.49, 0.25, 0.5, 1.6, kInf, -kInf, NAN}),
            (std::vector<float>{-1, 0, 0, 0, 1, 2, 2, -1, -1}));
}

TEST(FakeQuant, ZeroIsALevel) {
  // 8 bits over [-0.1, 0.9]: the zero point, a little below 25.5, becomes 25.
  const auto result = quantized_values(-0.1F, 0.9F, 8, false, {0, -1, 1});
  EXPECT_EQ(result[0], 0.0F);
  EXPECT_NEAR(result[1], -25.0F / 255, 1e-6);
  EXPECT_NEAR(result[2], 230.0F / 255, 1e-6);
}

TEST(FakeQuant, RangesWithoutZeroAreMoved) {
  EXPECT_EQ(quantized_values(1, 4, 2, false, {5, -1}), (std::vector<float>{3, 0}));
  EXPECT_EQ(quantized_values(-4, -1, 2, false, {5, -9}), (std::vector<float>{0, -3}));
}

TEST(FakeQuant, NarrowRangeLeavesOutOneLevel) {
  EXPECT_EQ(quantized_values(-1, 1, 2, true, {-3, 0.4, 0.6}), (std::vector<float>{-1, 0, 1}));
}

TEST(FakeQuant, SixteenBits) {
  EXPECT_EQ(quantized_values(0, 65535, 16, false, {65534.5, 70000, 1.25}), (std::vector<float>{65535, 65535, 1}));
}

TEST(FakeQuant, RefusesRangesWithoutLevels) {
  for (const auto& [min, max] : {std::pair{0.0F, 0.0F}, {1.0F, -1.0F}, {NAN, 1.0F}, {0.0F, kInf}, {-3e38F, 3e38F}}) {
    EXPECT_THROW(quantized_values(min, max, 8, false, {1}), Error) << min << " " << max;
  }
  for (const int32_t bits : {0, -1, 17, 32, INT32_MAX}) {
    EXPECT_THROW(quantized_values(-1, 1, bits, false, {1}), Error) << bits;
  }
  EXPECT_THROW(quantized_values(-1, 1, 1, true, {1}), Error);
}

}  // namespace
}  // namespace leadline::ops
