// SPDX-License-Identifier: Apache-2.0
#include "ops/concatenation.h"

#include <gtest/gtest.h>

#include "ops/op_testing.h"

namespace leadline::ops {
namespace {

ConcatenationAttributes along(int32_t axis) {
  ConcatenationAttributes a;
  a.axis = axis;
  return a;
}

PackAttributes packing(int32_t count, int32_t axis) {
  PackAttributes a;
  a.values_count = count;
  a.axis = axis;
  return a;
}

TEST(Concatenation, AlongEveryAxis) {
  OpTester outer("CONCATENATION");
  outer.attributes(along(0)).input<float>({1, 2}, {1, 2}).input<float>({2, 2}, {3, 4, 5, 6}).output(DType::kFloat32);
  outer.run();
  EXPECT_EQ(outer.shape(0), (Shape{3, 2}));
  EXPECT_EQ(outer.result<float>(0), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  OpTester inner("CONCATENATION");
  inner.attributes(along(-1)).input<int64_t>({2, 1}, {1, 2}).input<int64_t>({2, 0}, {});
  inner.input<int64_t>({2, 2}, {3, 4, 5, 6}).output(DType::kInt64);
  inner.run();
  EXPECT_EQ(inner.result<int64_t>(0), (std::vector<int64_t>{1, 3, 4, 2, 5, 6}));
}

TEST(Concatenation, RescalesUint8) {
  OpTester t("CONCATENATION");  // 0.5 * (q - 10) in the output's 0.25 * (q - 128)
  t.attributes(along(0)).input<uint8_t>({3}, {10, 11, 255}, quantized(0.5F, 10));
  t.input<uint8_t>({2}, {0, 200}, quantized(0.25F, 128)).output(DType::kUInt8, quantized(0.25F, 128));
  t.run();
  EXPECT_EQ(t.result<uint8_t>(0), (std::vector<uint8_t>{128, 130, 255, 0, 200}));
}

TEST(Concatenation, RefusesInt8OfOtherScales) {
  OpTester t("CONCATENATION");
  t.attributes(along(0)).input<int8_t>({1}, {1}, quantized(0.5F)).input<int8_t>({1}, {1}, quantized(0.25F));
  t.output(DType::kInt8, quantized(0.5F));
  EXPECT_THROW(t.run(), Error);
}

TEST(Concatenation, OddNumbersOfInt4) {
  OpTester t("CONCATENATION");
  t.attributes(along(0)).raw_input(DType::kInt4, {3}, {std::byte{0x21}, std::byte{0x03}});
  t.raw_input(DType::kInt4, {2}, {std::byte{0x54}}).output(DType::kInt4);
  t.run();
  EXPECT_EQ(t.result<uint8_t>(0), (std::vector<uint8_t>{0x21, 0x43, 0x05}));
}

TEST(Concatenation, ScalarsBecomeAVector) {
  OpTester t("CONCATENATION");
  t.attributes(along(0)).input<int32_t>({}, {4}).input<int32_t>({}, {5}).output(DType::kInt32);
  t.run();
  EXPECT_EQ(t.result<int32_t>(0), (std::vector<int32_t>{4, 5}));
}

TEST(Concatenation, TwoThreadsGiveTheSame) {
  std::vector<float> a(200 * 300);
  std::vector<float> b(200 * 100);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i);
  for (size_t i = 0; i < b.size(); ++i) b[i] = -static_cast<float>(i);
  OpTester t("CONCATENATION");
  t.attributes(along(1)).input<float>({200, 300}, a).input<float>({200, 100}, b).output(DType::kFloat32).threads(2);
  t.run();
  const auto out = t.result<float>(0);
  for (size_t r = 0; r < 200; ++r) {
    for (size_t k = 0; k < 400; ++k) ASSERT_EQ(out[r * 400 + k], k < 300 ? a[r * 300 + k] : b[r * 100 + k - 300]);
  }
}

TEST(Concatenation, RefusesShapesThatDiffer) {
  OpTester t("CONCATENATION");
  t.attributes(along(0)).input<float>({1, 2}, {1, 2}).input<float>({1, 3}, {1, 2, 3}).output(DType::kFloat32);
  EXPECT_THROW(t.run(), Error);
  OpTester axis("CONCATENATION");
  axis.attributes(along(2)).input<float>({1, 2}, {1, 2}).output(DType::kFloat32);
  EXPECT_THROW(axis.run(), Error);
}

TEST(Pack, MakesANewAxis) {
  OpTester first("PACK");
  first.attributes(packing(2, 0)).input<int16_t>({2}, {1, 2}).input<int16_t>({2}, {3, 4}).output(DType::kInt16);
  first.run();
  EXPECT_EQ(first.shape(0), (Shape{2, 2}));
  EXPECT_EQ(first.result<int16_t>(0), (std::vector<int16_t>{1, 2, 3, 4}));
  OpTester last("PACK");
  last.attributes(packing(2, -1)).input<int16_t>({2}, {1, 2}).input<int16_t>({2}, {3, 4}).output(DType::kInt16);
  last.run();
  EXPECT_EQ(last.result<int16_t>(0), (std::vector<int16_t>{1, 3, 2, 4}));
}

TEST(Pack, RefusesAWrongCountAndOtherShapes) {
  OpTester count("PACK");
  count.attributes(packing(3, 0)).input<float>({1}, {1}).input<float>({1}, {1}).output(DType::kFloat32);
  EXPECT_THROW(count.run(), Error);
  OpTester shape("PACK");
  shape.attributes(packing(2, 0)).input<float>({1}, {1}).input<float>({2}, {1, 2}).output(DType::kFloat32);
  EXPECT_THROW(shape.run(), Error);
}

}  // namespace
}  // namespace leadline::ops
