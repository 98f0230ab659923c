// SPDX-License-Identifier: Apache-2.0
// IF, WHILE and the subgraphs they call, through the public API. Every run ends with planned == counted.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/cpp/accounting.h"
#include "tests/cpp/sketch.h"

namespace leadline {
namespace {

using testing::AttributeValues;
using testing::expect_planned_equals_counted;
using testing::expect_static_plan_holds;
using testing::get;
using testing::set;
using testing::Sketch;
using testing::thrown_by;

constexpr DType kF32 = DType::kFloat32;
constexpr DType kI32 = DType::kInt32;

AttributeValues loop(int cond, int body) { return {{"cond_subgraph_index", cond}, {"body_subgraph_index", body}}; }
AttributeValues branches(int yes, int no) { return {{"then_subgraph_index", yes}, {"else_subgraph_index", no}}; }

/// condition, x -> then: x + x; else: `else_op`(x) of shape `else_shape`.
Sketch if_model(const std::string& else_op, const Shape& else_shape) {
  Sketch s;
  const int condition = s.input("condition", DType::kBool, {1});
  const int x = s.input("x", kF32, {4});
  s.outputs({s.compute("IF", {condition, x}, "y", kF32, {}, branches(1, 2))});
  s.next_subgraph("then");
  int in = s.input("in", kF32, {4});
  s.outputs({s.compute("ADD", {in, in}, "out", kF32, {4})});
  s.next_subgraph("else");
  in = s.input("in", kF32, {4});
  std::vector<int> inputs = {in};
  if (else_op == "CONCATENATION") inputs.push_back(in);
  s.outputs({s.compute(else_op, inputs, "out", kF32, else_shape)});
  return s;
}

TEST(If, RunsOneBranch) {
  Interpreter interpreter(if_model("NEG", {4}).load());
  expect_static_plan_holds(interpreter, [&] {
    set<float>(interpreter, 1, {1, 2, 3, 4});
    set<uint8_t>(interpreter, 0, {1});
    interpreter.invoke();
    EXPECT_EQ(get<float>(interpreter, 2), (std::vector<float>{2, 4, 6, 8}));
    set<uint8_t>(interpreter, 0, {0});
    interpreter.invoke();
    EXPECT_EQ(get<float>(interpreter, 2), (std::vector<float>{-1, -2, -3, -4}));
  });
}

TEST(If, BranchesMayGiveDifferentShapes) {
  Interpreter interpreter(if_model("CONCATENATION", {8}).load());
  EXPECT_FALSE(interpreter.plan().complete);
  for (const uint8_t condition : {0, 1, 0, 0, 1, 1}) {
    set<float>(interpreter, 1, {1, 2, 3, 4});
    set<uint8_t>(interpreter, 0, {condition});
    interpreter.invoke();
    const std::vector<float> expected =
        condition == 1 ? std::vector<float>{2, 4, 6, 8} : std::vector<float>{1, 2, 3, 4, 1, 2, 3, 4};
    EXPECT_EQ(get<float>(interpreter, 2), expected);
    expect_planned_equals_counted(interpreter);
  }
}

TEST(If, BranchesThatDoNotFitTheNodeAreRefused) {
  Sketch s = if_model("NEG", {4});
  s.subgraph().values[0].dtype = kI32;  // of the else branch
  const auto thrown = thrown_by([&] { Interpreter interpreter(s.load()); });
  EXPECT_EQ(thrown.code, ErrorCode::kInvalidModel);
  EXPECT_TRUE(thrown.names("IF #0") && thrown.names("subgraph 2") && thrown.names("int32")) << thrown.message;
  Sketch count = if_model("NEG", {4});
  count.input("more", kF32, {1});
  EXPECT_TRUE(thrown_by([&] { Interpreter interpreter(count.load()); }).names("2 inputs"));
}

/// A run that failed while its shapes were being found out leaves nothing of them behind.
TEST(DataDependentShapes, RunAgainAfterOneThatFailed) {
  Sketch s;
  const int x = s.input("x", DType::kBool, {4});
  const int where = s.compute("WHERE", {x}, "where", DType::kInt64, {4, 1});
  const int cast = s.compute("CAST", {where}, "cast", kF32, {4, 1});
  const int three = s.constant<int32_t>("three", kI32, {1}, {3});
  s.outputs({s.compute("RESHAPE", {cast, three}, "y", kF32, {3})});
  Interpreter interpreter(s.load());
  set<uint8_t>(interpreter, 0, {0, 1, 0, 1});
  EXPECT_NE(thrown_by([&] { interpreter.invoke(); }).code, std::nullopt);
  set<uint8_t>(interpreter, 0, {1, 0, 1, 1});
  interpreter.invoke();
  EXPECT_EQ(get<float>(interpreter, interpreter.outputs()[0]), (std::vector<float>{0, 2, 3}));
}

/// while (i < limit) { i += 1; a, b = b, a + b }
Sketch swapping_loop(int32_t limit) {
  Sketch s;
  const int i = s.input("i", kI32, {});
  const int a = s.input("a", kF32, {2});
  const int b = s.input("b", kF32, {2});
  const std::vector<int> ends = {s.value("i_end", kI32, {}), s.value("a_end", kF32, {2}), s.value("b_end", kF32, {2})};
  s.node("WHILE", {i, a, b}, ends, loop(1, 2));
  s.outputs(ends);
  s.next_subgraph("cond");
  const int ci = s.input("i", kI32, {});
  s.input("a", kF32, {2});
  s.input("b", kF32, {2});
  const int top = s.constant<int32_t>("limit", kI32, {}, {limit});
  s.outputs({s.compute("LESS", {ci, top}, "goes_on", DType::kBool, {})});
  s.next_subgraph("body");
  const int bi = s.input("i", kI32, {});
  const int ba = s.input("a", kF32, {2});
  const int bb = s.input("b", kF32, {2});
  const int one = s.constant<int32_t>("one", kI32, {}, {1});
  const int next = s.compute("ADD", {bi, one}, "next", kI32, {});
  const int sum = s.compute("ADD", {ba, bb}, "sum", kF32, {2});
  s.outputs({next, bb, sum});
  return s;
}

TEST(While, KeepsStateThatChangesPlaces) {
  Interpreter interpreter(swapping_loop(7).load());
  expect_static_plan_holds(interpreter, [&] {
    for (int repeat = 0; repeat < 2; ++repeat) {
      set<int32_t>(interpreter, 0, {0});
      set<float>(interpreter, 1, {0, 10});
      set<float>(interpreter, 2, {1, 20});
      interpreter.invoke();
      EXPECT_EQ(get<int32_t>(interpreter, 3), std::vector<int32_t>{7});
      EXPECT_EQ(get<float>(interpreter, 4), (std::vector<float>{13, 340}));  // Fibonacci numbers
      EXPECT_EQ(get<float>(interpreter, 5), (std::vector<float>{21, 550}));
    }
  });
}

TEST(While, ZeroRoundsGiveTheInputs) {
  Interpreter interpreter(swapping_loop(0).load());
  set<int32_t>(interpreter, 0, {5});
  set<float>(interpreter, 1, {1, 2});
  set<float>(interpreter, 2, {3, 4});
  interpreter.invoke();
  EXPECT_EQ(get<int32_t>(interpreter, 3), std::vector<int32_t>{5});
  EXPECT_EQ(get<float>(interpreter, 4), (std::vector<float>{1, 2}));
  EXPECT_EQ(get<float>(interpreter, 5), (std::vector<float>{3, 4}));
}

/// Two values that only change places: while (i < limit) { i += 1; a, b = b, a }
TEST(While, SwapsTwoValues) {
  Sketch s = swapping_loop(3);
  s.outputs({s.subgraph().outputs[0], 2, 1});
  Interpreter interpreter(s.load());
  set<int32_t>(interpreter, 0, {0});
  set<float>(interpreter, 1, {1, 2});
  set<float>(interpreter, 2, {3, 4});
  interpreter.invoke();
  EXPECT_EQ(get<float>(interpreter, 4), (std::vector<float>{3, 4}));
  EXPECT_EQ(get<float>(interpreter, 5), (std::vector<float>{1, 2}));
  expect_planned_equals_counted(interpreter);
}

/// while (i < limit) { i += 1; x = concat(x, x) }
Sketch growing_loop() {
  Sketch s;
  const int i = s.input("i", kI32, {});
  const int x = s.input("x", kF32, {2});
  const std::vector<int> ends = {s.value("i_end", kI32, {}), s.value("x_end", kF32, {2})};
  s.node("WHILE", {i, x}, ends, loop(1, 2));
  s.outputs({s.compute("NEG", {ends[1]}, "y", kF32, {2})});
  s.next_subgraph("cond");
  const int ci = s.input("i", kI32, {});
  s.input("x", kF32, {2});
  const int top = s.constant<int32_t>("limit", kI32, {}, {4});
  s.outputs({s.compute("LESS", {ci, top}, "goes_on", DType::kBool, {})});
  s.next_subgraph("body");
  const int bi = s.input("i", kI32, {});
  const int bx = s.input("x", kF32, {2});
  const int one = s.constant<int32_t>("one", kI32, {}, {1});
  const int next = s.compute("ADD", {bi, one}, "next", kI32, {});
  s.outputs({next, s.compute("CONCATENATION", {bx, bx}, "twice", kF32, {4})});
  return s;
}

TEST(While, ShapesMayGrow) {
  Interpreter interpreter(growing_loop().load());
  EXPECT_FALSE(interpreter.plan().complete);
  for (const int32_t start : {0, 3, 4, 1, 0}) {
    set<int32_t>(interpreter, 0, {start});
    set<float>(interpreter, 1, {1, 2});
    interpreter.invoke();
    const std::vector<float> y = get<float>(interpreter, interpreter.outputs()[0]);
    ASSERT_EQ(y.size(), size_t{2} << (4 - start));
    for (size_t k = 0; k < y.size(); ++k) EXPECT_EQ(y[k], k % 2 == 0 ? -1.0F : -2.0F);
    expect_planned_equals_counted(interpreter);
  }
}

TEST(While, StopsAtTheLimitOfRounds) {
  InterpreterOptions options;
  options.max_loop_rounds = 3;
  for (const Sketch& s : {swapping_loop(4), growing_loop()}) {
    Interpreter interpreter(s.load(), options);
    const auto thrown = thrown_by([&] { interpreter.invoke(); });  // begins at 0, so it takes four rounds
    EXPECT_EQ(thrown.code, ErrorCode::kCancelled);
    EXPECT_TRUE(thrown.names("max_loop_rounds")) << thrown.message;
    set<int32_t>(interpreter, 0, {1});
    EXPECT_NO_THROW(interpreter.invoke()) << "a cancelled run leaves a usable interpreter";
    expect_planned_equals_counted(interpreter);
  }
}

TEST(While, EndlessLoopsEnd) {
  Sketch s = swapping_loop(0);
  ir::Node& less = s.graph().subgraphs[1].nodes[0];
  std::swap(less.inputs[0], less.inputs[1]);  // 0 < i, and i grows
  InterpreterOptions options;
  options.max_loop_rounds = 1000;
  Interpreter interpreter(s.load(), options);
  set<int32_t>(interpreter, 0, {1});
  EXPECT_EQ(thrown_by([&] { interpreter.invoke(); }).code, ErrorCode::kCancelled);
}

TEST(While, RunsAgainAfterTheBudgetRefusedARound) {
  const std::vector<std::byte> file = growing_loop().file();
  const auto budget = Budget::with_limit(64 << 10);
  const Model model = Model::from_bytes(file, nullptr, budget);
  Interpreter interpreter(model);
  set<int32_t>(interpreter, 0, {-20});  // would double 24 times
  const auto thrown = thrown_by([&] { interpreter.invoke(); });
  EXPECT_EQ(thrown.code, ErrorCode::kBudget) << thrown.message;
  set<int32_t>(interpreter, 0, {3});
  set<float>(interpreter, 1, {1, 2});
  interpreter.invoke();
  EXPECT_EQ(get<float>(interpreter, interpreter.outputs()[0]), (std::vector<float>{-1, -2, -1, -2}));
  EXPECT_LE(budget->peak(), 64 << 10);
  expect_planned_equals_counted(interpreter);
}

/// `depth` subgraphs that each call the next with IF and add one.
Sketch nested(int depth) {
  Sketch s;
  for (int level = 0; level < depth; ++level) {
    if (level > 0) s.next_subgraph("level" + std::to_string(level));
    const int condition = s.input("condition", DType::kBool, {1});
    const int x = s.input("x", kF32, {3});
    const int one = s.constant<float>("one", kF32, {1}, {1});
    int y = x;
    if (level + 1 < depth) {
      y = s.compute("IF", {condition, condition, x}, "inner", kF32, {3}, branches(level + 1, level + 1));
    }
    s.outputs({s.compute("ADD", {y, one}, "y", kF32, {3})});
  }
  return s;
}

TEST(Calls, NestDeeply) {
  Interpreter interpreter(nested(60).load());
  expect_static_plan_holds(interpreter, [&] {
    set<float>(interpreter, 1, {1, 2, 3});
    interpreter.invoke();
    EXPECT_EQ(get<float>(interpreter, interpreter.outputs()[0]), (std::vector<float>{61, 62, 63}));
  });
}

/// A callee whose last node, whose result is not read, could run in place over a result or an input.
TEST(Calls, UnusedNodesDoNotSpoilResults) {
  Sketch s;
  const int condition = s.input("condition", DType::kBool, {1});
  const int x = s.input("x", kF32, {3});
  const int y = s.value("y", kF32, {3});
  const int z = s.value("z", kF32, {3});
  s.node("IF", {condition, x}, {y, z}, branches(1, 1));
  s.outputs({y, z});
  s.next_subgraph("callee");
  const int in = s.input("in", kF32, {3});
  const int out = s.compute("NEG", {in}, "out", kF32, {3});
  s.compute("ABS", {out}, "unused", kF32, {3});
  s.compute("NEG", {in}, "unused too", kF32, {3});
  s.outputs({out, in});
  Interpreter interpreter(s.load());
  set<float>(interpreter, x, {1, 2, 3});
  interpreter.invoke();
  EXPECT_EQ(get<float>(interpreter, y), (std::vector<float>{-1, -2, -3}));
  EXPECT_EQ(get<float>(interpreter, z), (std::vector<float>{1, 2, 3}));
}

TEST(Calls, ConstantsAndRepeatedOutputsAreCopied) {
  Sketch s;
  const int condition = s.input("condition", DType::kBool, {1});
  const std::vector<int> ends = {s.value("a", kF32, {2}), s.value("b", kF32, {2}), s.value("c", kF32, {2})};
  s.node("IF", {condition}, ends, branches(1, 1));
  s.outputs(ends);
  s.next_subgraph("callee");
  const int five = s.constant<float>("five", kF32, {2}, {5, 6});
  const int minus = s.compute("NEG", {five}, "minus", kF32, {2});
  s.outputs({five, minus, minus});
  Interpreter interpreter(s.load());
  interpreter.invoke();
  EXPECT_EQ(get<float>(interpreter, ends[0]), (std::vector<float>{5, 6}));
  EXPECT_EQ(get<float>(interpreter, ends[1]), (std::vector<float>{-5, -6}));
  EXPECT_EQ(get<float>(interpreter, ends[2]), (std::vector<float>{-5, -6}));
}

// The weights of a callee are packed last, when the caller's views have their addresses already.
TEST(Calls, ARefusalHalfwayThroughAllocationLeavesNothingBehind) {
  Sketch s;
  const int condition = s.input("condition", DType::kBool, {1});
  const int x = s.input("x", kF32, {1, 64});
  const int shape = s.constant<int32_t>("shape", kI32, {1}, {64});
  const int view = s.compute("RESHAPE", {x, shape}, "view", kF32, {64});
  const int y = s.compute("NEG", {view}, "y", kF32, {64});
  s.outputs({y, s.compute("IF", {condition, x}, "z", kF32, {1, 64}, branches(1, 1))});
  s.next_subgraph("callee");
  const int in = s.input("in", kF32, {1, 64});
  const int w = s.constant("w", kF32, {64, 64}, std::vector<float>(64 * 64, 1.0F));
  s.outputs({s.compute("FULLY_CONNECTED", {in, w, ir::kAbsent}, "out", kF32, {1, 64})});

  const auto weights = Budget::with_limit(int64_t{1} << 20);  // of the model: its packed weights are charged here
  const Model model = Model::from_bytes(s.file(), nullptr, weights);
  InterpreterOptions options;
  options.budget = Budget::with_limit(int64_t{1} << 20);
  Interpreter interpreter(model, options);
  const int64_t in_the_way = weights->available();
  weights->charge(in_the_way, MemoryCategory::kStatistics);
  EXPECT_EQ(thrown_by([&] { interpreter.allocate(); }).code, ErrorCode::kBudget);
  EXPECT_EQ(options.budget->used(), 0);
  weights->release(in_the_way, MemoryCategory::kStatistics);
  set(interpreter, x, std::vector<float>(64, 2.0F));
  interpreter.invoke();
  EXPECT_EQ(get<float>(interpreter, y), std::vector<float>(64, -2.0F));
  EXPECT_EQ(get<float>(interpreter, interpreter.outputs()[1]), std::vector<float>(64, 128.0F));
  expect_planned_equals_counted(interpreter);
}

}  // namespace
}  // namespace leadline
