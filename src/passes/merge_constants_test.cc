// SPDX-License-Identifier: Apache-2.0
#include "tests/cpp/passes_testing.h"

namespace leadline::passes {
namespace {

TEST(MergeConstants, EqualOnesBecomeOne) {
  Bench b;
  const int x = b.input("x", kF32, {2});
  const int one = b.constant("a", kF32, {2}, std::vector<float>{1, 2});
  const int two = b.constant("b", kF32, {2}, std::vector<float>{1, 2});
  const int other = b.constant("c", kF32, {1, 2}, std::vector<float>{1, 2});
  const int y = b.node("MAXIMUM", {b.node("MINIMUM", {b.node("POW", {x, one}, "p"), two}, "q"), other}, "y");
  const auto graph = b.finish({y});
  run_passes(*graph, true);
  const auto& nodes = graph->subgraphs[0].nodes;
  const auto& values = graph->subgraphs[0].values;
  EXPECT_EQ(nodes[0].inputs[1], nodes[1].inputs[1]);
  EXPECT_NE(nodes[2].inputs[1], nodes[1].inputs[1]);  // another shape, the same bytes
  EXPECT_EQ(values[static_cast<size_t>(nodes[2].inputs[1])].data.data(),
            values[static_cast<size_t>(nodes[1].inputs[1])].data.data());
}

}  // namespace
}  // namespace leadline::passes
