// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <limits>

#include "io/flexbuffer_map_builder.h"
#include "ops/op_testing.h"

namespace leadline::ops {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// 2 x 3 pixels; x and y of the image from x, y and 1 of the output.
OpTester transform(int version, const std::vector<FlexEntry>& entries, const std::vector<float>& x_row,
                   const std::vector<float>& y_row) {
  OpTester t("TransformTensorBilinear");
  t.version(version).custom_options(build_flex_map(entries));
  t.input<float>({1, 2, 3, 1}, {1, 2, 3, 10, 20, 30});
  t.input<float>({1, 4, 4}, {x_row[0], x_row[1], 0, x_row[2], y_row[0], y_row[1], 0, y_row[2], 0, 0, 1, 0, 0, 0, 0, 1});
  t.output(DType::kFloat32);
  return t;
}

std::vector<FlexEntry> size_v1(int32_t height, int32_t width) {
  return {{"mode", std::string("bilinear")}, {"output_size", std::vector<int32_t>{height, width}}};
}
std::vector<FlexEntry> size_v2(int32_t height, int32_t width) {
  return {{"output_height", height}, {"output_width", width}};
}

TEST(TransformTensorBilinear, TheFirstVersionPlacesTheMiddlesOfPixels) {
  OpTester t = transform(1, size_v1(1, 3), {1, 0, 0.5F}, {0, 1, 0.5F});
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{1, 1, 3, 1}));
  // The last place is outside, and nothing fades there.
  EXPECT_EQ(t.result<float>(0), (std::vector<float>{8.25F, 13.75F, 0}));
}

TEST(TransformTensorBilinear, TheSecondVersionPlacesTheirCorners) {
  OpTester same = transform(2, size_v2(2, 3), {1, 0, 0}, {0, 1, 0});
  same.run();
  EXPECT_EQ(same.result<float>(0), (std::vector<float>{1, 2, 3, 10, 20, 30}));
  OpTester half = transform(2, size_v2(1, 1), {2, 0, 0}, {0, 2, 0});
  half.run();
  EXPECT_EQ(half.result<float>(0), (std::vector<float>{8.25F}));
}

TEST(TransformTensorBilinear, PlacesThatAreNoNumbersGiveZero) {
  for (const float bad : {kNan, kInfinity, -kInfinity, 1e30F}) {
    OpTester t = transform(2, size_v2(1, 2), {0, 0, bad}, {0, 0, 0.5F});
    t.run();
    EXPECT_EQ(t.result<float>(0), (std::vector<float>{0, 0}));
  }
}

TEST(TransformTensorBilinear, HostileOptionsAreRefused) {
  EXPECT_THROW(transform(2, {}, {1, 0, 0}, {0, 1, 0}).run(), Error);
  EXPECT_THROW(transform(2, size_v2(0, 3), {1, 0, 0}, {0, 1, 0}).run(), Error);
  EXPECT_THROW(transform(1, size_v2(2, 3), {1, 0, 0}, {0, 1, 0}).run(), Error);
  EXPECT_THROW(transform(1, size_v1(-2, 3), {1, 0, 0}, {0, 1, 0}).run(), Error);
  auto mode = size_v1(2, 3);
  mode[0].second = std::string("nearest");
  EXPECT_THROW(transform(1, mode, {1, 0, 0}, {0, 1, 0}).run(), Error);
}

TEST(Resampler, PlacesOutsideFadeToZero) {
  OpTester t("Resampler");
  t.input<float>({1, 2, 3, 1}, {1, 2, 3, 10, 20, 30});
  t.input<float>({1, 1, 6, 2}, {0.5F, 0.5F, 2.5F, 0, -0.5F, 0, -1, 0, kNan, 0, 1e30F, 1});
  t.output(DType::kFloat32);
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{1, 1, 6, 1}));
  EXPECT_EQ(t.result<float>(0), (std::vector<float>{8.25F, 1.5F, 0.5F, 0, 0, 0}));
}

TEST(Resampler, PlacesOfTheWrongShapeAreRefused) {
  OpTester t("Resampler");
  t.input<float>({1, 1, 1, 1}, {1}).input<float>({1, 1, 1, 3}, {0, 0, 0}).output(DType::kFloat32);
  EXPECT_THROW(t.run(), Error);
}

TEST(DenseImageWarp, FlowIsTakenAwayAndClamped) {
  OpTester t("DenseImageWarp");
  t.input<float>({1, 2, 3, 1}, {1, 2, 3, 10, 20, 30});
  t.input<float>({1, 2, 3, 2}, {0, 0, -0.5F, 0, 0, 100, 0, -100, 1, 0, 0.5F, 0.5F});
  t.output(DType::kFloat32);
  t.run();
  EXPECT_EQ(t.result<float>(0), (std::vector<float>{1, 11, 1, 30, 2, 13.75F}));
}

TEST(DenseImageWarp, FlowThatIsNoNumberIsSurvived) {
  OpTester t("DenseImageWarp");
  t.input<float>({1, 2, 2, 1}, {1, 2, 3, 4});
  t.input<float>({1, 2, 2, 2}, {kNan, kNan, kInfinity, kInfinity, -kInfinity, -kInfinity, 1e30F, -1e30F});
  t.output(DType::kFloat32);
  t.run();
  EXPECT_EQ(t.result<float>(0)[1], 1.0F);
  EXPECT_EQ(t.result<float>(0)[2], 4.0F);
  EXPECT_EQ(t.result<float>(0)[3], 2.0F);
}

TEST(DenseImageWarp, ImagesOfOnePixelAreRefused) {
  OpTester t("DenseImageWarp");
  t.input<float>({1, 1, 2, 1}, {1, 2}).input<float>({1, 1, 2, 2}, {0, 0, 0, 0}).output(DType::kFloat32);
  EXPECT_THROW(t.run(), Error);
}

}  // namespace
}  // namespace leadline::ops
