// SPDX-License-Identifier: Apache-2.0
#include "tests/cpp/passes_testing.h"

namespace leadline::passes {
namespace {

TEST(MergeDilation, BatchesOfPixelsBecomeDilation) {
  for (const bool same : {true, false}) {
    Bench b;
    const int x = b.input("x", kF32, {1, 7, 9, 2});
    const int block = b.ints({2, 2});
    // SAME pads 2 on each side (3 taps, dilation 2); sizes become even with one more behind.
    const int pads = same ? b.ints({2, 3, 2, 3}, {2, 2}) : b.ints({0, 1, 0, 1}, {2, 2});
    const int crops = b.ints({0, 1, 0, 1}, {2, 2});
    const int apart = b.node("SPACE_TO_BATCH_ND", {x, block, pads}, "apart");
    const int conv = b.conv(apart, 3, 3, ir::Padding::kValid, true);
    const int y = b.node("BATCH_TO_SPACE_ND", {conv, block, crops}, "y");
    EXPECT_EQ(b.dims(y), (same ? Dims{1, 7, 9, 3} : Dims{1, 3, 5, 3}));
    EXPECT_EQ(ops_after_passes(b, {b.node("RELU", {y}, "z")}), Ops{"CONV_2D"});
  }
}

}  // namespace
}  // namespace leadline::passes
