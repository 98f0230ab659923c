// SPDX-License-Identifier: Apache-2.0
#include "ops/lsh_projection.h"

#include <gtest/gtest.h>

#include "ops/op_testing.h"

namespace leadline::ops {
namespace {

OpTester project(LshProjectionType type, bool weighted) {
  LshProjectionAttributes a;
  a.type = type;
  OpTester t("LSH_PROJECTION");
  t.attributes(a).input<float>({2, 3}, {0.5F, -1.25F, 2, 3.5F, -0.75F, 8});
  t.input<int32_t>({4}, {3, -14, 159, 2653});
  if (weighted) t.input<float>({4}, {0.5F, -2, 1, 0.25F});
  t.output(DType::kInt32);
  t.run();
  return t;
}

using Ints = std::vector<int32_t>;

// The numbers are TFLite's for the same operands.
TEST(LshProjection, DenseGivesBits) {
  EXPECT_EQ(project(LshProjectionType::kDense, false).result<int32_t>(0), (Ints{1, 1, 0, 1, 0, 0}));
  EXPECT_EQ(project(LshProjectionType::kDense, true).result<int32_t>(0), (Ints{0, 0, 0, 1, 1, 1}));
}

TEST(LshProjection, SparseGivesSignaturesKeptApart) {
  EXPECT_EQ(project(LshProjectionType::kSparse, false).result<int32_t>(0), (Ints{6, 8 + 4}));
  EXPECT_EQ(project(LshProjectionType::kSparse, true).result<int32_t>(0), (Ints{0, 8 + 7}));
}

TEST(LshProjection, RefusesUnknownTypesAndWideHashes) {
  EXPECT_THROW(project(LshProjectionType::kUnknown, false), Error);
  OpTester t("LSH_PROJECTION");
  LshProjectionAttributes a;
  a.type = LshProjectionType::kDense;
  t.attributes(a).input<float>({1, 33}, std::vector<float>(33)).input<int32_t>({1}, {1}).output(DType::kInt32);
  EXPECT_THROW(t.run(), Error);
}

}  // namespace
}  // namespace leadline::ops
