// SPDX-License-Identifier: Apache-2.0
#include "tests/cpp/passes_testing.h"

namespace leadline::passes {
namespace {

TEST(MergeNodes, EqualNodesBecomeOne) {
  Bench b;
  const int x = b.input("x", kF32, {2, 3});
  const int a = b.node("EXP", {x}, "a");
  const int c = b.node("EXP", {x}, "c");
  const int d = b.node("NEG", {x}, "d");
  EXPECT_EQ(ops_after_passes(b, {b.node("MUL", {b.node("MAXIMUM", {a, d}, "m"), c}, "y")}),
            (Ops{"EXP", "NEG", "MAXIMUM", "MUL"}));
}

TEST(MergeNodes, OtherAttributesAreOtherNodes) {
  Bench b;
  const int x = b.input("x", kF32, {1, 4, 4, 2});
  const int w = b.floats({2, 3, 3, 2});
  ops::Conv2DAttributes a;
  a.stride_h = a.stride_w = 1;
  const int once = b.node("CONV_2D", {x, w}, "once", a);
  a.dilation_h = a.dilation_w = 2;
  const int twice = b.node("CONV_2D", {x, w}, "twice", a);
  EXPECT_EQ(ops_after_passes(b, {b.node("ADD", {once, twice}, "y")}), (Ops{"CONV_2D", "CONV_2D", "ADD"}));
}

TEST(MergeNodes, OutputsKeepTheirNodes) {
  Bench b;
  const int x = b.input("x", kF32, {2});
  const int a = b.node("EXP", {x}, "a");
  const int c = b.node("EXP", {x}, "c");
  EXPECT_EQ(ops_after_passes(b, {a, c}).size(), 2U);
}

TEST(MergeNodes, RunsMergeWhereTheFirstResultIsStillThere) {
  Bench b;
  const int x = b.input("x", kF32, {64});
  const int a = b.node("EXP", {x}, "a");
  const int c = b.node("EXP", {x}, "c");
  EXPECT_EQ(ops_of_run(b, {b.node("MUL", {a, c}, "y")}), (Ops{"EXP", "MUL"}));
  Bench gone;
  const int z = gone.input("x", kF32, {64});
  int first = gone.node("NEG", {gone.node("EXP", {z}, "a")}, "n");
  for (int i = 0; i < 3; ++i) first = gone.node("NEG", {first}, "n" + std::to_string(i));
  const int second = gone.node("EXP", {z}, "c");
  EXPECT_EQ(ops_of_run(gone, {gone.node("MUL", {first, second}, "y")}).size(), 7U);
}

}  // namespace
}  // namespace leadline::passes
