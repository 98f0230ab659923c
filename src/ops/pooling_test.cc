// SPDX-License-Identifier: Apache-2.0
#include "ops/pooling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "ops/op_testing.h"

namespace leadline::ops {
namespace {

PoolAttributes pool(ir::Padding padding, int stride, int filter, ir::Activation activation = ir::Activation::kNone) {
  PoolAttributes a;
  a.padding = padding;
  a.stride_h = a.stride_w = stride;
  a.filter_height = a.filter_width = filter;
  a.activation = activation;
  return a;
}

TEST(Pooling, AverageCountsOnlyPixelsInsideTheImage) {
  OpTester t("AVERAGE_POOL_2D");
  t.attributes(pool(ir::Padding::kSame, 2, 2)).input<float>({1, 3, 3, 1}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  t.output(DType::kFloat32).run();
  EXPECT_EQ(t.shape(0), (Shape{1, 2, 2, 1}));
  EXPECT_EQ(t.result<float>(0), (std::vector<float>{3, 4.5, 7.5, 9}));
}

TEST(Pooling, QuantizedAverageRoundsTiesAwayFromZero) {
  OpTester t("AVERAGE_POOL_2D");
  t.attributes(pool(ir::Padding::kValid, 2, 2));
  t.input<int8_t>({1, 2, 4, 1}, {1, 2, -1, -2, 2, 1, -2, -1}, quantized(0.5F));
  t.output(DType::kInt8, quantized(0.5F)).run();
  EXPECT_EQ(t.result<int8_t>(0), (std::vector<int8_t>{2, -2}));
}

TEST(Pooling, MaximumOfEveryTypeWithManyChannelsAndThreads) {
  const auto check = [](auto zero, DType type) {
    using T = decltype(zero);
    constexpr int64_t kChannels = 70;  // more than one block
    std::vector<T> data(4 * kChannels);
    for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<T>((i * 37) % 101);
    OpTester t("MAX_POOL_2D");
    t.attributes(pool(ir::Padding::kValid, 1, 2)).input<T>({1, 2, 2, kChannels}, data, quantized(1.0F));
    t.output(type, quantized(1.0F)).threads(2).run();
    const auto result = t.result<T>(0);
    ASSERT_EQ(result.size(), static_cast<size_t>(kChannels));
    for (size_t c = 0; c < kChannels; ++c) {
      T expected = data[c];
      for (size_t k = 1; k < 4; ++k) expected = std::max(expected, data[k * kChannels + c]);
      EXPECT_EQ(result[c], expected) << "channel " << c;
    }
  };
  check(float{}, DType::kFloat32);
  check(uint8_t{}, DType::kUInt8);
  check(int8_t{}, DType::kInt8);
  check(int16_t{}, DType::kInt16);
}

TEST(Pooling, FusedActivationClampsInTheOutputsIntegers) {
  OpTester t("MAX_POOL_2D");
  t.attributes(pool(ir::Padding::kValid, 1, 1, ir::Activation::kRelu6));
  t.input<uint8_t>({1, 1, 3, 1}, {0, 20, 255}, quantized(0.1F, 10)).output(DType::kUInt8, quantized(0.1F, 10)).run();
  EXPECT_EQ(t.result<uint8_t>(0), (std::vector<uint8_t>{10, 20, 70}));
}

TEST(Pooling, L2IsTheRootMeanSquare) {
  OpTester t("L2_POOL_2D");
  t.attributes(pool(ir::Padding::kValid, 2, 2)).input<float>({1, 2, 2, 1}, {0, 6, 2, 4}).output(DType::kFloat32).run();
  EXPECT_FLOAT_EQ(t.result<float>(0)[0], 3.7416575F);
}

TEST(Pooling, EmptyBatchGivesEmptyOutput) {
  OpTester t("AVERAGE_POOL_2D");
  t.attributes(pool(ir::Padding::kSame, 1, 3)).input<float>({0, 4, 4, 2}, {}).output(DType::kFloat32).run();
  EXPECT_EQ(t.shape(0), (Shape{0, 4, 4, 2}));
}

TEST(Pooling, HostileAttributesAreRefused) {
  const std::vector<float> data(16);
  for (const PoolAttributes& a : {pool(ir::Padding::kSame, 0, 2), pool(ir::Padding::kSame, -1, 2),
                                  pool(ir::Padding::kSame, 1, 0), pool(ir::Padding::kValid, 1, 6)}) {
    OpTester t("MAX_POOL_2D");
    t.attributes(a).input<float>({1, 4, 4, 1}, data).output(DType::kFloat32);
    EXPECT_THROW(t.run(), Error);
  }
  OpTester huge("AVERAGE_POOL_2D");
  huge.attributes(pool(ir::Padding::kSame, 1, std::numeric_limits<int32_t>::max()));
  huge.input<float>({1, 1, 2, 1}, {1, 3}).output(DType::kFloat32).run();
  EXPECT_EQ(huge.result<float>(0), (std::vector<float>{2, 2}));
}

}  // namespace
}  // namespace leadline::ops
