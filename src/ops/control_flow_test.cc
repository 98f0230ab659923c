// SPDX-License-Identifier: Apache-2.0
// STABLEHLO_CASE and STABLEHLO_COMPOSITE through the public API; IF and WHILE are tested with the runner.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/cpp/sketch.h"

namespace leadline {
namespace {

using testing::get;
using testing::run;
using testing::set;
using testing::Sketch;
using testing::thrown_by;

constexpr DType kF32 = DType::kFloat32;

/// index, x of [2] -> branch 0: -x; branch 1: x + x; branch 2: x joined with x, or |x|.
Sketch case_model(bool last_doubles_size, std::vector<int64_t> branches = {1, 2, 3}) {
  Sketch s;
  const int index = s.input("index", DType::kInt32, {});
  const int x = s.input("x", kF32, {2});
  s.outputs({s.compute("STABLEHLO_CASE", {index, x}, "y", kF32, {}, {{"branch_subgraph_indices", branches}})});
  s.next_subgraph("negate");
  int in = s.input("in", kF32, {2});
  s.outputs({s.compute("NEG", {in}, "out", kF32, {2})});
  s.next_subgraph("twice");
  in = s.input("in", kF32, {2});
  s.outputs({s.compute("ADD", {in, in}, "out", kF32, {2})});
  s.next_subgraph("last");
  in = s.input("in", kF32, {2});
  s.outputs({last_doubles_size ? s.compute("CONCATENATION", {in, in}, "out", kF32, {4})
                               : s.compute("ABS", {in}, "out", kF32, {2})});
  return s;
}

std::vector<float> taken(Interpreter& interpreter, int32_t index) {
  set<int32_t>(interpreter, 0, {index});
  set<float>(interpreter, 1, {1, -2});
  interpreter.invoke();
  EXPECT_EQ(interpreter.plan().peak_bytes, interpreter.counted_peak_bytes());
  return get<float>(interpreter, 2);
}

TEST(Case, TakesTheBranchOfItsIndexAndTheLastOneOutside) {
  Interpreter interpreter(case_model(false).load());
  EXPECT_TRUE(interpreter.plan().complete);
  EXPECT_EQ(taken(interpreter, 0), (std::vector<float>{-1, 2}));
  EXPECT_EQ(taken(interpreter, 1), (std::vector<float>{2, -4}));
  for (int32_t index : {2, 3, -1, INT32_MAX, INT32_MIN}) {
    EXPECT_EQ(taken(interpreter, index), (std::vector<float>{1, 2})) << index;
  }
}

TEST(Case, BranchesMayGiveDifferentShapes) {
  Interpreter interpreter(case_model(true).load());
  EXPECT_FALSE(interpreter.plan().complete);
  EXPECT_EQ(taken(interpreter, 1), (std::vector<float>{2, -4}));
  EXPECT_EQ(taken(interpreter, 7), (std::vector<float>{1, -2, 1, -2}));
  EXPECT_EQ(taken(interpreter, 0), (std::vector<float>{-1, 2}));
}

/// index, x of [2] -> branch 0: x plus three numbers, which does not fit; branch 1: |x|.
Sketch unfit_model() {
  Sketch s;
  const int index = s.input("index", DType::kInt32, {});
  const int x = s.input("x", kF32, {2});
  s.outputs({s.compute("STABLEHLO_CASE", {index, x}, "y", kF32, {},
                       {{"branch_subgraph_indices", std::vector<int64_t>{1, 2}}})});
  s.next_subgraph("three");
  int in = s.input("in", kF32, {2});
  s.outputs({s.compute("ADD", {in, s.constant<float>("three", kF32, {3}, {1, 2, 3})}, "out", kF32, {3})});
  s.next_subgraph("any");
  in = s.input("in", kF32, {2});
  s.outputs({s.compute("ABS", {in}, "out", kF32, {2})});
  return s;
}

TEST(Case, ABranchThatRefusesTheShapesMattersOnlyWhenItIsTaken) {
  Interpreter interpreter(unfit_model().load());
  interpreter.allocate();
  EXPECT_EQ(taken(interpreter, 1), (std::vector<float>{1, 2}));
  EXPECT_TRUE(thrown_by([&] { taken(interpreter, 0); }).names("do not broadcast"));
  EXPECT_EQ(taken(interpreter, 1), (std::vector<float>{1, 2}));
}

/// The same, where neither branch takes x.
TEST(Case, BranchesThatAllRefuseTheShapesAreAnErrorBeforeTheRun) {
  Sketch s = unfit_model();
  s.graph().subgraphs[2] = s.graph().subgraphs[1];
  EXPECT_TRUE(thrown_by([&] { Interpreter(s.load()).allocate(); }).names("do not broadcast"));
}

TEST(Case, RefusesNoBranchesAndIndicesOfAnotherTypeOrSize) {
  const auto refused = [](const Sketch& model) { return thrown_by([&] { Interpreter(model.load()).allocate(); }); };
  EXPECT_TRUE(refused(case_model(false, {})).names("no branches"));
  Sketch wide = case_model(false);
  wide.graph().subgraphs[0].values[0].shape = {2};
  EXPECT_TRUE(refused(wide).names("[2], expected one value"));
  Sketch floating = case_model(false);
  floating.graph().subgraphs[0].values[0].dtype = kF32;
  EXPECT_EQ(refused(floating).code, ErrorCode::kUnsupported);
  EXPECT_TRUE(refused(case_model(false, {1, 9})).code.has_value());
  EXPECT_TRUE(refused(case_model(false, {1, 0})).code.has_value());
}

/// while (f(x)) x = f(x): not x, or not x joined with itself.
Sketch loop_of_one_subgraph(bool grows) {
  Sketch s;
  const int x = s.input("x", DType::kBool, {1});
  s.outputs({s.compute("WHILE", {x}, "y", DType::kBool, {1},
                       {{"cond_subgraph_index", int64_t{1}}, {"body_subgraph_index", int64_t{1}}})});
  s.next_subgraph("both");
  const int in = s.input("in", DType::kBool, {1});
  const int out = s.compute("LOGICAL_NOT", {in}, "not", DType::kBool, {1});
  s.outputs({grows ? s.compute("CONCATENATION", {out, out}, "out", DType::kBool, {2}) : out});
  return s;
}

TEST(While, ConditionAndBodyMayBeOneSubgraphThatKeepsItsShapes) {
  Interpreter interpreter(loop_of_one_subgraph(false).load());
  for (const uint8_t x : {0, 1}) {
    set<uint8_t>(interpreter, 0, {x});
    interpreter.invoke();
    EXPECT_EQ(get<uint8_t>(interpreter, 1), std::vector<uint8_t>{1});
  }
  const auto thrown = thrown_by([] { Interpreter(loop_of_one_subgraph(true).load()).invoke(); });
  EXPECT_EQ(thrown.code, ErrorCode::kUnsupported);
  EXPECT_TRUE(thrown.names("both subgraph 1")) << thrown.message;
}

/// x -> what the decomposition computes from it.
Sketch composite_model(const std::string& op, int more_inputs) {
  Sketch s;
  const int x = s.input("x", kF32, {4});
  s.outputs({s.compute("STABLEHLO_COMPOSITE", {x}, "y", kF32, {},
                       {{"name", std::string("odml.test")}, {"decomposition_subgraph_index", 1}})});
  s.next_subgraph("decomposition");
  const int in = s.input("in", kF32, {4});
  for (int i = 0; i < more_inputs; ++i) s.input("more", kF32, {4});
  if (op == "TILE") {
    // The number of copies is computed from the data, so the shape is too.
    const int first = s.compute("CAST", {in}, "whole", DType::kInt32, {4}, {{"in_data_type", 0}, {"out_data_type", 2}});
    const int axis = s.constant<int32_t>("axis", DType::kInt32, {1}, {0});
    const int most = s.compute("REDUCE_MAX", {first, axis}, "most", DType::kInt32, {1}, {{"keep_dims", 1}});
    s.outputs({s.compute("TILE", {in, most}, "out", kF32, {4})});
  } else {
    s.outputs({s.compute(op, {in}, "out", kF32, {4})});
  }
  return s;
}

TEST(Composite, ComputesItsDecompositionInThePlannedMemory) {
  Interpreter interpreter(composite_model("NEG", 0).load());
  EXPECT_TRUE(interpreter.plan().complete);
  EXPECT_EQ(run<float>(interpreter, {1, 2, 3, 4}), (std::vector<float>{-1, -2, -3, -4}));
  EXPECT_EQ(interpreter.plan().peak_bytes, interpreter.counted_peak_bytes());
}

TEST(Composite, FollowsItsInputsShape) {
  Interpreter interpreter(composite_model("NEG", 0).load());
  interpreter.resize_input(0, {1, 2});
  EXPECT_EQ(run<float>(interpreter, {5, -6}), (std::vector<float>{-5, 6}));
}

TEST(Composite, ShapesMayDependOnData) {
  Interpreter interpreter(composite_model("TILE", 0).load());
  EXPECT_EQ(run<float>(interpreter, {0, 2, 1, 0}), (std::vector<float>{0, 2, 1, 0, 0, 2, 1, 0}));
  EXPECT_EQ(run<float>(interpreter, {1, 1, 1, 1}), (std::vector<float>{1, 1, 1, 1}));
}

TEST(Composite, RefusesADecompositionWithOtherArguments) {
  EXPECT_TRUE(thrown_by([&] { Interpreter interpreter(composite_model("NEG", 1).load()); }).names("2 inputs"));
}

}  // namespace
}  // namespace leadline
