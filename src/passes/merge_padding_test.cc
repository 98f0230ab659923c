// SPDX-License-Identifier: Apache-2.0
#include "tests/cpp/passes_testing.h"

namespace leadline::passes {
namespace {

TEST(MergePadding, BecomesSameWhereThatPadsAsMuch) {
  Bench b;
  const int x = b.input("x", kF32, {1, 8, 8, 2});
  EXPECT_EQ(ops_after_passes(b, {b.conv(b.pad(x, {0, 0, 1, 1, 1, 1, 0, 0}), 3, 3, ir::Padding::kValid)}),
            Ops{"CONV_2D"});
  Bench strided;  // 8 pixels, stride 2, 3 taps: one zero behind, none in front
  const int y = strided.input("x", kF32, {1, 8, 8, 2});
  EXPECT_EQ(ops_after_passes(
                strided, {strided.conv(strided.pad(y, {0, 0, 0, 1, 0, 1, 0, 0}), 3, 3, ir::Padding::kValid, true, 2)}),
            Ops{"CONV_2D"});
  Bench depthwise;
  const int z = depthwise.input("x", kF32, {-1, -1, -1, 2});
  EXPECT_EQ(ops_after_passes(depthwise, {depthwise.depthwise(depthwise.pad(z, {0, 0, 1, 1, 1, 1, 0, 0}), 2, 3,
                                                             ir::Padding::kValid)}),
            Ops{"DEPTHWISE_CONV_2D"});
}

TEST(MergePadding, OtherPaddingStays) {
  Bench b;
  const int x = b.input("x", kF32, {1, 8, 8, 2});
  const int strided = b.conv(b.pad(x, {0, 0, 1, 1, 1, 1, 0, 0}), 3, 3, ir::Padding::kValid, false, 2);
  EXPECT_EQ(ops_after_passes(b, {strided}), (Ops{"PAD", "CONV_2D"}));
  Bench unknown;
  const int y = unknown.input("x", kF32, {1, -1, -1, 2});
  const int conv = unknown.conv(unknown.pad(y, {0, 0, 0, 1, 0, 1, 0, 0}), 3, 3, ir::Padding::kValid, false, 2);
  const auto graph = unknown.finish({conv});
  run_passes(*graph, true);
  EXPECT_EQ(graph->subgraphs[0].nodes.size(), 2U);
}

TEST(MergePadding, RunsPadByAnyBorder) {
  const std::vector<std::vector<int32_t>> borders = {
      {0, 0, 1, 1, 1, 1, 0, 0}, {0, 0, 0, 2, 2, 0, 0, 0}, {0, 0, 0, 1, 0, 0, 0, 0}, {0, 0, 2, 0, 1, 1, 0, 0}};
  for (const auto& border : borders) {
    for (const int stride : {1, 2}) {
      Bench b;
      const int x = b.input("x", kF32, {2, 7, 6, 3});
      const int y = b.conv(b.pad(x, border), 4, 3, ir::Padding::kValid, true, stride);
      EXPECT_EQ(ops_of_run(b, {b.depthwise(b.pad(y, border), 1, 3, ir::Padding::kValid)}),
                (Ops{"CONV_2D", "DEPTHWISE_CONV_2D"}));
    }
  }
}

TEST(MergePadding, RunsKeepOtherPads) {
  const std::vector<std::vector<int32_t>> borders = {
      {0, 0, 3, 0, 0, 0, 0, 0}, {0, 0, 2, 2, 0, 0, 0, 0}, {1, 0, 0, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 0, 0, 2}};
  for (const auto& border : borders) {
    Bench b;
    const int x = b.input("x", kF32, {2, 7, 6, 3});
    EXPECT_EQ(ops_of_run(b, {b.conv(b.pad(x, border), 4, 3, ir::Padding::kValid)}), (Ops{"PAD", "CONV_2D"}));
  }
  Bench shared;
  const int padded = shared.pad(shared.input("x", kF32, {1, 7, 6, 3}), {0, 0, 1, 1, 1, 1, 0, 0});
  EXPECT_EQ(ops_of_run(shared, {shared.conv(padded, 4, 3, ir::Padding::kValid), padded}), (Ops{"PAD", "CONV_2D"}));
}

}  // namespace
}  // namespace leadline::passes
