// SPDX-License-Identifier: Apache-2.0
// Sparse constants in models: DENSIFY, and ops that read them directly.
#include <gtest/gtest.h>

#include <vector>

#include "core/half.h"
#include "ir/sparsity.h"
#include "tests/cpp/sketch.h"

namespace leadline {
namespace {

using testing::run;
using testing::Sketch;
using testing::thrown_by;

constexpr DType kF32 = DType::kFloat32;

/// Row 0: 0 0 1 2, row 1: nothing, row 2: 3 4 5 6; blocks of two columns.
std::shared_ptr<const ir::Sparsity> row_blocks() {
  ir::Sparsity s;
  s.traversal_order = {0, 1, 2};
  s.block_map = {1};
  s.dimensions = {{true, 3, {}, {}}, {false, 0, {0, 1, 1, 3}, {1, 0, 1}}, {true, 2, {}, {}}};
  return std::make_shared<const ir::Sparsity>(s);
}
const std::vector<float> kStored = {1, 2, 3, 4, 5, 6};
const std::vector<float> kDense = {0, 0, 1, 2, 0, 0, 0, 0, 3, 4, 5, 6};

int sparse_weights(Sketch& s) {
  const int w = s.constant<float>("w", kF32, {3, 4}, kStored);
  s.subgraph().value(w).sparsity = row_blocks();
  return w;
}

TEST(Densify, GivesTheDenseConstantOnce) {
  Sketch s;
  const int x = s.input("x", kF32, {3, 4});
  const int dense = s.compute("DENSIFY", {sparse_weights(s)}, "dense", kF32, {3, 4});
  s.outputs({s.compute("ADD", {x, dense}, "y", kF32, {3, 4})});
  Interpreter interpreter(s.load());
  EXPECT_EQ(run<float>(interpreter, std::vector<float>(12, 0)), kDense);
  EXPECT_EQ(interpreter.plan().peak_bytes, interpreter.counted_peak_bytes());
}

TEST(Densify, WorksWhereAllTensorsAreKept) {
  Sketch s;
  const int x = s.input("x", kF32, {3, 4});
  const int dense = s.compute("DENSIFY", {sparse_weights(s)}, "dense", kF32, {3, 4});
  s.outputs({s.compute("ADD", {x, dense}, "y", kF32, {3, 4})});
  InterpreterOptions options;
  options.preserve_all_tensors = true;
  Interpreter interpreter(s.load(), options);
  EXPECT_EQ(run<float>(interpreter, std::vector<float>(12, 0)), kDense);
  EXPECT_EQ(testing::get<float>(interpreter, dense), kDense);
}

TEST(Densify, HalfPrecisionGoesThroughDequantizeIntoWeights) {
  Sketch s;
  const int x = s.input("x", kF32, {1, 4});
  std::vector<uint16_t> stored;
  for (float value : kStored) stored.push_back(float_to_half(value));
  const int w = s.constant<uint16_t>("w", DType::kFloat16, {3, 4}, stored);
  s.subgraph().value(w).sparsity = row_blocks();
  const int dense = s.compute("DENSIFY", {w}, "dense", DType::kFloat16, {3, 4});
  const int wide = s.compute("DEQUANTIZE", {dense}, "wide", kF32, {3, 4});
  s.outputs({s.compute("FULLY_CONNECTED", {x, wide, ir::kAbsent}, "y", kF32, {1, 3})});
  Interpreter interpreter(s.load());
  EXPECT_EQ(run<float>(interpreter, {1, 1, 1, 10}), (std::vector<float>{21, 0, 72}));
  EXPECT_EQ(interpreter.plan().peak_bytes, interpreter.counted_peak_bytes());
}

TEST(Densify, RefusesConstantsThatAreDense) {
  Sketch s;
  const int w = s.constant<float>("w", kF32, {2}, {1, 2});
  s.outputs({s.compute("DENSIFY", {w}, "dense", kF32, {2})});
  EXPECT_TRUE(thrown_by([&] { Interpreter interpreter(s.load()); }).names("not a sparse constant"));
}

TEST(SparseWeights, AreReadByOpsAsTheyAre) {
  Sketch s;
  const int x = s.input("x", kF32, {2, 4});
  s.outputs({s.compute("FULLY_CONNECTED", {x, sparse_weights(s), ir::kAbsent}, "y", kF32, {2, 3})});
  Interpreter interpreter(s.load());
  EXPECT_EQ(run<float>(interpreter, {1, 1, 1, 1, 0, 1, 0, 1}), (std::vector<float>{3, 0, 18, 2, 0, 10}));
}

TEST(MakeDense, FollowsTraversalOrderAndTwoDimensionalBlocks) {
  // 4 x 4 in blocks of 2 x 2, block columns first: block (row 1, column 0) and block (row 0, column 1).
  ir::Sparsity sparsity;
  sparsity.traversal_order = {1, 0, 3, 2};
  sparsity.block_map = {0, 1};
  sparsity.dimensions = {{true, 2, {}, {}}, {false, 0, {0, 1, 2}, {1, 0}}, {true, 2, {}, {}}, {true, 2, {}, {}}};
  const std::vector<int8_t> stored = {1, 2, 3, 4, 5, 6, 7, 8};
  ir::Value value;
  value.dtype = DType::kInt8;
  value.shape = {4, 4};
  value.constant = true;
  value.data = std::as_bytes(std::span(stored));
  value.sparsity = std::make_shared<const ir::Sparsity>(sparsity);
  ir::verify_sparsity(value, "value");
  std::vector<int8_t> dense(16, 99);
  ir::make_dense(value, reinterpret_cast<std::byte*>(dense.data()));
  EXPECT_EQ(dense, (std::vector<int8_t>{0, 0, 5, 7, 0, 0, 6, 8, 1, 3, 0, 0, 2, 4, 0, 0}));
}

}  // namespace
}  // namespace leadline
