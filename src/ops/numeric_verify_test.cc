// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "io/flexbuffer_map_builder.h"
#include "ops/op_testing.h"

namespace leadline::ops {
namespace {

std::vector<std::byte> options(float tolerance, bool log_if_failed) {
  return build_flex_map({{"log_if_failed", log_if_failed}, {"tolerance", tolerance}});
}

template <typename T>
OpTester verify(float tolerance, bool log_if_failed, const std::vector<T>& levels, const Quantization& q) {
  OpTester t("NumericVerify");
  t.custom_options(options(tolerance, log_if_failed));
  t.input<T>({2, 2}, levels, q);
  t.input<float>({2, 2}, {1, 2, 3, 4}).output(DType::kFloat32);
  return t;
}

TEST(NumericVerify, GivesTheDifferenceOfEveryType) {
  const std::vector<float> expected = {0, 0.5F, -0.5F, 1};
  OpTester bytes = verify<uint8_t>(5.0F, false, {12, 15, 15, 20}, quantized(0.5F, 10));
  bytes.run();
  EXPECT_EQ(bytes.result<float>(0), expected);
  OpTester chars = verify<int8_t>(5.0F, false, {-8, -5, -5, 0}, quantized(0.5F, -10));
  chars.run();
  EXPECT_EQ(chars.result<float>(0), expected);
  OpTester words = verify<int16_t>(5.0F, false, {2, 5, 5, 10}, quantized(0.5F, 0));
  words.run();
  EXPECT_EQ(words.result<float>(0), expected);
  OpTester halves("NumericVerify");
  halves.custom_options(options(5.0F, false));
  halves.raw_input(DType::kFloat16, {1}, {std::byte{0}, std::byte{0x3c}}).input<float>({1}, {0.25F});
  halves.output(DType::kFloat32).run();
  EXPECT_EQ(halves.result<float>(0), (std::vector<float>{0.75F}));
}

TEST(NumericVerify, ScalesPerChannel) {
  Quantization q;
  q.scale = {0.5F, 1.0F};
  q.zero_point = {0, 1};
  q.axis = 1;
  OpTester t = verify<int8_t>(5.0F, false, {2, 3, 6, 5}, q);
  t.run();
  EXPECT_EQ(t.result<float>(0), (std::vector<float>{0, 0, 0, 0}));
}

TEST(NumericVerify, DifferencesAboveTheToleranceAreErrorsWhenAskedFor) {
  EXPECT_NO_THROW(verify<uint8_t>(2.0F, true, {12, 15, 15, 20}, quantized(0.5F, 10)).run());
  EXPECT_THROW(verify<uint8_t>(1.5F, true, {12, 15, 15, 20}, quantized(0.5F, 10)).run(), Error);
  EXPECT_NO_THROW(verify<uint8_t>(0.05F, true, {12, 15, 15, 20}, quantized(0.5F, 10)).run());
}

TEST(NumericVerify, HostileNodesAreRefused) {
  EXPECT_THROW(verify<uint8_t>(1.5F, false, {12, 15, 15, 20}, {}).run(), Error);
  OpTester shapes("NumericVerify");
  shapes.custom_options(options(5.0F, false));
  shapes.input<int8_t>({2}, {1, 2}, quantized(1)).input<float>({1}, {1}).output(DType::kFloat32);
  EXPECT_THROW(shapes.run(), Error);
  OpTester none("NumericVerify");
  none.input<int8_t>({1}, {1}, quantized(1)).input<float>({1}, {1}).output(DType::kFloat32);
  EXPECT_THROW(none.run(), Error);
}

}  // namespace
}  // namespace leadline::ops
