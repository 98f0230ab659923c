// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <complex>

#include "ops/op_testing.h"

namespace leadline::ops {
namespace {

using Numbers = std::vector<std::complex<float>>;

void expect_near(const Numbers& got, const Numbers& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_LT(std::abs(got[i] - expected[i]), 1e-4F) << i << ": " << got[i];
}

OpTester rfft(const Shape& shape, const std::vector<float>& data, const std::vector<int32_t>& lengths,
              bool known = true) {
  OpTester t("RFFT2D");
  t.input<float>(shape, data, {}, false).input<int32_t>({2}, lengths, {}, known).output(DType::kComplex64);
  return t;
}

const std::vector<float> kSquare = {1, 2, 3, 4, 3, 8, 6, 3, 5, 2, 7, 6, 9, 5, 8, 3};

// Results of TensorFlow Lite.
TEST(Rfft2d, LengthsOfTheInput) {
  OpTester t = rfft({4, 4}, kSquare, {4, 4});
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{4, 3}));
  expect_near(t.result<std::complex<float>>(0), {{75, 0},
                                                 {-6, -1},
                                                 {9, 0},
                                                 {-10, 5},
                                                 {-3, 2},
                                                 {-6, 11},
                                                 {-15, 0},
                                                 {-2, 13},
                                                 {-5, 0},
                                                 {-10, -5},
                                                 {3, -6},
                                                 {-6, -11}});
}

TEST(Rfft2d, ShorterLengthsCutTheInput) {
  std::vector<float> wide;
  for (size_t y = 0; y < 4; ++y) {
    wide.insert(wide.end(), kSquare.begin() + static_cast<int>(4 * y), kSquare.begin() + static_cast<int>(4 * y + 4));
    wide.push_back(100);
  }
  wide.resize(25, 100.0F);
  OpTester t = rfft({5, 5}, wide, {4, 4});
  t.run();
  OpTester same = rfft({4, 4}, kSquare, {4, 4});
  same.run();
  EXPECT_EQ(t.result<std::complex<float>>(0), same.result<std::complex<float>>(0));
}

TEST(Rfft2d, LongerLengthsPadWithZeros) {
  OpTester t = rfft({1, 3}, {1, 2, 3}, {2, 4});
  t.run();
  expect_near(t.result<std::complex<float>>(0), {{6, 0}, {-2, -2}, {2, 0}, {6, 0}, {-2, -2}, {2, 0}});
}

TEST(Rfft2d, LengthsNeedNotBePowersOfTwo) {
  OpTester t = rfft({1, 3}, {1, 2, 3}, {1, 3});
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{1, 2}));
  expect_near(t.result<std::complex<float>>(0), {{6, 0}, {-1.5F, 0.8660254F}});
}

TEST(Rfft2d, SlicesAndThreadsDoNotMix) {
  std::vector<float> data;
  for (int i = 0; i < 3; ++i) data.insert(data.end(), kSquare.begin(), kSquare.end());
  data[20] = 50;
  OpTester one = rfft({3, 4, 4}, data, {4, 4});
  one.run();
  OpTester many = rfft({3, 4, 4}, data, {4, 4});
  many.threads(4).run();
  EXPECT_EQ(one.result<std::complex<float>>(0), many.result<std::complex<float>>(0));
  const auto all = one.result<std::complex<float>>(0);
  EXPECT_EQ(Numbers(all.begin(), all.begin() + 12), Numbers(all.begin() + 24, all.end()));
}

TEST(Rfft2d, LengthsComputedWhileRunningDefer) {
  OpTester t = rfft({4, 4}, kSquare, {2, 2}, false);
  EXPECT_FALSE(t.infer(false));
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{2, 2}));
}

TEST(Rfft2d, EmptyInputs) {
  OpTester none = rfft({0, 4, 4}, {}, {1 << 30, 1 << 30});
  none.run();
  EXPECT_EQ(none.shape(0), (Shape{0, 1 << 30, (1 << 29) + 1}));
  OpTester zeros = rfft({0, 4}, {}, {2, 2});
  zeros.run();
  EXPECT_EQ(zeros.result<std::complex<float>>(0), Numbers(4));
}

TEST(Rfft2d, WhatCannotBeTransformedIsRefused) {
  EXPECT_THROW(rfft({4}, {1, 2, 3, 4}, {1, 4}).run(), Error);
  EXPECT_THROW(rfft({4, 4}, kSquare, {0, 4}).run(), Error);
  EXPECT_THROW(rfft({4, 4}, kSquare, {4, INT32_MIN}).run(), Error);
  EXPECT_THROW(rfft({4, 4}, kSquare, {INT32_MAX, INT32_MAX}).run(), Error);
  OpTester wrong("RFFT2D");
  wrong.input<float>({2, 2}, {1, 2, 3, 4}).input<int32_t>({3}, {1, 2, 2}).output(DType::kComplex64);
  EXPECT_THROW(wrong.run(), Error);
}

}  // namespace
}  // namespace leadline::ops
