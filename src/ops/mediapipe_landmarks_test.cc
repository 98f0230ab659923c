// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "io/flexbuffer_map_builder.h"
#include "ops/op_testing.h"

namespace leadline::ops {
namespace {

const std::vector<float> kMatrix = {0, -2, 0, 3, 4, 0, 0, 5, 0, 0, 1, 0, 0, 0, 0, 1};

TEST(TransformLandmarks, TheSecondVersionKeepsTheThirdCoordinate) {
  OpTester t("TransformLandmarks");
  t.version(2).input<float>({1, 2, 3}, {1, 2, 9, 10, 20, 8}).input<float>({1, 4, 4}, kMatrix).output(DType::kFloat32);
  t.run();
  EXPECT_EQ(t.result<float>(0), (std::vector<float>{-1, 9, 9, -37, 45, 8}));
}

OpTester first_version(const std::vector<FlexEntry>& entries) {
  OpTester t("TransformLandmarks");
  t.version(1).custom_options(build_flex_map(entries));
  t.input<float>({1, 1, 1, 4}, {1, 2, 10, 20}).input<float>({1, 4, 4}, kMatrix).output(DType::kFloat32);
  return t;
}

TEST(TransformLandmarks, TheFirstVersionScalesTheShift) {
  OpTester t = first_version({{"dimensions", 2}, {"scale", 10.0F}});
  t.run();
  EXPECT_EQ(t.result<float>(0), (std::vector<float>{26, 54, -10, 90}));
}

TEST(TransformLandmarks, HostileNodesAreRefused) {
  EXPECT_THROW(first_version({}).run(), Error);
  EXPECT_THROW(first_version({{"dimensions", 0}, {"scale", 1.0F}}).run(), Error);
  EXPECT_THROW(first_version({{"dimensions", 3}, {"scale", 1.0F}}).run(), Error);
  EXPECT_THROW(first_version({{"dimensions", 2}, {"scale", 0.0F}}).run(), Error);
  OpTester small("TransformLandmarks");
  small.version(2).input<float>({1, 1, 3}, {1, 2, 9}).input<float>({1, 2}, {1, 2}).output(DType::kFloat32);
  EXPECT_THROW(small.run(), Error);
  OpTester wide("TransformLandmarks");
  wide.version(2).input<float>({1, 1, 4}, {1, 2, 9, 1}).input<float>({4, 4}, kMatrix).output(DType::kFloat32);
  EXPECT_THROW(wide.run(), Error);
}

std::vector<FlexEntry> box_v2(int32_t left, int32_t right, const std::vector<int32_t>& subset) {
  return {
      {"left_rotation_idx", left}, {"output_height", 10}, {"output_width", 20},    {"right_rotation_idx", right},
      {"scale_x", 1.0F},           {"scale_y", 2.0F},     {"subset_idxs", subset}, {"target_rotation_radians", 0.0F}};
}

OpTester matrix_v2(const std::vector<FlexEntry>& entries, const std::vector<float>& landmarks) {
  OpTester t("Landmarks2TransformMatrix");
  t.version(2).custom_options(build_flex_map(entries));
  t.input<float>({1, static_cast<int64_t>(landmarks.size()) / 3, 3}, landmarks).output(DType::kFloat32);
  return t;
}

void expect_near(const std::vector<float>& got, const std::vector<float>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-5) << i;
}

TEST(Landmarks2TransformMatrix, ALevelBoxIsScaledAndShifted) {
  OpTester t = matrix_v2(box_v2(0, 1, {0, 1, 2}), {10, 30, 0, 50, 30, 0, 20, 40, 7});
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{1, 4, 4}));
  // The box is 40 x 10 around (30, 35); pixel (0, 0) of the crop is its corner, twice as far up.
  expect_near(t.result<float>(0), {2, 0, 0, 10, 0, 2, 0, 25, 0, 0, 1, 0, 0, 0, 0, 1});
}

TEST(Landmarks2TransformMatrix, ATurnedBoxIsTurnedBack) {
  OpTester t = matrix_v2(box_v2(0, 1, {0, 1, 2}), {30, 10, 0, 30, 50, 0, 20, 20, 7});
  t.run();
  // The same box turned by a quarter: x of the crop runs down the image.
  expect_near(t.result<float>(0), {0, -2, 0, 35, 2, 0, 0, 10, 0, 0, 1, 0, 0, 0, 0, 1});
}

TEST(Landmarks2TransformMatrix, TheFirstVersionWorksInRelativeCoordinates) {
  OpTester t("Landmarks2TransformMatrix");
  t.version(1).custom_options(build_flex_map({{"bbox_size_multiplier", 1.0F},
                                              {"dimensions", 3},
                                              {"input_hw", std::vector<int32_t>{101, 101}},
                                              {"landmarks_range", 100},
                                              {"left_rotation_idx", 0},
                                              {"output_hw", std::vector<int32_t>{11, 11}},
                                              {"right_rotation_idx", 1},
                                              {"subset", std::vector<int32_t>{0, 1, 2}}}));
  t.input<float>({1, 1, 1, 9}, {10, 30, 0, 50, 30, 0, 20, 40, 7}).output(DType::kFloat32);
  t.run();
  // 11 pixels over 40, and over 10, from (10, 30).
  expect_near(t.result<float>(0), {4, 0, 0, 10, 0, 1, 0, 30, 0, 0, 1, 0, 0, 0, 0, 1});
}

TEST(Landmarks2TransformMatrix, HostileOptionsAreRefused) {
  const std::vector<float> landmarks = {10, 30, 0, 50, 30, 0, 20, 40, 7};
  EXPECT_THROW(matrix_v2({}, landmarks).run(), Error);
  EXPECT_THROW(matrix_v2(box_v2(3, 1, {0}), landmarks).run(), Error);
  EXPECT_THROW(matrix_v2(box_v2(0, -1, {0}), landmarks).run(), Error);
  EXPECT_THROW(matrix_v2(box_v2(0, 1, {0, 3}), landmarks).run(), Error);
  EXPECT_THROW(matrix_v2(box_v2(0, 1, {INT32_MIN}), landmarks).run(), Error);
  EXPECT_THROW(matrix_v2(box_v2(0, 1, {}), landmarks).run(), Error);
  auto flat = box_v2(0, 1, {0, 1, 2});
  flat[1].second = 0;
  EXPECT_THROW(matrix_v2(flat, landmarks).run(), Error);
}

}  // namespace
}  // namespace leadline::ops
