// SPDX-License-Identifier: Apache-2.0
// Sharing, lifetimes, folding and segments of whole plans, seen through what an interpreter reports.
#include "plan/planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/cpp/sketch.h"

namespace leadline::plan {
namespace {

using testing::get;
using testing::set;
using testing::Sketch;

constexpr DType kF32 = DType::kFloat32;
constexpr int64_t kBytes = 1024;  // of a {256} float tensor
const Shape kVector{256};

Interpreter interpret(const Sketch& s, bool preserve_all = false) {
  InterpreterOptions options;
  options.preserve_all_tensors = preserve_all;
  return Interpreter(s.load(), options);
}

const PlannedTensor& tensor(const Plan& plan, const std::string& name) {
  const auto it = std::ranges::find(plan.tensors, name, &PlannedTensor::name);
  EXPECT_NE(it, plan.tensors.end()) << name;
  return *it;
}

/// Which tensor is where, worked out from the nodes alone: a tensor is alive from the step that writes it to the last
/// step that reads it or anything that shares its memory.
void expect_sound(const Plan& plan) {
  struct Life {
    int64_t begin, end;
    int first, last, segment;
    std::string name;
    int root;
  };
  const auto root_of = [&](int index) {
    const auto find = [&](int i) { return std::ranges::find(plan.tensors, i, &PlannedTensor::index); };
    auto it = find(index);
    while (it->shares_with >= 0) it = find(it->shares_with);
    return it->index;
  };
  std::vector<Life> lives;
  for (const PlannedTensor& t : plan.tensors) {
    if (t.storage != Storage::kArena || t.bytes == 0) continue;
    int first = -1;
    int last = -1;
    for (int s = 0; s < static_cast<int>(plan.steps.size()); ++s) {
      if (std::ranges::count(plan.steps[static_cast<size_t>(s)].outputs, t.index) > 0) first = s;
      if (std::ranges::count(plan.steps[static_cast<size_t>(s)].inputs, t.index) > 0) last = s;
    }
    ASSERT_GE(first, 0) << t.name;
    lives.push_back({t.offset, t.offset + t.bytes, first, std::max(first, last), t.segment, t.name, root_of(t.index)});
    const auto& arena = plan.segments[static_cast<size_t>(t.segment)];
    EXPECT_LE(t.offset + t.bytes, arena.arena_bytes) << t.name;
    if (t.shares_with < 0) {
      EXPECT_EQ(t.offset % 64, 0) << t.name;
    }
  }
  for (int s = 0; s < static_cast<int>(plan.steps.size()); ++s) {
    const PlannedStep& step = plan.steps[static_cast<size_t>(s)];
    if (step.scratch_bytes > 0) {
      lives.push_back({step.scratch_offset, step.scratch_offset + step.scratch_bytes, s, s, step.segment,
                       "scratch of " + step.name, -1 - s});
    }
  }
  for (size_t i = 0; i < lives.size(); ++i) {
    for (size_t k = i + 1; k < lives.size(); ++k) {
      const Life& a = lives[i];
      const Life& b = lives[k];
      if (a.segment != b.segment || a.last < b.first || b.last < a.first) continue;
      if (a.root == b.root) continue;  // sharing on purpose; the results of runs are compared elsewhere
      EXPECT_TRUE(a.end <= b.begin || b.end <= a.begin) << a.name << " and " << b.name << " overlap in memory and time";
    }
  }
  for (const PlannedSegment& segment : plan.segments) EXPECT_GE(segment.arena_bytes, segment.lower_bound_bytes);
}

TEST(Planner, ViewsCostNothing) {
  Sketch s;
  const int x = s.input("x", kF32, kVector);
  const int a = s.compute("TANH", {x}, "a", kF32, kVector);
  const int shape = s.constant<int32_t>("shape", DType::kInt32, {2}, {16, 16});
  const int b = s.compute("RESHAPE", {a, shape}, "b", kF32, {16, 16});
  s.outputs({s.compute("TANH", {b}, "y", kF32, {16, 16})});
  const Plan plan = interpret(s).plan();
  EXPECT_EQ(plan.arena_bytes, kBytes);
  EXPECT_EQ(tensor(plan, "b").shares_with, a);
  EXPECT_EQ(tensor(plan, "b").offset, tensor(plan, "a").offset);
  expect_sound(plan);
}

TEST(Planner, AViewOfAnInputLivesInTheInput) {
  Sketch s;
  const int x = s.input("x", kF32, kVector);
  const int shape = s.constant<int32_t>("shape", DType::kInt32, {2}, {16, 16});
  const int b = s.compute("RESHAPE", {x, shape}, "b", kF32, {16, 16});
  s.outputs({s.compute("NEG", {b}, "y", kF32, {16, 16})});
  Interpreter interpreter = interpret(s);
  EXPECT_EQ(interpreter.plan().arena_bytes, 0);
  EXPECT_EQ(testing::run(interpreter, std::vector<float>(256, 2.0F)), std::vector<float>(256, -2.0F));
}

TEST(Planner, ElementwiseChainsRunInPlace) {
  Sketch s;
  const int x = s.input("x", kF32, kVector);
  int a = s.compute("NEG", {x}, "a0", kF32, kVector);
  for (int i = 1; i < 5; ++i) a = s.compute("ABS", {a}, "a" + std::to_string(i), kF32, kVector);
  s.outputs({s.compute("NEG", {a}, "y", kF32, kVector)});
  const Plan plan = interpret(s).plan();
  EXPECT_EQ(plan.arena_bytes, kBytes);
  EXPECT_EQ(plan.lower_bound_bytes, kBytes);
  expect_sound(plan);
}

TEST(Planner, NothingOverwritesWhatIsReadLater) {
  Sketch s;
  const int x = s.input("x", kF32, kVector);
  const int a = s.compute("NEG", {x}, "a", kF32, kVector);
  const int b = s.compute("ABS", {a}, "b", kF32, kVector);
  s.outputs({s.compute("ADD", {a, b}, "y", kF32, kVector)});
  Interpreter interpreter = interpret(s);
  const Plan plan = interpreter.plan();
  EXPECT_NE(tensor(plan, "a").offset, tensor(plan, "b").offset);
  EXPECT_EQ(testing::run(interpreter, std::vector<float>(256, 2.0F)), std::vector<float>(256, 0.0F));
}

TEST(Planner, InputsKeepTheirValues) {
  Sketch s;
  const int x = s.input("x", kF32, kVector);
  const int a = s.compute("NEG", {x}, "a", kF32, kVector);
  s.outputs({s.compute("ABS", {a}, "y", kF32, kVector)});
  Interpreter interpreter = interpret(s);
  EXPECT_EQ(tensor(interpreter.plan(), "a").shares_with, -1);
  const std::vector<float> values(256, 3.0F);
  EXPECT_EQ(testing::run(interpreter, values), values);
  EXPECT_EQ(get<float>(interpreter, x), values);
}

TEST(Planner, PreservedTensorsKeepMemoryOfTheirOwn) {
  Sketch s;
  const int x = s.input("x", kF32, kVector);
  const int a = s.compute("NEG", {x}, "a", kF32, kVector);
  const int b = s.compute("ABS", {a}, "b", kF32, kVector);
  s.outputs({s.compute("NEG", {b}, "y", kF32, kVector)});
  Interpreter interpreter = interpret(s, true);
  EXPECT_EQ(interpreter.plan().arena_bytes, 2 * kBytes);
  testing::run(interpreter, std::vector<float>(256, 3.0F));
  EXPECT_EQ(get<float>(interpreter, a), std::vector<float>(256, -3.0F));
  EXPECT_EQ(get<float>(interpreter, b), std::vector<float>(256, 3.0F));
}

TEST(Planner, BroadcastOperandsAreNotOverwritten) {
  Sketch s;
  const int x = s.input("x", kF32, {1, 4});
  const int row = s.compute("NEG", {x}, "row", kF32, {1, 4});
  const int shape = s.constant<int32_t>("shape", DType::kInt32, {2}, {4, 1});
  const int column = s.compute("RESHAPE", {row, shape}, "column", kF32, {4, 1});
  s.outputs({s.compute("NEG", {s.compute("ADD", {row, column}, "sum", kF32, {4, 4})}, "y", kF32, {4, 4})});
  Interpreter interpreter = interpret(s);
  const std::vector<float> y = testing::run<float>(interpreter, {1, 2, 3, 4});
  for (int i = 0; i < 4; ++i) {
    for (int k = 0; k < 4; ++k) EXPECT_EQ(y[static_cast<size_t>(4 * i + k)], static_cast<float>(i + k + 2));
  }
}

/// reshape(x, [shape(x)[0], -1]) as converters write it.
Sketch shape_arithmetic() {
  Sketch s;
  const int x = s.input("x", kF32, {4, 8, 8});
  const int a = s.compute("NEG", {x}, "a", kF32, {4, 8, 8});
  const int shape = s.compute("SHAPE", {a}, "shape", DType::kInt32, {3}, {{"out_type", 2}});
  const int zero = s.constant<int32_t>("zero", DType::kInt32, {1}, {0});
  const int one = s.constant<int32_t>("one", DType::kInt32, {1}, {1});
  const int rows =
      s.compute("STRIDED_SLICE", {shape, zero, one, one}, "rows", DType::kInt32, {}, {{"shrink_axis_mask", 1}});
  const int rest = s.constant<int32_t>("rest", DType::kInt32, {}, {-1});
  const int target = s.compute("PACK", {rows, rest}, "target", DType::kInt32, {2}, {{"values_count", 2}});
  const int flat = s.compute("RESHAPE", {a, target}, "flat", kF32, {4, 64});
  s.outputs({s.compute("ABS", {flat}, "y", kF32, {4, 64})});
  return s;
}

TEST(Planner, ShapeArithmeticIsFolded) {
  Interpreter interpreter = interpret(shape_arithmetic());
  const Plan plan = interpreter.plan();
  EXPECT_TRUE(plan.complete);
  EXPECT_EQ(plan.segments.size(), 1U);
  EXPECT_EQ(plan.steps.size(), 3U);
  EXPECT_EQ(tensor(plan, "target").storage, Storage::kFolded);
  interpreter.resize_input(interpreter.inputs()[0], {2, 8, 8});
  EXPECT_EQ(tensor(interpreter.plan(), "y").shape, (Shape{2, 64}));
}

/// y = -relu(reshape(tanh(x), shape_in)), and what else reads tanh(x).
Sketch data_dependent() {
  Sketch s;
  const int x = s.input("x", kF32, kVector);
  const int shape = s.input("target", DType::kInt32, {2});
  const int a = s.compute("ABS", {x}, "a", kF32, kVector);
  const int b = s.compute("NEG", {a}, "b", kF32, kVector);
  const int c = s.compute("RESHAPE", {b, shape}, "c", kF32, {});
  const int d = s.compute("RESHAPE", {a, shape}, "d", kF32, {});
  s.outputs({s.compute("ADD", {c, d}, "sum", kF32, {}), s.compute("ABS", {d}, "y", kF32, {})});
  return s;
}

TEST(Planner, DataDependentShapesBeginANewSegment) {
  Interpreter interpreter = interpret(data_dependent());
  Plan plan = interpreter.plan();
  EXPECT_FALSE(plan.complete);
  EXPECT_EQ(plan.segments.size(), 1U);
  EXPECT_EQ(plan.steps.size(), 2U);
  set(interpreter, 0, std::vector<float>(256, -2.0F));
  set<int32_t>(interpreter, 1, {64, 4});
  interpreter.invoke();
  plan = interpreter.plan();
  EXPECT_TRUE(plan.complete);
  EXPECT_EQ(plan.segments.size(), 2U);
  EXPECT_EQ(plan.segments[1].first_step, 2);
  EXPECT_EQ(tensor(plan, "y").shape, (Shape{64, 4}));
  expect_sound(plan);
}

// The last step of the first segment may run in place only over what later segments do not read.
TEST(Planner, TheEndOfASegmentKeepsWhatTheNextOneReads) {
  Interpreter interpreter = interpret(data_dependent());
  for (const auto& target : {std::vector<int32_t>{64, 4}, {4, 64}, {256, 1}}) {
    set(interpreter, 0, std::vector<float>(256, -2.0F));
    set<int32_t>(interpreter, 1, target);
    interpreter.invoke();
    EXPECT_EQ(get<float>(interpreter, interpreter.outputs()[0]), std::vector<float>(256, 0.0F));
    EXPECT_EQ(get<float>(interpreter, interpreter.outputs()[1]), std::vector<float>(256, 2.0F));
  }
}

TEST(Planner, TheLowerBoundIsTheFullestStep) {
  Sketch s;
  const int x = s.input("x", kF32, {4, 16});
  const int a = s.compute("NEG", {x}, "a", kF32, {4, 16});                                       // 256 bytes
  const int b = s.compute("ADD", {a, x}, "b", kF32, {4, 16});                                    // in place
  const int wide = s.compute("CONCATENATION", {b, b, b}, "wide", kF32, {4, 48}, {{"axis", 1}});  // 768 bytes beside b
  s.outputs({s.compute("CONCATENATION", {wide, b}, "y", kF32, {4, 64}, {{"axis", 1}})});
  const Plan plan = interpret(s).plan();
  EXPECT_EQ(plan.lower_bound_bytes, 256 + 768);
  EXPECT_EQ(plan.arena_bytes, plan.lower_bound_bytes);
  EXPECT_EQ(plan.steps[2].live_bytes, 256 + 768);
  expect_sound(plan);
}

/// A net of branches and joins with a little generator of its own; `seed` decides who reads whom.
Sketch random_net(uint32_t seed) {
  const auto below = [&](uint32_t n) {
    seed = seed * 1664525U + 1013904223U;
    return static_cast<size_t>((seed >> 16) % n);
  };
  Sketch s;
  std::vector<int> made = {s.input("x", kF32, {32})};
  const int shape = s.constant<int32_t>("shape", DType::kInt32, {1}, {32});
  for (int i = 0; i < 30; ++i) {
    const std::string name = "v" + std::to_string(i);
    const int a = made[made.size() - 1 - below(static_cast<uint32_t>(std::min<size_t>(made.size(), 5)))];
    const int b = made[below(static_cast<uint32_t>(made.size()))];
    switch (below(4)) {
      case 0:
        made.push_back(s.compute("NEG", {a}, name, kF32, {32}));
        break;
      case 1:
        made.push_back(s.compute("RESHAPE", {a, shape}, name, kF32, {32}));
        break;
      case 2:
        made.push_back(s.compute("ADD", {a, b}, name, kF32, {32}));
        break;
      default:
        made.push_back(s.compute("MAXIMUM", {a, b}, name, kF32, {32}));
        break;
    }
  }
  s.outputs({made.back(), made[made.size() / 2]});
  return s;
}

TEST(Planner, SharedMemoryNeverChangesResults) {
  std::vector<float> values(32);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) - 15.5F;
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    const Sketch s = random_net(seed);
    Interpreter shared = interpret(s);
    Interpreter preserved = interpret(s, true);
    expect_sound(shared.plan());
    expect_sound(preserved.plan());
    set(shared, shared.inputs()[0], values);
    set(preserved, preserved.inputs()[0], values);
    shared.invoke();
    preserved.invoke();
    for (const int v : shared.outputs()) {
      EXPECT_EQ(get<float>(shared, v), get<float>(preserved, v)) << "seed " << seed << ", tensor " << v;
    }
    EXPECT_LE(shared.plan().arena_bytes, preserved.plan().arena_bytes);
  }
}

TEST(Planner, TensorsBeyondAllMemoryAreRefused) {
  Sketch s;
  const int x = s.input("x", kF32, {1});
  const int shape = s.constant<int64_t>("shape", DType::kInt64, {3}, {1 << 20, 1 << 20, 1 << 10});
  s.outputs({s.compute("NEG", {s.compute("BROADCAST_TO", {x, shape}, "huge", kF32, {})}, "y", kF32, {})});
  const Model model = s.load();
  const auto thrown = testing::thrown_by([&] { Interpreter interpreter(model); });
  EXPECT_EQ(thrown.code, ErrorCode::kUnsupported);
  EXPECT_TRUE(thrown.names("BROADCAST_TO #0") && thrown.names("huge")) << thrown.message;
}

}  // namespace
}  // namespace leadline::plan
