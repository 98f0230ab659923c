// SPDX-License-Identifier: Apache-2.0
#include "ops/resize.h"

#include <gtest/gtest.h>

#include "ops/op_testing.h"

namespace leadline::ops {
namespace {

template <typename Attributes>
Attributes flags(bool align_corners, bool half_pixel_centers) {
  Attributes a;
  a.align_corners = align_corners;
  a.half_pixel_centers = half_pixel_centers;
  return a;
}

template <typename T>
std::vector<T> bilinear(bool align_corners, bool half_pixel_centers) {
  OpTester t("RESIZE_BILINEAR");
  t.attributes(flags<ResizeBilinearAttributes>(align_corners, half_pixel_centers));
  t.input<T>({1, 2, 2, 2}, {60, -84, 63, -59, -72, 24, 55, 53}, quantized(0.5F));
  t.input<int32_t>({2}, {3, 3});
  t.output(dtype_of<T>(), quantized(0.5F)).run();
  return t.result<T>(0);
}

// Results of TensorFlow Lite. The tester's inputs are not constants of the file: XNNPACK would not run this.
TEST(Resize, BilinearInt8OfSizeGivenAtRunTime) {
  EXPECT_EQ(bilinear<int8_t>(false, false),
            (std::vector<int8_t>{60, -84, 62, -67, 63, -59, -28, -12, 29, 6, 58, 16, -72, 24, 13, 43, 55, 53}));
  EXPECT_EQ(bilinear<int8_t>(true, false),
            (std::vector<int8_t>{60, -84, 62, -72, 63, -59, -6, -30, 27, -17, 59, -3, -72, 24, -9, 39, 55, 53}));
  EXPECT_EQ(bilinear<int8_t>(false, true), bilinear<int8_t>(true, false));
}

TEST(Resize, BilinearInt16RoundsTiesAwayFromZero) {
  EXPECT_EQ(bilinear<int16_t>(false, false),
            (std::vector<int16_t>{60, -84, 62, -67, 63, -59, -28, -12, 29, 6, 58, 16, -72, 24, 13, 43, 55, 53}));
  EXPECT_EQ(bilinear<int16_t>(true, false),
            (std::vector<int16_t>{60, -84, 62, -72, 63, -59, -6, -30, 27, -17, 59, -3, -72, 24, -9, 39, 55, 53}));
  EXPECT_EQ(bilinear<int16_t>(false, true), bilinear<int16_t>(true, false));
}

TEST(Resize, BilinearFloatUpAndDown) {
  OpTester up("RESIZE_BILINEAR");
  up.attributes(flags<ResizeBilinearAttributes>(false, true)).input<float>({1, 1, 2, 1}, {0, 8});
  up.input<int32_t>({2}, {2, 4}).output(DType::kFloat32).threads(2).run();
  EXPECT_EQ(up.result<float>(0), (std::vector<float>{0, 2, 6, 8, 0, 2, 6, 8}));
  OpTester down("RESIZE_BILINEAR");
  down.input<float>({1, 1, 4, 1}, {1, 2, 3, 4}).input<int32_t>({2}, {1, 2}, {}, false).output(DType::kFloat32).run();
  EXPECT_EQ(down.result<float>(0), (std::vector<float>{1, 3}));
}

TEST(Resize, NearestFollowsItsFlags) {
  const auto nearest = [](bool align_corners, bool half_pixel_centers) {
    OpTester t("RESIZE_NEAREST_NEIGHBOR");
    t.attributes(flags<ResizeNearestAttributes>(align_corners, half_pixel_centers));
    t.input<int32_t>({1, 1, 3, 1}, {1, 2, 3}).input<int32_t>({2}, {1, 5}).output(DType::kInt32).run();
    return t.result<int32_t>(0);
  };
  EXPECT_EQ(nearest(false, false), (std::vector<int32_t>{1, 1, 2, 2, 3}));
  EXPECT_EQ(nearest(true, false), (std::vector<int32_t>{1, 2, 2, 3, 3}));
  EXPECT_EQ(nearest(false, true), (std::vector<int32_t>{1, 1, 2, 3, 3}));
}

TEST(Resize, HostileSizesAreRefused) {
  const auto run = [](const char* op, const std::vector<int32_t>& size, const Shape& shape) {
    OpTester t(op);
    t.input<float>(shape, std::vector<float>(static_cast<size_t>(shape.elements()))).input<int32_t>({2}, size);
    t.output(DType::kFloat32).run();
  };
  EXPECT_THROW(run("RESIZE_BILINEAR", {0, 1}, {1, 2, 2, 1}), Error);
  EXPECT_THROW(run("RESIZE_BILINEAR", {1, 1}, {1, 0, 2, 1}), Error);
  EXPECT_THROW(run("RESIZE_NEAREST_NEIGHBOR", {-1, 1}, {1, 2, 2, 1}), Error);
  EXPECT_THROW(run("RESIZE_NEAREST_NEIGHBOR", {1, 1}, {2, 2, 1}), Error);
  EXPECT_NO_THROW(run("RESIZE_NEAREST_NEIGHBOR", {0, 1}, {1, 2, 2, 1}));
  EXPECT_NO_THROW(run("RESIZE_BILINEAR", {1, 1}, {0, 0, 2, 1}));
}

}  // namespace
}  // namespace leadline::ops
