// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "ops/op_testing.h"

namespace leadline::ops {
namespace {

using Ints = std::vector<int32_t>;
using Floats = std::vector<float>;

// Boxes 0 1 2 overlap, 3 4 overlap, 5 is alone. Corners in any order.
const Floats kBoxes = {1, 1,  0, 0,  0, 0.1F,  1, 1.1F,  0, .9F, 1, -0.1F,
                       0, 10, 1, 11, 1, 10.1F, 0, 11.1F, 1, 101, 0, 100};
const Floats kScores = {0.9F, 0.75F, 0.6F, 0.95F, 0.5F, 0.3F};

struct Options {
  int32_t max_output = 6;
  float iou = 0.5F;
  float score = 0.0F;
  float sigma = -1;  // V4
  bool known = true;
  bool soft = false;
};

OpTester suppressed(const Options& o, const Floats& boxes = kBoxes, const Floats& scores = kScores) {
  OpTester t(o.soft ? "NON_MAX_SUPPRESSION_V5" : "NON_MAX_SUPPRESSION_V4");
  const auto count = static_cast<int64_t>(scores.size());
  t.input<float>({count, 4}, boxes).input<float>({count}, scores).input<int32_t>({}, {o.max_output}, {}, o.known);
  t.input<float>({}, {o.iou}).input<float>({}, {o.score});
  if (o.soft) t.input<float>({}, {o.sigma});
  t.output(DType::kInt32);
  if (o.soft) t.output(DType::kFloat32);
  t.output(DType::kInt32);
  EXPECT_EQ(t.infer(false), o.known);
  t.run();
  return t;
}

TEST(NonMaxSuppression, KeepsTheBestOfEachCluster) {
  for (const bool known : {true, false}) {
    const OpTester t = suppressed({.known = known});
    EXPECT_EQ(t.shape(0), (Shape{6}));
    EXPECT_EQ(t.shape(1), (Shape{}));
    EXPECT_EQ(t.result<int32_t>(0), (Ints{3, 0, 5, 0, 0, 0}));
    EXPECT_EQ(t.result<int32_t>(1), (Ints{3}));
  }
}

TEST(NonMaxSuppression, StopsAtTheRoomAndTheScoreThreshold) {
  EXPECT_EQ(suppressed({.max_output = 2}).result<int32_t>(0), (Ints{3, 0}));
  EXPECT_EQ(suppressed({.max_output = 0}).result<int32_t>(1), (Ints{0}));
  EXPECT_EQ(suppressed({.score = 0.4F}).result<int32_t>(0), (Ints{3, 0, 0, 0, 0, 0}));
  EXPECT_EQ(suppressed({.score = 0.4F}).result<int32_t>(1), (Ints{2}));
}

TEST(NonMaxSuppression, SoftScoresDecay) {
  const OpTester t = suppressed({.iou = 1.0F, .sigma = 0.5F, .soft = true});
  EXPECT_EQ(t.result<int32_t>(2), (Ints{6}));
  EXPECT_EQ(t.result<int32_t>(0), (Ints{3, 0, 1, 5, 4, 2}));
  const Floats scores = t.result<float>(1);
  EXPECT_FLOAT_EQ(scores[0], 0.95F);
  EXPECT_NEAR(scores[2], 0.75 * std::exp(-std::pow(0.9 / 1.1, 2)), 1e-5);
}

TEST(NonMaxSuppression, SoftWithoutSigmaIsHard) {
  const OpTester t = suppressed({.sigma = 0.0F, .soft = true});
  EXPECT_EQ(t.result<int32_t>(0), (Ints{3, 0, 5, 0, 0, 0}));
  EXPECT_EQ(t.result<float>(1), (Floats{0.95F, 0.9F, 0.3F, 0, 0, 0}));
}

TEST(NonMaxSuppression, OddNumbersDoNotHang) {
  const Floats odd(4 * 6, NAN);
  EXPECT_EQ(suppressed({.iou = NAN, .sigma = 1e-30F, .soft = true}, odd).shape(0), (Shape{6}));
  EXPECT_EQ(suppressed({}, kBoxes, Floats(6, NAN)).result<int32_t>(1), (Ints{0}));
  EXPECT_EQ(suppressed({}, {}, {}).result<int32_t>(1), (Ints{0}));
  EXPECT_EQ(suppressed({}, Floats(4 * 6, INFINITY), kScores).shape(0), (Shape{6}));
}

TEST(NonMaxSuppression, RefusesBadOperands) {
  EXPECT_THROW(suppressed({.max_output = -1}), Error);
  EXPECT_THROW(suppressed({.sigma = -0.5F, .soft = true}), Error);
  OpTester t("NON_MAX_SUPPRESSION_V4");
  t.input<float>({1, 5}, Floats(5)).input<float>({1}, {1}).input<int32_t>({}, {1}).input<float>({}, {0});
  t.input<float>({}, {0}).output(DType::kInt32).output(DType::kInt32);
  EXPECT_THROW(t.run(), Error);
}

}  // namespace
}  // namespace leadline::ops
