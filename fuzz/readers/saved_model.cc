// SPDX-License-Identifier: Apache-2.0
// saved_model.pb beside variables that are right.
#include <fmt/format.h>

#include "import/saved_model/models_testing.h"
#include "import/saved_model/op_rows.h"
#include "leadline/converter.h"
#include "readers/models.h"
#include "readers/readers.h"

namespace leadline::fuzz {
namespace {

using namespace saved_model::testing;  // NOLINT: words to write models with

void write_variables(const TempDirectory& directory) {
  BundleWriter variables = two_variables();
  variables.add("key_m", kFloatType, shape({4, 4}), std::string(64, '\x3C'));
  variables.add_strings("key_s", {"one", "two"});
  variables.write(directory);
}

void run(Bytes bytes) {
  static const TempDirectory directory;
  static const bool written = (write_variables(directory), true);
  static_cast<void>(written);
  directory.write("saved_model.pb", as_string(bytes));
  ConversionOptions options;
  options.allow_custom_ops = bytes.size() % 2 == 0;
  const auto converter = Converter::from_saved_model(directory.path(), {}, {}, small_budget(), options);
  use(converter.to_text());
  load_and_run(converter.convert_to_model({}, small_budget()));
}

Proto ints_tensor(const std::vector<int64_t>& values, bool scalar = false) {
  Proto tensor = Proto().number(1, 3);
  tensor.add(2, scalar ? Proto() : shape({static_cast<int64_t>(values.size())}));
  for (const int64_t value : values) tensor.number(7, static_cast<uint64_t>(value));
  return Proto().add(8, tensor);
}

Proto ints_attr(const std::vector<int64_t>& values) {
  Proto list;
  for (const int64_t value : values) list.number(3, static_cast<uint64_t>(value));
  return Proto().add(1, list);
}

/// Attributes that ops of many kinds look at.
AttrList common_attributes(std::string_view op) {
  AttrList attributes = {{"T", type_attr(kFloatType)},
                         {"strides", ints_attr({1, 1, 1, 1})},
                         {"ksize", ints_attr({1, 2, 2, 1})},
                         {"padding", Proto().text(2, "SAME")},
                         {"data_format", Proto().text(2, "NHWC")},
                         {"axis", Proto().number(3, 0)},
                         {"N", Proto().number(3, 2)},
                         {"num", Proto().number(3, 2)},
                         {"num_split", Proto().number(3, 2)},
                         {"keep_dims", Proto().number(5, 1)}};
  if (op == "Einsum") attributes.emplace_back("equation", Proto().text(2, "ab,bc->ac"));
  return attributes;
}

/// One node of the op, which reads the input and constants.
std::string op_file(std::string_view op, int inputs) {
  ModelParts parts;
  parts.nodes = {
      node("x", "Placeholder", {}, {{"dtype", type_attr(kFloatType)}, {"shape", Proto().add(7, shape({4, 4}))}}),
      node("i", "Const", {}, {{"dtype", type_attr(3)}, {"value", ints_tensor({0, 1})}}),
      node("s", "Const", {}, {{"dtype", type_attr(3)}, {"value", ints_tensor({1}, true)}})};
  const std::vector<std::vector<std::string>> choices = {{"x"},      {"x", "x"},      {"x", "i"},
                                                         {"x", "s"}, {"x", "i", "i"}, {"s", "x"}};
  parts.nodes.push_back(node("y", std::string(op), choices[static_cast<size_t>(inputs)], common_attributes(op)));
  return parts.bytes();
}

/// While and If over functions.
std::string control_file() {
  ModelParts parts;
  const std::vector<Arg> args = {{"a"}};
  parts.functions.push_back(function("body", args, {node("t", "Tanh", {"a"})}, {{"out", "t:y:0"}}));
  parts.functions.push_back(function("condition", args,
                                     {node("l", "Less", {"a", "a"}), node("r", "All", {"l:z:0", "none:output:0"}),
                                      node("none", "Const", {}, {{"value", ints_tensor({0})}})},
                                     {{"out", "r:output:0"}}));
  parts.nodes.push_back(
      node("y", "StatelessWhile", {"x"},
           {{"T", types_attr({kFloatType})}, {"cond", function_attr("condition")}, {"body", function_attr("body")}}));
  return parts.bytes();
}

/// Variables found by the function that restores them.
std::string variables_file() {
  ModelParts parts = nested_model();
  parts.nodes.push_back(node("file", "Placeholder", {}));
  parts.nodes.push_back(call("restore", "restore_fn", {"file", "v", "w"}, 0));
  parts.restore_op = "restore";
  parts.functions.push_back(function("restore_fn", {{"file", 7}, {"hv", kResourceType}, {"hw", kResourceType}},
                                     {node("names", "Const", {}, {{"value", strings_tensor({"key_w", "key_v"})}}),
                                      node("slices", "Const", {}, {{"value", strings_tensor({"", ""})}}),
                                      node("restore", "RestoreV2", {"file", "names:output:0", "slices:output:0"},
                                           {{"dtypes", types_attr({kFloatType, kFloatType})}}),
                                      node("assign_w", "AssignVariableOp", {"hw", "restore:tensors:0"}),
                                      node("assign_v", "AssignVariableOp", {"hv", "restore:tensors:1"})},
                                     {}));
  return parts.bytes();
}

std::vector<std::string> seeds() {
  std::vector<std::string> result = {control_file(), variables_file()};
  const auto rows = saved_model::op_rows();
  for (size_t i = 0; i < rows.size(); ++i) {
    for (int inputs = 0; inputs < 6; ++inputs) result.push_back(op_file(rows[i].op, inputs));
  }
  return result;
}

std::vector<std::string> words() {
  std::vector<std::string> result = {"serve",
                                     "serving_default",
                                     "x:0",
                                     "y:0",
                                     "^x",
                                     "strides",
                                     "padding",
                                     "VALID",
                                     "T",
                                     "shape",
                                     "value",
                                     "dtype",
                                     "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01"};
  for (const auto& row : saved_model::op_rows()) result.emplace_back(row.op);
  return result;
}

}  // namespace

Reader saved_model_reader() {
  return {
      .name = "saved_model", .run = run, .seeds = seeds, .words = words, .mutate = mutate_message, .most_bytes = 4096};
}

}  // namespace leadline::fuzz
