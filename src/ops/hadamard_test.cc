// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "io/flexbuffer_map_builder.h"
#include "ops/op_testing.h"

namespace leadline::ops {
namespace {

OpTester rotation(int32_t size, const Shape& shape, const std::vector<float>& data) {
  OpTester t("aeq.hadamard_rotation");
  t.custom_options(build_flex_map({{"hadamard_size", size}, {"random_binary_vector", std::vector<int32_t>{1, -1}}}));
  t.input<float>(shape, data, {}, false).output(DType::kFloat32);
  return t;
}

TEST(HadamardRotation, EveryPieceIsRotated) {
  OpTester t = rotation(4, {1, 8}, {1, 2, 3, 4, 1, 0, 0, 0});
  t.threads(2).run();
  EXPECT_EQ(t.result<float>(0), (std::vector<float>{5, -1, -2, 0, 0.5F, 0.5F, 0.5F, 0.5F}));
}

TEST(HadamardRotation, TwiceGivesTheInput) {
  std::vector<float> data;
  for (int i = 0; i < 256; ++i) data.push_back(static_cast<float>(i * 37 % 101) - 50.0F);
  OpTester once = rotation(128, {2, 1, 128}, data);
  once.run();
  OpTester twice = rotation(128, {2, 1, 128}, once.result<float>(0));
  twice.run();
  const auto result = twice.result<float>(0);
  for (size_t i = 0; i < data.size(); ++i) EXPECT_NEAR(result[i], data[i], 1e-4F);
}

TEST(HadamardRotation, WhatIsLeftOfThePiecesStays) {
  OpTester t = rotation(4, {1, 6}, {1, 2, 3, 4, 5, 6});
  t.run();
  EXPECT_EQ(t.result<float>(0), (std::vector<float>{5, -1, -2, 0, 5, 6}));
  OpTester large = rotation(1 << 30, {1, 2}, {1, 2});
  large.run();
  EXPECT_EQ(large.result<float>(0), (std::vector<float>{1, 2}));
}

TEST(HadamardRotation, HostileNodesAreRefused) {
  EXPECT_THROW(rotation(0, {1, 4}, {1, 2, 3, 4}).run(), Error);
  EXPECT_THROW(rotation(3, {1, 4}, {1, 2, 3, 4}).run(), Error);
  EXPECT_THROW(rotation(INT32_MIN, {1, 4}, {1, 2, 3, 4}).run(), Error);
  EXPECT_THROW(rotation(4, {4}, {1, 2, 3, 4}).run(), Error);
}

}  // namespace
}  // namespace leadline::ops
