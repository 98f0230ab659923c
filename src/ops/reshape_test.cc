// SPDX-License-Identifier: Apache-2.0
#include "ops/reshape.h"

#include <gtest/gtest.h>

#include "ops/string_testing.h"

namespace leadline::ops {
namespace {

using Ints = std::vector<int32_t>;

ReshapeAttributes new_shape(Ints shape) {
  ReshapeAttributes a;
  a.new_shape = std::move(shape);
  return a;
}

Shape reshaped(const Shape& from, const Ints& to) {
  OpTester t("RESHAPE");
  t.input<int8_t>(from, std::vector<int8_t>(static_cast<size_t>(from.elements())), {}, false);
  t.input<int32_t>({static_cast<int64_t>(to.size())}, to).output(DType::kInt8);
  t.run();
  return t.shape(0);
}

TEST(Reshape, KeepsTheData) {
  OpTester t("RESHAPE");
  t.input<float>({2, 3}, {1, 2, 3, 4, 5, 6}).input<int32_t>({2}, {3, -1}).output(DType::kFloat32);
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{3, 2}));
  EXPECT_EQ(t.result<float>(0), (std::vector<float>{1, 2, 3, 4, 5, 6}));
}

TEST(Reshape, StretchesOneDimensionAlsoOfEmptyTensors) {
  EXPECT_EQ(reshaped({2, 3, 4}, {-1}), (Shape{24}));
  EXPECT_EQ(reshaped({1}, {}), (Shape{}));
  EXPECT_EQ(reshaped({0, 4}, {-1, 2}), (Shape{0, 2}));
  EXPECT_EQ(reshaped({0, 4}, {0, -1}), (Shape{0, 4}));
  EXPECT_EQ(reshaped({0, 4}, {2, 0}), (Shape{2, 0}));
}

TEST(Reshape, ShapeFromAttributes) {
  OpTester t("RESHAPE");
  t.attributes(new_shape({3, 2})).input<float>({6}, {1, 2, 3, 4, 5, 6}).output(DType::kFloat32);
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{3, 2}));
}

TEST(Reshape, LegacyZeroMeansScalar) {
  OpTester t("RESHAPE");
  t.attributes(new_shape({0})).input<float>({1}, {7}).output(DType::kFloat32);
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{}));
}

TEST(Reshape, ComputedShapeIsReadWhileRunning) {
  OpTester t("RESHAPE");
  t.input<float>({4}, {1, 2, 3, 4}, {}, false).input<int32_t>({2}, {2, 2}, {}, false).output(DType::kFloat32);
  EXPECT_FALSE(t.infer(false));
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{2, 2}));
}

TEST(Reshape, RefusesWhatDoesNotFit) {
  EXPECT_THROW(reshaped({2, 3}, {4}), Error);
  EXPECT_THROW(reshaped({2, 3}, {-1, 4}), Error);
  EXPECT_THROW(reshaped({2, 3}, {-1, -1}), Error);
  EXPECT_THROW(reshaped({2, 3}, {-2, 3}), Error);
  EXPECT_THROW(reshaped({6}, {6, 1, 1, 1, 1, 1, 1, 1, 1}), Error);
  EXPECT_THROW(reshaped({6}, {INT32_MAX, INT32_MAX, INT32_MAX, -1}), Error);
}

TEST(Reshape, Strings) {
  OpTester t("RESHAPE");
  string_input(t, {2}, {"a", "bc"}).input<int32_t>({2}, {2, 1}).output(DType::kString);
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{2, 1}));
  EXPECT_EQ(string_result(t, 0), (std::vector<std::string>{"a", "bc"}));
}

TEST(Reshape, RefusesADamagedStringBuffer) {
  OpTester t("RESHAPE");
  t.raw_input(DType::kString, {2}, string_buffer({"only one"}), {}, false);
  t.input<int32_t>({1}, {2}).output(DType::kString);
  EXPECT_THROW(t.run(), Error);
}

Shape squeezed(const Shape& from, Ints dims) {
  SqueezeAttributes a;
  a.squeeze_dims = std::move(dims);
  OpTester t("SQUEEZE");
  t.attributes(a)
      .input<int16_t>(from, std::vector<int16_t>(static_cast<size_t>(from.elements())))
      .output(DType::kInt16);
  t.run();
  return t.shape(0);
}

TEST(Squeeze, DropsAllOrTheNamedOnes) {
  EXPECT_EQ(squeezed({1, 24, 1}, {}), (Shape{24}));
  EXPECT_EQ(squeezed({1, 24, 1}, {-1}), (Shape{1, 24}));
  EXPECT_EQ(squeezed({1, 24, 1}, {0, 0}), (Shape{24, 1}));
  EXPECT_EQ(squeezed({1, 1}, {}), (Shape{}));
  EXPECT_THROW(squeezed({2, 1}, {0}), Error);
  EXPECT_THROW(squeezed({2, 1}, {2}), Error);
}

Shape expanded(const Shape& from, int64_t axis) {
  OpTester t("EXPAND_DIMS");
  t.input<float>(from, std::vector<float>(static_cast<size_t>(from.elements())));
  t.input<int64_t>({}, {axis}).output(DType::kFloat32);
  t.run();
  return t.shape(0);
}

TEST(ExpandDims, AddsAnAxisAnywhere) {
  EXPECT_EQ(expanded({2, 3}, 0), (Shape{1, 2, 3}));
  EXPECT_EQ(expanded({2, 3}, 2), (Shape{2, 3, 1}));
  EXPECT_EQ(expanded({2, 3}, -1), (Shape{2, 3, 1}));
  EXPECT_EQ(expanded({}, 0), (Shape{1}));
  EXPECT_THROW(expanded({2, 3}, 3), Error);
  EXPECT_THROW(expanded({2, 3}, -4), Error);
  EXPECT_THROW(expanded({1, 1, 1, 1, 1, 1, 1, 1}, 0), Error);
}

}  // namespace
}  // namespace leadline::ops
