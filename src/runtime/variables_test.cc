// SPDX-License-Identifier: Apache-2.0
// Variables, named and in tensors: initialised once, kept between runs, shared between interpreters.
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
using testing::run;
using testing::set;
using testing::Sketch;
using testing::thrown_by;

constexpr DType kF32 = DType::kFloat32;

/// CALL_ONCE sets "count" to 10; every run adds x and returns the sum.
Sketch counter() {
  Sketch s;
  const AttributeValues name = {{"shared_name", std::string("count")}};
  const int x = s.input("x", kF32, {2});
  s.node("CALL_ONCE", {}, {}, {{"init_subgraph_index", 1}});
  const int handle = s.compute("VAR_HANDLE", {}, "handle", DType::kResource, {1}, name);
  const int old = s.compute("READ_VARIABLE", {handle}, "old", kF32, {2});
  const int sum = s.compute("ADD", {old, x}, "sum", kF32, {2});
  s.node("ASSIGN_VARIABLE", {handle, sum}, {});
  s.outputs({sum});
  s.next_subgraph("init");
  const int inner = s.compute("VAR_HANDLE", {}, "handle", DType::kResource, {1}, name);
  const int ten = s.constant<float>("ten", kF32, {2}, {10, 20});
  s.node("ASSIGN_VARIABLE", {inner, ten}, {});
  return s;
}

TEST(Variables, AreInitialisedOnceAndKept) {
  Interpreter interpreter(counter().load());
  expect_static_plan_holds(interpreter, [&] {
    EXPECT_EQ(run<float>(interpreter, {1, 1}), (std::vector<float>{11, 21}));
    EXPECT_EQ(run<float>(interpreter, {1, 2}), (std::vector<float>{12, 23}));
  });
}

TEST(Variables, InitialisersWithoutAnyWorkspaceRun) {
  Sketch s;
  const AttributeValues name = {{"shared_name", std::string("last")}};
  const int x = s.input("x", kF32, {2});
  s.node("CALL_ONCE", {}, {}, {{"init_subgraph_index", 1}});
  const int handle = s.compute("VAR_HANDLE", {}, "handle", DType::kResource, {1}, name);
  s.outputs({s.compute("READ_VARIABLE", {handle}, "old", kF32, {2})});
  s.node("ASSIGN_VARIABLE", {handle, x}, {});
  s.next_subgraph("init");
  const int inner = s.compute("VAR_HANDLE", {}, "handle", DType::kResource, {1}, name);
  s.node("ASSIGN_VARIABLE", {inner, s.constant<float>("seven", kF32, {2}, {7, 7})}, {});
  Interpreter interpreter(s.load());
  EXPECT_EQ(run<float>(interpreter, {1, 2}), (std::vector<float>{7, 7}));
  EXPECT_EQ(run<float>(interpreter, {3, 4}), (std::vector<float>{1, 2}));
}

TEST(Variables, TakeTheShapeOfWhatIsAssigned) {
  Sketch s;
  const int x = s.input("x", kF32, {2});
  const int handle = s.compute("VAR_HANDLE", {}, "handle", DType::kResource, {1});
  s.node("ASSIGN_VARIABLE", {handle, x}, {});
  s.outputs({s.compute("READ_VARIABLE", {handle}, "y", kF32, {})});
  Interpreter interpreter(s.load());
  EXPECT_EQ(run<float>(interpreter, {1, 2}), (std::vector<float>{1, 2}));
  interpreter.resize_input(interpreter.inputs()[0], {3});
  EXPECT_EQ(run<float>(interpreter, {1, 2, 3}), (std::vector<float>{1, 2, 3}));
  expect_planned_equals_counted(interpreter);
}

TEST(Variables, MayGrowWithEveryRun) {
  Sketch s;
  const AttributeValues name = {{"shared_name", std::string("log")}};
  const int x = s.input("x", kF32, {1});
  s.node("CALL_ONCE", {}, {}, {{"init_subgraph_index", 1}});
  const int handle = s.compute("VAR_HANDLE", {}, "handle", DType::kResource, {1}, name);
  const int old = s.compute("READ_VARIABLE", {handle}, "old", kF32, {});
  const int log = s.compute("CONCATENATION", {old, x}, "log", kF32, {});
  s.node("ASSIGN_VARIABLE", {handle, log}, {});
  s.outputs({s.compute("READ_VARIABLE", {handle}, "now", kF32, {})});
  s.next_subgraph("init");
  const int inner = s.compute("VAR_HANDLE", {}, "handle", DType::kResource, {1}, name);
  s.node("ASSIGN_VARIABLE", {inner, s.constant<float>("first", kF32, {1}, {7})}, {});
  Interpreter interpreter(s.load());
  EXPECT_EQ(run<float>(interpreter, {1}), (std::vector<float>{7, 1}));
  EXPECT_EQ(run<float>(interpreter, {2}), (std::vector<float>{7, 1, 2}));
  EXPECT_EQ(run<float>(interpreter, {3}), (std::vector<float>{7, 1, 2, 3}));
  expect_planned_equals_counted(interpreter);
  interpreter.reset_variables();
  EXPECT_EQ(run<float>(interpreter, {4}), (std::vector<float>{7, 4}));
}

TEST(Variables, ResetGivesTheInitialState) {
  Interpreter interpreter(counter().load());
  run<float>(interpreter, {1, 1});
  interpreter.reset_variables();
  EXPECT_EQ(run<float>(interpreter, {1, 1}), (std::vector<float>{11, 21}));
}

TEST(Variables, EachInterpreterHasItsOwnUnlessShared) {
  const Model model = counter().load();
  Interpreter first(model);
  Interpreter second(model);
  InterpreterOptions options;
  options.shares_state_with = &first;
  run<float>(first, {1, 1});
  EXPECT_EQ(run<float>(second, {5, 5}), (std::vector<float>{15, 25}));
  {
    Interpreter third(model, options);
    EXPECT_EQ(run<float>(third, {5, 5}), (std::vector<float>{16, 26}));
    expect_planned_equals_counted(third);
  }
  EXPECT_EQ(run<float>(first, {1, 1}), (std::vector<float>{17, 27}));
  expect_planned_equals_counted(first);
}

TEST(Variables, SharedStateOutlivesItsFirstOwner) {
  const Model model = counter().load();
  auto first = std::make_unique<Interpreter>(model);
  run<float>(*first, {1, 1});
  InterpreterOptions options;
  options.shares_state_with = first.get();
  Interpreter second(model, options);
  first.reset();
  EXPECT_EQ(run<float>(second, {1, 1}), (std::vector<float>{12, 22}));
}

TEST(Variables, StateIsSharedWithinOneModelOnly) {
  const Model model = counter().load();
  const Model other = counter().load();
  Interpreter first(model);
  InterpreterOptions options;
  options.shares_state_with = &first;
  EXPECT_EQ(thrown_by([&] { Interpreter interpreter(other, options); }).code, ErrorCode::kInvalidArgument);
}

TEST(Variables, VariableTensorsCanBeSetAndReset) {
  Sketch s;
  const int x = s.input("x", kF32, {2});
  const int state = s.variable("state", kF32, {2});
  s.outputs({s.compute("ADD", {x, state}, "y", kF32, {2})});
  Interpreter interpreter(s.load());
  EXPECT_EQ(run<float>(interpreter, {1, 2}), (std::vector<float>{1, 2}));
  set<float>(interpreter, state, {10, 20});
  EXPECT_EQ(run<float>(interpreter, {1, 2}), (std::vector<float>{11, 22}));
  interpreter.reset_variables();
  EXPECT_EQ(run<float>(interpreter, {1, 2}), (std::vector<float>{1, 2}));
  expect_planned_equals_counted(interpreter);
}

TEST(Variables, CannotChangeTheirSizeDuringARun) {
  Sketch s;
  const int x = s.input("x", DType::kInt64, {3});
  const int values = s.variable("values", DType::kInt64, {1});
  const int places = s.value("places", DType::kInt32, {3});
  s.node("UNIQUE", {x}, {values, places});
  s.outputs({values, places});
  Interpreter interpreter(s.load());
  EXPECT_EQ(run<int64_t>(interpreter, {7, 7, 7}), (std::vector<int64_t>{7}));
  const auto thrown = thrown_by([&] { run<int64_t>(interpreter, {7, 8, 9}); });
  EXPECT_EQ(thrown.code, ErrorCode::kUnsupported) << thrown.message;
  EXPECT_TRUE(thrown.names("values")) << thrown.message;
}

}  // namespace
}  // namespace leadline
