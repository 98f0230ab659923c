// SPDX-License-Identifier: Apache-2.0
// Custom ops may be called anything, also CONV_2D. Nothing may take one for the builtin op of that name: here every
// node of graphs that passes, quantization and debugging look for becomes, one after the other, a custom op of its own
// name that computes something else.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>

#include "leadline/custom_op.h"
#include "leadline/debug_model.h"
#include "leadline/debugger.h"
#include "leadline/quantizer.h"
#include "ops/batch_matmul.h"
#include "ops/reduce.h"
#include "ops/registry.h"
#include "quantize/equalize.h"
#include "runtime/loaded_model.h"
#include "tests/cpp/passes_testing.h"

namespace leadline::passes {
namespace {

/// What no builtin op computes: from all bytes of its inputs, of any type.
class Stranger final : public CustomOp {
 public:
  void infer(InferCall& call) override {
    for (int i = 0; i < call.output_count(); ++i) call.set_output_shape(i, call.output(i).shape);
  }
  void run(RunCall& call) override {
    double sum = 0.25;
    for (int i = 0; i < call.input_count(); ++i) {
      if (!call.has_input(i) || call.input(i).dtype != kF32) continue;
      for (float x : call.input(i).values<float>()) sum = 0.9 * sum + 0.1 * static_cast<double>(x);
    }
    for (int i = 0; i < call.output_count(); ++i) {
      if (call.output(i).dtype != kF32) {
        for (std::byte& b : call.output(i).memory<std::byte>()) b = std::byte{17};
        continue;
      }
      double place = 0;
      for (float& y : call.output(i).memory<float>()) y = static_cast<float>(sum + 0.01 * (place += 1));
    }
  }
};

/// Registers the stranger under names of builtin ops while it lives.
class Registered {
 public:
  explicit Registered(std::set<std::string> names) : names_(std::move(names)) {
    for (const std::string& name : names_) register_op<Stranger>(name);
  }
  ~Registered() {
    for (const std::string& name : names_) unregister_op(name);
  }

 private:
  std::set<std::string> names_;
};

using Build = std::function<std::vector<int>(Bench&)>;

int image(Bench& b) { return b.input("x", kF32, {1, 6, 6, 4}); }

int layer_norm(Bench& b, int x) {
  ops::ReduceAttributes keep;
  keep.keep_dims = true;
  const int mean = b.node("MEAN", {x, b.ints({-1})}, "mean", keep);
  const int squares = b.node("SQUARED_DIFFERENCE", {x, mean}, "squares");
  const int variance = b.node("MEAN", {squares, b.ints({-1})}, "variance", keep);
  const int root = b.node("RSQRT", {b.node("ADD", {variance, b.number(1e-3F)}, "sum")}, "root");
  const int centered = b.node("MUL", {b.node("SUB", {x, mean}, "difference"), root}, "centered");
  return b.node("ADD", {b.node("MUL", {centered, b.floats({4})}, "scaled"), b.floats({4})}, "shifted");
}

int lookups(Bench& b) {
  Quantization q;
  q.scale = {0.05F};
  q.zero_point = {3};
  const int x = b.add({.op = "QUANTIZE", .inputs = {image(b)}, .outputs = {{"x8", DType::kInt8, q}}})[0];
  const int y = b.node("LOGISTIC", {b.node("DEQUANTIZE", {x}, "wide", kF32)}, "gate");
  const int z = b.add({.op = "QUANTIZE", .inputs = {y}, .outputs = {{"y8", DType::kInt8, q}}})[0];
  return b.node("DEQUANTIZE", {z}, "y", kF32);
}

/// Graphs that together have what every pass looks for.
const std::map<std::string, Build>& graphs() {
  static const std::map<std::string, Build> all = {
      {"affine behind",
       [](Bench& b) -> std::vector<int> {
         const int conv = b.conv(image(b), 4, 3, ir::Padding::kSame, true);
         const int sum = b.node("SUB", {b.node("MUL", {conv, b.floats({4})}, "m"), b.floats({4})}, "s");
         return {b.node("RELU", {sum}, "y")};
       }},
      {"affine before",
       [](Bench& b) -> std::vector<int> {
         const int x = b.node("ADD", {b.node("DIV", {image(b), b.floats({4})}, "m"), b.floats({4})}, "s");
         return {b.conv(x, 3, 1, ir::Padding::kValid)};
       }},
      {"depthwise",
       [](Bench& b) -> std::vector<int> {
         const int x = b.depthwise(b.node("MUL", {image(b), b.floats({4})}, "m"), 2, 3, ir::Padding::kSame);
         return {b.node("RELU6", {b.node("ADD", {x, b.floats({8})}, "s")}, "y")};
       }},
      {"dense",
       [](Bench& b) -> std::vector<int> {
         const int x = b.dense(b.node("MUL", {image(b), b.floats({4})}, "m"), 5);
         return {b.node("RELU_N1_TO_1", {b.node("ADD", {x, b.floats({5})}, "s")}, "y")};
       }},
      {"layers",
       [](Bench& b) -> std::vector<int> {
         const int x = b.conv(image(b), 8, 3, ir::Padding::kSame, true);
         return {b.dense(b.depthwise(x, 1, 3, ir::Padding::kSame), 64)};
       }},
      {"reshape between",
       [](Bench& b) -> std::vector<int> {
         const int x = b.reshape(b.conv(image(b), 4, 3, ir::Padding::kSame), {1, 36, 4});
         return {b.reshape(b.node("ADD", {x, b.floats({4})}, "s"), {6, 6, 4})};
       }},
      {"movement",
       [](Bench& b) -> std::vector<int> {
         const int x = b.transpose(b.transpose(image(b), {0, 2, 1, 3}), {0, 2, 1, 3});
         return {b.reshape(b.reshape(x, {36, 4}), {1, 6, 6, 4})};
       }},
      {"turned matrices",
       [](Bench& b) -> std::vector<int> {
         const int x = b.input("x", kF32, {2, 3, 4});
         const int y = b.transpose(b.input("z", kF32, {2, 5, 4}), {0, 2, 1});
         return {b.node("BATCH_MATMUL", {x, y}, "y")};
       }},
      {"padding",
       [](Bench& b) -> std::vector<int> {
         return {b.conv(b.pad(image(b), {0, 0, 1, 1, 1, 1, 0, 0}), 4, 3, ir::Padding::kValid)};
       }},
      {"dilation",
       [](Bench& b) -> std::vector<int> {
         const int x = b.node("SPACE_TO_BATCH_ND", {image(b), b.ints({2, 2}), b.ints({2, 2, 2, 2}, {2, 2})}, "cut");
         const int y = b.conv(x, 4, 3, ir::Padding::kValid);
         return {b.node("BATCH_TO_SPACE_ND", {y, b.ints({2, 2}), b.ints({0, 0, 0, 0}, {2, 2})}, "y")};
       }},
      {"swish",
       [](Bench& b) -> std::vector<int> {
         const int x = image(b);
         return {b.node("MUL", {x, b.node("LOGISTIC", {x}, "gate")}, "y")};
       }},
      {"layer norm", [](Bench& b) -> std::vector<int> { return {layer_norm(b, image(b))}; }},
      {"hard swish",
       [](Bench& b) -> std::vector<int> {
         const int x = image(b);
         const int gate = b.node("RELU6", {b.node("ADD", {x, b.number(3)}, "sum")}, "gate");
         return {b.node("MUL", {b.node("MUL", {x, gate}, "m"), b.number(1.0F / 6)}, "y")};
       }},
      {"clip",
       [](Bench& b) -> std::vector<int> {
         return {b.node("MINIMUM", {b.node("MAXIMUM", {image(b), b.number(0)}, "m"), b.number(6)}, "y")};
       }},
      {"steps",
       [](Bench& b) -> std::vector<int> {
         const int x = b.node("ADD", {b.node("SUB", {image(b), b.floats({4})}, "a"), b.floats({4})}, "b");
         return {b.node("DIV", {b.node("MUL", {x, b.number(1)}, "c"), b.number(2)}, "d")};
       }},
      {"equal nodes",
       [](Bench& b) -> std::vector<int> {
         const int x = image(b);
         return {b.node("SUB", {b.node("ABS", {x}, "p"), b.node("ABS", {x}, "q")}, "y")};
       }},
      {"constants",
       [](Bench& b) -> std::vector<int> {
         const int turned = b.transpose(b.reshape(b.floats({24}), {4, 6}), {1, 0});
         return {b.node("ADD", {image(b), turned}, "y")};
       }},
      {"table", [](Bench& b) -> std::vector<int> { return {lookups(b)}; }},
      {"parts",
       [](Bench& b) -> std::vector<int> {
         const int x = image(b);
         const int joined = b.node("CONCATENATION", {b.node("EXP", {x}, "p"), b.node("ABS", {x}, "q")}, "joined");
         return {b.node("SLICE", {joined, b.ints({0, 0, 0, 0}), b.ints({1, 1, 6, 4})}, "y")};
       }},
  };
  return all;
}

void make_custom(ir::Node& node) {
  node.op = ir::OpId::custom(std::string(node.op.name()));
  node.version = 1;
  node.attributes = std::make_shared<ir::NoAttributes>();
}

bool is_custom(const ir::Node& node) { return node.op.is_custom(); }

std::string name_of(const ir::Node& node) { return node.op.name(); }

/// Calls `body(graph, node)` for every graph and each of its nodes, which is a registered stranger then.
template <typename Body>
void for_each_stranger(const Body& body) {
  for (const auto& [name, build] : graphs()) {
    Bench first;
    const size_t nodes = first.finish(build(first))->subgraphs[0].nodes.size();
    for (size_t n = 0; n < nodes; ++n) {
      SCOPED_TRACE(name + " " + std::to_string(n));
      Bench b;
      const auto graph = b.finish(build(b));
      ir::Node& node = graph->subgraphs[0].nodes[n];
      const Registered registered({name_of(node)});
      make_custom(node);
      body(*graph, node);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

const ir::Node& stranger(const ir::Graph& graph) {
  const auto& nodes = graph.subgraphs[0].nodes;
  return *std::find_if(nodes.begin(), nodes.end(), is_custom);
}

/// The constants a node reads.
std::vector<std::vector<std::byte>> constants(const ir::Graph& graph, const ir::Node& node) {
  std::vector<std::vector<std::byte>> result;
  for (int v : node.inputs) {
    if (v == ir::kAbsent || !graph.subgraphs[0].value(v).constant) continue;
    result.push_back(ir::read_all(*ir::source_of(graph, graph.subgraphs[0].value(v))));
  }
  return result;
}

TEST(CustomNames, PassesOfConvertersLeaveThemAlone) {
  for_each_stranger([](ir::Graph& graph, const ir::Node& node) {
    const ir::Graph before = graph;
    const auto read = constants(graph, node);
    const std::string name = name_of(node);
    run_passes(graph, true);
    const auto& nodes = graph.subgraphs[0].nodes;
    ASSERT_EQ(std::count_if(nodes.begin(), nodes.end(), is_custom), 1) << ir::to_text(graph);
    EXPECT_EQ(name_of(stranger(graph)), name);
    EXPECT_EQ(ir::attributes_text(*stranger(graph).attributes), "");
    EXPECT_EQ(constants(graph, stranger(graph)), read) << ir::to_text(graph);
    expect_same_results(before, graph);
  });
}

TEST(CustomNames, PassesForRunsLeaveThemAlone) {
  for_each_stranger([](ir::Graph& graph, const ir::Node& node) {
    const auto number = static_cast<int>(&node - graph.subgraphs[0].nodes.data());
    const ir::ChangedNodes changes = changes_for_runs(graph, {}, true);
    EXPECT_FALSE(changes.subgraphs[0].absorbs(number));
    for (const ir::ChangedNode& changed : changes.subgraphs[0].changed) {
      EXPECT_EQ(std::count(changed.merged.begin(), changed.merged.end(), number), 0);
      if (changed.number == number) {
        EXPECT_TRUE(is_custom(changed.node));
        EXPECT_EQ(ir::attributes_text(*changed.node.attributes), "");
      }
    }
    ops_of_run(graph);
  });
}

/// Float graphs as models, and the number of the node that is a stranger.
template <typename Body>
void for_each_float_model(const Body& body) {
  for_each_stranger([&](ir::Graph& graph, const ir::Node& node) {
    const auto& nodes = graph.subgraphs[0].nodes;
    const auto number = static_cast<int>(&node - nodes.data());
    const auto& values = graph.subgraphs[0].values;
    if (std::any_of(values.begin(), values.end(), [](const auto& v) { return v.quantization.quantized(); })) return;
    body(Model::from_bytes(model::write(graph)), number, name_of(node));
  });
}

void add_samples(Interpreter& interpreter, const std::function<void()>& add) {
  for (uint32_t seed = 0; seed < 3; ++seed) {
    for (int input : interpreter.inputs()) {
      testing::set(interpreter, input, numbers(interpreter.tensor(input).bytes / 4, seed));
    }
    add();
  }
}

/// Quantizes with everything that looks at ops.
Model quantized(const Model& model, QuantizationMode mode, int stranger) {
  QuantizeOptions options;
  options.mode = mode;
  options.equalize = true;
  options.bias_correction = mode == QuantizationMode::kInt8 || mode == QuantizationMode::kInt16x8;
  options.min_weight_elements = 1;
  const Quantizer quantizer(model, options);
  const QuantizedNode node = quantizer.nodes()[static_cast<size_t>(stranger)];
  EXPECT_EQ(node.mode, QuantizationMode::kFloat) << node.op;
  EXPECT_NE(node.reason, "");
  if (!options.bias_correction) return quantizer.quantize_to_model();
  Calibrator calibrator(quantizer.model());
  ChannelMeans means(quantizer.model());
  add_samples(calibrator.interpreter(), [&] { calibrator.add_sample(); });
  add_samples(means.interpreter(), [&] { means.add_sample(); });
  const Calibration calibration = calibrator.calibration();
  return quantizer.quantize_to_model(&calibration, &means);
}

TEST(CustomNames, QuantizationKeepsTheirFloats) {
  for_each_float_model([](const Model& model, int number, const std::string& op) {
    const ir::Graph& before = *model.loaded()->graph();
    const ir::Node& original = before.subgraphs[0].nodes[static_cast<size_t>(number)];
    for (const QuantizationMode mode :
         {QuantizationMode::kDynamicRange, QuantizationMode::kInt8, QuantizationMode::kInt16x8,
          QuantizationMode::kWeightOnlyInt8, QuantizationMode::kWeightOnlyInt4}) {
      SCOPED_TRACE(static_cast<int>(mode));
      const Model result = quantized(model, mode, number);
      const ir::Graph& after = *result.loaded()->graph();
      const ir::Node& kept = stranger(after);
      ASSERT_EQ(name_of(kept), op);
      EXPECT_EQ(constants(after, kept), constants(before, original));
      for (int v : kept.inputs) {
        if (v == ir::kAbsent) continue;
        const DType type = after.subgraphs[0].value(v).dtype;
        EXPECT_TRUE(type == kF32 || type == DType::kInt32) << dtype_name(type);
      }
    }
  });
}

TEST(CustomNames, TheyHaveNoProductsToCount) {
  int64_t others = 0;
  for_each_float_model([&](const Model& model, int number, const std::string& op) {
    const SubgraphInfo graph = model.subgraph(0);
    EXPECT_EQ(graph.nodes[static_cast<size_t>(number)].macs, 0) << op;
    for (const NodeInfo& node : graph.nodes) others += node.macs;
  });
  EXPECT_GT(others, 0);
}

TEST(CustomNames, EqualizationLeavesThemAlone) {
  for_each_stranger([](ir::Graph& graph, const ir::Node& node) {
    const auto read = constants(graph, node);
    quantize::equalize(graph);
    EXPECT_EQ(constants(graph, stranger(graph)), read);
  });
}

TEST(CustomNames, RulesOfRecipesNameTheBuiltinOp) {
  for_each_float_model([](const Model& model, int number, const std::string& op) {
    QuantizeOptions options;
    options.mode = QuantizationMode::kWeightOnlyInt8;
    RecipeRule& rule = options.recipe.emplace_back();
    rule.op = op;
    rule.mode = QuantizationMode::kFloat16;
    rule.optional = true;
    const std::vector<QuantizedNode> nodes = Quantizer(model, options).nodes();
    EXPECT_EQ(nodes[static_cast<size_t>(number)].mode, QuantizationMode::kFloat);
  });
}

TEST(CustomNames, TheDebuggerDoesNotTakeThemForConversionsOrWeights) {
  for_each_float_model([](const Model& model, int number, const std::string& op) {
    const Model other = quantized(model, QuantizationMode::kWeightOnlyInt8, number);
    QuantizationDebugger debugger(model, other);
    add_samples(debugger.interpreter(), [&] { debugger.add_sample(); });
    for (const LayerDebug& layer : debugger.result().layers) {
      if (layer.op == op && layer.float_node == number) {
        EXPECT_TRUE(layer.weights.empty());
        EXPECT_FALSE(layer.own);
      }
    }
    EXPECT_NO_THROW(make_debug_model(model, other));
  });
}

}  // namespace
}  // namespace leadline::passes
