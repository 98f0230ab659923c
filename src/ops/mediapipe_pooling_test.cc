// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <limits>

#include "io/flexbuffer_map_builder.h"
#include "ops/op_testing.h"

namespace leadline::ops {
namespace {

/// Padding, stride_width, stride_height, filter_width, filter_height, activation.
std::vector<std::byte> options(const std::vector<int32_t>& fields) {
  const auto bytes = std::as_bytes(std::span(fields));
  return {bytes.begin(), bytes.end()};
}
const std::vector<int32_t> kSame2x2 = {1, 2, 2, 2, 2, 0};
const std::vector<int32_t> kValid2x2 = {2, 2, 2, 2, 2, 0};

OpTester pool(const std::vector<int32_t>& fields) {
  OpTester t("MaxPoolingWithArgmax2D");
  t.custom_options(options(fields));
  t.input<float>({1, 2, 3, 2}, {1, 9, 5, 2, 7, -4, 3, 4, 2, 8, -6, -5});
  t.output(DType::kFloat32).output(DType::kFloat32);
  return t;
}

TEST(MaxPoolingWithArgmax2D, IndicesAreThePlaceInTheWindow) {
  OpTester t = pool(kSame2x2);
  t.run();
  EXPECT_EQ(t.shape(1), (Shape{1, 1, 2, 2}));
  EXPECT_EQ(t.result<float>(0), (std::vector<float>{5, 9, 7, -4}));
  EXPECT_EQ(t.result<float>(1), (std::vector<float>{1.1F, 0.1F, 0.1F, 0.1F}));
}

TEST(MaxPoolingWithArgmax2D, ActivationIsApplied) {
  OpTester t = pool({1, 2, 2, 2, 2, 3});
  t.run();
  EXPECT_EQ(t.result<float>(0), (std::vector<float>{5, 6, 6, 0}));
}

TEST(MaxPoolingWithArgmax2D, HostileOptionsAreRefused) {
  for (const auto& fields : std::vector<std::vector<int32_t>>{{},
                                                              {1, 2, 2, 2, 2},
                                                              {0, 2, 2, 2, 2, 0},
                                                              {3, 2, 2, 2, 2, 0},
                                                              {1, 0, 2, 2, 2, 0},
                                                              {1, 2, -1, 2, 2, 0},
                                                              {1, 2, 2, 0, 2, 0},
                                                              {1, 2, 2, INT32_MAX, INT32_MAX, 0},
                                                              {1, 2, 2, 2, 2, 77}}) {
    EXPECT_THROW(pool(fields).run(), Error);
  }
}

std::vector<FlexEntry> map(const std::string& padding) {
  return {{"include_batch_in_index", false},
          {"ksize", std::vector<int32_t>{1, 2, 2, 1}},
          {"padding", padding},
          {"strides", std::vector<int32_t>{1, 2, 2, 1}}};
}

OpTester pool_flat(const std::vector<FlexEntry>& entries) {
  OpTester t("MaxPoolWithArgmax");
  t.custom_options(build_flex_map(entries));
  t.input<float>({2, 2, 3, 1}, {1, 5, 7, 3, 2, -6, 0, 0, 0, 0, 4, 9});
  t.output(DType::kFloat32).output(DType::kInt32);
  return t;
}

TEST(MaxPoolWithArgmax, IndicesAreThePlaceInTheImage) {
  OpTester same = pool_flat(map("SAME"));
  same.run();
  EXPECT_EQ(same.result<float>(0), (std::vector<float>{5, 7, 4, 9}));
  EXPECT_EQ(same.result<int32_t>(1), (std::vector<int32_t>{1, 2, 4, 5}));
  OpTester valid = pool_flat(map("VALID"));
  valid.run();
  EXPECT_EQ(valid.result<int32_t>(1), (std::vector<int32_t>{1, 4}));
}

TEST(MaxPoolWithArgmax, HostileOptionsAreRefused) {
  EXPECT_THROW(pool_flat(map("REFLECT")).run(), Error);
  EXPECT_THROW(pool_flat({}).run(), Error);
  auto batch = map("SAME");
  batch[0].second = true;
  EXPECT_THROW(pool_flat(batch).run(), Error);
  auto sizes = map("SAME");
  sizes[1].second = std::vector<int32_t>{1, 2};
  EXPECT_THROW(pool_flat(sizes).run(), Error);
  sizes[1].second = std::vector<int32_t>{2, 2, 2, 1};
  EXPECT_THROW(pool_flat(sizes).run(), Error);
}

TEST(MaxUnpooling2D, UndoesMediaPipesPooling) {
  OpTester t("MaxUnpooling2D");
  t.custom_options(options(kSame2x2));
  t.input<float>({1, 1, 2, 1}, {5, 7}).input<float>({1, 1, 2, 1}, {1.1F, 2.1F}).output(DType::kFloat32);
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{1, 2, 4, 1}));
  EXPECT_EQ(t.result<float>(0), (std::vector<float>{0, 5, 0, 0, 0, 0, 7, 0}));
}

TEST(MaxUnpooling2D, WindowIndicesOutsideAreRefused) {
  for (const float index : {-1.0F, 4.0F, 1e30F, std::numeric_limits<float>::quiet_NaN()}) {
    OpTester t("MaxUnpooling2D");
    t.custom_options(options(kSame2x2));
    t.input<float>({1, 1, 2, 1}, {5, 7}).input<float>({1, 1, 2, 1}, {0.1F, index}).output(DType::kFloat32);
    EXPECT_THROW(t.run(), Error);
  }
  // A stride above the window leaves the image.
  OpTester t("MaxUnpooling2D");
  t.custom_options(options({1, 3, 2, 2, 2, 0}));
  t.input<float>({1, 1, 2, 1}, {5, 7}).input<float>({1, 1, 2, 1}, {0.1F, 1.1F}).output(DType::kFloat32);
  EXPECT_THROW(t.run(), Error);
}

OpTester unpool_flat(const char* name, const std::vector<int32_t>& fields, const std::vector<int32_t>& indices) {
  OpTester t(name);
  t.custom_options(options(fields));
  t.input<float>({2, 1, 2, 1}, {5, 7, 3, 4}).input<int32_t>({2, 1, 2, 1}, indices).output(DType::kFloat32);
  return t;
}

TEST(MaxUnpooling2D, IntegerIndicesAreThePlaceInTheImage) {
  for (const char* name : {"MaxUnpooling2D", "LiteRtMaxUnpooling2D"}) {
    OpTester t = unpool_flat(name, kSame2x2, {1, 6, 7, 0});
    t.run();
    EXPECT_EQ(t.shape(0), (Shape{2, 2, 4, 1}));
    EXPECT_EQ(t.result<float>(0), (std::vector<float>{0, 5, 0, 0, 0, 0, 7, 0, 4, 0, 0, 0, 0, 0, 0, 3}));
  }
  OpTester valid = unpool_flat("MaxUnpooling2D", {2, 2, 2, 3, 2, 0}, {0, 0, 0, 0});
  valid.run();
  EXPECT_EQ(valid.shape(0), (Shape{2, 2, 5, 1}));
}

TEST(MaxUnpooling2D, ImageIndicesOutsideAreRefused) {
  EXPECT_THROW(unpool_flat("LiteRtMaxUnpooling2D", kValid2x2, {1, 6, 8, 0}).run(), Error);
  EXPECT_THROW(unpool_flat("LiteRtMaxUnpooling2D", kValid2x2, {1, 6, -1, 0}).run(), Error);
  OpTester t("LiteRtMaxUnpooling2D");
  t.custom_options(options(kSame2x2));
  t.input<float>({1, 1, 2, 1}, {5, 7}).input<int32_t>({1, 1, 1, 1}, {0}).output(DType::kFloat32);
  EXPECT_THROW(t.run(), Error);
}

}  // namespace
}  // namespace leadline::ops
