// SPDX-License-Identifier: Apache-2.0
#include "import/saved_model/import.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "ir/sources.h"
#include "passes/passes.h"

namespace leadline::saved_model {
namespace {

/// Flat models with one signature, put together node by node.
class FlatBuilder {
 public:
  FlatBuilder() {
    model_.functions.emplace_back();
    model_.signatures.emplace_back("serving_default", 0);
  }

  ValueRef input(const std::string& name, std::vector<int64_t> dims, TfType type = TfType::kFloat) {
    function().inputs.push_back({name, type, {false, std::move(dims)}});
    return {ValueRef::Kind::kInput, static_cast<int>(function().inputs.size()) - 1, 0};
  }
  template <typename T>
  ValueRef constant(const std::vector<T>& values, std::vector<int64_t> dims, TfType type) {
    const auto bytes = std::as_bytes(std::span(values));
    model_.constants.push_back(
        {"const", type, {false, std::move(dims)}, false, ir::owned_source({bytes.begin(), bytes.end()})});
    return {ValueRef::Kind::kConstant, static_cast<int>(model_.constants.size()) - 1, 0};
  }
  ValueRef floats(size_t count, std::vector<int64_t> dims) {
    return constant(std::vector<float>(count, 0.5F), std::move(dims), TfType::kFloat);
  }
  ValueRef ints(const std::vector<int32_t>& values) {
    return constant(values, {static_cast<int64_t>(values.size())}, TfType::kInt32);
  }
  ValueRef node(std::string_view op, std::vector<ValueRef> inputs, Attrs attrs = {}, std::vector<int> functions = {}) {
    const auto index = static_cast<int>(function().nodes.size());
    const auto name = fmt::format("scope/node{}", index);
    FlatNode made;
    made.op = op;
    made.name = name;
    made.inputs = std::move(inputs);
    made.attrs = std::move(attrs);
    made.functions = std::move(functions);
    function().nodes.push_back(std::move(made));
    return {ValueRef::Kind::kNode, index, 0};
  }
  /// Later calls go to a new function; 0 is the signature's.
  void open(int index) {
    current_ = static_cast<size_t>(index);
    if (model_.functions.size() <= current_) model_.functions.resize(current_ + 1);
  }
  void output(const ValueRef& value) {
    function().outputs.push_back({"y", TfType::kFloat, {true, {}}});
    function().output_values.push_back(value);
  }
  std::shared_ptr<ir::Graph> import(const ValueRef& value) {
    output(value);
    auto graph = import_flat_model(model_);
    passes::run_passes(*graph);
    return graph;
  }
  std::string error(const ValueRef& value) {
    try {
      import(value);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  }

 private:
  FlatFunction& function() { return model_.functions[current_]; }
  FlatModel model_;
  size_t current_ = 0;
};

Attr text(std::string_view name, std::string_view value) {
  AttrValue v;
  v.kind = AttrValue::Kind::kString;
  v.s = value;
  return {name, v};
}

Attr list(std::string_view name, std::vector<int64_t> values) {
  AttrValue v;
  v.kind = AttrValue::Kind::kList;
  auto parts = std::make_shared<AttrParts>();
  parts->ints = std::move(values);
  v.parts = parts;
  return {name, v};
}

Attr flag(std::string_view name, bool value) {
  AttrValue v;
  v.kind = AttrValue::Kind::kBool;
  v.b = value;
  return {name, v};
}

std::vector<std::string> ops_of(const ir::Graph& graph) {
  std::vector<std::string> names;
  for (const ir::Node& node : graph.subgraphs[0].nodes) names.push_back(node.op.name());
  return names;
}

using Names = std::vector<std::string>;

TEST(ImportSavedModel, FoldsNormalizationBiasAndActivationIntoTheConvolution) {
  FlatBuilder b;
  const auto x = b.input("image", {-1, 8, 8, 3});
  const auto conv = b.node("Conv2D", {x, b.floats(3 * 3 * 3 * 4, {3, 3, 3, 4})},
                           {list("strides", {1, 2, 2, 1}), text("padding", "SAME")});
  const auto biased = b.node("BiasAdd", {conv, b.floats(4, {4})});
  const auto four = b.floats(4, {4});
  const auto normal = b.node("FusedBatchNormV3", {biased, four, four, four, four}, {flag("is_training", false)});
  const auto graph = b.import(b.node("Relu6", {normal}));
  EXPECT_EQ(ops_of(*graph), Names{"CONV_2D"});
  const ir::Subgraph& main = graph->subgraphs[0];
  const ir::Value& result = main.value(main.outputs[0]);
  ASSERT_TRUE(result.signature.has_value());
  EXPECT_EQ(*result.signature, (std::vector<int32_t>{-1, 4, 4, 4}));
  ASSERT_EQ(graph->signatures.size(), 1U);
  EXPECT_EQ(graph->signatures[0].key, "serving_default");
  EXPECT_EQ(graph->signatures[0].inputs[0].first, "image");
  EXPECT_EQ(graph->signatures[0].outputs[0].first, "y");
}

TEST(ImportSavedModel, MatMulWithConstantsIsFullyConnected) {
  FlatBuilder b;
  const auto x = b.input("x", {-1, 3});
  const auto graph = b.import(b.node("MatMul", {x, b.floats(6, {3, 2})}));
  EXPECT_EQ(ops_of(*graph), Names{"FULLY_CONNECTED"});
}

TEST(ImportSavedModel, SizesComputedFromTheBatchBecomeAnUnknownOne) {
  FlatBuilder b;
  const auto x = b.input("x", {-1, 4, 6});
  const auto sizes = b.node("Shape", {x});
  const auto batch = b.node("StridedSlice", {sizes, b.ints({0}), b.ints({1}), b.ints({1})});
  const auto axis = b.constant(std::vector<int32_t>{0}, {}, TfType::kInt32);
  const auto target = b.node("ConcatV2", {batch, b.ints({24}), axis});
  const auto graph = b.import(b.node("Reshape", {x, target}));
  EXPECT_EQ(ops_of(*graph), Names{"RESHAPE"});
}

TEST(ImportSavedModel, GeluIsRecognised) {
  FlatBuilder b;
  const auto x = b.input("x", {-1, 4});
  const auto number = [&](float value) { return b.constant(std::vector<float>{value}, {}, TfType::kFloat); };
  const auto error = b.node("Erf", {b.node("RealDiv", {x, number(1.41421356F)})});
  const auto sum = b.node("AddV2", {number(1.0F), error});
  const auto graph = b.import(b.node("Mul", {b.node("Mul", {number(0.5F), x}), sum}));
  EXPECT_EQ(ops_of(*graph), Names{"GELU"});
}

TEST(ImportSavedModel, BatchNormOfOneExampleNormalizesItsGroups) {
  FlatBuilder b;
  const auto x = b.input("x", {1, 3, 8, 1});
  const auto v = b.floats(3, {3});
  const auto none = b.floats(0, {0});
  const auto graph = b.import(b.node("FusedBatchNormV3", {x, v, v, none, none}, {text("data_format", "NCHW")}));
  EXPECT_EQ(ops_of(*graph), (Names{"MEAN", "SUB", "MUL", "MEAN", "ADD", "RSQRT", "MUL", "MUL", "ADD"}));
}

TEST(ImportSavedModel, EinsumOfTwoInputsIsABatchMatmul) {
  FlatBuilder b;
  const auto x = b.input("x", {-1, 5, 4});
  const auto y = b.input("y", {-1, 7, 4});
  const auto graph = b.import(b.node("Einsum", {x, y}, {text("equation", "bij,bkj->bik")}));
  EXPECT_EQ(ops_of(*graph), Names{"BATCH_MATMUL"});
}

TEST(ImportSavedModel, LoopsAndBranchesBecomeSubgraphs) {
  FlatBuilder b;
  const auto x = b.input("x", {-1, 4});
  const auto sum = b.node("Sum", {x, b.ints({0, 1})});
  const auto zero = b.constant(std::vector<float>{0.0F}, {}, TfType::kFloat);
  const auto positive = b.node("Greater", {sum, zero});
  const auto chosen = b.node("If", {positive, x}, {}, {1, 2});
  const auto looped = b.node("While", {chosen}, {}, {3, 2});
  b.open(1);
  b.output(b.node("Exp", {b.input("x", {-1, 4})}));
  b.open(2);
  b.output(b.node("Neg", {b.input("x", {-1, 4})}));
  b.open(3);
  const auto state = b.input("x", {-1, 4});
  b.output(b.node("Less", {b.node("Sum", {state, b.ints({0, 1})}), zero}));
  b.open(0);
  const auto graph = b.import(looped);
  EXPECT_EQ(ops_of(*graph), (Names{"SUM", "GREATER", "IF", "WHILE"}));
  EXPECT_EQ(graph->subgraphs.size(), 5U);
}

TEST(ImportSavedModel, ErrorsNameTheNodeAndItsOp) {
  FlatBuilder unknown;
  const auto x = unknown.input("x", {-1, 4});
  EXPECT_NE(unknown.error(unknown.node("Cholesky", {x})).find("node 'scope/node0' (Cholesky)"), std::string::npos);

  FlatBuilder layout;
  const auto image = layout.input("x", {-1, 3, 8, 8});
  const auto conv = layout.node("Conv2D", {image, layout.floats(9, {1, 1, 3, 3})},
                                {list("strides", {1, 1, 1, 1}), text("data_format", "NCHW")});
  EXPECT_NE(layout.error(conv).find("NCHW"), std::string::npos);

  FlatBuilder missing;
  missing.input("x", {-1, 4});
  EXPECT_NE(missing.error(missing.node("AddV2", {{ValueRef::Kind::kInput, 0, 0}})).find("input 1"), std::string::npos);

  FlatBuilder training;
  const auto t = training.input("x", {-1, 2, 2, 4});
  const auto v = training.floats(4, {4});
  EXPECT_NE(training.error(training.node("FusedBatchNormV3", {t, v, v, v, v})).find("training"), std::string::npos);
}

}  // namespace
}  // namespace leadline::saved_model
