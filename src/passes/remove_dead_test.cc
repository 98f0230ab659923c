// SPDX-License-Identifier: Apache-2.0
#include "tests/cpp/passes_testing.h"

namespace leadline::passes {
namespace {

TEST(RemoveDead, NodesAndConstantsNobodyNeedsGo) {
  Bench b;
  const int x = b.input("x", kF32, {2, 3});
  b.node("EXP", {b.node("ADD", {x, b.floats({3})}, "unused")}, "unused");
  const auto graph = b.finish({b.node("RELU", {x}, "y")});
  EXPECT_GT(remove_dead(*graph), 0);
  EXPECT_EQ(graph->subgraphs[0].nodes.size(), 1U);
  EXPECT_EQ(graph->subgraphs[0].values.size(), 2U);
  EXPECT_TRUE(graph->storage.empty());
  EXPECT_EQ(remove_dead(*graph), 0);
}

TEST(RemoveDead, InputsStay) {
  Bench b;
  b.input("unused", kF32, {2});
  const int x = b.input("x", kF32, {2});
  EXPECT_EQ(ops_after_passes(b, {b.node("EXP", {x}, "y")}), Ops{"EXP"});
}

}  // namespace
}  // namespace leadline::passes
