// SPDX-License-Identifier: Apache-2.0
#include "ops/reduce.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ops/op_testing.h"

namespace leadline::ops {
namespace {

ReduceAttributes keep(bool keep_dims) {
  ReduceAttributes a;
  a.keep_dims = keep_dims;
  return a;
}

std::vector<float> counted(int64_t n) {
  std::vector<float> values(static_cast<size_t>(n));
  std::iota(values.begin(), values.end(), 0.0F);
  return values;
}

/// Sum over `axes` of a shape, the slow way.
std::vector<float> naive_sum(const Shape& shape, const std::vector<int>& axes) {
  const std::vector<float> in = counted(shape.elements());
  std::vector<float> out;
  std::vector<int64_t> strides(8, 0);
  int64_t outputs = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    if (std::find(axes.begin(), axes.end(), i) != axes.end()) continue;
    strides[static_cast<size_t>(i)] = outputs;
    outputs *= shape[i];
  }
  out.resize(static_cast<size_t>(outputs));
  for (int64_t k = 0; k < shape.elements(); ++k) {
    int64_t rest = k;
    int64_t to = 0;
    for (int i = shape.rank() - 1; i >= 0; --i) {
      to += rest % shape[i] * strides[static_cast<size_t>(i)];
      rest /= shape[i];
    }
    out[static_cast<size_t>(to)] += in[static_cast<size_t>(k)];
  }
  return out;
}

TEST(Reduce, SumOverEverySetOfAxes) {
  const Shape shape{2, 3, 1, 4, 5};
  for (unsigned mask = 0; mask < 32; ++mask) {
    std::vector<int32_t> axes;
    for (int i = 0; i < 5; ++i) {
      if (mask & (1U << i)) axes.push_back(i);
    }
    OpTester t("SUM");
    t.attributes(keep(false)).input<float>(shape, counted(120));
    t.input<int32_t>({static_cast<int64_t>(axes.size())}, axes).output(DType::kFloat32).threads(2).run();
    EXPECT_EQ(t.result<float>(0), naive_sum(shape, {axes.begin(), axes.end()})) << "axes " << mask;
  }
}

TEST(Reduce, AxesMayBeNegativeRepeatedComputedAndInt64) {
  OpTester t("MEAN");
  t.attributes(keep(true)).input<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  t.input<int64_t>({3}, {-1, 1, -1}, {}, false).output(DType::kFloat32).run();
  EXPECT_EQ(t.shape(0), (Shape{2, 1}));
  EXPECT_EQ(t.result<float>(0), (std::vector<float>{2, 5}));
}

TEST(Reduce, AxisOutsideTheRankIsRefusedAndScalarsIgnoreIt) {
  OpTester bad("MEAN");
  bad.input<float>({2}, {1, 2}).input<int32_t>({1}, {1}).output(DType::kFloat32);
  EXPECT_THROW(bad.run(), Error);
  OpTester scalar("MEAN");
  scalar.input<float>({}, {7}).input<int32_t>({1}, {5}).output(DType::kFloat32).run();
  EXPECT_EQ(scalar.result<float>(0), (std::vector<float>{7}));
}

TEST(Reduce, SpatialMeanOfManyChannels) {
  std::vector<float> data(49 * 200);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i % 200);
  OpTester t("MEAN");
  t.input<float>({1, 7, 7, 200}, data).input<int32_t>({2}, {1, 2}).output(DType::kFloat32).threads(2).run();
  ASSERT_EQ(t.shape(0), (Shape{1, 200}));
  for (size_t c = 0; c < 200; ++c) EXPECT_EQ(t.result<float>(0)[c], static_cast<float>(c));
}

TEST(Reduce, LongFloatSumsKeepTheirPrecision) {
  OpTester t("SUM");
  t.input<float>({3000000}, std::vector<float>(3000000, 0.1F)).input<int32_t>({1}, {0}).output(DType::kFloat32).run();
  EXPECT_NEAR(t.result<float>(0)[0], 300000.0F, 1.0F);  // added one by one: off by 2,000
}

// The next three results are those of TensorFlow Lite.
const std::vector<int8_t> kBytes = {47, 68, -103, 118, -61, 83, 23, -25, -36, 57, 14, -105};

TEST(Reduce, QuantizedMeanRescales) {
  OpTester t("MEAN");
  t.input<int8_t>({2, 3, 2}, kBytes, quantized(0.5F, 3)).input<int32_t>({1}, {1});
  t.output(DType::kInt8, quantized(0.8F, -10)).run();
  EXPECT_EQ(t.result<int8_t>(0), (std::vector<int8_t>{-36, 44, -12, -27}));
}

TEST(Reduce, QuantizedSumSaturates) {
  OpTester t("SUM");
  t.input<int8_t>({2, 3, 2}, kBytes, quantized(0.5F, 3)).input<int32_t>({1}, {1});
  t.output(DType::kInt8, quantized(0.8F, -10)).run();
  EXPECT_EQ(t.result<int8_t>(0), (std::vector<int8_t>{-89, 127, -15, -61}));
}

TEST(Reduce, QuantizedProductRescalesAfterEveryFactor) {
  OpTester t("REDUCE_PROD");
  t.input<int8_t>({2, 3, 2}, {-12, 5, 6, -12, 19, 18, -16, -13, -20, -9, -14, -1}, quantized(0.1F, 1));
  t.input<int32_t>({1}, {1}).output(DType::kInt8, quantized(0.06F, -5)).run();
  EXPECT_EQ(t.result<int8_t>(0), (std::vector<int8_t>{-25, -19, -94, -10}));
}

TEST(Reduce, IntegerMeansAreCutOffAndSumsWrap) {
  OpTester mean("MEAN");
  mean.input<int32_t>({2, 2}, {-3, 0, 3, 0}).input<int32_t>({1}, {1}).output(DType::kInt32).run();
  EXPECT_EQ(mean.result<int32_t>(0), (std::vector<int32_t>{-1, 1}));
  OpTester sum("SUM");
  sum.input<int32_t>({2}, {std::numeric_limits<int32_t>::max(), 1}).input<int32_t>({1}, {0});
  sum.output(DType::kInt32).run();
  EXPECT_EQ(sum.result<int32_t>(0), (std::vector<int32_t>{std::numeric_limits<int32_t>::min()}));
  OpTester prod("REDUCE_PROD");
  prod.input<int64_t>({3}, {int64_t{1} << 40, 3, 1 << 24}).input<int32_t>({1}, {0}).output(DType::kInt64).run();
  EXPECT_EQ(prod.result<int64_t>(0), (std::vector<int64_t>{0}));
}

TEST(Reduce, MaxAndMinOfRowsAndColumns) {
  OpTester max("REDUCE_MAX");
  max.input<int16_t>({2, 3}, {1, -5, 3, 9, -7, 2}, quantized(1.0F)).input<int32_t>({1}, {1});
  max.output(DType::kInt16, quantized(1.0F)).run();
  EXPECT_EQ(max.result<int16_t>(0), (std::vector<int16_t>{3, 9}));
  OpTester min("REDUCE_MIN");
  min.input<uint8_t>({2, 3}, {1, 5, 3, 9, 7, 2}, quantized(1.0F, 1)).input<int32_t>({1}, {0});
  min.output(DType::kUInt8, quantized(1.0F, 1)).run();
  EXPECT_EQ(min.result<uint8_t>(0), (std::vector<uint8_t>{1, 5, 2}));
  OpTester different("REDUCE_MIN");
  different.input<uint8_t>({2}, {1, 5}, quantized(1.0F, 1)).input<int32_t>({1}, {0});
  different.output(DType::kUInt8, quantized(1.0F, 2));
  EXPECT_THROW(different.run(), Error);
}

TEST(Reduce, AnyAndAllOfBooleans) {
  OpTester any("REDUCE_ANY");
  any.input<bool>({2, 2}, {false, true, false, false}).input<int32_t>({1}, {1}).output(DType::kBool).run();
  EXPECT_EQ(any.result<uint8_t>(0), (std::vector<uint8_t>{1, 0}));
  OpTester all("REDUCE_ALL");
  all.input<bool>({2, 2}, {true, true, true, false}).input<int32_t>({1}, {0}).output(DType::kBool).run();
  EXPECT_EQ(all.result<uint8_t>(0), (std::vector<uint8_t>{1, 0}));
}

TEST(Reduce, NothingToReduceGivesTheNeutralElement) {
  const auto reduced = [](const char* op) {
    OpTester t(op);
    t.input<float>({2, 0}, {}).input<int32_t>({1}, {1}).output(DType::kFloat32).run();
    EXPECT_EQ(t.shape(0), (Shape{2}));
    return t.result<float>(0)[1];
  };
  EXPECT_EQ(reduced("SUM"), 0.0F);
  EXPECT_EQ(reduced("REDUCE_PROD"), 1.0F);
  EXPECT_EQ(reduced("REDUCE_MAX"), std::numeric_limits<float>::lowest());
  EXPECT_EQ(reduced("REDUCE_MIN"), std::numeric_limits<float>::max());
  EXPECT_TRUE(std::isnan(reduced("MEAN")));
}

}  // namespace
}  // namespace leadline::ops
