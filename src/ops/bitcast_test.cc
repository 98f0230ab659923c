// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "ops/op_testing.h"

namespace leadline::ops {
namespace {

TEST(Bitcast, SameSizeKeepsTheShape) {
  OpTester t("BITCAST");
  t.input<float>({1, 2}, {1.0F, -2.0F}).output(DType::kUInt32);
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{1, 2}));
  EXPECT_EQ(t.result<uint32_t>(0), (std::vector<uint32_t>{0x3F800000, 0xC0000000}));
}

TEST(Bitcast, NarrowerTypesAddAnAxis) {
  OpTester t("BITCAST");
  t.input<uint32_t>({2}, {0x00020001, 0xFFFF0003}).output(DType::kInt16);
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{2, 2}));
  EXPECT_EQ(t.result<int16_t>(0), (std::vector<int16_t>{1, 2, 3, -1}));
  OpTester scalar("BITCAST");
  scalar.input<int64_t>({}, {-1}).output(DType::kUInt8);
  scalar.run();
  EXPECT_EQ(scalar.shape(0), (Shape{8}));
}

TEST(Bitcast, WiderTypesTakeInTheLastAxis) {
  OpTester t("BITCAST");
  t.input<int16_t>({2, 1, 2}, {1, 2, 3, -1}).output(DType::kInt32);
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{2, 1}));
  EXPECT_EQ(t.result<uint32_t>(0), (std::vector<uint32_t>{0x00020001, 0xFFFF0003}));
  for (const Shape& shape : {Shape{2, 1}, {2, 3}, {2, 0}}) {
    OpTester bad("BITCAST");
    bad.input<int16_t>(shape, std::vector<int16_t>(static_cast<size_t>(shape.elements()))).output(DType::kInt32);
    EXPECT_THROW(bad.run(), Error) << shape.to_string();
  }
  OpTester scalar("BITCAST");
  scalar.input<int16_t>({}, {1}).output(DType::kInt32);
  EXPECT_THROW(scalar.run(), Error);
}

TEST(Bitcast, FourBitIntegersAreHalfBytes) {
  OpTester t("BITCAST");
  t.input<uint8_t>({2}, {0x21, 0x43}).output(DType::kInt4);
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{2, 2}));
  EXPECT_EQ(t.result<uint8_t>(0), (std::vector<uint8_t>{0x21, 0x43}));
}

TEST(Bitcast, EmptyTensors) {
  OpTester t("BITCAST");
  t.input<float>({0}, {}).output(DType::kInt8);
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{0, 4}));
}

TEST(Bitcast, NumbersDoNotBecomeHandlesOrStrings) {
  for (const DType type : {DType::kResource, DType::kVariant, DType::kString}) {
    OpTester t("BITCAST");
    t.input<int32_t>({1}, {0}).output(type);
    EXPECT_THROW(t.run(), Error) << dtype_name(type);
  }
}

}  // namespace
}  // namespace leadline::ops
