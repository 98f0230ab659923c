// SPDX-License-Identifier: Apache-2.0
// Passes as users see them: names, observers that need every node, profiles, plans, and what is said about merged
// tensors.
#include <gtest/gtest.h>

#include <algorithm>

#include "leadline/passes.h"
#include "tests/cpp/sketch.h"

namespace leadline {
namespace {

using testing::Sketch;
using Ops = std::vector<std::string>;

struct Recorder final : Observer {
  void after_node(const ObservedNode& node) override { ops.emplace_back(node.op); }
  Ops ops;
};

/// y = x * LOGISTIC(x)
struct Swish : Sketch {
  Swish() {
    const Shape shape{2, 3};
    x = input("x", DType::kFloat32, shape);
    gate = compute("LOGISTIC", {x}, "gate", DType::kFloat32, shape);
    y = compute("MUL", {x, gate}, "y", DType::kFloat32, shape);
    outputs({y});
  }
  int x = 0, gate = 0, y = 0;
};

Ops planned(const Interpreter& interpreter) {
  Ops ops;
  for (const PlannedStep& step : interpreter.plan().steps) ops.push_back(step.op);
  return ops;
}

TEST(PassList, EveryPassHasNameAndDescription) {
  std::vector<std::string> names;
  for (const PassInfo& pass : list_passes()) {
    EXPECT_FALSE(pass.description.empty()) << pass.name;
    EXPECT_TRUE(pass.runs || pass.converts) << pass.name;
    names.push_back(pass.name);
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

TEST(PassList, UnknownNamesAreToldTheKnownOnes) {
  const Model model = Swish().load();
  InterpreterOptions options;
  options.disabled_passes = {"merge_swish", "nothing"};
  const auto thrown = testing::thrown_by([&] { Interpreter interpreter(model, options); });
  EXPECT_EQ(thrown.code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(thrown.names("'nothing'") && thrown.names("merge_lookups")) << thrown.message;
}

TEST(PassList, DisabledPassesLeaveTheNodes) {
  const Model model = Swish().load();
  EXPECT_EQ(planned(Interpreter(model)), Ops{"SWISH"});
  for (const char* name : {"merge_swish", "all"}) {
    InterpreterOptions options;
    options.disabled_passes = {name};
    EXPECT_EQ(planned(Interpreter(model, options)), (Ops{"LOGISTIC", "MUL"}));
  }
  InterpreterOptions options;
  options.preserve_all_tensors = true;
  EXPECT_EQ(planned(Interpreter(model, options)), (Ops{"LOGISTIC", "MUL"}));
}

TEST(PassList, PlansAndProfilesNameWhatRuns) {
  Interpreter interpreter(Swish().load());
  EXPECT_EQ(interpreter.plan().steps[0].node, 1);
  EXPECT_EQ(interpreter.plan().steps[0].merged, std::vector<int>{0});
  interpreter.enable_profile(true);
  interpreter.invoke();
  ASSERT_EQ(interpreter.profile().size(), 1U);
  EXPECT_EQ(interpreter.profile()[0].op, "SWISH");
  EXPECT_EQ(interpreter.profile()[0].node, 1);
  EXPECT_EQ(interpreter.profile()[0].name, "y");
}

TEST(PassList, TensorsBetweenMergedNodesCanBeRead) {
  const Swish sketch;
  const Model model = sketch.load();
  InterpreterOptions options;
  options.preserve_all_tensors = true;
  Interpreter merged(model);
  Interpreter plain(model, options);
  for (Interpreter* interpreter : {&merged, &plain}) {
    std::ranges::fill(interpreter->input<float>(0), 1.5F);
    interpreter->invoke();
  }
  EXPECT_EQ(merged.plan().steps.size(), 1U);
  const TensorMemory gate = merged.tensor(sketch.gate);
  const TensorMemory wanted = plain.tensor(sketch.gate);
  EXPECT_TRUE(std::ranges::equal(gate.values<float>(), wanted.values<float>()));
}

TEST(PassList, ObserversSeeEveryNodeAndInputsStay) {
  const Swish sketch;
  const Model model = sketch.load();
  const std::vector<float> x = {-3, -2, -1, 0, 1, 2};
  InterpreterOptions none;
  none.disabled_passes = {"all"};
  Interpreter reference(model, none);
  const auto expected = testing::run(reference, x);
  for (const bool before_memory : {true, false}) {
    Interpreter interpreter(model);
    Recorder recorder;
    if (before_memory) interpreter.add_observer(&recorder);
    testing::set(interpreter, sketch.x, x);
    const std::byte* address = interpreter.tensor(sketch.x).data;
    if (!before_memory) {
      interpreter.invoke();
      interpreter.add_observer(&recorder);
    }
    interpreter.invoke();
    EXPECT_EQ(recorder.ops, (Ops{"LOGISTIC", "MUL"}));
    EXPECT_EQ(testing::get<float>(interpreter, sketch.y), expected);
    EXPECT_EQ(interpreter.tensor(sketch.x).data, address);
    EXPECT_EQ(planned(interpreter), (Ops{"LOGISTIC", "MUL"}));
    EXPECT_EQ(interpreter.counted_peak_bytes(), interpreter.plan().peak_bytes);
    interpreter.remove_observer(&recorder);
    interpreter.invoke();
    EXPECT_EQ(recorder.ops.size(), 2U);
  }
}

TEST(PassList, ObserversFindTheStateOfVariables) {
  Sketch s;
  const Shape shape{1};
  const int x = s.input("x", DType::kFloat32, shape);
  s.node("CALL_ONCE", {}, {}, {{"init_subgraph_index", 1}});
  const int id = s.compute("VAR_HANDLE", {}, "id", DType::kResource, {1}, {{"shared_name", "sum"}});
  s.node("READ_VARIABLE", {id}, {s.value("old", DType::kFloat32, shape)});
  const int old = static_cast<int>(s.subgraph().values.size()) - 1;
  const int gate = s.compute("LOGISTIC", {x}, "gate", DType::kFloat32, shape);
  const int swish = s.compute("MUL", {x, gate}, "swish", DType::kFloat32, shape);
  const int sum = s.compute("ADD", {swish, old}, "sum", DType::kFloat32, shape);
  s.node("ASSIGN_VARIABLE", {id, sum}, {});
  s.outputs({sum});
  s.next_subgraph("setup");
  const int other = s.compute("VAR_HANDLE", {}, "id", DType::kResource, {1}, {{"shared_name", "sum"}});
  s.node("ASSIGN_VARIABLE", {other, s.constant("zero", DType::kFloat32, shape, std::vector<float>{0})}, {});
  const Model model = s.load();
  Interpreter plain(model, [] {
    InterpreterOptions options;
    options.disabled_passes = {"all"};
    return options;
  }());
  Interpreter interpreter(model);
  Recorder recorder;
  for (int round = 0; round < 4; ++round) {
    if (round == 2) interpreter.add_observer(&recorder);
    const std::vector<float> in = {static_cast<float>(round) - 1.5F};
    EXPECT_FLOAT_EQ(testing::run(interpreter, in)[0], testing::run(plain, in)[0]) << round;
  }
  EXPECT_EQ(std::count(recorder.ops.begin(), recorder.ops.end(), "LOGISTIC"), 2);
}

TEST(PassList, InterpretersOfAModelShareWhatPassesMade) {
  const Model model = Swish().load();
  const int64_t before = model.memory_bytes();
  Interpreter first(model);
  const int64_t after = model.memory_bytes();
  EXPECT_GT(after, before);
  Interpreter second(model);
  EXPECT_EQ(model.memory_bytes(), after);
  EXPECT_EQ(planned(second), Ops{"SWISH"});
}

}  // namespace
}  // namespace leadline
