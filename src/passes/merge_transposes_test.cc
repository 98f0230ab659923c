// SPDX-License-Identifier: Apache-2.0
#include "tests/cpp/passes_testing.h"

namespace leadline::passes {
namespace {

TEST(MergeTransposes, BecomeFlagsOfMatrixProducts) {
  Bench b;
  const int x = b.input("x", kF32, {2, 4, 3});
  const int y = b.input("y", kF32, {2, 5, 4});
  const int product = b.node("BATCH_MATMUL", {b.transpose(x, {0, 2, 1}), b.transpose(y, {0, 2, 1})}, "product");
  EXPECT_EQ(ops_after_passes(b, {product}), Ops{"BATCH_MATMUL"});
}

TEST(MergeTransposes, OtherOrdersStay) {
  Bench b;
  const int x = b.input("x", kF32, {4, 2, 3});
  const int y = b.input("y", kF32, {2, 3, 5});
  const int product = b.node("BATCH_MATMUL", {b.transpose(x, {1, 0, 2}), y}, "product");
  EXPECT_EQ(ops_after_passes(b, {product}), (Ops{"TRANSPOSE", "BATCH_MATMUL"}));
}

}  // namespace
}  // namespace leadline::passes
