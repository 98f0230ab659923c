// SPDX-License-Identifier: Apache-2.0
// All passes together: bodies of loops, and random graphs.
#include "ops/control_flow.h"
#include "tests/cpp/passes_testing.h"

namespace leadline::passes {
namespace {

TEST(Passes, BodiesOfLoopsAreImprovedToo) {
  Bench b;
  const int x = b.input("x", kF32, {1, 4, 4, 2});
  ops::IfAttributes choice;
  for (int32_t* branch : {&choice.then_subgraph, &choice.else_subgraph}) {
    *branch = b.begin_subgraph("branch");
    const int in = b.input("in", kF32, {1, 4, 4, 2});
    const int conv = b.conv(in, 2, 3, ir::Padding::kSame);
    b.end_subgraph({b.node("RELU", {b.node("MUL", {conv, b.floats({2})}, "m")}, "out")});
  }
  const int condition = b.node("GREATER",
                               {b.reshape(b.node("SUM", {x, b.ints({0, 1, 2, 3})}, "sum"), {1}),
                                b.constant("zero", kF32, {1}, std::vector<float>{0})},
                               "condition", DType::kBool);
  const auto graph = b.finish(b.add({"IF", {condition, x}, {{"y"}}, std::make_shared<ops::IfAttributes>(choice)}));
  const ir::Graph before = *graph;
  run_passes(*graph, true);
  EXPECT_EQ(graph->subgraphs[1].nodes.size(), 1U);
  EXPECT_EQ(graph->subgraphs[2].nodes.size(), 1U);
  expect_same_results(before, *graph);
}

TEST(Passes, ForRunsLeaveTheGraphAsItIs) {
  Bench b;
  const int x = b.input("x", kF32, {1, 4, 4, 2});
  const int padded = b.pad(b.node("MUL", {x, b.node("LOGISTIC", {x}, "gate")}, "swish"), {0, 0, 1, 0, 0, 1, 0, 0});
  const auto graph = b.finish({b.node("RELU", {b.conv(padded, 2, 3, ir::Padding::kValid)}, "y")});
  const std::string before = ir::to_text(*graph);
  const ir::ChangedNodes changes = changes_for_runs(*graph, {}, true);
  EXPECT_EQ(changes.subgraphs[0].absorbed.size(), 3U);  // LOGISTIC, PAD and RELU
  EXPECT_EQ(changes.subgraphs[0].changed.size(), 2U);
  EXPECT_EQ(ir::to_text(*graph), before);
}

TEST(Passes, AreListedByName) {
  EXPECT_EQ(names_for_runs().size(), passes_for_runs().size() + 1);  // and what the planner does
  EXPECT_EQ(all_passes().size(), 14U);
  for (const Pass& pass : all_passes()) EXPECT_NE(std::string(pass.name), "");
}

/// A graph of ops that the passes look for, in any order.
std::shared_ptr<ir::Graph> random_graph(uint32_t seed) {
  std::minstd_rand random(seed * 7919 + 1);
  const auto pick = [&](int count) { return static_cast<int>(random() >> 8) % count; };
  Bench b;
  std::vector<int> images = {b.input("x", kF32, {seed % 3 == 0 ? -1 : 2, 6, 6, 4})};
  const auto image = [&] {
    return images[static_cast<size_t>(pick(3) == 0 ? pick(static_cast<int>(images.size()))
                                                   : static_cast<int>(images.size()) - 1)];
  };
  const char* const binary[] = {"ADD", "MUL", "SUB", "DIV"};
  const char* const unary[] = {"RELU", "RELU6", "RELU_N1_TO_1", "ABS"};
  for (int step = 0; step < 14; ++step) {
    const int x = image();
    int y = x;
    switch (pick(10)) {
      case 0:
        y = b.conv(x, 4, pick(2) == 0 ? 1 : 3, ir::Padding::kSame, pick(2) == 0);
        break;
      case 1:
        y = b.depthwise(x, 1, 3, ir::Padding::kSame);
        break;
      case 2:
        y = b.dense(x, 4);
        break;
      case 3:
      case 4:
        y = b.node(binary[pick(4)], {x, pick(3) == 0 ? b.floats({}) : b.floats({4})}, "affine");
        break;
      case 5:
        y = b.node(binary[pick(3)], {x, image()}, "both");
        break;
      case 6:
        y = b.node(unary[pick(4)], {x}, "unary");
        break;
      case 7:
        y = b.reshape(x, {-1, 36, 4});
        if (pick(2) == 0) y = b.node(binary[pick(4)], {y, b.floats({4})}, "affine");
        y = b.reshape(y, {-1, 6, 6, 4});
        break;
      case 8:
        y = b.transpose(x, {0, 2, 1, 3});
        break;
      case 9:
        y = b.conv(b.pad(x, {0, 0, 1, 1, 1, 1, 0, 0}), 4, 3, ir::Padding::kValid);
        break;
    }
    // Quotients of small numbers would hide differences behind large results.
    if (step % 4 == 3) y = b.node("TANH", {y}, "tanh");
    images.push_back(y);
  }
  return b.finish({images.back(), image()});
}

TEST(Passes, RandomGraphsComputeTheSame) {
  size_t before_nodes = 0;
  size_t after_nodes = 0;
  for (uint32_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    const auto graph = random_graph(seed);
    const ir::Graph before = *graph;
    run_passes(*graph, true);
    before_nodes += before.subgraphs[0].nodes.size();
    after_nodes += graph->subgraphs[0].nodes.size();
    expect_same_results(before, *graph);
    expect_inferred_shapes(*graph);
    if (HasFatalFailure()) return;
  }
  EXPECT_LT(after_nodes * 10, before_nodes * 8);
}

TEST(Passes, RandomGraphsRunTheSame) {
  size_t nodes = 0;
  size_t steps = 0;
  for (uint32_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    const auto graph = random_graph(seed);
    nodes += graph->subgraphs[0].nodes.size();
    steps += ops_of_run(*graph).size();
    if (HasFailure()) return;
  }
  EXPECT_LT(steps * 10, nodes * 9);
}

TEST(Passes, ForRunsAreMadeInBodiesOfLoopsToo) {
  Bench b;
  const int x = b.input("x", kF32, {1, 4});
  ops::IfAttributes choice;
  for (int32_t* branch : {&choice.then_subgraph, &choice.else_subgraph}) {
    *branch = b.begin_subgraph("branch");
    const int in = b.input("in", kF32, {1, 4});
    b.end_subgraph({b.node("MUL", {in, b.node("LOGISTIC", {in}, "gate")}, "out")});
  }
  const int condition = b.node(
      "GREATER",
      {b.reshape(b.node("SUM", {x, b.ints({0, 1})}, "sum"), {1}), b.constant("zero", kF32, {1}, std::vector<float>{0})},
      "condition", DType::kBool);
  const auto graph = b.finish(b.add({"IF", {condition, x}, {{"y"}}, std::make_shared<ops::IfAttributes>(choice)}));
  EXPECT_EQ(changes_for_runs(*graph, {}, true).subgraphs[1].absorbed.size(), 1U);
  EXPECT_EQ(ops_of_run(*graph).back(), "IF");
}

}  // namespace
}  // namespace leadline::passes
