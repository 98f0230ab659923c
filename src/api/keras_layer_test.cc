// SPDX-License-Identifier: Apache-2.0
#include "leadline/keras_layer.h"

#include <gtest/gtest.h>

#include <cstring>

#include "leadline/converter.h"
#include "leadline/error.h"
#include "tests/cpp/sketch.h"

namespace leadline {
namespace {

constexpr const char* kModel = R"({"class_name": "Sequential", "config": {"name": "m", "layers": [
  {"class_name": "InputLayer", "config": {"name": "x", "dtype": "float32", "batch_shape": [null, 2]}},
  {"class_name": "Scale", "registered_name": "mine>Scale", "config": {"name": "s", "shift": 0.5}}]}})";

std::vector<KerasWeight> weights(const std::string& path) {
  if (path != "layers/scale") return {};
  return {KerasWeight("gamma", DType::kFloat32, {1, 2}, [](std::span<std::byte> out) {
    const float values[] = {3, 4};
    std::memcpy(out.data(), values, sizeof(values));
  })};
}

std::vector<int> scale(KerasLayer& layer) {
  EXPECT_EQ(layer.name(), "s");
  EXPECT_NE(layer.config().find("0.5"), std::string::npos);
  EXPECT_EQ(layer.tensor(layer.inputs().at(0)).dims, (std::vector<int64_t>{-1, 2}));
  const int gamma = layer.add_constant("gamma", layer.weights().at(0).transposed({1, 0}).reshaped({2}));
  return layer.add_node({.op = "MUL", .inputs = {layer.inputs().at(0), gamma}});
}

/// Registers for one test.
struct Registered {
  std::string name;
  Registered(std::string given, KerasLayerFunction function) : name(std::move(given)) {
    register_keras_layer(name, std::move(function));
  }
  ~Registered() { unregister_keras_layer(name); }
  Registered(const Registered&) = delete;
  Registered& operator=(const Registered&) = delete;
};

std::vector<float> run(const Converter& converter, const std::vector<float>& x) {
  Interpreter interpreter(Model::from_bytes(converter.convert()));
  return testing::run<float>(interpreter, x);
}

TEST(KerasLayer, IsWhatItsFunctionWrites) {
  const Registered by_class("Scale", [](KerasLayer& layer) { return layer.inputs(); });
  const Registered by_package("mine>Scale", scale);
  EXPECT_EQ(registered_keras_layers(), (std::vector<std::string>{"Scale", "mine>Scale"}));
  EXPECT_EQ(run(Converter::from_keras_config(kModel, weights), {10, 100}), (std::vector<float>{30, 400}));
}

TEST(KerasLayer, WhatIsNotRegisteredIsRefused) {
  EXPECT_FALSE(unregister_keras_layer("Scale"));
  EXPECT_TRUE(testing::thrown_by([] { Converter::from_keras_config(kModel, weights); }).names("register_keras_layer"));
  EXPECT_TRUE(testing::thrown_by([] { register_keras_layer("", scale); }).names("name"));
  EXPECT_TRUE(testing::thrown_by([] { register_keras_layer("Scale", nullptr); }).names("function"));
}

TEST(KerasLayer, WhatItsFunctionThrowsNamesTheLayer) {
  const Registered broken("Scale", [](KerasLayer&) -> std::vector<int> { throw std::out_of_range("gone"); });
  try {
    Converter::from_keras_config(kModel, weights);
    FAIL() << "converted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("s (Scale): gone"), std::string::npos) << error.what();
    EXPECT_EQ(error.code(), ErrorCode::kRuntime);
    EXPECT_NE(dynamic_cast<const std::nested_exception*>(&error), nullptr);
  }
}

TEST(KerasLayer, TensorsThatDoNotExistAreRefused) {
  for (const int number : {-1, 99}) {
    const Registered wrong("Scale", [number](KerasLayer&) { return std::vector<int>{number}; });
    EXPECT_TRUE(testing::thrown_by([] { Converter::from_keras_config(kModel, weights); }).names("s (Scale)"));
  }
  const Registered nothing("Scale", [](KerasLayer&) { return std::vector<int>(); });
  EXPECT_TRUE(testing::thrown_by([] { Converter::from_keras_config(kModel, weights); }).names("returned no tensor"));
}

}  // namespace
}  // namespace leadline
