// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/models.h"

#include <zlib.h>

#include <filesystem>
#include <fstream>

#include "import/hdf5/writer_testing.h"
#include "import/saved_model/files_testing.h"
#include "ops/string_testing.h"

namespace leadline::faults {
namespace {

using hdf5::Hdf5Writer;
using leadline::testing::Sketch;
using saved_model::testing::Proto;

constexpr DType kF32 = DType::kFloat32;
constexpr DType kI32 = DType::kInt32;
constexpr DType kI64 = DType::kInt64;

int weights(Sketch& s, const std::string& name, const Shape& shape) {
  std::vector<float> values(static_cast<size_t>(shape.elements()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>((i * 7 + name.size()) % 11) / 8.0F - 0.6F;
  return s.constant<float>(name, kF32, shape, values);
}

/// Deflated, without a zlib header.
std::string deflated(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string zip(const std::vector<std::pair<std::string, std::string>>& entries, bool deflate) {
  std::string out;
  std::string directory;
  for (const auto& [name, text] : entries) {
    const std::string data = deflate ? deflated(text) : text;
    std::string common("\x14\0\0\0", 4);
    Hdf5Writer::put<uint16_t>(common, deflate ? 8 : 0);
    common.append(4, '\0');
    Hdf5Writer::put<uint32_t>(
        common, static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(text.data()), text.size())));
    Hdf5Writer::put<uint32_t>(common, static_cast<uint32_t>(data.size()));
    Hdf5Writer::put<uint32_t>(common, static_cast<uint32_t>(text.size()));
    Hdf5Writer::put<uint32_t>(common, static_cast<uint32_t>(name.size()));
    directory += std::string("PK\1\2\x14\0", 6) + common + std::string(10, '\0');
    Hdf5Writer::put<uint32_t>(directory, static_cast<uint32_t>(out.size()));
    directory += name;
    out += std::string("PK\3\4", 4) + common + name + data;
  }
  std::string end("PK\5\6\0\0\0\0", 8);
  Hdf5Writer::put<uint16_t>(end, static_cast<uint16_t>(entries.size()));
  Hdf5Writer::put<uint16_t>(end, static_cast<uint16_t>(entries.size()));
  Hdf5Writer::put<uint32_t>(end, static_cast<uint32_t>(directory.size()));
  Hdf5Writer::put<uint32_t>(end, static_cast<uint32_t>(out.size()));
  return out + directory + end + std::string(2, '\0');
}

const char* const kKerasConfig = R"({"module": "keras", "class_name": "Sequential", "config": {"name": "m", "layers": [
  {"module": "keras.layers", "class_name": "InputLayer", "config": {"name": "x", "dtype": "float32",
   "batch_shape": [null, 3]}},
  {"module": "keras.layers", "class_name": "Dense", "config": {"name": "dense", "units": 4, "activation": "relu",
   "use_bias": true}},
  {"module": "keras.layers", "class_name": "BatchNormalization", "config": {"name": "batch_normalization",
   "axis": -1, "epsilon": 0.001}},
  {"module": "keras.layers", "class_name": "Dense", "config": {"name": "dense_1", "units": 2, "activation": "softmax",
   "use_bias": true}}]}})";

std::vector<float> ramp(size_t count, float first) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = first + 0.25F * static_cast<float>(i % 5);
  return values;
}

constexpr uint64_t kFloatType = 1;

Proto node(const std::string& name, const std::string& op, const std::vector<std::string>& inputs,
           const std::vector<std::pair<std::string, Proto>>& attributes = {}) {
  Proto result = Proto().text(1, name).text(2, op);
  for (const std::string& input : inputs) result.text(3, input);
  for (const auto& [key, value] : attributes) result.entry(5, key, value);
  return result;
}

Proto tensor_info(const std::string& name) {
  return Proto().text(1, name).number(2, kFloatType).add(3, saved_model::testing::shape({-1}));
}

}  // namespace

Bytes float_model() {
  Sketch s;
  const int x = s.input("x", kF32, {1, 6, 6, 2});
  const int c = s.compute("CONV_2D", {x, weights(s, "w", {4, 3, 3, 2}), weights(s, "b", {4})}, "conv", kF32,
                          {1, 6, 6, 4}, {{"stride_w", 1}, {"stride_h", 1}, {"fused_activation_function", 1}});
  const int d = s.compute("DEPTHWISE_CONV_2D", {c, weights(s, "dw", {1, 3, 3, 4}), weights(s, "db", {4})}, "depthwise",
                          kF32, {1, 6, 6, 4}, {{"stride_w", 1}, {"stride_h", 1}, {"depth_multiplier", 1}});
  const int sum = s.compute("ADD", {c, d}, "sum", kF32, {1, 6, 6, 4});
  const int p = s.compute("AVERAGE_POOL_2D", {sum}, "pool", kF32, {1, 3, 3, 4},
                          {{"stride_w", 2}, {"stride_h", 2}, {"filter_width", 2}, {"filter_height", 2}});
  const int axes = s.constant<int32_t>("axes", kI32, {2}, {1, 2});
  const int m = s.compute("MEAN", {p, axes}, "mean", kF32, {1, 4});
  const int f =
      s.compute("FULLY_CONNECTED", {m, weights(s, "fw", {3, 4}), weights(s, "fb", {3})}, "logits", kF32, {1, 3});
  s.outputs({s.compute("SOFTMAX", {f}, "y", kF32, {1, 3})});
  s.graph().description = "made for tests";
  s.graph().signatures.push_back({"serving_default", 0, {{"x", x}}, {{"y", s.subgraph().outputs[0]}}});
  return s.file();
}

Bytes wide_model() {
  Sketch s;
  const int x = s.input("x", kF32, {1, 24, 24, 16});
  const int c = s.compute("CONV_2D", {x, weights(s, "w", {16, 3, 3, 16}), weights(s, "b", {16})}, "conv", kF32,
                          {1, 24, 24, 16}, {{"stride_w", 1}, {"stride_h", 1}});
  const int small = s.constant<int32_t>("size", kI32, {2}, {48, 48});
  const int r = s.compute("RESIZE_BILINEAR", {c, small}, "resized", kF32, {1, 48, 48, 16});
  s.outputs({s.compute("LOGISTIC", {r}, "y", kF32, {1, 48, 48, 16})});
  return s.file();
}

Bytes string_model() {
  Sketch s;
  const leadline::testing::AttributeValues table = {{"table_id", int64_t{4}},
                                                    {"key_dtype", static_cast<int64_t>(DType::kInt64)},
                                                    {"value_dtype", static_cast<int64_t>(DType::kString)}};
  const auto texts = [&](const std::string& name, const std::vector<std::string>& values) {
    return s.constant_bytes(name, DType::kString, {static_cast<int64_t>(values.size())}, ops::string_buffer(values));
  };
  const int x = s.input("x", kI64, {2});
  s.node("CALL_ONCE", {}, {}, {{"init_subgraph_index", int64_t{1}}});
  const int handle = s.compute("HASHTABLE", {}, "table", DType::kResource, {1}, table);
  const int found = s.compute("HASHTABLE_FIND", {handle, x, texts("default", {"none"})}, "found", DType::kString, {2});
  const int t = s.input("texts", DType::kString, {2});
  const int one = s.constant<int32_t>("one", kI32, {1}, {1});
  s.outputs({found, s.compute("SLICE", {t, one, one}, "second", DType::kString, {1})});
  s.next_subgraph("init");
  const int inner = s.compute("HASHTABLE", {}, "table", DType::kResource, {1}, table);
  const int numbers = s.constant<int64_t>("numbers", kI64, {2}, {1, 2});
  s.node("HASHTABLE_IMPORT", {inner, numbers, texts("texts", {"one", "a longer text than fits into a small string"})},
         {});
  return s.file();
}

Bytes control_flow_model() {
  Sketch s;
  const int i = s.input("i", kI32, {});
  const int x = s.input("x", kF32, {2});
  const int which = s.input("which", DType::kBool, {1});
  const std::vector<int> ends = {s.value("i_end", kI32, {}), s.value("x_end", kF32, {2})};
  s.node("WHILE", {i, x}, ends, {{"cond_subgraph_index", int64_t{1}}, {"body_subgraph_index", int64_t{2}}});
  s.outputs({s.compute("IF", {which, ends[1]}, "y", kF32, {2},
                       {{"then_subgraph_index", int64_t{3}}, {"else_subgraph_index", int64_t{4}}})});
  s.next_subgraph("cond");
  const int ci = s.input("i", kI32, {});
  s.input("x", kF32, {2});
  s.outputs({s.compute("LESS", {ci, s.constant<int32_t>("limit", kI32, {}, {4})}, "goes_on", DType::kBool, {})});
  s.next_subgraph("body");
  const int bi = s.input("i", kI32, {});
  const int bx = s.input("x", kF32, {2});
  const int next = s.compute("ADD", {bi, s.constant<int32_t>("one", kI32, {}, {1})}, "next", kI32, {});
  s.outputs({next, s.compute("CONCATENATION", {bx, bx}, "twice", kF32, {4})});
  for (const char* op : {"NEG", "ABS"}) {
    s.next_subgraph(op);
    s.outputs({s.compute(op, {s.input("in", kF32, {2})}, "out", kF32, {2})});
  }
  return s.file();
}

Bytes data_dependent_model() {
  Sketch s;
  const int x = s.input("x", DType::kBool, {4});
  const int where = s.compute("WHERE", {x}, "where", kI64, {4, 1});
  const int as_float = s.compute("CAST", {where}, "floats", kF32, {4, 1});
  s.outputs({s.compute("FULLY_CONNECTED", {as_float, weights(s, "w", {3, 1})}, "y", kF32, {4, 3})});
  return s.file();
}

Bytes stateful_model() {
  Sketch s;
  const int x = s.input("x", kF32, {2});
  const leadline::testing::AttributeValues name = {{"shared_name", std::string("count")}};
  const int handle = s.compute("VAR_HANDLE", {}, "handle", DType::kResource, {1}, name);
  const int before = s.compute("READ_VARIABLE", {handle}, "before", kF32, {2});
  const int after = s.compute("ADD", {before, x}, "after", kF32, {2});
  s.node("ASSIGN_VARIABLE", {handle, after}, {});
  s.outputs({after});
  return s.file();
}

Bytes custom_model() {
  Sketch s;
  const int x = s.input("x", kF32, {4});
  const int a = s.compute("ABS", {x}, "a", kF32, {4});
  s.outputs({s.compute("NEG", {s.compute("Twice", {a}, "twice", kF32, {4})}, "y", kF32, {4})});
  return s.file();
}

std::string keras_file(bool deflated) {
  Hdf5Writer writer;
  const auto add = [&](const std::string& layer, const std::vector<std::vector<uint64_t>>& shapes) {
    for (size_t i = 0; i < shapes.size(); ++i) {
      size_t count = 1;
      for (const uint64_t size : shapes[i]) count *= size;
      writer.floats("layers/" + layer + "/vars/" + std::to_string(i), shapes[i],
                    ramp(count, 0.25F * static_cast<float>(i + 1)));
    }
  };
  add("dense", {{3, 4}, {4}});
  add("batch_normalization", {{4}, {4}, {4}, {4}});
  add("dense_1", {{4, 2}, {2}});
  return zip({{"metadata.json", R"({"keras_version": "3.5.0", "date_saved": "x"})"},
              {"config.json", kKerasConfig},
              {"model.weights.h5", writer.finish()}},
             deflated);
}

std::string keras_h5_file() {
  Hdf5Writer writer;
  writer.text("", "model_config", kKerasConfig);
  writer.text("", "keras_version", "3.5.0");
  writer.strings("model_weights", "layer_names", {"dense", "batch_normalization", "dense_1"});
  const auto add = [&](const std::string& layer,
                       const std::vector<std::pair<std::string, std::vector<uint64_t>>>& all) {
    std::vector<std::string> names;
    float first = 0.25F;
    for (const auto& [name, shape] : all) {
      size_t count = 1;
      for (const uint64_t size : shape) count *= size;
      names.push_back(layer + "/" + name);
      writer.floats("model_weights/" + layer + "/" + layer + "/" + name, shape, ramp(count, first),
                    Hdf5Writer::Store::kPacked);
      first += 0.25F;
    }
    writer.strings("model_weights/" + layer, "weight_names", names);
  };
  add("dense", {{"kernel", {3, 4}}, {"bias", {4}}});
  add("batch_normalization", {{"gamma", {4}}, {"beta", {4}}, {"moving_mean", {4}}, {"moving_variance", {4}}});
  add("dense_1", {{"kernel", {4, 2}}, {"bias", {2}}});
  return writer.finish();
}

void write_saved_model(const std::string& folder) {
  const auto variable = [](const std::string& name) {
    return node(name, "VarHandleOp", {}, {{"dtype", Proto().number(6, kFloatType)}});
  };
  const auto types = [](size_t count) {
    Proto list;
    for (size_t i = 0; i < count; ++i) list.number(6, kFloatType);
    return Proto().add(1, list);
  };
  const auto strings = [](const std::vector<std::string>& texts) {
    Proto tensor = Proto().number(1, 7).add(2, saved_model::testing::shape({static_cast<int64_t>(texts.size())}));
    for (const std::string& text : texts) tensor.text(8, text);
    return Proto().add(8, tensor);
  };
  const auto call = [&](const std::string& name, const std::string& callee, const std::vector<std::string>& inputs,
                        size_t outputs) {
    return node(name, "StatefulPartitionedCall", inputs,
                {{"f", Proto().add(10, Proto().text(1, callee))}, {"Tout", types(outputs)}});
  };
  Proto graph;
  for (const Proto& n :
       {node("x", "Placeholder", {}), variable("w"), variable("v"), call("call", "scale_and_shift", {"x", "w", "v"}, 1),
        node("file", "Placeholder", {}), call("restore", "restore_fn", {"file", "v", "w"}, 0)}) {
    graph.add(1, n);
  }
  struct Argument {
    const char* name;
    uint64_t type;
  };
  const auto function = [](const char* name, const std::vector<Argument>& arguments, const std::vector<Proto>& nodes,
                           const char* output, const char* source) {
    Proto signature = Proto().text(1, name);
    for (const Argument& a : arguments) signature.add(2, Proto().text(1, a.name).number(3, a.type));
    if (output != nullptr) signature.add(3, Proto().text(1, output).number(3, kFloatType));
    Proto result = Proto().add(1, signature);
    for (const Proto& n : nodes) result.add(3, n);
    if (output != nullptr) result.add(4, Proto().text(1, output).text(2, source));
    return result;
  };
  Proto library;
  library.add(1, function("scale_and_shift", {{"x", kFloatType}, {"a", 20}, {"b", 20}},
                          {node("read_w", "ReadVariableOp", {"a"}), node("mul", "Mul", {"x", "read_w:value:0"}),
                           node("read_v", "ReadVariableOp", {"b"}), node("add", "AddV2", {"mul:z:0", "read_v:value:0"}),
                           node("relu", "Relu", {"add:z:0"})},
                          "result", "relu:activations:0"));
  library.add(
      1, function("restore_fn", {{"file", 7}, {"hv", 20}, {"hw", 20}},
                  {node("names", "Const", {}, {{"value", strings({"key_w", "key_v"})}}),
                   node("slices", "Const", {}, {{"value", strings({"", ""})}}),
                   node("restore", "RestoreV2", {"file", "names:output:0", "slices:output:0"}, {{"dtypes", types(2)}}),
                   node("assign_w", "AssignVariableOp", {"hw", "restore:tensors:0"}),
                   node("assign_v", "AssignVariableOp", {"hv", "restore:tensors:1"})},
                  nullptr, nullptr));
  graph.add(2, library);
  const Proto signature = Proto().entry(1, "x", tensor_info("x:0")).entry(2, "y", tensor_info("call:0"));
  const Proto meta = Proto()
                         .add(1, Proto().text(4, "serve"))
                         .add(2, graph)
                         .add(3, Proto().text(3, "restore"))
                         .entry(5, "serving_default", signature);
  saved_model::testing::BundleWriter variables;
  const auto floats = [](float value) {
    std::string text(4, '\0');
    std::memcpy(text.data(), &value, 4);
    return text;
  };
  variables.add("key_v", kFloatType, saved_model::testing::shape({1}), floats(1.0F));
  variables.add("key_w", kFloatType, saved_model::testing::shape({1}), floats(2.0F));
  const auto write = [&](const std::string& name, const std::string& bytes) {
    const std::filesystem::path file = std::filesystem::path(folder) / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  };
  write("saved_model.pb", Proto().number(1, 1).add(2, meta).bytes);
  write("variables/variables.index", variables.index());
  write("variables/variables.data-00000-of-00001", variables.data());
}

}  // namespace leadline::faults
