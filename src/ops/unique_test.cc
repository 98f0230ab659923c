// SPDX-License-Identifier: Apache-2.0
#include "ops/unique.h"

#include <gtest/gtest.h>

#include "ops/op_testing.h"

namespace leadline::ops {
namespace {

template <typename T>
OpTester unique(const std::vector<T>& values, DType places = DType::kInt32) {
  UniqueAttributes a;
  a.idx_out_type = places;
  OpTester t("UNIQUE");
  t.attributes(a).input<T>({static_cast<int64_t>(values.size())}, values, {}, false);
  t.output(dtype_of<T>()).output(places);
  t.run();
  return t;
}

TEST(Unique, KeepsTheOrderOfFirstAppearance) {
  const OpTester t = unique<int16_t>({7, -2, 7, 0, -2});
  EXPECT_EQ(t.shape(0), (Shape{3}));
  EXPECT_EQ(t.result<int16_t>(0), (std::vector<int16_t>{7, -2, 0}));
  EXPECT_EQ(t.result<int32_t>(1), (std::vector<int32_t>{0, 1, 0, 2, 1}));
}

TEST(Unique, WidePlacesAndFloats) {
  const OpTester t = unique<float>({0.0F, -0.0F, 1.5F, 0.0F}, DType::kInt64);
  EXPECT_EQ(t.result<float>(0), (std::vector<float>{0.0F, 1.5F}));
  EXPECT_EQ(t.result<int64_t>(1), (std::vector<int64_t>{0, 0, 1, 0}));
}

TEST(Unique, ManyValues) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < 20000; ++i) values.push_back((i % 5000) << 32);
  const OpTester t = unique<int64_t>(values);
  EXPECT_EQ(t.result<int64_t>(0), std::vector<int64_t>(values.begin(), values.begin() + 5000));
  EXPECT_EQ(t.result<int32_t>(1)[12345], 2345);
}

TEST(Unique, NothingHasNoValues) { EXPECT_EQ(unique<uint8_t>({}).shape(0), (Shape{0})); }

TEST(Unique, RefusesOtherTypesAndRanks) {
  EXPECT_THROW(unique<int32_t>({1}, DType::kInt8), Error);
  EXPECT_THROW(unique<double>({1}), Error);
  OpTester t("UNIQUE");
  t.input<int32_t>({1, 1}, {1}).output(DType::kInt32).output(DType::kInt32);
  EXPECT_THROW(t.run(), Error);
}

}  // namespace
}  // namespace leadline::ops
