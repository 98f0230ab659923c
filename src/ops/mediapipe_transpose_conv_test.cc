// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "ops/op_testing.h"

namespace leadline::ops {
namespace {

std::vector<std::byte> options(const std::vector<int32_t>& fields) {
  const auto bytes = std::as_bytes(std::span(fields));
  return {bytes.begin(), bytes.end()};
}
constexpr int32_t kSame = 1;
constexpr int32_t kValid = 2;

OpTester deconvolution(const Shape& input, const Shape& filter, const std::vector<int32_t>& fields) {
  OpTester t("Convolution2DTransposeBias");
  t.custom_options(options(fields));
  std::vector<float> pixels;
  for (int64_t i = 0; i < input.elements(); ++i) pixels.push_back(static_cast<float>(i + 1));
  t.input<float>(input, pixels, {}, false);
  t.input<float>(filter, std::vector<float>(static_cast<size_t>(filter.elements()), 1.0F));
  t.input<float>({filter[0]}, std::vector<float>(static_cast<size_t>(filter[0]), 0.5F));
  t.output(DType::kFloat32);
  return t;
}

TEST(Convolution2DTransposeBias, EveryPixelSpreadsOverItsWindow) {
  OpTester t = deconvolution({1, 2, 2, 1}, {1, 2, 2, 1}, {kSame, 2, 2});
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{1, 4, 4, 1}));
  EXPECT_EQ(t.result<float>(0), (std::vector<float>{1.5F, 1.5F, 2.5F, 2.5F, 1.5F, 1.5F, 2.5F, 2.5F,  //
                                                    3.5F, 3.5F, 4.5F, 4.5F, 3.5F, 3.5F, 4.5F, 4.5F}));
}

TEST(Convolution2DTransposeBias, SizesFollowFromPaddingAndStride) {
  OpTester valid = deconvolution({1, 1, 2, 1}, {1, 1, 3, 1}, {kValid, 2, 1});
  valid.run();
  EXPECT_EQ(valid.result<float>(0), (std::vector<float>{1.5F, 1.5F, 3.5F, 2.5F, 2.5F}));
  OpTester same = deconvolution({1, 1, 2, 1}, {1, 1, 3, 1}, {kSame, 2, 1});
  same.run();
  EXPECT_EQ(same.shape(0), (Shape{1, 1, 4, 1}));
  EXPECT_EQ(same.result<float>(0), (std::vector<float>{1.5F, 1.5F, 3.5F, 2.5F}));
}

TEST(Convolution2DTransposeBias, EmptyInput) {
  OpTester t = deconvolution({1, 0, 2, 1}, {1, 2, 2, 1}, {kSame, 2, 2});
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{1, 0, 4, 1}));
}

TEST(Convolution2DTransposeBias, HostileOptionsAreRefused) {
  EXPECT_THROW(deconvolution({1, 1, 2, 1}, {1, 2, 2, 1}, {kSame, 2}).run(), Error);
  EXPECT_THROW(deconvolution({1, 1, 2, 1}, {1, 2, 2, 1}, {0, 2, 2}).run(), Error);
  EXPECT_THROW(deconvolution({1, 1, 2, 1}, {1, 2, 2, 1}, {kSame, 0, 2}).run(), Error);
  EXPECT_THROW(deconvolution({1, 1, 2, 1}, {1, 2, 2, 1}, {kSame, 2, -1}).run(), Error);
  EXPECT_THROW(deconvolution({1, 1, 2, 3}, {1, 2, 2, 1}, {kSame, 2, 2}).run(), Error);
  EXPECT_THROW(deconvolution({1, 2, 1}, {1, 2, 2, 1}, {kSame, 2, 2}).run(), Error);
}

}  // namespace
}  // namespace leadline::ops
