// SPDX-License-Identifier: Apache-2.0
// Interpreters through the public API: budgets, shapes, observers, threads, shared weights.
#include "leadline/interpreter.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "leadline/model_builder.h"
#include "tests/cpp/sketch.h"

namespace leadline {
namespace {

using testing::get;
using testing::run;
using testing::set;
using testing::Sketch;
using testing::thrown_by;

constexpr DType kF32 = DType::kFloat32;

/// y = -(W x + 1) with a W of 64 x 64 twos on the diagonal.
Sketch dense_model() {
  Sketch s;
  const int x = s.input("x", kF32, {1, 64});
  s.subgraph().values[0].signature = std::vector<int32_t>{-1, 64};
  std::vector<float> weights(64 * 64);
  for (size_t i = 0; i < 64; ++i) weights[65 * i] = 2.0F;
  const int w = s.constant("w", kF32, {64, 64}, weights);
  const int bias = s.constant("bias", kF32, {64}, std::vector<float>(64, 1.0F));
  const int dense = s.compute("FULLY_CONNECTED", {x, w, bias}, "dense", kF32, {1, 64});
  s.outputs({s.compute("NEG", {dense}, "y", kF32, {1, 64})});
  return s;
}

std::vector<float> ramp(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 64);
  return values;
}

std::vector<float> expected_of(const std::vector<float>& x) {
  std::vector<float> y;
  for (const float value : x) y.push_back(-(2.0F * value + 1.0F));
  return y;
}

/// x -> reshape to a shape given as data -> -x
Sketch dynamic_model() {
  Sketch s;
  const int x = s.input("x", kF32, {64});
  const int shape = s.input("shape", DType::kInt32, {2});
  const int a = s.compute("ABS", {x}, "a", kF32, {64});
  const int b = s.compute("RESHAPE", {a, shape}, "b", kF32, {});
  const int c = s.compute("NEG", {b}, "c", kF32, {});
  s.outputs({s.compute("ADD", {b, c}, "y", kF32, {})});
  return s;
}

TEST(Interpreter, RunsAndPlansWhatItTakes) {
  Interpreter interpreter(dense_model().load());
  const Plan before = interpreter.plan();
  EXPECT_TRUE(before.complete);
  EXPECT_EQ(run(interpreter, ramp(64)), expected_of(ramp(64)));
  EXPECT_EQ(before.peak_bytes, interpreter.counted_peak_bytes());
  EXPECT_EQ(interpreter.plan().peak_bytes, interpreter.counted_peak_bytes());
  run(interpreter, ramp(64));
  EXPECT_EQ(before.peak_bytes, interpreter.counted_peak_bytes());
}

TEST(Interpreter, CheckEndsARunBetweenNodes) {
  Interpreter interpreter(dense_model().load());
  int asked = 0;
  const RunCheck stop_at_second = [&] {
    if (++asked == 2) throw std::runtime_error("enough");
  };
  EXPECT_THROW(interpreter.invoke(stop_at_second), std::runtime_error);
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(run(interpreter, ramp(64)), expected_of(ramp(64)));
  EXPECT_EQ(asked, 2);  // that of a run before
}

TEST(Interpreter, CategoriesSumToThePeak) {
  Interpreter interpreter(dense_model().load());
  for (int i = 0; i < 2; ++i) {
    const Plan plan = interpreter.plan();
    int64_t sum = 0;
    for (const CategoryBytes& c : plan.categories) sum += c.bytes;
    EXPECT_EQ(sum, plan.peak_bytes);
    interpreter.invoke();
  }
}

TEST(Interpreter, DynamicModelsCountWhatTheyPlan) {
  for (const bool preserve : {false, true}) {
    InterpreterOptions options;
    options.preserve_all_tensors = preserve;
    Interpreter interpreter(dynamic_model().load(), options);
    for (const auto& shape : {std::vector<int32_t>{8, 8}, {64, 1}, {8, 8}, {1, 64}}) {
      set<int32_t>(interpreter, 1, shape);
      interpreter.invoke();
      EXPECT_EQ(interpreter.plan().peak_bytes, interpreter.counted_peak_bytes()) << "preserve " << preserve;
      EXPECT_EQ(interpreter.tensor(interpreter.outputs()[0]).shape, (Shape{shape[0], shape[1]}));
    }
    if (preserve) {
      EXPECT_EQ(get<float>(interpreter, 3).size(), 64U);
    }
  }
}

TEST(Interpreter, OptionsAreChecked) {
  const Model model = dense_model().load();
  InterpreterOptions threads;
  threads.num_threads = 0;
  EXPECT_EQ(thrown_by([&] { Interpreter i(model, threads); }).code, ErrorCode::kInvalidArgument);
  InterpreterOptions subgraph;
  subgraph.subgraph = 1;
  EXPECT_EQ(thrown_by([&] { Interpreter i(model, subgraph); }).code, ErrorCode::kInvalidArgument);
  InterpreterOptions rounds;
  rounds.max_loop_rounds = 0;
  EXPECT_EQ(thrown_by([&] { Interpreter i(model, rounds); }).code, ErrorCode::kInvalidArgument);
}

TEST(Interpreter, NamesTheOpsItCannotRun) {
  Sketch s;
  const int x = s.input("x", kF32, {1});
  s.outputs({s.compute("MyOwnOp", {x}, "y", kF32, {1})});
  const Model model = s.load();
  const auto thrown = thrown_by([&] { Interpreter interpreter(model); });
  EXPECT_EQ(thrown.code, ErrorCode::kUnsupported);
  EXPECT_TRUE(thrown.names("custom op 'MyOwnOp'")) << thrown.message;
}

TEST(Interpreter, TensorsAreChecked) {
  Interpreter interpreter(dense_model().load());
  EXPECT_TRUE(thrown_by([&] { interpreter.tensor(5); }).names("tensor 5"));
  EXPECT_TRUE(thrown_by([&] { interpreter.tensor(-1); }).names("tensor -1"));
  EXPECT_TRUE(thrown_by([&] { set<float>(interpreter, 0, {1}); }).names("takes 256 bytes, got 4"));
  EXPECT_TRUE(thrown_by([&] { set(interpreter, 3, ramp(64)); }).names("'dense'"));
  EXPECT_TRUE(thrown_by([&] { set(interpreter, 4, ramp(64)); }).names("'y'"));
  EXPECT_EQ(get<float>(interpreter, 2), std::vector<float>(64, 1.0F)) << "constants can be read";
}

TEST(Interpreter, ViewsOfInputsCannotBeSet) {
  Sketch s;
  const int x = s.input("x", kF32, {4});
  const int shape = s.constant<int32_t>("shape", DType::kInt32, {2}, {2, 2});
  const int b = s.compute("RESHAPE", {x, shape}, "b", kF32, {2, 2});
  s.outputs({s.compute("NEG", {b}, "y", kF32, {2, 2})});
  Interpreter interpreter(s.load());
  EXPECT_EQ(thrown_by([&] { set<float>(interpreter, b, {1, 2, 3, 4}); }).code, ErrorCode::kInvalidArgument);
}

TEST(Interpreter, MemoryOutlivesTheInterpreter) {
  TensorMemory memory;
  {
    Interpreter interpreter(dense_model().load());
    run(interpreter, ramp(64));
    memory = interpreter.tensor(interpreter.outputs()[0]);
  }
  EXPECT_EQ(reinterpret_cast<const float*>(memory.data)[3], -7.0F);
}

// Resizing

TEST(InterpreterResize, PlansAnew) {
  Interpreter interpreter(dense_model().load());
  const int64_t small = interpreter.plan().peak_bytes;
  for (const int64_t batch : {5, 1, 17}) {
    interpreter.resize_input(0, {batch, 64});
    EXPECT_EQ(interpreter.tensor_info(4).name, "y");
    const Plan plan = interpreter.plan();
    const auto x = ramp(static_cast<size_t>(64 * batch));
    EXPECT_EQ(run(interpreter, x), expected_of(x));
    EXPECT_EQ(plan.peak_bytes, interpreter.counted_peak_bytes());
    EXPECT_EQ(interpreter.tensor_info(4).shape, (Shape{batch, 64}));
  }
  interpreter.resize_input(0, {1, 64});
  EXPECT_EQ(interpreter.plan().peak_bytes, small);
}

TEST(InterpreterResize, StrictKeepsFixedDimensions) {
  Interpreter interpreter(dense_model().load());
  EXPECT_NO_THROW(interpreter.resize_input(0, {2, 64}, true));
  EXPECT_TRUE(thrown_by([&] { interpreter.resize_input(0, {2, 65}, true); }).names("fixed to 64, got 65"));
  EXPECT_TRUE(thrown_by([&] { interpreter.resize_input(0, {2}, true); }).names("rank 2"));
  EXPECT_TRUE(thrown_by([&] { interpreter.resize_input(4, {2, 64}); }).names("not an input"));
}

TEST(InterpreterResize, AVariableThatIsAnInputKeepsItsShape) {
  ModelBuilder builder;
  TensorInfo info;
  info.shape = {2};
  info.variable = true;
  const int state = builder.add_tensor(0, info);
  builder.set_inputs(0, {state});
  builder.set_outputs(0, {state});
  Interpreter interpreter(Model::from_bytes(builder.to_tflite()));
  EXPECT_TRUE(thrown_by([&] { interpreter.resize_input(state, {3}); }).names("a variable, whose shape [2] is fixed"));
  EXPECT_EQ(interpreter.tensor_info(state).shape, (Shape{2}));
}

TEST(InterpreterResize, AShapeThatDoesNotFitCanBeTakenBack) {
  Interpreter interpreter(dense_model().load());
  interpreter.resize_input(0, {1, 63});
  EXPECT_TRUE(thrown_by([&] { interpreter.invoke(); }).names("FULLY_CONNECTED #0"));
  EXPECT_TRUE(thrown_by([&] { interpreter.plan(); }).names("FULLY_CONNECTED #0"));
  EXPECT_EQ(interpreter.tensor_info(0).shape, (Shape{1, 63}));
  EXPECT_NO_THROW(interpreter.reset_variables());
  interpreter.resize_input(0, {2, 64});
  EXPECT_EQ(run(interpreter, ramp(128)), expected_of(ramp(128)));
  EXPECT_EQ(interpreter.plan().peak_bytes, interpreter.counted_peak_bytes());
}

TEST(InterpreterResize, ShapesBeyondAllMemoryAreRefused) {
  Interpreter interpreter(dense_model().load());
  interpreter.resize_input(0, {int64_t{1} << 55, 64});
  EXPECT_TRUE(thrown_by([&] { interpreter.allocate(); }).code.has_value());
  interpreter.resize_input(0, {int64_t{1} << 31, 64});
  EXPECT_TRUE(thrown_by([&] { interpreter.allocate(); }).code.has_value());
  interpreter.resize_input(0, {1, 64});
  EXPECT_EQ(run(interpreter, ramp(64)), expected_of(ramp(64)));
}

// Budgets

TEST(InterpreterBudget, ARefusalChargesNothingAndARetryWorks) {
  const std::vector<std::byte> file = dense_model().file();
  const int64_t needed = Interpreter(Model::from_bytes(file)).plan().peak_bytes;
  const auto budget = Budget::with_limit(needed);
  const Model model = Model::from_bytes(file, nullptr, budget);
  const int64_t loaded = budget->used();
  InterpreterOptions tight;
  tight.budget = Budget::with_limit(1000);
  {
    Interpreter interpreter(model, tight);
    try {
      interpreter.allocate();
      FAIL() << "1000 bytes are too few";
    } catch (const BudgetError& error) {
      EXPECT_EQ(error.needed(), needed);
      EXPECT_EQ(error.limit(), 1000);
      EXPECT_NE(std::string(error.what()).find("packed weights"), std::string::npos) << error.what();
    }
    EXPECT_EQ(tight.budget->used(), 0);
    EXPECT_EQ(tight.budget->peak(), 0);
    EXPECT_EQ(budget->used(), loaded);
    EXPECT_EQ(thrown_by([&] { interpreter.invoke(); }).code, ErrorCode::kBudget);
  }
  Interpreter interpreter(model);
  EXPECT_EQ(run(interpreter, ramp(64)), expected_of(ramp(64)));
  EXPECT_EQ(budget->peak(), needed) << "exactly the planned bytes are enough";
}

TEST(InterpreterBudget, OneByteLessIsTooLittle) {
  const std::vector<std::byte> file = dense_model().file();
  const int64_t needed = Interpreter(Model::from_bytes(file)).plan().peak_bytes;
  const auto budget = Budget::with_limit(needed - 1);
  Interpreter interpreter(Model::from_bytes(file, nullptr, budget));
  const int64_t used = budget->used();
  EXPECT_EQ(thrown_by([&] { interpreter.invoke(); }).code, ErrorCode::kBudget);
  EXPECT_EQ(budget->used(), used);
}

TEST(InterpreterBudget, TheSameInterpreterWorksWhenMemoryIsBack) {
  const std::vector<std::byte> file = dense_model().file();
  const int64_t needed = Interpreter(Model::from_bytes(file)).plan().peak_bytes;
  const auto budget = Budget::with_limit(needed + 100);
  Interpreter interpreter(Model::from_bytes(file, nullptr, budget));
  budget->charge(200, MemoryCategory::kStatistics);
  EXPECT_EQ(thrown_by([&] { interpreter.invoke(); }).code, ErrorCode::kBudget);
  budget->release(200, MemoryCategory::kStatistics);
  EXPECT_EQ(run(interpreter, ramp(64)), expected_of(ramp(64)));
  EXPECT_EQ(interpreter.plan().peak_bytes, interpreter.counted_peak_bytes());
}

TEST(InterpreterBudget, EverythingIsGivenBack) {
  const auto budget = Budget::with_limit(int64_t{1} << 30);
  {
    const Model model = Model::from_bytes(dynamic_model().file(), nullptr, budget);
    Interpreter interpreter(model);
    set<int32_t>(interpreter, 1, {8, 8});
    interpreter.invoke();
    interpreter.resize_input(0, {32});
    set<int32_t>(interpreter, 1, {8, 8});
    EXPECT_TRUE(thrown_by([&] { interpreter.invoke(); }).code.has_value()) << "32 values have no shape [8, 8]";
    EXPECT_GT(budget->used(), 0);
  }
  EXPECT_EQ(budget->used(), 0);
}

TEST(InterpreterBudget, WeightsArePackedOnceForAllInterpreters) {
  const auto budget = Budget::with_limit(int64_t{1} << 30);
  const Model model = Model::from_bytes(dense_model().file(), nullptr, budget);
  Interpreter first(model);
  Interpreter second(model);
  const int64_t alone = second.plan().peak_bytes;
  run(first, ramp(64));
  const int64_t packed = budget->used(MemoryCategory::kPackedWeights);
  EXPECT_GT(packed, 0);
  EXPECT_EQ(second.plan().peak_bytes, alone) << "shared weights belong to both plans";
  EXPECT_EQ(run(second, ramp(64)), expected_of(ramp(64)));
  EXPECT_EQ(budget->used(MemoryCategory::kPackedWeights), packed) << "and are charged once";
  EXPECT_EQ(second.counted_peak_bytes(), alone);
  {
    const Interpreter gone(std::move(first));
  }
  EXPECT_EQ(budget->used(MemoryCategory::kPackedWeights), packed) << "the second interpreter still holds them";
  EXPECT_EQ(run(second, ramp(64)), expected_of(ramp(64)));
  {
    const Interpreter gone(std::move(second));
  }
  EXPECT_EQ(budget->used(MemoryCategory::kPackedWeights), 0);
}

// Errors while running

TEST(Interpreter, CanBeUsedAfterAFailedRun) {
  Sketch s;
  const int x = s.input("x", kF32, {4});
  const int index = s.input("index", DType::kInt32, {1});
  s.outputs({s.compute("GATHER", {x, index}, "y", kF32, {1})});
  Interpreter interpreter(s.load());
  set<float>(interpreter, x, {1, 2, 3, 4});
  set<int32_t>(interpreter, index, {4});
  const auto thrown = thrown_by([&] { interpreter.invoke(); });
  EXPECT_EQ(thrown.code, ErrorCode::kRuntime);
  EXPECT_TRUE(thrown.names("GATHER #0")) << thrown.message;
  set<int32_t>(interpreter, index, {2});
  interpreter.invoke();
  EXPECT_EQ(get<float>(interpreter, interpreter.outputs()[0]), std::vector<float>{3});
}

TEST(Interpreter, DynamicModelsCanBeUsedAfterAFailedRun) {
  Interpreter interpreter(dynamic_model().load());
  for (int repeat = 0; repeat < 3; ++repeat) {
    set<int32_t>(interpreter, 1, {7, 7});
    EXPECT_TRUE(thrown_by([&] { interpreter.invoke(); }).names("RESHAPE #1"));
    set<int32_t>(interpreter, 1, {16, 4});
    interpreter.invoke();
    EXPECT_EQ(interpreter.tensor(interpreter.outputs()[0]).shape, (Shape{16, 4}));
    EXPECT_EQ(interpreter.plan().peak_bytes, interpreter.counted_peak_bytes());
  }
}

// Observers and profiles

class Recorder final : public Observer {
 public:
  void before_node(const ObservedNode& node) override { log.push_back("before " + std::string(node.op)); }
  void after_node(const ObservedNode& node) override {
    log.push_back("after " + std::string(node.name));
    subgraphs.push_back(node.subgraph);
    EXPECT_FALSE(node.outputs.empty());
    if (fail_at == node.op) throw std::runtime_error("stop");
    last.assign(node.outputs[0].data.begin(), node.outputs[0].data.end());
  }
  std::vector<std::string> log;
  std::vector<int> subgraphs;
  std::vector<std::byte> last;
  std::string_view fail_at;
};

TEST(InterpreterObservers, SeeEveryNodeInOrder) {
  Interpreter interpreter(dense_model().load());
  Recorder recorder;
  interpreter.add_observer(&recorder);
  run(interpreter, ramp(64));
  EXPECT_EQ(recorder.log, (std::vector<std::string>{"before FULLY_CONNECTED", "after dense", "before NEG", "after y"}));
  EXPECT_EQ(recorder.last.size(), 256U);
  interpreter.remove_observer(&recorder);
  recorder.log.clear();
  interpreter.invoke();
  EXPECT_TRUE(recorder.log.empty());
}

TEST(InterpreterObservers, SeeNodesOfCalledSubgraphsAndLaterSegments) {
  Interpreter dynamic(dynamic_model().load());
  Recorder recorder;
  dynamic.add_observer(&recorder);
  set<int32_t>(dynamic, 1, {8, 8});
  dynamic.invoke();
  EXPECT_EQ(recorder.subgraphs.size(), 4U);

  Sketch s;
  const int condition = s.input("condition", DType::kBool, {1});
  const int x = s.input("x", kF32, {1});
  s.outputs(
      {s.compute("IF", {condition, x}, "y", kF32, {1}, {{"then_subgraph_index", 1}, {"else_subgraph_index", 1}})});
  s.next_subgraph("callee");
  const int in = s.input("in", kF32, {1});
  s.outputs({s.compute("NEG", {in}, "out", kF32, {1})});
  Interpreter calling(s.load());
  Recorder inner;
  calling.add_observer(&inner);
  calling.invoke();
  EXPECT_EQ(inner.subgraphs, (std::vector<int>{1, 0}));
}

TEST(InterpreterObservers, TheirExceptionsReachTheCaller) {
  Interpreter interpreter(dense_model().load());
  Recorder recorder;
  recorder.fail_at = "FULLY_CONNECTED";
  interpreter.add_observer(&recorder);
  EXPECT_THROW(interpreter.invoke(), std::runtime_error);
  interpreter.remove_observer(&recorder);
  EXPECT_EQ(run(interpreter, ramp(64)), expected_of(ramp(64)));
}

TEST(InterpreterProfile, CountsRunsPerNode) {
  Interpreter interpreter(dense_model().load());
  interpreter.invoke();
  EXPECT_TRUE(interpreter.profile().empty());
  interpreter.enable_profile(true);
  for (int i = 0; i < 3; ++i) interpreter.invoke();
  const std::vector<NodeProfile> profile = interpreter.profile();
  ASSERT_EQ(profile.size(), 2U);
  EXPECT_EQ(profile[0].op, "FULLY_CONNECTED");
  EXPECT_EQ(profile[1].name, "y");
  for (const NodeProfile& node : profile) {
    EXPECT_EQ(node.runs, 3);
    EXPECT_GE(node.total_ms, 3 * node.fastest_ms * 0.999);
  }
  interpreter.enable_profile(false);
  EXPECT_TRUE(interpreter.profile().empty());
}

// Threads

TEST(InterpreterThreads, CallsOnOneInterpreterTakeTurns) {
  InterpreterOptions options;
  options.num_threads = 2;
  Interpreter interpreter(dense_model().load(), options);
  set(interpreter, 0, ramp(64));
  std::atomic<int> wrong = 0;
  const auto work = [&] {
    for (int i = 0; i < 50; ++i) {
      interpreter.invoke();
      if (interpreter.tensor(4).bytes != 64 * int64_t{sizeof(float)}) ++wrong;  // what it holds may be changing
      if (interpreter.plan().steps.size() != 2) ++wrong;
      interpreter.tensor_info(4);
      interpreter.counted_peak_bytes();
    }
  };
  std::thread other(work);
  work();
  other.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(get<float>(interpreter, 4), expected_of(ramp(64)));
}

TEST(InterpreterThreads, InterpretersOfOneModelRunAtTheSameTime) {
  const auto budget = Budget::with_limit(int64_t{1} << 30);
  const Model model = Model::from_bytes(dense_model().file(), nullptr, budget);
  std::atomic<int> wrong = 0;
  const auto work = [&] {
    for (int i = 0; i < 20; ++i) {
      Interpreter interpreter(model);  // packs the weights or finds them packed
      if (run(interpreter, ramp(64)) != expected_of(ramp(64))) ++wrong;
      if (interpreter.plan().peak_bytes != interpreter.counted_peak_bytes()) ++wrong;
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(budget->used(MemoryCategory::kPackedWeights), 0);
}

}  // namespace
}  // namespace leadline
