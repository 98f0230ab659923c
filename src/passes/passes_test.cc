// SPDX-License-Identifier: Apache-2.0
// One test for each rewrite, and random graphs: what is computed stays the same, with fewer nodes.
#include "passes/passes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "ir/sources.h"
#include "model/writer.h"
#include "ops/concatenation.h"
#include "ops/control_flow.h"
#include "ops/conv.h"
#include "ops/fully_connected.h"
#include "ops/graph_builder.h"
#include "tests/cpp/sketch.h"

namespace leadline::passes {
namespace {

using ops::Dims;
using ops::GraphBuilder;
constexpr DType kF32 = DType::kFloat32;

/// Numbers that are the same in every run, between -1 and 1.
std::vector<float> numbers(int64_t count, uint32_t seed) {
  std::minstd_rand random(seed + 1);
  std::uniform_real_distribution<float> uniform(-1.0F, 1.0F);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& v : values) v = uniform(random);
  return values;
}

int64_t elements(const Dims& dims) {
  int64_t count = 1;
  for (int64_t size : dims) count *= size;
  return count;
}

/// A builder with short words for what the tests need.
class Bench : public GraphBuilder {
 public:
  int floats(const Dims& dims) { return constant("c", kF32, dims, numbers(elements(dims), seed_++)); }
  int ints(const std::vector<int32_t>& v, Dims dims = {}) {
    if (dims.empty()) dims = {static_cast<int64_t>(v.size())};
    return constant("i", DType::kInt32, dims, v);
  }
  int conv(int x, int64_t out, int64_t k, ir::Padding padding, bool bias = false, int stride = 1) {
    ops::Conv2DAttributes a;
    a.padding = padding;
    a.stride_h = a.stride_w = stride;
    std::vector<int> inputs = {x, floats({out, k, k, dims(x).back()})};
    if (bias) inputs.push_back(floats({out}));
    return node("CONV_2D", inputs, "conv", a);
  }
  int depthwise(int x, int64_t multiplier, int64_t k, ir::Padding padding) {
    ops::DepthwiseConv2DAttributes a;
    a.padding = padding;
    a.stride_h = a.stride_w = 1;
    a.depth_multiplier = static_cast<int32_t>(multiplier);
    const int64_t channels = dims(x).back() * multiplier;
    return node("DEPTHWISE_CONV_2D", {x, floats({1, k, k, channels}), floats({channels})}, "depthwise", a);
  }
  int dense(int x, int64_t units) {
    ops::FullyConnectedAttributes a;
    a.keep_num_dims = true;
    return node("FULLY_CONNECTED", {x, floats({units, dims(x).back()}), ir::kAbsent}, "dense", a);
  }
  int reshape(int x, const std::vector<int32_t>& shape) { return node("RESHAPE", {x, ints(shape)}, "reshape"); }
  int transpose(int x, const std::vector<int32_t>& order) { return node("TRANSPOSE", {x, ints(order)}, "transpose"); }
  int pad(int x, const std::vector<int32_t>& pads) { return node("PAD", {x, ints(pads, {4, 2})}, "pad"); }

 private:
  uint32_t seed_ = 100;
};

std::vector<std::vector<float>> run(const ir::Graph& graph) {
  Interpreter interpreter(Model::from_bytes(model::write(graph)));
  uint32_t seed = 0;
  for (int input : interpreter.inputs()) {
    testing::set(interpreter, input, numbers(interpreter.tensor(input).bytes / 4, seed++));
  }
  interpreter.invoke();
  std::vector<std::vector<float>> results;
  for (int output : interpreter.outputs()) results.push_back(testing::get<float>(interpreter, output));
  return results;
}

void expect_same_results(const ir::Graph& before, const ir::Graph& after) {
  const auto expected = run(before);
  const auto got = run(after);
  ASSERT_EQ(expected.size(), got.size());
  for (size_t o = 0; o < expected.size(); ++o) {
    ASSERT_EQ(expected[o].size(), got[o].size()) << o;
    float largest = 1.0F;
    for (float x : expected[o]) largest = std::max(largest, std::fabs(x));
    for (size_t i = 0; i < expected[o].size(); ++i) {
      ASSERT_NEAR(expected[o][i], got[o][i], 2e-5F * largest) << "output " << o << " element " << i << "\nbefore\n"
                                                              << ir::to_text(before) << "after\n"
                                                              << ir::to_text(after);
    }
  }
}

/// Shapes that the file would say are those that are inferred.
void expect_inferred_shapes(const ir::Graph& graph) {
  const ir::Subgraph& subgraph = graph.subgraphs[0];
  ops::Inference inference(graph, 0);
  for (int v : subgraph.inputs) {
    if (subgraph.values[static_cast<size_t>(v)].signature) return;
    inference.set_shape(v, subgraph.values[static_cast<size_t>(v)].shape);
  }
  for (size_t n = 0; n < subgraph.nodes.size(); ++n) {
    ASSERT_TRUE(inference.infer(static_cast<int>(n)));
    for (int v : subgraph.nodes[n].outputs) {
      EXPECT_EQ(inference.fact(v).shape, subgraph.values[static_cast<size_t>(v)].shape) << ir::to_text(graph);
    }
  }
}

/// Runs all passes on what was built, checks results, signature and names of outputs, and gives the ops that are left.
std::vector<std::string> ops_after_passes(GraphBuilder& b, const std::vector<int>& outputs) {
  const auto graph = b.finish(outputs);
  const ir::Graph before = *graph;
  run_passes(*graph, true);
  expect_same_results(before, *graph);
  expect_inferred_shapes(*graph);
  for (size_t i = 0; i < before.signatures[0].outputs.size(); ++i) {
    const auto& [name, value] = graph->signatures[0].outputs[i];
    EXPECT_EQ(name, before.signatures[0].outputs[i].first);
    EXPECT_EQ(graph->subgraphs[0].values[static_cast<size_t>(value)].name, name);
  }
  std::vector<std::string> left;
  for (const ir::Node& node : graph->subgraphs[0].nodes) left.push_back(node.op);
  return left;
}

using Ops = std::vector<std::string>;

// remove_dead

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

// fold_constants

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
  const ir::Value& constant = graph->subgraphs[0].values[static_cast<size_t>(graph->subgraphs[0].nodes[0].inputs[1])];
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

// merge_constants, merge_nodes

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

TEST(MergeNodes, EqualNodesBecomeOne) {
  Bench b;
  const int x = b.input("x", kF32, {2, 3});
  const int a = b.node("EXP", {x}, "a");
  const int c = b.node("EXP", {x}, "c");
  const int d = b.node("NEG", {x}, "d");
  EXPECT_EQ(ops_after_passes(b, {b.node("MUL", {b.node("MAXIMUM", {a, d}, "m"), c}, "y")}),
            (Ops{"EXP", "NEG", "MAXIMUM", "MUL"}));
}

TEST(MergeNodes, OtherAttributesAreOtherNodes) {
  Bench b;
  const int x = b.input("x", kF32, {1, 4, 4, 2});
  const int w = b.floats({2, 3, 3, 2});
  ops::Conv2DAttributes a;
  a.stride_h = a.stride_w = 1;
  const int once = b.node("CONV_2D", {x, w}, "once", a);
  a.dilation_h = a.dilation_w = 2;
  const int twice = b.node("CONV_2D", {x, w}, "twice", a);
  EXPECT_EQ(ops_after_passes(b, {b.node("ADD", {once, twice}, "y")}), (Ops{"CONV_2D", "CONV_2D", "ADD"}));
}

TEST(MergeNodes, OutputsKeepTheirNodes) {
  Bench b;
  const int x = b.input("x", kF32, {2});
  const int a = b.node("EXP", {x}, "a");
  const int c = b.node("EXP", {x}, "c");
  EXPECT_EQ(ops_after_passes(b, {a, c}).size(), 2U);
}

// merge_movement

TEST(MergeMovement, ChainsBecomeOneNode) {
  Bench b;
  const int x = b.input("x", kF32, {2, 3, 4});
  const int r = b.reshape(b.reshape(x, {6, 4}), {4, 6});
  EXPECT_EQ(ops_after_passes(b, {b.node("EXP", {r}, "y")}), (Ops{"RESHAPE", "EXP"}));
  Bench t;
  const int z = t.input("x", kF32, {2, 3, 4});
  EXPECT_EQ(ops_after_passes(t, {t.transpose(t.transpose(z, {2, 0, 1}), {0, 2, 1})}), Ops{"TRANSPOSE"});
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

// merge_padding

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

// move_reshapes

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

// merge_dilation

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

// fold_affine

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

// fuse_activations

TEST(FuseActivations, BecomePartOfTheNodeBefore) {
  for (const std::string activation : {"RELU", "RELU6", "RELU_N1_TO_1"}) {
    Bench b;
    const int x = b.input("x", kF32, {1, 5, 6, 4});
    const int conv = b.node(activation, {b.conv(x, 4, 3, ir::Padding::kSame)}, "a");
    const int sum = b.node(activation, {b.node("ADD", {conv, x}, "s")}, "b");
    const int product = b.node(activation, {b.node("MUL", {sum, x}, "p")}, "y");
    EXPECT_EQ(ops_after_passes(b, {product}), (Ops{"CONV_2D", "ADD", "MUL"}));
  }
}

TEST(FuseActivations, OthersStay) {
  Bench b;
  const int x = b.input("x", kF32, {1, 5, 6, 4});
  const int conv = b.conv(x, 4, 3, ir::Padding::kSame);
  const int once = b.node("RELU", {conv}, "r");
  EXPECT_EQ(ops_after_passes(b, {b.node("RELU6", {once}, "y"), conv}), (Ops{"CONV_2D", "RELU", "RELU6"}));
  Bench joined;  // LiteRT refuses activations there
  const int y = joined.input("x", kF32, {1, 4});
  ops::ConcatenationAttributes a;
  a.axis = 1;
  const int wide = joined.node("CONCATENATION", {y, y}, "wide", a);
  EXPECT_EQ(ops_after_passes(joined, {joined.node("RELU", {wide}, "y")}), (Ops{"CONCATENATION", "RELU"}));
}

// complete_biases

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

// All together

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

TEST(Passes, AreListedByName) {
  EXPECT_EQ(all_passes().size(), 11U);
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

}  // namespace
}  // namespace leadline::passes
