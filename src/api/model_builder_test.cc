// SPDX-License-Identifier: Apache-2.0
#include "leadline/model_builder.h"

#include <gtest/gtest.h>

#include "leadline/custom_op.h"
#include "leadline/interpreter.h"
#include "tests/cpp/sketch.h"

namespace leadline {
namespace {

using testing::thrown_by;

TensorInfo tensor(const std::string& name, const Shape& shape, DType dtype = DType::kFloat32) {
  TensorInfo info;
  info.name = name;
  info.dtype = dtype;
  info.shape = shape;
  return info;
}

TEST(ModelBuilder, WritesAModelThatRuns) {
  ModelBuilder builder;
  const int x = builder.add_tensor(0, tensor("x", {2, 2}));
  const std::vector<float> ones(4, 1.0F);
  const int c = builder.add_constant(0, tensor("c", {2, 2}), std::as_bytes(std::span(ones)));
  const int y = builder.add_tensor(0, tensor("y", {2, 2}));
  builder.add_node(
      0, {.op = "ADD", .inputs = {x, c}, .outputs = {y}, .attributes = {{"fused_activation_function", int64_t{1}}}});
  builder.set_inputs(0, {x});
  builder.set_outputs(0, {y});
  builder.add_signature({"add", 0, {{"x", x}}, {{"y", y}}});

  const Model model = Model::from_bytes(builder.to_tflite());
  EXPECT_EQ(model.signatures().at(0).key, "add");
  Interpreter interpreter(model);
  interpreter.allocate();
  EXPECT_EQ(testing::run<float>(interpreter, {-3, -1, 0, 5}), (std::vector<float>{0, 0, 1, 6}));
}

TEST(ModelBuilder, TakesAttributesOfEveryKind) {
  ModelBuilder builder;
  const int x = builder.add_tensor(0, tensor("x", {3}));
  const int y = builder.add_tensor(0, tensor("y", {3}, DType::kInt32));
  const int z = builder.add_tensor(0, tensor("z", {}, DType::kResource));
  builder.add_node(0, {.op = "BUCKETIZE",
                       .inputs = {x},
                       .outputs = {y},
                       .attributes = {{"boundaries", std::vector<double>{0.5, 1.5}}}});
  builder.add_node(0, {.op = "VAR_HANDLE", .inputs = {}, .outputs = {z}, .attributes = {{"container", "a"}}});
  builder.set_inputs(0, {x});
  builder.set_outputs(0, {y});
  const SubgraphInfo written = Model::from_bytes(builder.to_tflite()).subgraph(0);
  EXPECT_NE(written.nodes[0].attributes.find("0.5"), std::string::npos) << written.nodes[0].attributes;
  EXPECT_NE(written.nodes[1].attributes.find("container='a'"), std::string::npos) << written.nodes[1].attributes;
}

TEST(ModelBuilder, RefusesAttributesThatTheOpDoesNotHave) {
  ModelBuilder builder;
  const auto with = [&](const std::string& name, AttributeValue value) {
    return thrown_by([&] {
      builder.add_node(0, {.op = "ADD", .inputs = {0, 0}, .outputs = {1}, .attributes = {{name, std::move(value)}}});
    });
  };
  EXPECT_TRUE(with("stride_w", int64_t{2}).names("ADD has no attribute 'stride_w'"));
  EXPECT_TRUE(with("fused_activation_function", int64_t{300}).names("cannot be 300"));
  EXPECT_TRUE(with("fused_activation_function", 1.5).names("is an integer"));
  EXPECT_TRUE(with("fused_activation_function", std::vector<int64_t>{1}).names("is one number"));
}

TEST(ModelBuilder, RefusesToWriteAnIllegalModel) {
  ModelBuilder builder;
  const int x = builder.add_tensor(0, tensor("x", {2}));
  builder.add_node(0, {.op = "TANH", .inputs = {x}, .outputs = {7}});
  EXPECT_EQ(thrown_by([&] { builder.to_tflite(); }).code, ErrorCode::kInvalidModel);
  EXPECT_EQ(thrown_by([&] { builder.add_tensor(3, tensor("y", {})); }).code, ErrorCode::kInvalidArgument);
}

TEST(ModelBuilder, KeepsSparsityQuantizationAndCustomOptions) {
  ModelBuilder builder;
  TensorInfo weights = tensor("w", {2, 3}, DType::kInt8);
  weights.scales = {0.5F, 0.25F};
  const std::vector<int8_t> stored = {7, 9};
  SparsityInfo sparsity{{0, 1}, {}, {{false, 2, {}, {}}, {true, 0, {0, 1, 2}, {0, 2}}}};
  const int w = builder.add_constant(0, weights, std::as_bytes(std::span(stored)), sparsity);
  const int y = builder.add_tensor(0, tensor("y", {2}));
  builder.add_node(0, {.op = "MyOp", .inputs = {w}, .outputs = {y}, .custom_options = {std::byte{42}}});
  builder.set_outputs(0, {y});
  const Model model = Model::from_bytes(builder.to_tflite());
  EXPECT_EQ(model.subgraph(0).tensors[0].scales, (std::vector<float>{0.5F, 0.25F}));
  EXPECT_EQ(model.subgraph(0).nodes[0].op, "MyOp");
  EXPECT_EQ(model.sparsity(0, w)->dimensions[1].indices, (std::vector<int32_t>{0, 2}));
}

TEST(ModelBuilder, WritesAttributesOfCustomOpsAsTheirOptions) {
  struct Options final : CustomOp {
    explicit Options(const OpNode& node) {
      EXPECT_EQ(node.options.number("factor", 0), 2.5);
      EXPECT_EQ(node.options.integer("count", 0), -3);
      EXPECT_TRUE(node.options.flag("on", false));
      EXPECT_EQ(node.options.text("word", ""), "text");
      EXPECT_EQ(std::get<OptionList>(node.options.map().at("sizes").value).size(), 2U);
      ++made();
    }
    static int& made() {
      static int count = 0;
      return count;
    }
    void infer(InferCall& call) override { call.set_output_shape(0, call.input(0).shape); }
    void run(RunCall& /*call*/) override {}
  };
  ModelBuilder builder;
  const int x = builder.add_tensor(0, tensor("x", {2}));
  const int y = builder.add_tensor(0, tensor("y", {2}));
  NodeSpec node{.op = "WithOptions", .inputs = {x}, .outputs = {y}};
  node.attributes = {{"factor", 2.5},
                     {"count", int64_t{-3}},
                     {"on", true},
                     {"word", std::string("text")},
                     {"sizes", std::vector<int64_t>{4, 5}}};
  builder.add_node(0, node);
  builder.set_inputs(0, {x});
  builder.set_outputs(0, {y});
  register_op<Options>("WithOptions");
  Interpreter(Model::from_bytes(builder.to_tflite())).allocate();
  unregister_op("WithOptions");
  EXPECT_GT(Options::made(), 0);
  node.attributes = {{"count", int64_t{1} << 40}};
  EXPECT_TRUE(thrown_by([&] { builder.add_node(0, node); }).names("expected an int32"));
  node.attributes = {{"list", std::vector<double>{0.5}}};
  EXPECT_TRUE(thrown_by([&] { builder.add_node(0, node); }).names("list of floats"));
}

TEST(ModelBuilder, VersionZeroIsTheOldestThatLiteRTKnows) {
  ModelBuilder builder;
  const int x = builder.add_tensor(0, tensor("x", {2}));
  const int shape = builder.add_tensor(0, tensor("shape", {1}, DType::kInt32));
  const int y = builder.add_tensor(0, tensor("y", {2}));
  const int z = builder.add_tensor(0, tensor("z", {2}));
  builder.add_node(0, {.op = "ADD", .inputs = {x, x}, .outputs = {y}});
  builder.add_node(0, {.op = "BROADCAST_TO", .inputs = {y, shape}, .outputs = {z}});
  builder.set_inputs(0, {x, shape});
  builder.set_outputs(0, {z});
  const SubgraphInfo written = Model::from_bytes(builder.to_tflite()).subgraph(0);
  EXPECT_EQ(written.nodes[0].version, 1);
  EXPECT_EQ(written.nodes[1].version, 2);
}

}  // namespace
}  // namespace leadline
