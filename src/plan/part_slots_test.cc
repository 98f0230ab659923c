// SPDX-License-Identifier: Apache-2.0
// Tensors inside others, as an interpreter's plan shows them. What such graphs compute is in test_shared_parts.py.
#include "plan/part_slots.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/cpp/sketch.h"

namespace leadline::plan {
namespace {

using testing::get;
using testing::set;
using testing::Sketch;

constexpr DType kF32 = DType::kFloat32;
constexpr int64_t kBytes = 1024;  // of a {256} float tensor
const Shape kVector{256};

const PlannedTensor& tensor(const Plan& plan, const std::string& name) {
  const auto it = std::ranges::find(plan.tensors, name, &PlannedTensor::name);
  EXPECT_NE(it, plan.tensors.end()) << name;
  return *it;
}

void expect_inside(const Plan& plan, const std::string& inner, const std::string& outer, int64_t offset) {
  EXPECT_EQ(tensor(plan, inner).shares_with, tensor(plan, outer).index) << inner;
  EXPECT_EQ(tensor(plan, inner).storage, tensor(plan, outer).storage) << inner;
  if (tensor(plan, outer).storage == Storage::kArena) {
    EXPECT_EQ(tensor(plan, inner).offset, tensor(plan, outer).offset + offset) << inner;
  }
}

std::vector<float> sequence(int count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) values[static_cast<size_t>(i)] = static_cast<float>(i);
  return values;
}

/// x -> TANH, NEG -> joined along `axis` -> NEG
Sketch joined(const Shape& shape, const Shape& result, int axis) {
  Sketch s;
  const int x = s.input("x", kF32, shape);
  const int a = s.compute("TANH", {x}, "a", kF32, shape);
  const int b = s.compute("COS", {x}, "b", kF32, shape);
  const int c = s.compute("CONCATENATION", {a, b}, "c", kF32, result, {{"axis", axis}});
  const int d = s.compute("CUMSUM", {c, s.constant<int32_t>("axis", DType::kInt32, {}, {0})}, "d", kF32, result);
  s.outputs({s.compute("NEG", {d}, "y", kF32, result)});
  return s;
}

TEST(PartSlots, InputsOfAJoinAreComputedInTheirPlace) {
  const Plan plan = Interpreter(joined(kVector, {512}, 0).load()).plan();
  expect_inside(plan, "a", "c", 0);
  expect_inside(plan, "b", "c", kBytes);
  EXPECT_EQ(plan.arena_bytes, 4 * kBytes);  // c and d
  EXPECT_EQ(tensor(plan, "c").first_step, 0);
}

TEST(PartSlots, InputsThatAreNotContiguousInTheResultAreCopied) {
  const Plan plan = Interpreter(joined({4, 64}, {4, 128}, 1).load()).plan();
  EXPECT_EQ(tensor(plan, "a").shares_with, -1);
  EXPECT_EQ(tensor(plan, "b").shares_with, -1);
  const Plan one_row = Interpreter(joined({1, 256}, {1, 512}, 1).load()).plan();
  expect_inside(one_row, "b", "c", kBytes);
}

TEST(PartSlots, PreservedTensorsHaveMemoryOfTheirOwn) {
  InterpreterOptions options;
  options.preserve_all_tensors = true;
  const Plan plan = Interpreter(joined(kVector, {512}, 0).load(), options).plan();
  EXPECT_EQ(tensor(plan, "a").shares_with, -1);
}

TEST(PartSlots, ViewsAndResultsInPlaceFollowTheirJoinAlong) {
  Sketch s;
  const int x = s.input("x", kF32, kVector);
  const int a = s.compute("TANH", {x}, "a", kF32, kVector);
  const int b = s.compute("ABS", {a}, "b", kF32, kVector);
  const int shape = s.constant<int32_t>("shape", DType::kInt32, {2}, {1, 256});
  const int c = s.compute("RESHAPE", {b, shape}, "c", kF32, {1, 256});
  const int d = s.compute("CONCATENATION", {c, c}, "d", kF32, {2, 256}, {{"axis", 0}});
  s.outputs({s.compute("NEG", {d}, "y", kF32, {2, 256})});
  Interpreter interpreter(s.load());
  const Plan plan = interpreter.plan();
  for (const char* name : {"a", "b", "c"}) expect_inside(plan, name, "d", 0);
  EXPECT_EQ(plan.arena_bytes, 2 * kBytes);
  const std::vector<float> got = testing::run(interpreter, sequence(256));
  EXPECT_TRUE(std::equal(got.begin(), got.begin() + 256, got.begin() + 256));  // the second is a copy
  EXPECT_LT(got[3], -0.9F);
}

TEST(PartSlots, JoinsOfJoinsAndResultsOfTheGraphTakeTheirPartsIn) {
  Sketch s;
  const int x = s.input("x", kF32, kVector);
  const int a = s.compute("NEG", {x}, "a", kF32, kVector);
  const int b = s.compute("CONCATENATION", {x, a}, "b", kF32, {512}, {{"axis", 0}});
  const int c = s.compute("COS", {a}, "c", kF32, kVector);
  s.outputs({s.compute("CONCATENATION", {c, b}, "y", kF32, {768}, {{"axis", 0}})});
  Interpreter interpreter(s.load());
  const Plan plan = interpreter.plan();
  for (const char* name : {"a", "b", "c"}) expect_inside(plan, name, "y", 0);
  EXPECT_EQ(plan.arena_bytes, 0);
  const std::vector<float> got = testing::run(interpreter, sequence(256));
  EXPECT_EQ(got[0], 1.0F);
  EXPECT_EQ(got[256 + 7], 7.0F);
  EXPECT_EQ(got[512 + 7], -7.0F);
  EXPECT_EQ(interpreter.plan().peak_bytes, interpreter.counted_peak_bytes());
}

TEST(PartSlots, WhatIsOverwrittenIsReadByNobodyElse) {
  Sketch s;
  const int x = s.input("x", kF32, kVector);
  const int a = s.compute("NEG", {x}, "a", kF32, kVector);
  const int b = s.compute("ABS", {a}, "b", kF32, kVector);  // in place, but a is read again
  const int c = s.compute("CONCATENATION", {b, a}, "c", kF32, {512}, {{"axis", 0}});
  s.outputs({s.compute("COS", {c}, "y", kF32, {512})});
  const Plan plan = Interpreter(s.load()).plan();
  expect_inside(plan, "b", "c", 0);
  expect_inside(plan, "a", "c", kBytes);
}

TEST(PartSlots, AJoinThatWouldTakeMoreMemoryCopies) {
  // a is joined long after it was made, with something large: its place would have to be kept free.
  Sketch s;
  const int x = s.input("x", kF32, {16});
  const int a = s.compute("TANH", {x}, "a", kF32, {16});
  const int sizes = s.constant<int32_t>("sizes", DType::kInt32, {1}, {512});
  const int repeat = s.constant<int32_t>("repeat", DType::kInt32, {1}, {512});
  int big = s.compute("TILE", {x, repeat}, "big", kF32, {8192});
  big = s.compute("CUMSUM", {big, s.constant<int32_t>("axis", DType::kInt32, {}, {0})}, "sum", kF32, {8192});
  const int small =
      s.compute("SLICE", {big, s.constant<int32_t>("from", DType::kInt32, {1}, {0}), sizes}, "small", kF32, {512});
  const int wide = s.compute("TILE", {small, s.constant<int32_t>("4", DType::kInt32, {1}, {16})}, "wide", kF32, {8192});
  const int c = s.compute("CONCATENATION", {a, wide}, "c", kF32, {8208}, {{"axis", 0}});
  s.outputs(
      {s.compute("SUM", {c, s.constant<int32_t>("all", DType::kInt32, {1}, {0})}, "y", kF32, {1}, {{"keep_dims", 1}})});
  const Plan plan = Interpreter(s.load()).plan();
  EXPECT_EQ(tensor(plan, "a").shares_with, -1);
  EXPECT_LE(plan.arena_bytes, 2 * 8192 * 4 + 64 * 4);
}

TEST(PartSlots, PartsThatAreCutAreViews) {
  Sketch s;
  const int x = s.input("x", kF32, {512});
  const int a = s.compute("TANH", {x}, "a", kF32, {512});
  const int axis = s.constant<int32_t>("axis", DType::kInt32, {}, {0});
  const int b = s.value("b", kF32, kVector);
  const int c = s.value("c", kF32, kVector);
  s.node("SPLIT", {axis, a}, {b, c}, {{"num_splits", 2}});
  const int from = s.constant<int32_t>("from", DType::kInt32, {1}, {3});
  const int size = s.constant<int32_t>("size", DType::kInt32, {1}, {256});
  const int d = s.compute("SLICE", {x, from, size}, "d", kF32, kVector);
  const int e = s.compute("ADD", {b, c}, "e", kF32, kVector);
  s.outputs({s.compute("SUB", {e, d}, "y", kF32, kVector)});
  Interpreter interpreter(s.load());
  const Plan plan = interpreter.plan();
  expect_inside(plan, "b", "a", 0);
  expect_inside(plan, "c", "a", kBytes);
  expect_inside(plan, "d", "x", 12);
  expect_inside(plan, "e", "a", 0);  // overwrites b: nothing reads a any more
  EXPECT_EQ(plan.arena_bytes, 2 * kBytes);
  EXPECT_EQ(testing::run(interpreter, std::vector<float>(512, 100.0F)), std::vector<float>(256, -98.0F));
}

TEST(PartSlots, NothingIsComputedOverAPartThatOverlapsAnother) {
  Sketch s;
  const int x = s.input("x", kF32, {257});
  const int a = s.compute("COS", {x}, "a", kF32, {257});
  const int size = s.constant<int32_t>("size", DType::kInt32, {1}, {256});
  const int zero = s.constant<int32_t>("zero", DType::kInt32, {1}, {0});
  const int one = s.constant<int32_t>("one", DType::kInt32, {1}, {1});
  const int b = s.compute("SLICE", {a, zero, size}, "b", kF32, kVector);
  const int c = s.compute("SLICE", {a, one, size}, "c", kF32, kVector);
  const int d = s.compute("SUB", {c, b}, "d", kF32, kVector);
  s.outputs({s.compute("NEG", {d}, "y", kF32, kVector)});
  const Plan plan = Interpreter(s.load()).plan();
  expect_inside(plan, "c", "a", 4);
  EXPECT_EQ(tensor(plan, "d").shares_with, -1);
}

TEST(PartSlots, CallsOfSubgraphsShareInsideAndKeepTheirResults) {
  Sketch s;
  const int condition = s.input("condition", DType::kBool, {1});
  const int x = s.input("x", kF32, kVector);
  const int y =
      s.compute("IF", {condition, x}, "z", kF32, {512}, {{"then_subgraph_index", 1}, {"else_subgraph_index", 2}});
  s.outputs({s.compute("NEG", {y}, "y", kF32, {512})});
  for (const char* op : {"ABS", "NEG"}) {
    s.next_subgraph(op);
    const int in = s.input("in", kF32, kVector);
    const int a = s.compute(op, {in}, "a", kF32, kVector);
    const int b = s.compute("COS", {a}, "b", kF32, kVector);
    s.outputs({s.compute("CONCATENATION", {a, b}, "out", kF32, {512}, {{"axis", 0}})});
  }
  Interpreter interpreter(s.load());
  for (const uint8_t yes : {1, 0, 1}) {
    set<uint8_t>(interpreter, 0, {yes});
    set<float>(interpreter, 1, std::vector<float>(256, -2.0F));
    interpreter.invoke();
    const auto got = get<float>(interpreter, interpreter.outputs()[0]);
    EXPECT_EQ(got[0], -2.0F);
    EXPECT_EQ(got[255], -2.0F);
    EXPECT_NEAR(got[256], 0.416F, 1e-3);
    EXPECT_EQ(interpreter.plan().peak_bytes, interpreter.counted_peak_bytes());
  }
}

}  // namespace
}  // namespace leadline::plan
