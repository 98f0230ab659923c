// SPDX-License-Identifier: Apache-2.0
#include "tests/cpp/passes_testing.h"

namespace leadline::passes {
namespace {

TEST(CompleteBiases, ConvolutionsShareZeros) {
  Bench b;
  const int x = b.input("x", kF32, {1, 5, 6, 4});
  const int y = b.conv(b.node("ABS", {b.conv(x, 4, 3, ir::Padding::kSame)}, "abs"), 4, 1, ir::Padding::kSame);
  const auto graph = b.finish({y});
  const ir::Graph before = *graph;
  run_passes(*graph, true);
  expect_same_results(before, *graph);
  const auto& nodes = graph->subgraphs[0].nodes;
  ASSERT_EQ(nodes.size(), 3U);
  ASSERT_EQ(nodes[0].inputs.size(), 3U);
  EXPECT_EQ(nodes[0].inputs[2], nodes[2].inputs[2]);
}

}  // namespace
}  // namespace leadline::passes
