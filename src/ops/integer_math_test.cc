// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <limits>

#include "ops/op_testing.h"

namespace leadline::ops {
namespace {

template <typename T>
std::vector<T> run_binary(const char* op, const std::vector<T>& a, const std::vector<T>& b) {
  OpTester t(op);
  t.input<T>({static_cast<int64_t>(a.size())}, a);
  t.input<T>({static_cast<int64_t>(b.size())}, b);
  t.output(dtype_of<T>());
  t.run();
  return t.result<T>(0);
}

TEST(Pow, IntegersByRepeatedSquaring) {
  EXPECT_EQ(run_binary<int32_t>("POW", {2, -3, 0, 7}, {10, 3, 0, 1}), (std::vector<int32_t>{1024, -27, 1, 7}));
}

TEST(Pow, OverflowIsTheSmallestNumberAndHugeExponentsEnd) {
  constexpr int32_t kMost = std::numeric_limits<int32_t>::max();
  EXPECT_EQ(run_binary<int32_t>("POW", {2, 1, -1}, {32, kMost, kMost}),
            (std::vector<int32_t>{std::numeric_limits<int32_t>::min(), 1, -1}));
}

TEST(Pow, OneExponentForAllWrapsAround) {
  OpTester t("POW");
  t.input<int32_t>({3}, {2, 3, 65537}).input<int32_t>({}, {32}).output(DType::kInt32).run();
  EXPECT_EQ(t.result<int32_t>(0), (std::vector<int32_t>{0, -501334399, 2097153}));
}

TEST(Pow, NegativeIntegerExponentIsAnError) { EXPECT_THROW(run_binary<int32_t>("POW", {2}, {-1}), Error); }

TEST(Pow, Float) { EXPECT_EQ(run_binary<float>("POW", {4, 2}, {0.5F, -1}), (std::vector<float>{2, 0.5F})); }

TEST(FloorDiv, RoundsDown) {
  EXPECT_EQ(run_binary<int32_t>("FLOOR_DIV", {7, -7, 7, -7, 6}, {2, 2, -2, -2, -3}),
            (std::vector<int32_t>{3, -4, -4, 3, -2}));
  EXPECT_EQ(run_binary<float>("FLOOR_DIV", {7, -7}, {2, 2}), (std::vector<float>{3, -4}));
  EXPECT_EQ(run_binary<int8_t>("FLOOR_DIV", {-128}, {-1}), (std::vector<int8_t>{-128}));
}

TEST(FloorDiv, ByZeroIsAnErrorForEveryType) {
  EXPECT_THROW(run_binary<int32_t>("FLOOR_DIV", {1}, {0}), Error);
  EXPECT_THROW(run_binary<int16_t>("FLOOR_DIV", {1}, {0}), Error);
  EXPECT_THROW(run_binary<float>("FLOOR_DIV", {1}, {0}), Error);
}

TEST(FloorMod, HasTheDivisorsSign) {
  EXPECT_EQ(run_binary<int64_t>("FLOOR_MOD", {7, -7, 7, -7}, {3, 3, -3, -3}), (std::vector<int64_t>{1, 2, -2, -1}));
  EXPECT_EQ(run_binary<float>("FLOOR_MOD", {7, -7, 7.5F}, {3, 3, -3}), (std::vector<float>{1, 2, -1.5F}));
  EXPECT_EQ(run_binary<int64_t>("FLOOR_MOD", {std::numeric_limits<int64_t>::min()}, {-1}), (std::vector<int64_t>{0}));
}

TEST(FloorMod, IntegerByZeroIsAnError) { EXPECT_THROW(run_binary<int64_t>("FLOOR_MOD", {1}, {0}), Error); }

TEST(RightShift, DistancesOutsideTheTypeAreLimited) {
  EXPECT_EQ(run_binary<int8_t>("RIGHT_SHIFT", {-128, 64, 7, -1}, {1, 100, -3, 9}),
            (std::vector<int8_t>{-64, 0, 7, -1}));
  EXPECT_EQ(run_binary<uint32_t>("RIGHT_SHIFT", {0x80000000U, 5}, {31, 40}), (std::vector<uint32_t>{1, 0}));
}

TEST(BitwiseXor, Broadcasts) {
  EXPECT_EQ(run_binary<uint16_t>("BITWISE_XOR", {1, 2, 3}, {3}), (std::vector<uint16_t>{2, 1, 0}));
}

TEST(StablehloShiftLeft, LosesBitsWithoutUndefinedBehaviour) {
  EXPECT_EQ(run_binary<int32_t>("STABLEHLO_SHIFT_LEFT", {1, -1, 1, 3}, {4, 31, 32, -1}),
            (std::vector<int32_t>{16, std::numeric_limits<int32_t>::min(), 0, 0}));
}

TEST(StablehloAnd, BoolAndIntegers) {
  EXPECT_EQ(run_binary<uint8_t>("STABLEHLO_AND", {6, 255}, {3, 129}), (std::vector<uint8_t>{2, 129}));
  OpTester t("STABLEHLO_AND");
  t.raw_input(DType::kBool, {2}, {std::byte{2}, std::byte{1}})
      .raw_input(DType::kBool, {2}, {std::byte{1}, std::byte{0}});
  t.output(DType::kBool);
  t.run();
  EXPECT_EQ(t.result<uint8_t>(0), (std::vector<uint8_t>{1, 0}));
}

TEST(Atan2, PairsElementsInOrderWhateverTheShapes) {
  OpTester t("ATAN2");
  t.input<float>({2, 1}, {0, 1}).input<float>({1, 2}, {1, 0}).output(DType::kFloat32);
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{2, 1}));
  EXPECT_NEAR(t.result<float>(0)[1], 1.5707963, 1e-6);
  EXPECT_THROW(run_binary<float>("ATAN2", {1, 2}, {1}), Error);
}

TEST(Atan2, LeavesOverWhatXHasMoreThanY) {
  OpTester t("ATAN2");
  t.input<float>({1, 2}, {0, 1}).input<float>({2, 2}, {1, 0, 7, 8}).output(DType::kFloat32);
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{1, 2}));
  EXPECT_NEAR(t.result<float>(0)[1], 1.5707963, 1e-6);
}

TEST(Atan2, FindsTheQuadrant) {
  const auto got = run_binary<double>("ATAN2", {1, -1}, {-1, -1});
  EXPECT_NEAR(got[0], 2.356194490192345, 1e-12);
  EXPECT_NEAR(got[1], -2.356194490192345, 1e-12);
}

}  // namespace
}  // namespace leadline::ops
