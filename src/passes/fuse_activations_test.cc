// SPDX-License-Identifier: Apache-2.0
#include "ops/concatenation.h"
#include "tests/cpp/passes_testing.h"

namespace leadline::passes {
namespace {

TEST(FuseActivations, BecomePartOfTheNodeBefore) {
  for (const std::string activation : {"RELU", "RELU6", "RELU_N1_TO_1"}) {
    Bench b;
    const int x = b.input("x", kF32, {1, 5, 6, 4});
    const int conv = b.node(activation, {b.conv(x, 4, 3, ir::Padding::kSame)}, "a");
    const int sum = b.node(activation, {b.node("ADD", {conv, x}, "s")}, "b");
    const int product = b.node(activation, {b.node("MUL", {sum, x}, "p")}, "y");
    EXPECT_EQ(ops_after_passes(b, {product}), (Ops{"CONV_2D", "ADD", "MUL"}));
  }
}

TEST(FuseActivations, OthersStay) {
  Bench b;
  const int x = b.input("x", kF32, {1, 5, 6, 4});
  const int conv = b.conv(x, 4, 3, ir::Padding::kSame);
  const int once = b.node("RELU", {conv}, "r");
  EXPECT_EQ(ops_after_passes(b, {b.node("RELU6", {once}, "y"), conv}), (Ops{"CONV_2D", "RELU", "RELU6"}));
  Bench joined;  // LiteRT refuses activations there
  const int y = joined.input("x", kF32, {1, 4});
  ops::ConcatenationAttributes a;
  a.axis = 1;
  const int wide = joined.node("CONCATENATION", {y, y}, "wide", a);
  EXPECT_EQ(ops_after_passes(joined, {joined.node("RELU", {wide}, "y")}), (Ops{"CONCATENATION", "RELU"}));
}

}  // namespace
}  // namespace leadline::passes
