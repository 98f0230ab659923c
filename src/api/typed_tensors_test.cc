// SPDX-License-Identifier: Apache-2.0
// Inputs and outputs as C++ types, by position and by name, and the subgraphs of signatures.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "leadline/interpreter.h"
#include "tests/cpp/sketch.h"

namespace leadline {
namespace {

using testing::Sketch;
using testing::thrown_by;

constexpr DType kF32 = DType::kFloat32;

/// Subgraph 0: y = -x; subgraph 1: y = |x| of other shapes. Both have a signature with names of its own.
Sketch two_signatures() {
  Sketch s;
  const int x = s.input("x", kF32, {3});
  s.outputs({s.compute("NEG", {x}, "y", kF32, {3})});
  s.next_subgraph("other");
  s.input("unused", DType::kInt8, {2});
  const int second = s.input("x", kF32, {2});
  const int result = s.compute("ABS", {second}, "y", kF32, {2});
  s.outputs({result});
  s.graph().signatures = {{"negate", 0, {{"image", x}}, {{"scores", 1}}},
                          {"absolute", 1, {{"picture", second}}, {{"size", result}}}};
  return s;
}

std::vector<float> copy_of(std::span<const float> values) { return {values.begin(), values.end()}; }

TEST(TypedTensors, ByPositionAndByEitherName) {
  Interpreter interpreter(two_signatures().load());
  std::ranges::copy(std::vector<float>{1, 2, 3}, interpreter.input<float>(0).begin());
  interpreter.invoke();
  const std::vector<float> expected = {-1, -2, -3};
  EXPECT_EQ(copy_of(interpreter.output<float>(0)), expected);
  EXPECT_EQ(copy_of(interpreter.output<float>("scores")), expected);
  EXPECT_EQ(copy_of(interpreter.output<float>(std::string("y"))), expected);
  EXPECT_EQ(interpreter.input_index("image"), interpreter.inputs()[0]);
  EXPECT_EQ(interpreter.output_index(0), interpreter.outputs()[0]);
  EXPECT_EQ(interpreter.input<std::byte>("x").size(), 12U);
}

TEST(TypedTensors, AnotherTypeIsRefusedWithBothNames) {
  Interpreter interpreter(two_signatures().load());
  const auto input = thrown_by([&] { interpreter.input<int8_t>("image"); });
  EXPECT_EQ(input.code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(input.names("input 'x' (tensor 0)") && input.names("float32") && input.names("int8")) << input.message;
  const auto output = thrown_by([&] { interpreter.output<double>(0); });
  EXPECT_TRUE(output.names("output 'y' (tensor 1)") && output.names("float64")) << output.message;
  EXPECT_EQ(thrown_by([&] { interpreter.tensor(0).values<int64_t>(); }).code, ErrorCode::kInvalidArgument);
}

TEST(TypedTensors, WhatDoesNotExistIsRefusedWithWhatDoes) {
  Interpreter interpreter(two_signatures().load());
  const auto name = thrown_by([&] { interpreter.input<float>("imag"); });
  EXPECT_EQ(name.code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(name.names("'imag'") && name.names("'image', 'x'")) << name.message;
  for (const int position : {-1, 1}) {
    const auto thrown = thrown_by([&] { interpreter.output<float>(position); });
    EXPECT_TRUE(thrown.names("output " + std::to_string(position)) && thrown.names("has 1")) << thrown.message;
  }
}

TEST(TypedTensors, BoundInputsAreWrittenByTheirOwner) {
  Interpreter interpreter(two_signatures().load());
  std::vector<float> x = {1, 2, 3};
  TensorMemory memory{nullptr, reinterpret_cast<std::byte*>(x.data()), 12, kF32, {3}};
  interpreter.bind(0, memory);
  EXPECT_EQ(interpreter.input<float>(0).data(), x.data());
  memory.read_only = true;
  interpreter.bind(0, memory);
  EXPECT_TRUE(thrown_by([&] { interpreter.input<float>(0); }).names("read-only"));
  EXPECT_EQ(thrown_by([&] { interpreter.tensor(0).memory<float>(); }).code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(interpreter.tensor(0).values<float>()[2], 3.0F);
}

TEST(Signatures, RunTheirSubgraphWithTheirNames) {
  const Model model = two_signatures().load();
  InterpreterOptions options;
  options.signature = "absolute";
  Interpreter interpreter(model, options);
  EXPECT_EQ(interpreter.options().subgraph, 1);
  std::ranges::copy(std::vector<float>{-4, 5}, interpreter.input<float>("picture").begin());
  interpreter.invoke();
  EXPECT_EQ(copy_of(interpreter.output<float>("size")), (std::vector<float>{4, 5}));
  EXPECT_TRUE(thrown_by([&] { interpreter.input<float>("image"); }).names("'picture'"));
  options.signature = "absolut";
  const auto thrown = thrown_by([&] { Interpreter other(model, options); });
  EXPECT_EQ(thrown.code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(thrown.names("'negate', 'absolute'")) << thrown.message;
}

TEST(ModelSave, WritesTheSameModelAndReplacesWholeFilesOnly) {
  const Model model = two_signatures().load();
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "model_save";
  std::filesystem::create_directories(folder);
  const std::string path = folder / "model.tflite";
  model.save(path);
  EXPECT_EQ(Model::load(path).to_tflite(), model.to_tflite());
  const auto stop = [](int64_t, int64_t) { return false; };
  EXPECT_EQ(thrown_by([&] { model.save(path, stop); }).code, ErrorCode::kCancelled);
  EXPECT_EQ(Model::load(path).to_text(), model.to_text());
  EXPECT_EQ(thrown_by([&] { model.save(folder / "none" / "model.tflite"); }).code, ErrorCode::kIo);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1) << "nothing half written stays";
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace leadline
