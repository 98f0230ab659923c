// SPDX-License-Identifier: Apache-2.0
// Small configurations and weights in memory.
#include <gtest/gtest.h>

#include <cstring>
#include <ctime>
#include <map>

#include "import/keras/keras.h"
#include "model/writer.h"
#include "tests/cpp/sketch.h"

namespace leadline::keras {
namespace {

using testing::thrown_by;

class MemoryWeights final : public WeightSource {
 public:
  MemoryWeights& add(const std::string& path, const Shape& shape, const std::vector<float>& values) {
    std::vector<std::byte> bytes(values.size() * sizeof(float));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    weights_[path].push_back({DType::kFloat32, shape, ir::owned_source(std::move(bytes))});
    return *this;
  }
  std::vector<Weight> weights(const LayerAddress& layer) const override {
    const auto it = weights_.find(layer.path);
    return it == weights_.end() ? std::vector<Weight>() : it->second;
  }

 private:
  std::map<std::string, std::vector<Weight>> weights_;
};

std::string layer(const std::string& class_name, const std::string& config) {
  return R"({"module": "keras.layers", "class_name": ")" + class_name + R"(", "config": {)" + config + "}}";
}

std::string sequential(const std::string& shape, const std::string& layers) {
  return R"({"class_name": "Sequential", "config": {"name": "m", "layers": [)" +
         layer("InputLayer", R"("name": "x", "dtype": "float32", "batch_shape": )" + shape) + ", " + layers + "]}}";
}

std::vector<float> run(const std::shared_ptr<ir::Graph>& graph, const std::vector<float>& x) {
  Interpreter interpreter(Model::from_bytes(model::write(*graph)));
  return testing::run<float>(interpreter, x);
}

TEST(KerasImport, DenseTakesTransposedKernels) {
  const std::string config =
      sequential("[null, 2]", layer("Dense", R"("name": "d", "units": 3, "activation": "relu", "use_bias": true)"));
  MemoryWeights w;
  w.add("layers/dense", {2, 3}, {1, 2, 3, 4, 5, 6}).add("layers/dense", {3}, {0, 0, -100});
  const auto graph = import_keras(config, w);
  EXPECT_EQ(graph->signatures[0].inputs[0].first, "x");
  EXPECT_EQ(graph->signatures[0].outputs[0].first, "d");
  const ir::Subgraph& main = graph->subgraphs[0];
  EXPECT_EQ(main.value(main.inputs[0]).signature, (std::vector<int32_t>{-1, 2}));
  EXPECT_EQ(run(graph, {1, 10}), (std::vector<float>{41, 52, 0}));
}

TEST(KerasImport, BatchNormalizationIsOneProductAndOneSum) {
  const std::string config =
      sequential("[null, 2]", layer("BatchNormalization", R"("name": "bn", "axis": [-1], "epsilon": 0.0)"));
  MemoryWeights w;
  w.add("layers/batch_normalization", {2}, {2, 3}).add("layers/batch_normalization", {2}, {10, 20});
  w.add("layers/batch_normalization", {2}, {1, 2}).add("layers/batch_normalization", {2}, {4, 9});
  EXPECT_EQ(run(import_keras(config, w), {3, 5}), (std::vector<float>{12, 23}));
}

/// A layer called twice, whose second call needs an input that is described after it; arguments of keras.ops.
TEST(KerasImport, FunctionalModelsShareLayers) {
  const auto tensor = [](const char* name, int node) {
    return std::string(R"({"class_name": "__keras_tensor__", "config": {"keras_history": [")") + name + "\", " +
           std::to_string(node) + ", 0]}}";
  };
  const auto input = [](const std::string& name) {
    return R"({"class_name": "InputLayer", "name": ")" + name + R"(", "config": {"name": ")" + name +
           R"(", "batch_shape": [null, 2], "dtype": "float32"}, "inbound_nodes": []})";
  };
  const std::string config =
      R"({"class_name": "Functional", "config": {"name": "m", "layers": [)" + input("a") +
      R"(, {"class_name": "Dense", "name": "d", "config": {"name": "d", "units": 2, "use_bias": false},
          "inbound_nodes": [{"args": [)" +
      tensor("a", 0) + R"(], "kwargs": {}}, {"args": [)" + tensor("b", 0) + R"(], "kwargs": {}}]}, )" + input("b") +
      R"(, {"module": "keras.src.ops.numpy", "class_name": "Subtract", "name": "s", "config": {"name": "s"},
          "inbound_nodes": [{"args": [)" +
      tensor("d", 0) + ", " + tensor("d", 1) +
      R"(], "kwargs": {}}]}, {"module": "keras.src.ops.numpy", "class_name": "Multiply", "name": "t",
          "config": {"name": "t"}, "inbound_nodes": [{"args": [)" +
      tensor("s", 0) + R"(, 2.0], "kwargs": {}}]}],
      "input_layers": [["a", 0, 0], ["b", 0, 0]], "output_layers": {"twice": ["t", 0, 0]}}})";
  MemoryWeights w;
  w.add("layers/dense", {2, 2}, {1, 0, 0, 10});
  const auto graph = import_keras(config, w);
  EXPECT_EQ(graph->signatures[0].outputs[0].first, "twice");
  Interpreter interpreter(Model::from_bytes(model::write(*graph)));
  testing::set<float>(interpreter, interpreter.inputs()[1], {1, 1});
  EXPECT_EQ(testing::run<float>(interpreter, {5, 7}), (std::vector<float>{8, 120}));
}

/// As an .h5 of Keras 3 describes x + 3: the layer Add would have no use for the number.
TEST(KerasImport, OperationsWithoutModulesAreNoLayers) {
  const std::string config =
      R"({"class_name": "Functional", "config": {"name": "m", "layers": [
        {"class_name": "InputLayer", "name": "x", "config": {"name": "x", "batch_shape": [null, 2], "dtype": "float32"},
         "inbound_nodes": []},
        {"class_name": "Add", "name": "s", "config": {"name": "s"}, "inbound_nodes": [{"args": [
          {"class_name": "__keras_tensor__", "config": {"keras_history": ["x", 0, 0]}}, 3.0], "kwargs": {}}]}],
      "input_layers": [["x", 0, 0]], "output_layers": [["s", 0, 0]]}})";
  MemoryWeights w;
  const auto graph = import_keras(config, w);
  Interpreter interpreter(Model::from_bytes(model::write(*graph)));
  EXPECT_EQ(testing::run<float>(interpreter, {5, 7}), (std::vector<float>{8, 10}));
}

TEST(KerasImport, ReadsListsOfKeras2) {
  const std::string config =
      R"({"class_name": "Functional", "config": {"name": "m", "layers": [
        {"class_name": "InputLayer", "name": "x", "config": {"name": "x", "batch_input_shape": [null, 2]},
         "inbound_nodes": []},
        {"class_name": "Add", "name": "sum", "config": {"name": "sum"},
         "inbound_nodes": [[["x", 0, 0, {}], ["x", 0, 0, {}]]]}],
      "input_layers": [["x", 0, 0]], "output_layers": [["sum", 0, 0]]}})";
  EXPECT_EQ(run(import_keras(config, MemoryWeights()), {1, 2}), (std::vector<float>{2, 4}));
}

TEST(KerasImport, ErrorsNameThePathOfTheLayer) {
  const MemoryWeights none;
  const auto unknown = thrown_by([&] { import_keras(sequential("[null, 2]", layer("Odd", R"("name": "o")")), none); });
  EXPECT_EQ(unknown.code, ErrorCode::kUnsupported);
  EXPECT_TRUE(unknown.names("m (Sequential)/o (Odd): the layer is of a class not known")) << unknown.message;
  const std::string dense = sequential("[null, 2]", layer("Dense", R"("name": "d", "units": 3)"));
  const auto missing = thrown_by([&] { import_keras(dense, none); });
  EXPECT_EQ(missing.code, ErrorCode::kInvalidModel);
  EXPECT_TRUE(missing.names("m (Sequential)/d (Dense)") && missing.names("kernel")) << missing.message;
  MemoryWeights wrong;
  wrong.add("layers/dense", {5, 3}, std::vector<float>(15));
  EXPECT_TRUE(thrown_by([&] { import_keras(dense, wrong); }).names("[5, 3]"));
}

TEST(KerasImport, BadConfigurationsAreErrors) {
  const MemoryWeights none;
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("[]"), std::string("{}"), std::string(5000, '['),
        std::string(R"({"class_name": "Sequential", "config": {"layers": []}})"),
        std::string(R"({"class_name": "Sequential", "config": {"layers": [7]}})"),
        std::string(R"({"class_name": "Functional", "config": {"layers": {}, "output_layers": 3}})")}) {
    EXPECT_TRUE(thrown_by([&] { import_keras(text, none); }).code.has_value()) << text.substr(0, 60);
  }
}

/// Parsing was quadratic once: this took two minutes.
TEST(KerasImport, LongListsAreReadInTimeThatGrowsAsTheyDo) {
  std::string config = R"({"class_name": "Sequential", "config": {"name": "m", "layers": [{})";
  for (int i = 0; i < 800000; ++i) config += ",{}";
  const std::clock_t begin = std::clock();
  EXPECT_TRUE(thrown_by([&] { import_keras(config + "]}}", MemoryWeights()); }).names("'class_name' is missing"));
  EXPECT_LT(std::clock() - begin, 20 * CLOCKS_PER_SEC);
}

/// A model that calls a model twice, which does the same: 12 KB would be 33 million layers.
TEST(KerasImport, ModelsThatDoubleAreErrors) {
  const auto tensor = [](const std::string& name, int node) {
    return R"({"class_name": "__keras_tensor__", "config": {"keras_history": [")" + name + "\", " +
           std::to_string(node) + ", 0]}}";
  };
  std::string inner = R"("class_name": "ReLU", "config": {"name": "q"})";
  for (int depth = 0; depth < 25; ++depth) {
    inner = R"("class_name": "Functional", "config": {"name": "q", "layers": [
      {"class_name": "InputLayer", "name": "x", "config": {"name": "x", "batch_shape": [null, 2]}, "inbound_nodes": []},
      {"name": "q", )" +
            inner + R"(, "inbound_nodes": [{"args": [)" + tensor("x", 0) + R"(], "kwargs": {}}, {"args": [)" +
            tensor("q", 0) + R"(], "kwargs": {}}]}], "input_layers": [["x", 0, 0]], "output_layers": [["q", 1, 0]]})";
  }
  EXPECT_TRUE(thrown_by([&] { import_keras("{" + inner + "}", MemoryWeights()); }).names("50000 layers"));
}

TEST(KerasImport, LongNamesAreErrors) {
  const std::string name(5000, 'n');
  const std::string config = sequential("[null, 2]", layer("ReLU", "\"name\": \"" + name + "\""));
  EXPECT_TRUE(thrown_by([&] { import_keras(config, MemoryWeights()); }).names("more than 4096 bytes"));
}

TEST(KerasImport, CyclesAreErrors) {
  const std::string config =
      R"({"class_name": "Functional", "config": {"name": "m", "layers": [
        {"class_name": "InputLayer", "name": "x", "config": {"name": "x", "batch_input_shape": [null, 2]},
         "inbound_nodes": []},
        {"class_name": "Add", "name": "a", "config": {"name": "a"}, "inbound_nodes": [[["x", 0, 0], ["b", 0, 0]]]},
        {"class_name": "Add", "name": "b", "config": {"name": "b"}, "inbound_nodes": [[["x", 0, 0], ["a", 0, 0]]]}],
      "input_layers": [["x", 0, 0]], "output_layers": [["b", 0, 0]]}})";
  EXPECT_TRUE(thrown_by([&] { import_keras(config, MemoryWeights()); }).names("need each other"));
}

TEST(KerasImport, MaskedStepsDoNotCount) {
  const std::string config =
      sequential("[null, 3]", layer("Embedding", R"("name": "e", "input_dim": 4, "output_dim": 1, "mask_zero": true)") +
                                  ", " + layer("SimpleRNN", R"("name": "r", "units": 1, "activation": "linear",
                                                        "use_bias": false)"));
  MemoryWeights w;
  w.add("layers/embedding", {4, 1}, {5, 1, 2, 3});
  w.add("layers/simple_rnn/cell", {1, 1}, {1}).add("layers/simple_rnn/cell", {1, 1}, {10});
  EXPECT_EQ(run(import_keras(config, w), {1, 0, 3}), (std::vector<float>{13}));
  EXPECT_EQ(run(import_keras(config, w), {1, 2, 0}), (std::vector<float>{12}));
}

TEST(KerasImport, RecurrentLayersLoopOverTime) {
  const std::string config = sequential(
      "[null, 3, 1]",
      layer("SimpleRNN",
            R"("name": "r", "units": 1, "activation": "linear", "use_bias": false, "return_sequences": true)"));
  MemoryWeights w;
  w.add("layers/simple_rnn/cell", {1, 1}, {1}).add("layers/simple_rnn/cell", {1, 1}, {2});
  EXPECT_EQ(run(import_keras(config, w), {1, 1, 1}), (std::vector<float>{1, 3, 7}));
}

}  // namespace
}  // namespace leadline::keras
