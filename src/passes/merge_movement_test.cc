// SPDX-License-Identifier: Apache-2.0
#include "tests/cpp/passes_testing.h"

namespace leadline::passes {
namespace {

TEST(MergeMovement, ChainsBecomeOneNode) {
  Bench b;
  const int x = b.input("x", kF32, {2, 3, 4});
  const int r = b.reshape(b.reshape(x, {6, 4}), {4, 6});
  EXPECT_EQ(ops_after_passes(b, {b.node("EXP", {r}, "y")}), (Ops{"RESHAPE", "EXP"}));
  Bench t;
  const int z = t.input("x", kF32, {2, 3, 4});
  EXPECT_EQ(ops_after_passes(t, {t.transpose(t.transpose(z, {2, 0, 1}), {0, 2, 1})}), Ops{"TRANSPOSE"});
}

TEST(MergeMovement, AxesAddedToAReshapeAreItsOwn) {
  Bench b;
  const int x = b.input("x", kF32, {-1, 3, 4});
  const int wide = b.node("EXPAND_DIMS", {b.reshape(x, {-1, 12}), b.ints({1})}, "wide");
  EXPECT_EQ(ops_after_passes(b, {b.node("EXP", {wide}, "y")}), (Ops{"RESHAPE", "EXP"}));
}

TEST(MergeMovement, WhatChangesNothingVanishes) {
  Bench b;
  const int x = b.input("x", kF32, {1, 2, 3, 4});
  int y = b.node("EXP", {x}, "e");
  y = b.reshape(y, {1, 2, 3, 4});
  y = b.transpose(y, {0, 1, 2, 3});
  y = b.pad(y, {0, 0, 0, 0, 0, 0, 0, 0});
  y = b.node("CAST", {y}, "cast");
  y = b.transpose(b.transpose(y, {0, 3, 1, 2}), {0, 2, 3, 1});
  EXPECT_EQ(ops_after_passes(b, {y}), Ops{"EXP"});
}

TEST(MergeMovement, BatchesOfAnySizeKeepTheirReshapes) {
  Bench b;
  const int x = b.input("x", kF32, {-1, 6});
  const int y = b.node("EXP", {b.reshape(b.reshape(x, {-1, 2, 3}), {-1, 6})}, "y");
  EXPECT_EQ(ops_after_passes(b, {y}), Ops{"EXP"});
  Bench c;
  const int z = c.input("x", kF32, {-1, -1});
  const int turned = c.reshape(c.transpose(z, {1, 0}), {-1, 1});
  EXPECT_EQ(ops_after_passes(c, {c.node("EXP", {turned}, "y")}), (Ops{"TRANSPOSE", "RESHAPE", "EXP"}));
}

TEST(MergeMovement, AnInputIsNoOutput) {
  Bench b;
  const int x = b.input("x", kF32, {2, 3});
  EXPECT_EQ(ops_after_passes(b, {b.reshape(x, {2, 3})}), Ops{"RESHAPE"});
}

TEST(MergeMovement, RunsSkipWhatChangesNothing) {
  Bench b;
  int y = b.node("EXP", {b.input("x", kF32, {1, 2, 3, 4})}, "e");
  y = b.node("CAST", {b.transpose(y, {0, 1, 2, 3})}, "cast");
  EXPECT_EQ(ops_of_run(b, {y}), Ops{"EXP"});
}

}  // namespace
}  // namespace leadline::passes
