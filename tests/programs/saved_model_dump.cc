// SPDX-License-Identifier: Apache-2.0
// Writes what the importer reads from a SavedModel, for tests that compare it with TensorFlow: model.json, and one file
// per constant with its bytes. usage: saved_model_dump DIRECTORY OUT [SIGNATURE...]
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "import/saved_model/saved_model.h"
#include "leadline/error.h"

namespace {

using leadline::saved_model::AttrValue;
using leadline::saved_model::FlatFunction;
using leadline::saved_model::FlatModel;
using leadline::saved_model::FlatTensor;
using leadline::saved_model::TensorShape;
using leadline::saved_model::ValueRef;
using nlohmann::json;

json to_json(const TensorShape& shape) { return shape.unknown_rank ? json() : json(shape.dims); }

json to_json(const FlatTensor& tensor) {
  return {{"name", tensor.name}, {"dtype", static_cast<int>(tensor.dtype)}, {"shape", to_json(tensor.shape)}};
}

json to_json(const ValueRef& value) {
  constexpr const char* kKinds[] = {"node", "input", "constant"};
  return {kKinds[static_cast<int>(value.kind)], value.index, value.output};
}

json to_json(const AttrValue& value) {
  if (value.message.empty() && value.parts) {
    json shapes = json::array();
    for (const TensorShape& shape : value.parts->shapes) shapes.push_back(to_json(shape));
    return {{"types", value.parts->ints}, {"shapes", shapes}};
  }
  std::string hex;
  for (const std::byte byte : value.message) {
    for (const int shift : {4, 0}) hex += "0123456789abcdef"[static_cast<int>(byte) >> shift & 15];
  }
  return hex;
}

json to_json(const FlatFunction& function) {
  json result = {{"name", function.name}, {"inputs", json::array()}, {"outputs", json::array()}};
  for (const FlatTensor& input : function.inputs) result["inputs"].push_back(to_json(input));
  for (size_t i = 0; i < function.outputs.size(); ++i) {
    result["outputs"].push_back(to_json(function.outputs[i]));
    result["outputs"].back()["value"] = to_json(function.output_values[i]);
  }
  result["nodes"] = json::array();
  for (const auto& node : function.nodes) {
    json entry = {{"op", node.op}, {"name", node.name}, {"outputs", node.outputs}, {"functions", node.functions}};
    entry["inputs"] = json::array();
    for (const ValueRef& input : node.inputs) entry["inputs"].push_back(to_json(input));
    entry["attrs"] = json::object();
    for (const auto& attr : node.attrs) entry["attrs"][std::string(attr.name)] = to_json(attr.value);
    result["nodes"].push_back(std::move(entry));
  }
  return result;
}

void dump(const FlatModel& model, const std::string& out) {
  json result = {{"signatures", json::object()}, {"functions", json::array()}, {"constants", json::array()}};
  for (const auto& [key, function] : model.signatures) result["signatures"][key] = function;
  for (const FlatFunction& function : model.functions) result["functions"].push_back(to_json(function));
  for (size_t i = 0; i < model.constants.size(); ++i) {
    const auto& constant = model.constants[i];
    result["constants"].push_back({{"name", constant.name},
                                   {"dtype", static_cast<int>(constant.dtype)},
                                   {"shape", to_json(constant.shape)},
                                   {"variable", constant.variable}});
    std::vector<std::byte> bytes(static_cast<size_t>(constant.source->bytes()));
    constant.source->read(bytes);
    std::ofstream(out + "/constant_" + std::to_string(i), std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
  std::ofstream(out + "/model.json") << result.dump(1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: saved_model_dump DIRECTORY OUT [SIGNATURE...]\n";
    return 2;
  }
  try {
    leadline::saved_model::ReadOptions options;
    options.signature_keys.assign(argv + 3, argv + argc);
    const FlatModel model = leadline::saved_model::read_saved_model(argv[1], options);
    dump(model, argv[2]);
    std::cout << leadline::saved_model::to_text(model);
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
