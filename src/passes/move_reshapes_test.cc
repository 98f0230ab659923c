// SPDX-License-Identifier: Apache-2.0
#include "tests/cpp/passes_testing.h"

namespace leadline::passes {
namespace {

TEST(MoveReshapes, BatchNormReachesTheConvolutionOfASequence) {
  Bench b;
  const int x = b.input("x", kF32, {-1, 8, 4});
  int y = b.conv(b.reshape(x, {-1, 1, 8, 4}), 3, 3, ir::Padding::kSame);
  y = b.reshape(y, {-1, 8, 3});
  y = b.node("MUL", {y, b.floats({3})}, "scaled");
  y = b.node("ADD", {y, b.floats({1, 1, 3})}, "shifted");
  y = b.node("RELU", {y}, "y");
  EXPECT_EQ(ops_after_passes(b, {y}), (Ops{"RESHAPE", "CONV_2D", "RESHAPE"}));
}

TEST(MoveReshapes, NotWhenChannelsAreMixed) {
  Bench b;
  const int x = b.input("x", kF32, {1, 4, 4, 2});
  int y = b.reshape(b.conv(x, 3, 3, ir::Padding::kSame), {1, 16 * 3});
  y = b.node("MUL", {y, b.floats({48})}, "scaled");
  EXPECT_EQ(ops_after_passes(b, {y}), (Ops{"CONV_2D", "RESHAPE", "MUL"}));
}

}  // namespace
}  // namespace leadline::passes
