// SPDX-License-Identifier: Apache-2.0
// For tests of passes: a builder with short words, and the check that a rewritten graph computes what it did before.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "ir/sources.h"
#include "model/writer.h"
#include "ops/conv.h"
#include "ops/fully_connected.h"
#include "ops/graph_builder.h"
#include "ops/inference.h"
#include "passes/passes.h"
#include "tests/cpp/sketch.h"

namespace leadline::passes {

using ops::Dims;
using ops::GraphBuilder;
inline constexpr DType kF32 = DType::kFloat32;

/// Numbers that are the same in every run, between -1 and 1.
inline std::vector<float> numbers(int64_t count, uint32_t seed) {
  std::minstd_rand random(seed + 1);
  std::uniform_real_distribution<float> uniform(-1.0F, 1.0F);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& v : values) v = uniform(random);
  return values;
}

inline int64_t elements(const Dims& dims) {
  int64_t count = 1;
  for (int64_t size : dims) count *= size;
  return count;
}

/// A builder with short words for what the tests need.
class Bench : public GraphBuilder {
 public:
  int floats(const Dims& dims) { return constant("c", kF32, dims, numbers(elements(dims), seed_++)); }
  int number(float x) { return constant("n", kF32, {}, std::vector<float>{x}); }
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

inline std::vector<std::vector<float>> run(const ir::Graph& graph) {
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

inline void expect_same_results(const ir::Graph& before, const ir::Graph& after) {
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
inline void expect_inferred_shapes(const ir::Graph& graph) {
  const ir::Subgraph& subgraph = graph.subgraphs[0];
  ops::Inference inference(graph, 0);
  for (int v : subgraph.inputs) {
    if (subgraph.value(v).signature) return;
    inference.set_shape(v, subgraph.value(v).shape);
  }
  for (size_t n = 0; n < subgraph.nodes.size(); ++n) {
    ASSERT_TRUE(inference.infer(static_cast<int>(n)));
    for (int v : subgraph.nodes[n].outputs) {
      EXPECT_EQ(inference.fact(v).shape, subgraph.value(v).shape) << ir::to_text(graph);
    }
  }
}

/// Runs all passes on what was built, checks results, signature and names of outputs, and returns the ops that are
/// left.
inline std::vector<std::string> ops_after_passes(GraphBuilder& b, const std::vector<int>& outputs) {
  const auto graph = b.finish(outputs);
  const ir::Graph before = *graph;
  run_passes(*graph, true);
  expect_same_results(before, *graph);
  expect_inferred_shapes(*graph);
  for (size_t i = 0; i < before.signatures[0].outputs.size(); ++i) {
    const auto& [name, value] = graph->signatures[0].outputs[i];
    EXPECT_EQ(name, before.signatures[0].outputs[i].first);
    EXPECT_EQ(graph->subgraphs[0].value(value).name, name);
  }
  std::vector<std::string> left;
  for (const ir::Node& node : graph->subgraphs[0].nodes) left.push_back(node.op.name());
  return left;
}

using Ops = std::vector<std::string>;

/// Runs the graph with and without passes for runs, checks results and memory, and returns the ops that run.
inline Ops ops_of_run(const ir::Graph& graph) {
  changes_for_runs(graph, {}, true);  // verifies
  const Model model = Model::from_bytes(model::write(graph));
  const auto start = [&](const char* disabled) {
    InterpreterOptions options;
    if (disabled != nullptr) options.disabled_passes = {disabled};
    return Interpreter(model, options);
  };
  Interpreter merging = start(nullptr);
  Interpreter plain = start("all");
  EXPECT_LE(merging.plan().peak_bytes, plain.plan().peak_bytes);
  for (Interpreter* interpreter : {&merging, &plain}) {
    uint32_t seed = 0;
    for (int input : interpreter->inputs()) {
      testing::set(*interpreter, input, numbers(interpreter->tensor(input).bytes / 4, seed++));
    }
    interpreter->invoke();
    EXPECT_EQ(interpreter->counted_peak_bytes(), interpreter->plan().peak_bytes);
  }
  for (int output : plain.outputs()) {
    const auto expected = testing::get<float>(plain, output);
    const auto got = testing::get<float>(merging, output);
    EXPECT_EQ(got.size(), expected.size());
    float largest = 1.0F;
    for (float x : expected) largest = std::max(largest, std::fabs(x));
    for (size_t i = 0; i < std::min(got.size(), expected.size()); ++i) {
      EXPECT_NEAR(got[i], expected[i], 1e-5F * largest) << i;
    }
  }
  Ops ops;
  for (const PlannedStep& step : merging.plan().steps) ops.push_back(step.op);
  return ops;
}
inline Ops ops_of_run(GraphBuilder& b, const std::vector<int>& outputs) { return ops_of_run(*b.finish(outputs)); }

}  // namespace leadline::passes
