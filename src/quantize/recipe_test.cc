// SPDX-License-Identifier: Apache-2.0
#include "quantize/recipe.h"

#include <gtest/gtest.h>

#include <string>

#include "leadline/error.h"
#include "ops/graph_builder.h"

namespace leadline::quantize {
namespace {

std::string complaint(std::string_view json) {
  try {
    const Recipe recipe(read_recipe(json).rules);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "none";
}

std::shared_ptr<ir::Graph> two_nodes() {
  ops::GraphBuilder b;
  const int x = b.input("x", DType::kFloat32, {1, 4});
  const int y = b.node("RELU", {x}, "block1/relu");
  return b.finish({b.node("TANH", {y}, "block2/tanh")});
}

TEST(Recipe, LastMatchingRuleDecides) {
  const auto graph = two_nodes();
  const Recipe recipe(read_recipe(R"([
    {"mode": "int8"},
    {"op": ["TANH", "LOGISTIC"], "mode": "int16x8"},
    {"name": "^block1/", "node": 0, "mode": "float"},
    {"node": 1, "name": "nothing like it", "mode": "float16"}])")
                          .rules);
  EXPECT_EQ(recipe.rule(*graph, 0, 0)->mode, QuantizationMode::kFloat);
  EXPECT_EQ(recipe.rule(*graph, 0, 1)->mode, QuantizationMode::kInt16x8);
  EXPECT_EQ(Recipe({}).rule(*graph, 0, 0), nullptr);
}

TEST(Recipe, ReadsAllModes) {
  const auto rules = read_recipe(R"({"rules": [{"mode": "float"}, {"mode": "float16"}, {"mode": "dynamic"},
    {"mode": "int8"}, {"mode": "int16x8"}, {"mode": "weight-only-int8"}, {"mode": "weight_only_int4"}]})")
                         .rules;
  ASSERT_EQ(rules.size(), 7U);
  for (size_t i = 0; i < rules.size(); ++i) EXPECT_EQ(rules[i].mode, static_cast<QuantizationMode>(i)) << i;
}

TEST(Recipe, SaysWhichRulesMatchNoNode) {
  const auto graph = two_nodes();
  const Recipe recipe(read_recipe(R"([{"op": "TANH", "mode": "float"}, {"op": "CONV_2D", "mode": "float"},
    {"name": "^block1/relu$", "mode": "float"}, {"name": "block1/relu_int8", "mode": "float"},
    {"node": 1, "mode": "float"}, {"node": 2, "mode": "float"}, {"mode": "int8"}])")
                          .rules);
  const auto unmatched = recipe.unmatched(*graph);
  ASSERT_EQ(unmatched.size(), 3U);
  EXPECT_EQ(unmatched[0].op, "CONV_2D");
  EXPECT_EQ(unmatched[1].name, "block1/relu_int8");
  EXPECT_EQ(unmatched[2].node, 2);
}

/// What is said of a recipe that does not fit the graph; empty when it does.
std::string misfit(const char* json) {
  const auto graph = two_nodes();
  try {
    Recipe(read_recipe(json).rules).require_matches(*graph);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Recipe, ARuleThatMatchesNothingIsAnErrorWithNearMisses) {
  EXPECT_EQ(misfit(R"([{"name": "^block1/relu_int8$", "mode": "float"}])"),
            "recipe: no node matches the rule name '^block1/relu_int8$'; names that are alike: 'block1/relu'");
  EXPECT_EQ(misfit(R"([{"name": "^block1\\/rel$", "mode": "float"}, {"node": 9, "mode": "float"}])"),
            "recipe: no node matches the rule name '^block1\\/rel$'; names that are alike: 'block1/relu'");
  EXPECT_EQ(misfit(R"([{"node": 9, "mode": "float"}])"),
            "recipe: no node matches the rule node 9; the model has nodes 0 to 1");
  EXPECT_EQ(misfit(R"([{"op": "CONV_2D", "mode": "float"}])"),
            "recipe: no node matches the rule op CONV_2D; the model has RELU, TANH");
  EXPECT_EQ(
      misfit(R"([{"name": "qqq", "mode": "float"}])"),
      "recipe: no node matches the rule name 'qqq'; patterns are searched in the names of nodes' outputs, such as "
      "'block1/relu'");
  EXPECT_EQ(misfit(R"([{"op": "CONV_2D", "mode": "float", "optional": true}, {"name": "relu", "mode": "float"}])"), "");
  EXPECT_EQ(misfit(R"([{"regex": "x", "operation": "CONV_2D", "algorithm_key": "no_quantize"}])"), "");
}

TEST(Recipe, SettingsStandBesideTheRules) {
  const auto read = read_recipe(R"({"mode": "int16x8", "method": "percentile", "percentile": 99.5, "per_channel": true,
    "equalize": true, "bias_correction": false, "rules": [{"op": "TANH", "mode": "float"}]})");
  EXPECT_EQ(read.settings.mode, QuantizationMode::kInt16x8);
  EXPECT_EQ(read.settings.method, CalibrationMethod::kPercentile);
  EXPECT_EQ(read.settings.percentile, 99.5);
  EXPECT_EQ(read.settings.bias_correction, false);
  const std::string text = recipe_to_json(read.rules, read.settings);
  EXPECT_EQ(read_recipe(text).settings, read.settings) << text;
  EXPECT_EQ(read_recipe(text).rules.size(), 1U) << text;
  EXPECT_NE(complaint(R"({"rules": [], "equalise": true})").find("'equalise'"), std::string::npos);
  EXPECT_NE(complaint(R"({"rules": [], "equalize": 1})").find("true or false"), std::string::npos);
  EXPECT_NE(complaint(R"({"rules": [], "mode": "int9"})").find("'int9'"), std::string::npos);
}

TEST(Recipe, ReadsWhatAiEdgeQuantizerWrites) {
  const auto rules = read_recipe(R"([
    {"regex": ".*", "operation": "*", "algorithm_key": "min_max_uniform_quantize", "op_config": {
       "activation_tensor_config": {"num_bits": 8, "symmetric": false, "granularity": "TENSORWISE", "dtype": "INT",
                                    "block_size": 0},
       "weight_tensor_config": {"num_bits": 8, "symmetric": true, "granularity": "CHANNELWISE", "dtype": "INT"},
       "compute_precision": "INTEGER", "explicit_dequantize": false, "skip_checks": false}},
    {"regex": "a", "operation": "FULLY_CONNECTED", "algorithm_key": "min_max_uniform_quantize", "op_config": {
       "weight_tensor_config": {"num_bits": 8}, "compute_precision": "INTEGER", "explicit_dequantize": false}},
    {"regex": "b", "operation": "CONV_2D", "algorithm_key": "min_max_uniform_quantize", "op_config": {
       "weight_tensor_config": {"num_bits": 4}, "compute_precision": "FLOAT", "explicit_dequantize": true}},
    {"regex": "c", "operation": "*", "algorithm_key": "float_casting", "op_config": {
       "weight_tensor_config": {"num_bits": 16, "dtype": "FLOAT"}}},
    {"regex": "d", "operation": "*", "algorithm_key": "no_quantize"},
    {"regex": ".*", "operation": "INPUT", "algorithm_key": "no_quantize"},
    {"regex": "e", "operation": "ADD", "algorithm_key": "min_max_uniform_quantize", "op_config": {
       "activation_tensor_config": {"num_bits": 16}, "weight_tensor_config": {"num_bits": 8}}}])")
                         .rules;
  ASSERT_EQ(rules.size(), 7U);
  EXPECT_EQ(rules[0].mode, QuantizationMode::kFloat);  // what no rule names
  EXPECT_EQ(rules[0].name, "");
  EXPECT_EQ(rules[1].mode, QuantizationMode::kInt8);
  EXPECT_EQ(rules[2].mode, QuantizationMode::kDynamicRange);
  EXPECT_EQ(rules[2].op, "FULLY_CONNECTED");
  EXPECT_EQ(rules[3].mode, QuantizationMode::kWeightOnlyInt4);
  EXPECT_EQ(rules[4].mode, QuantizationMode::kFloat16);
  EXPECT_EQ(rules[5].mode, QuantizationMode::kFloat);
  EXPECT_EQ(rules[5].name, "d");
  EXPECT_EQ(rules[6].mode, QuantizationMode::kInt16x8);
}

TEST(Recipe, RulesSayHowWeightsAreQuantized) {
  const auto rules = read_recipe(R"([
    {"op": "FULLY_CONNECTED", "mode": "dynamic_int4", "block_size": 64},
    {"op": "CONV_2D", "mode": "weight_only_int4", "symmetric": false, "min_weight_elements": 0}])")
                         .rules;
  ASSERT_EQ(rules.size(), 2U);
  EXPECT_EQ(rules[0].mode, QuantizationMode::kDynamicInt4);
  EXPECT_EQ(rules[0].block_size, 64);
  EXPECT_EQ(rules[0].min_weight_elements, std::nullopt);
  EXPECT_FALSE(rules[1].symmetric);
  EXPECT_EQ(rules[1].min_weight_elements, 0);
  const std::string text = recipe_to_json(rules);
  const auto again = read_recipe(text).rules;
  EXPECT_EQ(recipe_to_json(again), text);
  EXPECT_EQ(again[0].block_size, 64);

  EXPECT_NE(complaint(R"([{"mode": "dynamic_int4", "block_size": 33}])").find("rule 0: 'block_size' is 33"),
            std::string::npos);
  EXPECT_NE(complaint(R"([{"mode": "int8", "block_size": 32}])").find("with mode int8"), std::string::npos);
  EXPECT_NE(complaint(R"([{"mode": "dynamic", "symmetric": false}])").find("zero points"), std::string::npos);
}

TEST(Recipe, WeightsOfAiEdgeQuantizerKeepTheirForm) {
  const auto rule = [](const std::string& weights, const std::string& compute) {
    return read_recipe(R"([{"regex": ".*", "operation": "*", "op_config": {"weight_tensor_config": {)" + weights +
                       "}, " + compute + "}}]")
        .rules;
  };
  const std::string integer = R"("compute_precision": "INTEGER", "explicit_dequantize": false)";
  const std::string real = R"("compute_precision": "FLOAT", "explicit_dequantize": true)";
  const auto blocks = rule(R"("num_bits": 4, "granularity": "BLOCKWISE_32")", integer);
  ASSERT_EQ(blocks.size(), 3U);
  EXPECT_EQ(blocks[1].mode, QuantizationMode::kDynamicInt4);
  EXPECT_EQ(blocks[1].block_size, 32);
  EXPECT_EQ(blocks[1].min_weight_elements, 0);
  EXPECT_EQ(blocks[2].op, "DEPTHWISE_CONV_2D");
  EXPECT_EQ(blocks[2].mode, QuantizationMode::kFloat);
  const auto zeros = rule(R"("num_bits": 8, "symmetric": false)", real);
  ASSERT_EQ(zeros.size(), 2U);
  EXPECT_EQ(zeros[1].mode, QuantizationMode::kWeightOnlyInt8);
  EXPECT_FALSE(zeros[1].symmetric);
  EXPECT_NE(complaint(R"([{"regex": "", "op_config": {"weight_tensor_config": {"granularity": "BLOCKWISE_7"}}}])")
                .find("BLOCKWISE_32, _64"),
            std::string::npos);
}

TEST(Recipe, ErrorsNameLineRuleAndKey) {
  EXPECT_NE(complaint("[\n {\"mode\": \"int8\",}\n]").find("line 2"), std::string::npos);
  EXPECT_NE(complaint("").find("line 1"), std::string::npos);
  EXPECT_NE(complaint("3").find("list of rules"), std::string::npos);
  EXPECT_NE(complaint(R"([{"mode": "int8"}, 7])").find("rule 1"), std::string::npos);
  EXPECT_NE(complaint(R"([{"mode": "int9"}])").find("'int9'"), std::string::npos);
  EXPECT_NE(complaint(R"([{"mode": "int8", "nodes": [1]}])").find("'nodes'"), std::string::npos);
  EXPECT_NE(complaint(R"([{"mode": "int8", "node": "x"}])").find("'node'"), std::string::npos);
  EXPECT_NE(complaint(R"([{"mode": "int8", "node": 1e300}])").find("'node'"), std::string::npos);
  EXPECT_NE(complaint(R"([{"mode": "int8", "node": 1e400}])").find("too large"), std::string::npos);
  EXPECT_NE(complaint(R"([{"mode": "int8", "op": "CONV2D"}])").find("unknown op 'CONV2D'"), std::string::npos);
  EXPECT_NE(complaint(R"([{"mode": "int8"}, {"mode": "int8", "name": "a("}])").find("rule 1"), std::string::npos);
  EXPECT_NE(complaint(R"([{"regex": "", "operation": "*", "op_config": {"weight_tensor_config": {"num_bits": 3}}}])")
                .find("3 bits"),
            std::string::npos);
  EXPECT_NE(complaint(R"([{"regex": "", "operation": "*", "op_config": {"weight_tensor_config": {"num_bits": "8"}}}])")
                .find("op_config.weight_tensor_config.num_bits"),
            std::string::npos);
  EXPECT_NE(complaint(R"([{"regex": "", "algorithm_key": "OSCAR"}])").find("'OSCAR'"), std::string::npos);
}

/// A message shows what it found, and walks through it by recursion.
TEST(Recipe, DeepNestingIsAnError) {
  const std::string deep = std::string(500000, '[') + std::string(500000, ']');
  EXPECT_NE(complaint(std::string(500000, '[')).find("levels"), std::string::npos);
  EXPECT_NE(complaint(deep).find("levels"), std::string::npos);
  EXPECT_NE(complaint(R"([{"mode": "float", "name": )" + deep + "}]").find("levels"), std::string::npos);
}

/// 8 KB that would be 90,000 patterns of a thousand steps each.
TEST(Recipe, EqualPatternsAreOneAndAllTogetherAreBounded) {
  const auto lists = [](bool equal) {
    std::string ops;
    std::string names;
    for (int i = 0; i < 300; ++i) {
      ops += std::string(i == 0 ? "" : ",") + "\"ADD\"";
      names += (i == 0 ? "" : ",") + fmt::format("\"a{{1000}}{}\"", equal ? 0 : i);
    }
    return fmt::format(R"([{{"op": [{}], "name": [{}], "mode": "float"}}])", ops, names);
  };
  EXPECT_EQ(complaint(lists(true)), "none");
  EXPECT_NE(complaint(lists(false)).find("200000 steps"), std::string::npos) << complaint(lists(false));
}

}  // namespace
}  // namespace leadline::quantize
