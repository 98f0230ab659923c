// SPDX-License-Identifier: Apache-2.0
#include "import/saved_model/saved_model.h"

#include <gtest/gtest.h>

#include <random>

#include "core/error.h"
#include "import/saved_model/bundle.h"
#include "import/saved_model/models_testing.h"

namespace leadline::saved_model {
namespace {

using namespace testing;  // NOLINT: words to write models with

FlatModel read(const ModelParts& parts, const BundleWriter* variables = nullptr) {
  const TempDirectory directory;
  directory.write("saved_model.pb", parts.bytes());
  if (variables != nullptr) variables->write(directory);
  return read_saved_model(directory.path());
}

std::string error_of(const ModelParts& parts, const BundleWriter* variables = nullptr) {
  try {
    read(parts, variables);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// The text without the names of nodes.
std::string text_of(const FlatModel& model) {
  std::string text = to_text(model);
  return text.substr(text.find("f0 "));
}

void expect_nested(const FlatModel& model) {
  EXPECT_EQ(text_of(model),
            "f0 serving_default\n"
            "  in0 = x float32 [-1]\n"
            "  n0 = Mul(in0, c0)  mul\n"
            "  n1 = AddV2(n0:0, c1)  add\n"
            "  n2 = Relu(n1:0)  relu\n"
            "  out y = n2:0\n");
  ASSERT_EQ(model.constants.size(), 2U);
  std::string value(4, '?');
  model.constants[0].source->read(std::as_writable_bytes(std::span(value)));
  EXPECT_EQ(model.constants[0].name, "w");
  EXPECT_EQ(value, "wwww");
  model.constants[1].source->read(std::as_writable_bytes(std::span(value)));
  EXPECT_EQ(value, "vvvv");
}

TEST(SavedModel, WritesOutCallsAndFindsVariablesByTheRestoringFunction) {
  ModelParts parts = nested_model();
  parts.nodes.push_back(node("file", "Placeholder", {}));
  parts.nodes.push_back(call("restore", "restore_fn", {"file", "v", "w"}, 0));
  parts.restore_op = "restore";
  parts.functions.push_back(function(
      "restore_fn", {{"file", 7}, {"hv", kResourceType}, {"hw", kResourceType}},
      {node("names", "Const", {}, {{"value", strings_tensor({"key_w", "key_v"})}}),
       node("slices", "Const", {}, {{"value", strings_tensor({"", ""})}}),
       node("restore", "RestoreV2", {"file", "names:output:0", "slices:output:0"},
            {{"dtypes", types_attr({kFloatType, kFloatType})}}),
       node("id", "Identity", {"restore:tensors:0"}), node("assign_w", "AssignVariableOp", {"hw", "id:output:0"}),
       node("assign_v", "AssignVariableOp", {"hv", "restore:tensors:1"})},
      {}));
  const BundleWriter variables = two_variables();
  expect_nested(read(parts, &variables));
}

TEST(SavedModel, FindsVariablesByTheGraphOfObjects) {
  ModelParts parts = nested_model();
  const auto child = [](const char* name, uint64_t id) { return Proto().number(1, id).text(2, name); };
  // The checkpoint numbers its objects in another order: only the names of children lead from one to the other.
  parts.objects.add(1, Proto().add(1, child("v", 1)).add(1, child("w", 2)));
  parts.objects.add(1, Proto().add(7, Proto())).add(1, Proto().add(7, Proto()));
  parts.objects.entry(2, "outer", Proto().text(2, testing::varint(2) + testing::varint(1)));
  const auto stored = [](const char* key) { return Proto().add(2, Proto().text(1, "VARIABLE_VALUE").text(3, key)); };
  const Proto graph = Proto()
                          .add(1, Proto().add(1, child("w", 1)).add(1, child("v", 2)))
                          .add(1, stored("key_w"))
                          .add(1, stored("key_v"));
  BundleWriter variables = two_variables();
  // A scalar of strings has the layout of a list of one.
  variables.add_strings("_CHECKPOINTABLE_OBJECT_GRAPH", {graph.bytes});
  expect_nested(read(parts, &variables));
}

TEST(SavedModel, AVariableWithoutValueIsNamed) {
  const BundleWriter variables = two_variables();
  EXPECT_NE(error_of(nested_model(), &variables).find("variable 'w' is not among the saved variables"),
            std::string::npos);
  EXPECT_NE(error_of(nested_model()).find("variable 'w' is not among the saved variables"), std::string::npos);
}

/// while (x < limit) x = x + step, with `limit` and `step` captured; the loop's third operand is unused but varies.
ModelParts loop_model() {
  ModelParts parts;
  parts.nodes.insert(
      parts.nodes.end(),
      {node("limit", "Const", {}, {{"value", float_tensor(9)}}),
       node("step", "Const", {}, {{"value", float_tensor(2)}}),
       node("loop", "While", {"limit", "x", "step"},
            {{"cond", function_attr("cond")}, {"body", function_attr("body")}, {"T", types_attr({1, 1, 1})}}),
       node("y", "Neg", {"loop:1"}), node("z", "Identity", {"loop:2"})});
  const std::vector<Arg> args = {{"l"}, {"v"}, {"s"}};
  parts.functions.push_back(function("cond", args, {node("less", "Less", {"v", "l"})}, {{"r", "less:z:0"}}));
  parts.functions.push_back(function("body", args, {node("add", "AddV2", {"v", "s"}), node("same", "Identity", {"l"})},
                                     {{"l_out", "same:output:0"}, {"v_out", "add:z:0"}, {"s_out", "s"}}));
  return parts;
}

TEST(SavedModel, LoopsKeepFunctionsWhichHoldTheirConstants) {
  const FlatModel model = read(loop_model());
  EXPECT_EQ(text_of(model),
            "f0 serving_default\n"
            "  in0 = x float32 [-1]\n"
            "  n0 = While(in0) f1 f2  loop\n"
            "  n1 = Neg(n0:0)  y\n"
            "  out y = n1:0\n"
            "f1 cond\n"
            "  in0 = v float32 ?\n"
            "  n0 = Less(in0, c0)  less\n"
            "  out r = n0:0\n"
            "f2 body\n"
            "  in0 = v float32 ?\n"
            "  n0 = AddV2(in0, c1)  add\n"
            "  out v_out = n0:0\n");
  EXPECT_EQ(find_attr(model.functions[0].nodes[0].attrs, "T")->parts->ints.size(), 1U);
}

TEST(SavedModel, AnInvariantOfALoopIsWhatWentIn) {
  ModelParts parts = loop_model();
  parts.output = "z:0";
  const FlatModel model = read(parts);
  EXPECT_TRUE(model.functions[0].nodes.empty());
  EXPECT_EQ(model.functions[0].output_values[0], (ValueRef{ValueRef::Kind::kConstant, 0, 0}));
  EXPECT_EQ(model.constants[0].name, "step");
}

TEST(SavedModel, CyclesAreRefused) {
  ModelParts parts;
  parts.nodes.push_back(node("a", "AddV2", {"x", "y"}));
  parts.nodes.push_back(node("y", "Neg", {"a"}));
  EXPECT_NE(error_of(parts).find("depends on itself"), std::string::npos);

  ModelParts identities;
  identities.nodes.push_back(node("a", "Identity", {"y"}));
  identities.nodes.push_back(node("y", "Identity", {"a"}));
  EXPECT_NE(error_of(identities).find("depends on itself"), std::string::npos);

  ModelParts recursion;
  recursion.nodes.push_back(call("y", "f", {"x"}));
  recursion.functions.push_back(function("f", {{"v"}}, {call("again", "f", {"v"})}, {{"r", "again:output:0"}}));
  EXPECT_NE(error_of(recursion).find("too deep"), std::string::npos);

  ModelParts loop = loop_model();
  loop.nodes[3] =
      node("loop", "While", {"limit", "loop:1", "loop:2"},
           {{"cond", function_attr("cond")}, {"body", function_attr("body")}, {"T", types_attr({1, 1, 1})}});
  EXPECT_NE(error_of(loop).find("depends on itself"), std::string::npos);
}

TEST(SavedModel, FunctionsThatDoubleAreRefusedSoon) {
  ModelParts parts;
  parts.nodes.push_back(call("y", "f0", {"x"}));
  for (int i = 0; i < 60; ++i) {
    const std::string next = "f" + std::to_string(i + 1);
    parts.functions.push_back(
        function("f" + std::to_string(i), {{"v"}},
                 {call("a", next, {"v"}), call("b", next, {"v"}), node("s", "AddV2", {"a:output:0", "b:output:0"})},
                 {{"r", "s:z:0"}}));
  }
  parts.functions.push_back(function("f60", {{"v"}}, {node("n", "Neg", {"v"})}, {{"r", "n:y:0"}}));
  EXPECT_NE(error_of(parts).find("too often"), std::string::npos);
}

TEST(SavedModel, VariablesThatChangeWithoutAConversionAreRefused) {
  ModelParts parts;
  parts.nodes.insert(parts.nodes.end(), {variable("w"), call("y", "f", {"x", "w"})});
  parts.functions.push_back(function("f", {{"v"}, {"h", kResourceType}},
                                     {node("read", "ReadVariableOp", {"h"}), node("mul", "Mul", {"v", "read:value:0"}),
                                      node("count", "ResourceScatterMul", {"h", "v", "v"})},
                                     {{"r", "mul:z:0"}}));
  EXPECT_NE(error_of(parts).find("it changes variable 'w'"), std::string::npos);
}

TEST(SavedModel, WhatDoesNotExistIsNamed) {
  ModelParts parts;
  parts.nodes.push_back(node("y", "Neg", {"nowhere"}));
  EXPECT_NE(error_of(parts).find("'y' uses 'nowhere', which does not exist"), std::string::npos);
  parts.nodes.back() = node("y", "Neg", {"x:7"});
  EXPECT_NE(error_of(parts).find("an output that the op does not have"), std::string::npos);
  parts.nodes.back() = call("y", "missing", {"x"});
  EXPECT_NE(error_of(parts).find("no function 'missing'"), std::string::npos);
  parts.nodes.back() = node("other", "Placeholder", {});
  parts.nodes.push_back(node("y", "Neg", {"other"}));
  EXPECT_NE(error_of(parts).find("not an input of the signature"), std::string::npos);
  parts.nodes.back() = node("y", "Merge", {"x", "x"});
  EXPECT_NE(error_of(parts).find("control flow of TensorFlow 1"), std::string::npos);
}

TEST(SavedModel, TagsAndSignaturesAreChosenByName) {
  const TempDirectory directory;
  EXPECT_THROW(read_saved_model(directory.path()), Error);
  ModelParts parts;
  parts.nodes.push_back(node("y", "Neg", {"x"}));
  directory.write("saved_model.pb", parts.bytes());
  const auto error_with = [&](const ReadOptions& options) -> std::string {
    try {
      read_saved_model(directory.path(), options);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(error_with({{"serve", "gpu"}, {}, nullptr})
                .find("no graph has the tags {'gpu', 'serve'}; expected one of: {'serve'}"),
            std::string::npos);
  EXPECT_NE(error_with({{"serve"}, {"train"}, nullptr}).find("expected one of: 'serving_default'"), std::string::npos);
  EXPECT_EQ(error_with({{"serve"}, {"serving_default"}, nullptr}), "");
  EXPECT_NE(error_with({{"serve"}, {}, Budget::with_limit(100)}), "");
}

TEST(SavedModel, OfTwoSignaturesWithOneNameTheLastCounts) {
  ModelParts parts;
  parts.nodes.push_back(node("y", "Neg", {"x"}));
  parts.nodes.push_back(node("z", "Abs", {"x"}));
  parts.earlier_output = "z:0";
  const FlatModel model = read(parts);
  ASSERT_EQ(model.signatures.size(), 1U);
  EXPECT_NE(text_of(model).find("Neg(in0)"), std::string::npos) << text_of(model);
}

/// Damages `good` in some way; `round` chooses how.
std::string damage(std::string good, std::mt19937& random, int round) {
  const auto pick = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random); };
  if (round % 4 == 0) return good.substr(0, pick(good.size()));
  for (size_t i = 0; i < 1 + pick(4); ++i) good[pick(good.size())] = static_cast<char>(pick(256));
  if (round % 4 == 2) good.erase(pick(good.size()), 1 + pick(8));
  if (round % 4 == 3 && good.size() > 16) {
    const std::string piece = good.substr(pick(good.size() - 16), 1 + pick(16));
    good.insert(pick(good.size()), piece);
  }
  return good;
}

TEST(SavedModel, DamagedFilesGiveErrorsOnly) {
  std::mt19937 random(7);
  const TempDirectory directory;
  two_variables().write(directory);
  const auto variables = Bundle::open(directory.path() + "/variables/variables", nullptr);
  int refused = 0;
  for (const ModelParts& parts : {nested_model(), loop_model()}) {
    const std::string good = parts.bytes();
    for (int round = 0; round < 4000; ++round) {
      try {
        const auto file = testing::wire_file(damage(good, random, round), Budget::with_limit(64 << 20));
        to_text(read_saved_model(file, variables, {}));
      } catch (const Error& error) {
        ASSERT_NE(error.code(), ErrorCode::kInternal) << error.what();
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 2000);
}

}  // namespace
}  // namespace leadline::saved_model
