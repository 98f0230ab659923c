// SPDX-License-Identifier: Apache-2.0
#include "tests/cpp/passes_testing.h"

namespace leadline::passes {
namespace {

TEST(FoldAffine, BatchNormGoesIntoTheContractionBefore) {
  for (const std::string kind : {"conv", "conv with bias", "depthwise", "dense", "transposed"}) {
    SCOPED_TRACE(kind);
    Bench b;
    const int x = b.input("x", kF32, {1, 5, 6, 4});
    int y = 0;
    if (kind == "conv") y = b.conv(x, 3, 3, ir::Padding::kSame);
    if (kind == "conv with bias") y = b.conv(x, 3, 3, ir::Padding::kSame, true);
    if (kind == "depthwise") y = b.depthwise(x, 2, 3, ir::Padding::kSame);
    if (kind == "dense") y = b.dense(x, 3);
    if (kind == "transposed") {
      ops::TransposeConvAttributes a;
      a.stride_h = a.stride_w = 2;
      y = b.node("TRANSPOSE_CONV", {b.ints({1, 10, 12, 3}), b.floats({3, 2, 2, 4}), x}, "up", a, kF32);
    }
    const int64_t channels = b.dims(y).back();
    y = b.node("MUL", {y, b.floats({channels})}, "scaled");
    y = b.node("ADD", {b.floats({1, 1, 1, channels}), y}, "shifted");
    y = b.node("SUB", {y, b.floats({})}, "less");
    y = b.node("DIV", {y, b.floats({1})}, "part");
    y = b.node("RELU6", {y}, "y");
    EXPECT_EQ(ops_after_passes(b, {y}).size(), 1U);
  }
}

TEST(FoldAffine, OtherReadersKeepWhatTheyRead) {
  Bench b;
  const int x = b.input("x", kF32, {1, 5, 6, 4});
  const int conv = b.conv(x, 3, 3, ir::Padding::kSame);
  const int y = b.node("MUL", {conv, b.floats({3})}, "y");
  EXPECT_EQ(ops_after_passes(b, {y, conv}), (Ops{"CONV_2D", "MUL"}));
  Bench active;
  const int z = active.input("x", kF32, {1, 5, 6, 4});
  const int relu = active.node("RELU", {active.conv(z, 3, 3, ir::Padding::kSame)}, "relu");
  EXPECT_EQ(ops_after_passes(active, {active.node("MUL", {relu, active.floats({3})}, "y")}), (Ops{"CONV_2D", "MUL"}));
  Bench wide;  // one factor per column, not per channel
  const int w = wide.input("x", kF32, {1, 5, 6, 4});
  const int plain = wide.conv(w, 3, 3, ir::Padding::kSame);
  EXPECT_EQ(ops_after_passes(wide, {wide.node("MUL", {plain, wide.floats({6, 1})}, "y")}), (Ops{"CONV_2D", "MUL"}));
}

TEST(FoldAffine, SharedWeightsStayShared) {
  Bench b;
  const int x = b.input("x", kF32, {1, 5, 6, 4});
  const int z = b.input("z", kF32, {1, 5, 6, 4});
  const int w = b.floats({8, 3, 3, 4});
  const int scale = b.floats({8});
  ops::Conv2DAttributes a;
  a.stride_h = a.stride_w = 1;
  const int first = b.node("MUL", {b.node("CONV_2D", {x, w}, "c", a), scale}, "m");
  const int second = b.node("MUL", {b.node("CONV_2D", {z, w}, "c", a), scale}, "m");
  const auto graph = b.finish({first, second});
  const ir::Graph before = *graph;
  run_passes(*graph, true);
  expect_same_results(before, *graph);
  const auto& nodes = graph->subgraphs[0].nodes;
  ASSERT_EQ(nodes.size(), 2U);
  EXPECT_EQ(nodes[0].inputs[1], nodes[1].inputs[1]);
  Bench apart;
  const int p = apart.input("x", kF32, {1, 5, 6, 4});
  const int q = apart.input("z", kF32, {1, 5, 6, 4});
  const int v = apart.floats({8, 3, 3, 4});
  const int one = apart.node("MUL", {apart.node("CONV_2D", {p, v}, "c", a), apart.floats({8})}, "m");
  const int two = apart.node("CONV_2D", {q, v}, "c", a);
  EXPECT_EQ(ops_after_passes(apart, {one, two}), (Ops{"CONV_2D", "MUL", "CONV_2D"}));
}

TEST(FoldAffine, GoesIntoTheContractionBehindWhereExact) {
  Bench b;
  const int x = b.input("x", kF32, {1, 5, 6, 4});
  const int scaled = b.node("MUL", {x, b.floats({4})}, "scaled");
  EXPECT_EQ(ops_after_passes(b, {b.conv(scaled, 3, 3, ir::Padding::kSame)}), Ops{"CONV_2D"});
  Bench shifted;
  const int y = shifted.input("x", kF32, {1, 5, 6, 4});
  const int sum = shifted.node("ADD", {y, shifted.floats({4})}, "sum");
  EXPECT_EQ(ops_after_passes(shifted, {shifted.conv(sum, 3, 3, ir::Padding::kValid, true)}), Ops{"CONV_2D"});
  Bench padded;  // zeros of the padding are not shifted
  const int z = padded.input("x", kF32, {1, 5, 6, 4});
  const int more = padded.node("ADD", {z, padded.floats({4})}, "sum");
  EXPECT_EQ(ops_after_passes(padded, {padded.conv(more, 3, 3, ir::Padding::kSame)}), (Ops{"ADD", "CONV_2D"}));
  Bench depthwise;
  const int d = depthwise.input("x", kF32, {1, 5, 6, 4});
  const int part = depthwise.node("MUL", {d, depthwise.floats({4})}, "scaled");
  EXPECT_EQ(ops_after_passes(depthwise, {depthwise.depthwise(part, 2, 3, ir::Padding::kSame)}),
            Ops{"DEPTHWISE_CONV_2D"});
  Bench dense;
  const int f = dense.input("x", kF32, {3, 4});
  const int both = dense.node("ADD", {dense.node("MUL", {f, dense.floats({4})}, "m"), dense.floats({4})}, "a");
  EXPECT_EQ(ops_after_passes(dense, {dense.dense(both, 5)}), Ops{"FULLY_CONNECTED"});
}

}  // namespace
}  // namespace leadline::passes
