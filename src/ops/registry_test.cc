// SPDX-License-Identifier: Apache-2.0
#include "ops/registry.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "ops/conv.h"
#include "ops/fully_connected.h"

namespace leadline::ops {
namespace {

TEST(Registry, RefusesASecondRow) {
  for (const ir::OpId& op : {op::kAdd, op::kNumericVerify, op::kSwish}) {
    Registry registry;
    registry.add({.id = op});
    EXPECT_THROW(registry.add({.id = op, .max_version = 2}), Error) << op.name();
    EXPECT_EQ(registry.find(op)->max_version, 1);
  }
}

TEST(Registry, TellsKindsOfOpsApart) {
  Registry registry;
  for (const ir::OpId& op : {op::kAdd, ir::OpId::custom("ADD"), ir::OpId::fused("ADD")}) registry.add({.id = op});
  EXPECT_TRUE(registry.find(op::kAdd)->id.is_builtin());
  EXPECT_TRUE(registry.find(ir::OpId::custom("ADD"))->id.is_custom());
  EXPECT_TRUE(registry.find(ir::OpId::fused("ADD"))->id.is_fused());
  EXPECT_TRUE(registry.find_named("ADD")->id.is_builtin());
  EXPECT_EQ(registry.find(ir::OpId()), nullptr);
}

TEST(Registry, KnowsEveryOpOfTheFormat) {
  for (ir::OpCode code = 0; code <= op::kStablehloCase.code(); ++code) {
    if (code == ir::kCustomOp) continue;
    ASSERT_NE(registry().find_builtin(code), nullptr) << code;
    EXPECT_EQ(registry().find_builtin(code)->id.code(), code);
  }
  EXPECT_EQ(registry().find_named("CONV_2D"), registry().find(op::kConv2D));
}

TEST(OpId, CustomOpsNeverEqualBuiltinOps) {
  EXPECT_FALSE(ir::OpId::custom("CONV_2D") == op::kConv2D);
  EXPECT_FALSE(ir::OpId::custom("SWISH") == op::kSwish);
  EXPECT_TRUE(ir::OpId::custom("CONV_2D") == ir::OpId::custom("CONV_2D"));
  const ir::OwnedOpId owned = ir::OpId::custom(std::string("a name that is too long to lie inside of a string"));
  const ir::OwnedOpId copy = owned;
  EXPECT_TRUE(copy == owned);
  EXPECT_FALSE(copy == op::kConv2D);
}

TEST(Attributes, OfAnotherOpAreAnError) {
  const ir::Node node = make_node(op::kFullyConnected, {0, 1}, {2});
  EXPECT_NO_THROW(ir::attributes_as<FullyConnectedAttributes>(node));
  EXPECT_THROW(ir::attributes_as<Conv2DAttributes>(node), Error);
  EXPECT_EQ(ir::attributes_if<Conv2DAttributes>(*node.attributes), nullptr);
}

TEST(Attributes, BordersOfRunsTellConvolutionsApart) {
  Conv2DAttributes plain;
  Conv2DAttributes bordered;
  bordered.border.left = 1;
  EXPECT_NE(ir::attributes_text(plain), ir::attributes_text(bordered));
  EXPECT_EQ(ir::attributes_text(*bordered.clone()), ir::attributes_text(bordered));
  EXPECT_EQ(ir::attributes_text(plain).find("border"), std::string::npos);  // as files have it
}

TEST(Contractions, CountTheirProducts) {
  const auto macs = [](const ir::OpId& op, const Shape& input, const Shape& weights, const Shape& output) {
    return multiply_accumulates(registry().find(op)->contraction, input, weights, output);
  };
  EXPECT_EQ(macs(op::kConv2D, {1, 8, 8, 3}, {16, 3, 3, 3}, {1, 8, 8, 16}), 8 * 8 * 16 * 3 * 3 * 3);
  EXPECT_EQ(macs(op::kDepthwiseConv2D, {1, 8, 8, 4}, {1, 3, 3, 8}, {1, 8, 8, 8}), 8 * 8 * 8 * 3 * 3);
  EXPECT_EQ(macs(op::kTransposeConv, {1, 4, 4, 3}, {5, 2, 2, 3}, {1, 8, 8, 5}), 4 * 4 * 3 * 5 * 2 * 2);
  EXPECT_EQ(macs(op::kFullyConnected, {2, 7}, {5, 7}, {2, 5}), 2 * 5 * 7);
  EXPECT_EQ(macs(op::kBatchMatmul, {2, 3, 4}, {2, 4, 5}, {2, 3, 5}), 2 * 3 * 4 * 5);
  EXPECT_EQ(macs(op::kConv3D, {1, 4, 4, 4, 2}, {3, 3, 3, 2, 6}, {1, 4, 4, 4, 6}), 64 * 6 * 27 * 2);
  EXPECT_EQ(macs(op::kConv2D, {1, 8}, {16, 3}, {1, 16}), 0);  // shapes of no convolution
  EXPECT_EQ(macs(op::kAdd, {1, 8}, {1, 8}, {1, 8}), 0);
}

}  // namespace
}  // namespace leadline::ops
