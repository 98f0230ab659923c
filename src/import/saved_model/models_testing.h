// SPDX-License-Identifier: Apache-2.0
// For tests: SavedModels put together from nodes and functions.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "import/saved_model/files_testing.h"

namespace leadline::saved_model::testing {

inline constexpr uint64_t kFloatType = 1;
inline constexpr uint64_t kResourceType = 20;

inline Proto type_attr(uint64_t type) { return Proto().number(6, type); }
inline Proto function_attr(const std::string& name) { return Proto().add(10, Proto().text(1, name)); }
inline Proto types_attr(const std::vector<uint64_t>& types) {
  Proto list;
  for (const uint64_t type : types) list.number(6, type);
  return Proto().add(1, list);
}
inline Proto strings_tensor(const std::vector<std::string>& strings) {
  Proto tensor = Proto().number(1, 7).add(2, shape({static_cast<int64_t>(strings.size())}));
  for (const std::string& text : strings) tensor.text(8, text);
  return Proto().add(8, tensor);
}
inline Proto float_tensor(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, 4);
  return Proto().add(8, Proto().number(1, 1).add(2, Proto()).fixed32(5, bits));
}

using AttrList = std::vector<std::pair<std::string, Proto>>;

inline Proto node(const std::string& name, const std::string& op, const std::vector<std::string>& inputs,
                  const AttrList& attrs = {}) {
  Proto result = Proto().text(1, name).text(2, op);
  for (const std::string& input : inputs) result.text(3, input);
  for (const auto& [key, value] : attrs) result.entry(5, key, value);
  return result;
}

inline Proto variable(const std::string& name) {
  return node(name, "VarHandleOp", {}, {{"dtype", type_attr(kFloatType)}});
}

struct Arg {
  std::string name;
  uint64_t type = kFloatType;
};

inline Proto function(const std::string& name, const std::vector<Arg>& args, const std::vector<Proto>& nodes,
                      const std::vector<std::pair<std::string, std::string>>& returns) {
  Proto signature = Proto().text(1, name);
  for (const Arg& arg : args) signature.add(2, Proto().text(1, arg.name).number(3, arg.type));
  for (const auto& [output, source] : returns) signature.add(3, Proto().text(1, output).number(3, kFloatType));
  Proto result = Proto().add(1, signature);
  for (const Proto& n : nodes) result.add(3, n);
  for (const auto& [output, source] : returns) result.add(4, Proto().text(1, output).text(2, source));
  return result;
}

inline Proto tensor_info(const std::string& name) {
  return Proto().text(1, name).number(2, kFloatType).add(3, shape({-1}));
}

/// A model with the signature "serving_default": x -> y.
struct ModelParts {
  std::vector<Proto> nodes = {node("x", "Placeholder", {})};
  std::vector<Proto> functions;
  Proto objects;
  std::string restore_op;
  std::string output = "y:0";
  std::string earlier_output;  // Of a signature with the same key that stands before; empty: there is none.

  std::string bytes() const {
    Proto graph;
    for (const Proto& n : nodes) graph.add(1, n);
    Proto library;
    for (const Proto& f : functions) library.add(1, f);
    graph.add(2, library);
    const auto signature = [](const std::string& tensor) {
      return Proto().entry(1, "x", tensor_info("x:0")).entry(2, "y", tensor_info(tensor));
    };
    Proto meta = Proto().add(1, Proto().text(4, "serve")).add(2, graph).add(3, Proto().text(3, restore_op));
    if (!earlier_output.empty()) meta.entry(5, "serving_default", signature(earlier_output));
    meta.entry(5, "serving_default", signature(output)).add(7, objects);
    return Proto().number(1, 1).add(2, meta).bytes;
  }
};

inline Proto call(const std::string& name, const std::string& callee, const std::vector<std::string>& inputs,
                  size_t outputs = 1) {
  return node(name, "StatefulPartitionedCall", inputs,
              {{"f", function_attr(callee)}, {"Tout", types_attr(std::vector<uint64_t>(outputs, kFloatType))}});
}

/// y = relu(x * w + v) with w and v read in a function called by a function.
inline ModelParts nested_model() {
  ModelParts parts;
  parts.nodes.insert(parts.nodes.end(), {variable("w"), variable("v"), call("call", "outer", {"x", "w", "v"})});
  parts.output = "call:0";
  const std::vector<Arg> args = {{"x"}, {"a", kResourceType}, {"b", kResourceType}};
  parts.functions.push_back(function("outer", args,
                                     {call("inner_call", "inner", {"x", "a", "b", "^check"}),
                                      node("check", "Assert", {"x"}), node("id", "Identity", {"inner_call:output:0"})},
                                     {{"out", "id:output:0"}}));
  parts.functions.push_back(
      function("inner", args,
               {node("read_w", "ReadVariableOp", {"a"}), node("mul", "Mul", {"x", "read_w:value:0"}),
                node("read_v", "ReadVariableOp", {"b"}), node("add", "AddV2", {"mul:z:0", "read_v:value:0", "^mul"}),
                node("unused", "Exp", {"x"}), node("relu", "Relu", {"add:z:0"})},
               {{"result", "relu:activations:0"}}));
  return parts;
}

inline BundleWriter two_variables() {
  BundleWriter variables;
  variables.add("key_v", 1, shape({1}), "vvvv");
  variables.add("key_w", 1, shape({1}), "wwww");
  return variables;
}

}  // namespace leadline::saved_model::testing
