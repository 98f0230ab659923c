// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "kernels/elementwise/half.h"
#include "ops/op_testing.h"

namespace leadline::ops {
namespace {

TEST(Maximum, BroadcastsAndKeepsTypes) {
  OpTester t("MAXIMUM");
  t.input<int8_t>({2, 2}, {1, -2, 3, -4}).input<int8_t>({2}, {0, -3}).output(DType::kInt8);
  t.run();
  EXPECT_EQ(t.result<int8_t>(0), (std::vector<int8_t>{1, -2, 3, -3}));
}

TEST(Minimum, FloatLongerThanAVector) {
  std::vector<float> a;
  std::vector<float> want;
  for (int i = 0; i < 37; ++i) {
    a.push_back(static_cast<float>(i) - 18.0F);
    want.push_back(std::min(a.back(), 0.5F));
  }
  OpTester t("MINIMUM");
  t.input<float>({37}, a).input<float>({}, {0.5F}).output(DType::kFloat32);
  t.run();
  EXPECT_EQ(t.result<float>(0), want);
}

TEST(Maximum, Float16) {
  const auto bytes = [](std::initializer_list<float> values) {
    std::vector<std::byte> raw;
    for (const float v : values) {
      const auto half = std::bit_cast<std::array<std::byte, 2>>(kernels::Half(v));
      raw.insert(raw.end(), half.begin(), half.end());
    }
    return raw;
  };
  OpTester t("MAXIMUM");
  t.raw_input(DType::kFloat16, {2}, bytes({1.5F, -2.0F})).raw_input(DType::kFloat16, {2}, bytes({0.25F, -1.0F}));
  t.output(DType::kFloat16);
  t.run();
  const auto got = t.result<kernels::Half>(0);
  EXPECT_EQ(static_cast<float>(got[0]), 1.5F);
  EXPECT_EQ(static_cast<float>(got[1]), -1.0F);
}

TEST(StablehloMinimum, RefusesBroadcasting) {
  OpTester t("STABLEHLO_MINIMUM");
  t.input<float>({2}, {1, 2}).input<float>({}, {1}).output(DType::kFloat32);
  EXPECT_THROW(t.run(), Error);
}

}  // namespace
}  // namespace leadline::ops
