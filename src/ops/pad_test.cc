// SPDX-License-Identifier: Apache-2.0
#include "ops/pad.h"

#include <gtest/gtest.h>

#include <numeric>

#include "ops/op_testing.h"

namespace leadline::ops {
namespace {

using Floats = std::vector<float>;

TEST(Pad, ZerosAround) {
  OpTester t("PAD");
  t.input<float>({1, 2, 2, 1}, {1, 2, 3, 4}).input<int32_t>({4, 2}, {0, 0, 1, 0, 0, 2, 0, 0}).output(DType::kFloat32);
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{1, 3, 4, 1}));
  EXPECT_EQ(t.result<float>(0), (Floats{0, 0, 0, 0, 1, 2, 0, 0, 3, 4, 0, 0}));
}

TEST(Pad, QuantizedZeroIsTheZeroPoint) {
  OpTester t("PAD");
  t.input<int8_t>({2}, {5, 6}, quantized(0.5F, -3)).input<int64_t>({1, 2}, {1, 1});
  t.output(DType::kInt8, quantized(0.5F, -3));
  t.run();
  EXPECT_EQ(t.result<int8_t>(0), (std::vector<int8_t>{-3, 5, 6, -3}));
  OpTester wide("PAD");
  wide.input<int16_t>({1}, {7}).input<int32_t>({1, 2}, {0, 1}).output(DType::kInt16);
  wide.run();
  EXPECT_EQ(wide.result<int16_t>(0), (std::vector<int16_t>{7, 0}));
}

TEST(PadV2, GivenValueAndComputedPaddings) {
  OpTester t("PADV2");
  t.input<float>({1, 2}, {1, 2}).input<int32_t>({2, 2}, {0, 1, 1, 0}, {}, false).input<float>({1}, {9.5F}, {}, false);
  t.output(DType::kFloat32);
  EXPECT_FALSE(t.infer(false));
  t.run();
  EXPECT_EQ(t.result<float>(0), (Floats{9.5F, 1, 2, 9.5F, 9.5F, 9.5F}));
}

TEST(Pad, EmptyInputGivesOnlyBorder) {
  OpTester t("PAD");
  t.input<float>({0, 2}, {}).input<int32_t>({2, 2}, {1, 1, 0, 1}).output(DType::kFloat32);
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{2, 3}));
  EXPECT_EQ(t.result<float>(0), Floats(6, 0));
}

TEST(Pad, TwoThreadsGiveTheSame) {
  std::vector<int32_t> in(3 * 100 * 120 * 5);
  std::iota(in.begin(), in.end(), 1);
  std::vector<int32_t> results[2];
  for (const int threads : {1, 2}) {
    OpTester t("PAD");
    t.input<int32_t>({3, 100, 120, 5}, in).input<int32_t>({4, 2}, {1, 0, 2, 1, 0, 3, 0, 0}).output(DType::kInt32);
    t.threads(threads).run();
    results[threads - 1] = t.result<int32_t>(0);
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0][(1 * 103 + 2) * 123 * 5], 1);
  EXPECT_EQ(std::accumulate(results[0].begin(), results[0].end(), int64_t{0}),
            std::accumulate(in.begin(), in.end(), int64_t{0}));
}

TEST(Pad, RefusesBadPaddings) {
  for (const auto& [shape, values] : {std::pair{Shape{1, 2}, std::vector<int64_t>{-1, 0}},
                                      {Shape{1, 2}, {0, INT64_MAX}},
                                      {Shape{2}, {0, 0}},
                                      {Shape{2, 2}, {0, 0, 0, 0}}}) {
    OpTester t("PAD");
    t.input<float>({2}, {1, 2}).input<int64_t>(shape, values).output(DType::kFloat32);
    EXPECT_THROW(t.run(), Error);
  }
}

TEST(PadV2, RefusesAValueOfAnotherScale) {
  OpTester t("PADV2");
  t.input<int8_t>({1}, {1}, quantized(0.5F)).input<int32_t>({1, 2}, {1, 1}).input<int8_t>({}, {1}, quantized(0.25F));
  t.output(DType::kInt8, quantized(0.5F));
  EXPECT_THROW(t.run(), Error);
}

Floats mirrored(MirrorMode mode, const Shape& shape, const Floats& data, const std::vector<int32_t>& paddings) {
  MirrorPadAttributes a;
  a.mode = mode;
  OpTester t("MIRROR_PAD");
  t.attributes(a).input<float>(shape, data).input<int32_t>({shape.rank(), 2}, paddings).output(DType::kFloat32);
  t.run();
  return t.result<float>(0);
}

TEST(MirrorPad, WithAndWithoutTheEdge) {
  EXPECT_EQ(mirrored(MirrorMode::kReflect, {3}, {1, 2, 3}, {2, 2}), (Floats{3, 2, 1, 2, 3, 2, 1}));
  EXPECT_EQ(mirrored(MirrorMode::kSymmetric, {3}, {1, 2, 3}, {2, 3}), (Floats{2, 1, 1, 2, 3, 3, 2, 1}));
  EXPECT_EQ(mirrored(MirrorMode::kReflect, {2, 2}, {1, 2, 3, 4}, {1, 0, 0, 1}), (Floats{3, 4, 3, 1, 2, 1, 3, 4, 3}));
}

TEST(MirrorPad, RefusesMoreThanThereIs) {
  EXPECT_THROW(mirrored(MirrorMode::kReflect, {3}, {1, 2, 3}, {3, 0}), Error);
  EXPECT_THROW(mirrored(MirrorMode::kSymmetric, {3}, {1, 2, 3}, {0, 4}), Error);
}

}  // namespace
}  // namespace leadline::ops
