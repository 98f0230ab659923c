// SPDX-License-Identifier: Apache-2.0
#include "tests/cpp/passes_testing.h"

namespace leadline::passes {
namespace {

TEST(FoldConstants, SmallResultsAreComputed) {
  Bench b;
  const int x = b.input("x", kF32, {2, 3000});
  const int c = b.floats({2, 3000});  // too large for the builder
  EXPECT_EQ(ops_after_passes(b, {b.node("ADD", {x, b.node("NEG", {c}, "minus")}, "y")}), Ops{"ADD"});
}

TEST(FoldConstants, LargeOnesBecomeSources) {
  Bench b;
  const int x = b.input("x", kF32, {1, 300});
  const auto all = numbers(300 * 200, 7);
  const auto weights = std::as_bytes(std::span(all));
  const auto source = ir::owned_source({weights.begin(), weights.end()});
  const int w = b.constant("w", kF32, {300, 200}, source);
  const int flat = b.reshape(b.transpose(w, {1, 0}), {200, 300});
  ops::FullyConnectedAttributes a;
  const auto graph = b.finish({b.node("FULLY_CONNECTED", {x, flat, ir::kAbsent}, "y", a)});
  run_passes(*graph, true);
  ASSERT_EQ(graph->subgraphs[0].nodes.size(), 1U);
  const ir::Value& constant = graph->subgraphs[0].value(graph->subgraphs[0].nodes[0].inputs[1]);
  ASSERT_NE(constant.source, nullptr);
  const auto made = ir::read_all(*constant.source);
  float second = 0;
  std::memcpy(&second, made.data() + 4, 4);
  EXPECT_EQ(second, all[200]);
  EXPECT_EQ(run(*graph)[0].size(), 200U);
}

TEST(FoldConstants, WideningsBecomeSources) {
  Bench b;
  const int x = b.input("x", kF32, {40000});
  std::vector<int16_t> values(40000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int16_t>(i);
  const int wide = b.node("CAST", {b.constant("c", DType::kInt16, {40000}, values)}, "wide", kF32);
  EXPECT_EQ(ops_after_passes(b, {b.node("SUB", {x, wide}, "y")}), Ops{"SUB"});
}

}  // namespace
}  // namespace leadline::passes
