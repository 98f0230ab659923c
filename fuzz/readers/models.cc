// SPDX-License-Identifier: Apache-2.0
#include "readers/models.h"

#include <algorithm>
#include <ctime>
#include <numeric>

#include "core/string_tensor.h"
#include "leadline/interpreter.h"
#include "leadline/model_builder.h"
#include "ops/registry.h"
#include "readers/reader.h"

namespace leadline::fuzz {
namespace {

TensorInfo tensor(const std::string& name, DType dtype, const Shape& shape) {
  TensorInfo info;
  info.name = name;
  info.dtype = dtype;
  info.shape = shape;
  if (dtype == DType::kInt8 || dtype == DType::kUInt8 || dtype == DType::kInt16) {
    info.scales = {0.25F};
    info.zero_points = {dtype == DType::kUInt8 ? 128 : 0};
  }
  return info;
}

std::string file_of(const ModelBuilder& builder) { return as_string(builder.to_tflite()); }

std::vector<std::byte> some_bytes(DType dtype, const Shape& shape) {
  if (dtype == DType::kString) return std::vector<std::byte>(8);
  std::vector<std::byte> bytes(static_cast<size_t>(shape.elements() * dtype_bits(dtype) / 8));
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i % 4 == 0 ? 1 + i / 16 : 0);
  return bytes;
}

/// How the inputs of a node are made up.
struct Guess {
  DType dtype;
  Shape shape;
  DType other;        // of the inputs behind the first
  Shape other_shape;  // the same
  bool constant;      // whether those are constants
};

std::vector<Guess> guesses() {
  std::vector<Guess> result;
  const Shape vector{4};
  const Shape matrix{2, 4};
  const Shape image{1, 4, 4, 2};
  for (const DType type : {DType::kFloat32, DType::kInt8, DType::kInt32, DType::kBool, DType::kInt16, DType::kInt64,
                           DType::kComplex64, DType::kString}) {
    for (const Shape& shape : {image, matrix, vector}) {
      result.push_back({type, shape, type, shape, false});
      result.push_back({type, shape, DType::kInt32, {}, true});
      result.push_back({type, shape, DType::kInt32, {shape.rank()}, true});
      result.push_back({type, shape, DType::kInt32, {2}, true});
      result.push_back({type, shape, DType::kInt32, {shape.rank(), 2}, true});
      result.push_back({type, shape, type, {2, 2, 2, 2}, true});
      result.push_back({type, shape, type, {2, 4}, true});
    }
  }
  return result;
}

std::string one_node(const ops::OpDef& op, const Guess& guess) {
  ModelBuilder builder;
  std::vector<int> inputs;
  std::vector<int> given;
  const int count = std::max(op.min_inputs, op.max_inputs == 0 ? 0 : 1);
  for (int i = 0; i < count; ++i) {
    const bool first = i == 0;
    const TensorInfo info =
        tensor("in" + std::to_string(i), first ? guess.dtype : guess.other, first ? guess.shape : guess.other_shape);
    if (!first && guess.constant) {
      inputs.push_back(builder.add_constant(0, info, some_bytes(info.dtype, info.shape)));
    } else {
      inputs.push_back(builder.add_tensor(0, info));
      given.push_back(inputs.back());
    }
  }
  std::vector<int> outputs;
  for (int i = 0; i < std::max(op.min_outputs, 1); ++i) {
    outputs.push_back(builder.add_tensor(0, tensor("out" + std::to_string(i), guess.dtype, guess.shape)));
  }
  builder.add_node(0, {.op = std::string(op.name()), .inputs = inputs, .outputs = outputs});
  builder.set_inputs(0, given);
  builder.set_outputs(0, outputs);
  return file_of(builder);
}

/// The first guess at the op's inputs that runs, else one that loads.
void add_op(std::vector<std::string>& files, const ops::OpDef& op) {
  if (op.infer == nullptr) return;
  std::string loads;
  for (const Guess& guess : guesses()) {
    try {
      std::string file = one_node(op, guess);
      const Model model = Model::from_bytes(as_bytes(file), nullptr, small_budget());
      loads = file;
      Interpreter(model).invoke();
      files.push_back(std::move(file));
      return;
    } catch (const Error&) {
      continue;
    }
  }
  if (!loads.empty()) files.push_back(std::move(loads));
}

/// while (i < 3) { i = i + 1; x = x * x }
std::string loop_file() {
  ModelBuilder builder;
  const TensorInfo counter = tensor("i", DType::kInt32, {1});
  const TensorInfo value = tensor("x", DType::kFloat32, {1, 2});
  const int condition = builder.add_subgraph("condition");
  const int body = builder.add_subgraph("body");
  const std::vector<int32_t> one = {1};
  const std::vector<int32_t> three = {3};
  for (const int graph : {0, condition, body}) {
    builder.add_tensor(graph, counter);
    builder.add_tensor(graph, value);
    builder.set_inputs(graph, {0, 1});
  }
  builder.add_tensor(0, counter);
  builder.add_tensor(0, value);
  builder.add_node(
      0, {.op = "WHILE",
          .inputs = {0, 1},
          .outputs = {2, 3},
          .attributes = {{"cond_subgraph_index", int64_t{condition}}, {"body_subgraph_index", int64_t{body}}}});
  builder.set_outputs(0, {2, 3});
  builder.add_constant(condition, counter, std::as_bytes(std::span(three)));
  builder.add_tensor(condition, tensor("go", DType::kBool, {1}));
  builder.add_node(condition, {.op = "LESS", .inputs = {0, 2}, .outputs = {3}});
  builder.set_outputs(condition, {3});
  builder.add_constant(body, counter, std::as_bytes(std::span(one)));
  builder.add_tensor(body, counter);
  builder.add_tensor(body, value);
  builder.add_node(body, {.op = "ADD", .inputs = {0, 2}, .outputs = {3}});
  builder.add_node(body, {.op = "MUL", .inputs = {1, 1}, .outputs = {4}});
  builder.set_outputs(body, {3, 4});
  builder.add_signature({"serving_default", 0, {{"i", 0}, {"x", 1}}, {{"n", 2}, {"y", 3}}});
  return file_of(builder);
}

/// An int8 convolution with a scale for each channel, and a reshape behind it.
std::string quantized_file() {
  ModelBuilder builder;
  TensorInfo weights = tensor("w", DType::kInt8, {2, 3, 3, 2});
  weights.scales = {0.1F, 0.2F};
  weights.zero_points = {0, 0};
  TensorInfo bias = tensor("b", DType::kInt32, {2});
  bias.scales = {0.025F, 0.05F};
  bias.zero_points = {0, 0};
  const int x = builder.add_tensor(0, tensor("x", DType::kInt8, {1, 4, 4, 2}));
  const int w = builder.add_constant(0, weights, some_bytes(DType::kInt8, weights.shape));
  const int b = builder.add_constant(0, bias, some_bytes(DType::kInt32, bias.shape));
  const int y = builder.add_tensor(0, tensor("y", DType::kInt8, {1, 4, 4, 2}));
  const int z = builder.add_tensor(0, tensor("z", DType::kInt8, {1, 32}));
  const std::vector<int32_t> shape = {1, 32};
  const int s = builder.add_constant(0, tensor("s", DType::kInt32, {2}), std::as_bytes(std::span(shape)));
  builder.add_node(0, {.op = "CONV_2D",
                       .inputs = {x, w, b},
                       .outputs = {y},
                       .attributes = {{"stride_w", int64_t{1}}, {"stride_h", int64_t{1}}}});
  builder.add_node(0, {.op = "RESHAPE", .inputs = {y, s}, .outputs = {z}});
  builder.set_inputs(0, {x});
  builder.set_outputs(0, {z});
  return file_of(builder);
}

/// A dense layer whose weights are a diagonal.
std::string sparse_file() {
  ModelBuilder builder;
  SparsityInfo sparsity;
  sparsity.traversal_order = {0, 1};
  sparsity.dimensions = {{false, 4, {}, {}}, {true, 0, {0, 1, 2, 3, 4}, {0, 1, 2, 3}}};
  const std::vector<float> values = {1.0F, 2.0F, 3.0F, 4.0F};
  const int x = builder.add_tensor(0, tensor("x", DType::kFloat32, {1, 4}));
  const int w =
      builder.add_constant(0, tensor("w", DType::kFloat32, {4, 4}), std::as_bytes(std::span(values)), sparsity);
  const int y = builder.add_tensor(0, tensor("y", DType::kFloat32, {1, 4}));
  builder.add_node(0, {.op = "FULLY_CONNECTED", .inputs = {x, w, -1}, .outputs = {y}});
  builder.set_inputs(0, {x});
  builder.set_outputs(0, {y});
  return file_of(builder);
}

std::string float_file() {
  ModelBuilder builder;
  const Shape kernel{4, 3, 3, 2};
  const int x = builder.add_tensor(0, tensor("serving_default_image:0", DType::kFloat32, {1, 6, 6, 2}));
  const std::vector<float> weights(72, 0.5F);
  const int w = builder.add_constant(0, tensor("model/block1/conv/kernel", DType::kFloat32, kernel),
                                     std::as_bytes(std::span(weights)));
  const int y = builder.add_tensor(0, tensor("model/block1/relu;model/block1/conv", DType::kFloat32, {1, 6, 6, 4}));
  const int z = builder.add_tensor(0, tensor("model/block1/mul", DType::kFloat32, {1, 6, 6, 4}));
  builder.add_node(0, {.op = "CONV_2D",
                       .inputs = {x, w, -1},
                       .outputs = {y},
                       .attributes = {{"stride_w", int64_t{1}}, {"stride_h", int64_t{1}}}});
  builder.add_node(0, {.op = "MUL", .inputs = {y, y}, .outputs = {z}});
  builder.set_inputs(0, {x});
  builder.set_outputs(0, {z});
  return file_of(builder);
}

/// Ends a run that takes long: limits on time are the caller's.
class Deadline {
 public:
  void operator()() const {
    if (std::clock() - begin_ > CLOCKS_PER_SEC / 2) throw Error(ErrorCode::kCancelled, "the run takes too long");
  }

 private:
  std::clock_t begin_ = std::clock();
};

void fill(Interpreter& interpreter, int index) {
  const TensorInfo info = interpreter.tensor_info(index);
  const TensorMemory memory = interpreter.tensor(index);
  if (info.dtype == DType::kString) {
    const int64_t count = info.shape.elements();
    if (count > 1000) return;
    std::vector<std::byte> bytes(static_cast<size_t>(string_tensor_bytes(count, 2 * count).value()));
    StringTensorWriter writer(bytes, count);
    for (int64_t i = 0; i < count; ++i) writer.add("ab");
    return interpreter.set_tensor(index, bytes);
  }
  for (int64_t i = 0; i < memory.bytes; ++i) memory.data[i] = static_cast<std::byte>(i % 4 == 0 ? i / 4 % 5 : 0);
}

}  // namespace

const std::vector<std::string>& model_files() {
  static const std::vector<std::string> files = [] {
    std::vector<std::string> result = {loop_file(), quantized_file(), sparse_file(), float_file()};
    for (const auto& [code, op] : ops::registry().builtins()) add_op(result, op);
    for (const auto& [name, op] : ops::registry().customs()) add_op(result, op);
    return result;
  }();
  return files;
}

Model input_model() {
  ModelBuilder builder;
  const int x = builder.add_tensor(0, tensor("x", DType::kFloat32, {1, 4}));
  const int ids = builder.add_tensor(0, tensor("ids", DType::kInt32, {2}));
  const int words = builder.add_tensor(0, tensor("words", DType::kString, {2}));
  const int y = builder.add_tensor(0, tensor("y", DType::kFloat32, {1, 4}));
  const int next = builder.add_tensor(0, tensor("next", DType::kInt32, {2}));
  const int same = builder.add_tensor(0, tensor("same", DType::kString, {2}));
  const std::vector<int32_t> shape = {2};
  const int s = builder.add_constant(0, tensor("s", DType::kInt32, {1}), std::as_bytes(std::span(shape)));
  builder.add_node(0, {.op = "TANH", .inputs = {x}, .outputs = {y}});
  builder.add_node(0, {.op = "ADD", .inputs = {ids, ids}, .outputs = {next}});
  builder.add_node(0, {.op = "RESHAPE", .inputs = {words, s}, .outputs = {same}});
  builder.set_inputs(0, {x, ids, words});
  builder.set_outputs(0, {y, next, same});
  return Model::from_bytes(builder.to_tflite(), nullptr, Budget::with_limit(INT64_MAX));
}

Model float_model() { return Model::from_bytes(as_bytes(float_file()), nullptr, Budget::with_limit(INT64_MAX)); }

void load_and_run(const Model& model) {
  for (int i = 0; i < std::min(model.subgraph_count(), 4); ++i) {
    InterpreterOptions options;
    options.subgraph = i;
    options.max_loop_rounds = 50;
    Interpreter interpreter(model, options);
    use(interpreter.plan().to_text());
    interpreter.allocate();
    for (const int input : interpreter.inputs()) fill(interpreter, input);
    interpreter.invoke(Deadline());
    for (const int output : interpreter.outputs()) use(std::to_string(interpreter.tensor(output).bytes));
  }
}

}  // namespace leadline::fuzz
