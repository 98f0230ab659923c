// SPDX-License-Identifier: Apache-2.0
// String tensors, whose size depends on their contents, through the public API.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "ops/string_testing.h"
#include "tests/cpp/accounting.h"
#include "tests/cpp/sketch.h"

namespace leadline {
namespace {

using testing::AttributeValues;
using testing::expect_planned_equals_counted;
using testing::get;
using testing::set;
using testing::Sketch;
using testing::thrown_by;

constexpr DType kI32 = DType::kInt32;

AttributeValues branches(int yes, int no) { return {{"then_subgraph_index", yes}, {"else_subgraph_index", no}}; }

std::vector<std::string> strings(const Interpreter& interpreter, int tensor) {
  const TensorMemory memory = interpreter.tensor(tensor);
  const std::span<const std::byte> bytes(memory.data, static_cast<size_t>(memory.bytes));
  if (const std::string problem = string_tensor_problem(bytes, memory.shape.elements()); !problem.empty()) {
    return {problem};
  }
  std::vector<std::string> texts;
  const StringTensorReader reader(bytes);
  for (int64_t i = 0; i < reader.size(); ++i) texts.emplace_back(reader[i]);
  return texts;
}

/// text[2] -> reshape to [2, 1] -> take row 1.
Sketch string_model() {
  Sketch s;
  const int text = s.input("text", DType::kString, {2});
  const int shape = s.constant<int32_t>("shape", kI32, {2}, {2, 1});
  const int column = s.compute("RESHAPE", {text, shape}, "column", DType::kString, {2, 1});
  const int begin = s.constant<int32_t>("begin", kI32, {2}, {1, 0});
  const int size = s.constant<int32_t>("size", kI32, {2}, {1, 1});
  s.outputs({s.compute("SLICE", {column, begin, size}, "second", DType::kString, {1, 1})});
  return s;
}

TEST(Strings, InputsOfAnyLength) {
  Interpreter interpreter(string_model().load());
  const int output = interpreter.outputs()[0];
  for (const std::string& word : {std::string("two"), std::string(10'000, 'w'), std::string(), std::string("x")}) {
    interpreter.set_tensor(0, ops::string_buffer({"first", word}));
    interpreter.invoke();
    EXPECT_EQ(strings(interpreter, output), std::vector<std::string>{word});
    expect_planned_equals_counted(interpreter);
  }
}

TEST(Strings, AreKeptInVariables) {
  Sketch s;
  const int text = s.input("text", DType::kString, {2});
  const int handle = s.compute("VAR_HANDLE", {}, "handle", DType::kResource, {1});
  s.node("ASSIGN_VARIABLE", {handle, text}, {});
  s.outputs({s.compute("READ_VARIABLE", {handle}, "read", DType::kString, {2})});
  Interpreter interpreter(s.load());
  for (const std::string& word : {std::string("two"), std::string(1'000, 'w'), std::string()}) {
    interpreter.set_tensor(0, ops::string_buffer({"first", word}));
    interpreter.invoke();
    EXPECT_EQ(strings(interpreter, interpreter.outputs()[0]), (std::vector<std::string>{"first", word}));
    expect_planned_equals_counted(interpreter);
  }
}

TEST(Strings, UnsetInputsAreAnError) {
  Interpreter interpreter(string_model().load());
  EXPECT_TRUE(thrown_by([&] { interpreter.invoke(); }).code.has_value());
  interpreter.set_tensor(0, ops::string_buffer({"a", "b"}));
  interpreter.invoke();
  EXPECT_EQ(strings(interpreter, interpreter.outputs()[0]), std::vector<std::string>{"b"});
}

TEST(Strings, DamagedBuffersAreRefused) {
  Interpreter interpreter(string_model().load());
  EXPECT_EQ(thrown_by([&] { interpreter.set_tensor(0, ops::string_buffer({"only one"})); }).code,
            ErrorCode::kInvalidArgument);
  std::vector<std::byte> buffer = ops::string_buffer({"a", "b"});
  buffer[8] = std::byte{255};
  EXPECT_EQ(thrown_by([&] { interpreter.set_tensor(0, buffer); }).code, ErrorCode::kInvalidArgument);
}

TEST(Strings, ARefusedInputLeavesAUsableInterpreter) {
  const auto budget = Budget::with_limit(64 << 10);
  const Model model = Model::from_bytes(string_model().file(), nullptr, budget);
  Interpreter interpreter(model);
  interpreter.set_tensor(0, ops::string_buffer({"a", "b"}));
  interpreter.invoke();
  const std::string long_text(100'000, 'x');
  EXPECT_EQ(thrown_by([&] { interpreter.set_tensor(0, ops::string_buffer({"a", long_text})); }).code,
            ErrorCode::kBudget);
  EXPECT_TRUE(thrown_by([&] { interpreter.invoke(); }).code.has_value()) << "the input was dropped";
  interpreter.set_tensor(0, ops::string_buffer({"a", "c"}));
  interpreter.invoke();
  EXPECT_EQ(strings(interpreter, interpreter.outputs()[0]), std::vector<std::string>{"c"});
}

/// The refusal leaves the input without memory, and binding another tensor looks at the memory of all.
TEST(Strings, OtherTensorsCanBeBoundAfterARefusedInput) {
  Sketch s = string_model();
  const int x = s.input("x", DType::kFloat32, {4});
  const int y = s.compute("NEG", {x}, "y", DType::kFloat32, {4});
  s.outputs({s.subgraph().outputs[0], y});
  Interpreter interpreter(Model::from_bytes(s.file(), nullptr, Budget::with_limit(64 << 10)));
  const std::string long_text(100'000, 'x');
  EXPECT_EQ(thrown_by([&] { interpreter.set_tensor(0, ops::string_buffer({"a", long_text})); }).code,
            ErrorCode::kBudget);
  std::vector<float> values = {1, 2, 3, 4};
  interpreter.bind(x, {nullptr, reinterpret_cast<std::byte*>(values.data()), 16, DType::kFloat32, {4}, true});
  interpreter.set_tensor(0, ops::string_buffer({"a", "b"}));
  interpreter.invoke();
  EXPECT_EQ(get<float>(interpreter, y), (std::vector<float>{-1, -2, -3, -4}));
  expect_planned_equals_counted(interpreter);
}

TEST(Strings, PassThroughCalls) {
  Sketch s;
  const int condition = s.input("condition", DType::kBool, {1});
  const int text = s.input("text", DType::kString, {2});
  s.outputs({s.compute("IF", {condition, text}, "y", DType::kString, {2}, branches(1, 2))});
  s.next_subgraph("same");
  s.outputs({s.input("in", DType::kString, {2})});
  s.next_subgraph("reversed");
  const int in = s.input("in", DType::kString, {2});
  const int order = s.constant<int32_t>("order", kI32, {2}, {1, 0});
  s.outputs({s.compute("GATHER", {in, order}, "out", DType::kString, {2})});
  Interpreter interpreter(s.load());
  for (const std::string& word : {std::string("b"), std::string(500, 'b')}) {
    interpreter.set_tensor(text, ops::string_buffer({"a", word}));
    for (const uint8_t same : {1, 0}) {
      set<uint8_t>(interpreter, condition, {same});
      interpreter.invoke();
      const std::vector<std::string> expected =
          same == 1 ? std::vector<std::string>{"a", word} : std::vector<std::string>{word, "a"};
      EXPECT_EQ(strings(interpreter, interpreter.outputs()[0]), expected);
      expect_planned_equals_counted(interpreter);
    }
  }
}

}  // namespace
}  // namespace leadline
