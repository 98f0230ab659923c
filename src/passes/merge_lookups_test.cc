// SPDX-License-Identifier: Apache-2.0
#include "ops/fused.h"
#include "tests/cpp/passes_testing.h"

namespace leadline::passes {
namespace {

using testing::Sketch;

constexpr DType kI8 = DType::kInt8;

/// Nodes on 8-bit tensors of shape [4, 64]: 256 elements, one of each value.
class Levels : public Sketch {
 public:
  explicit Levels(DType type = kI8, Shape shape = {4, 64}) : type_(type), shape_(shape) {
    x = input("x", type, shape);
    quantize(x, 0.05F, type == kI8 ? -3 : 120);
  }
  int quantize(int v, float scale, int zero) {
    Quantization& q = subgraph().value(v).quantization;
    q.scale = {scale};
    q.zero_point = {zero};
    return v;
  }
  int unary(const std::string& op, int v, float scale, int zero) {
    return quantize(compute(op, {v}, op, type_, shape_), scale, type_ == kI8 ? zero : zero + 128);
  }
  int binary(const std::string& op, int a, int b, float scale, int zero) {
    return quantize(compute(op, {a, b}, op, type_, shape_), scale, type_ == kI8 ? zero : zero + 128);
  }
  int number(int level, float scale, int zero, const Shape& shape = {}) {
    const auto byte = static_cast<std::byte>(type_ == kI8 ? level : level + 128);
    return quantize(constant_bytes("n", type_, shape, {byte}), scale, type_ == kI8 ? zero : zero + 128);
  }
  int x = 0;

 private:
  DType type_;
  Shape shape_;
};

std::vector<uint8_t> run(const Model& model, std::vector<std::string> disabled, Ops* ops = nullptr) {
  InterpreterOptions options;
  options.disabled_passes = std::move(disabled);
  Interpreter interpreter(model, options);
  std::vector<uint8_t> levels(256);
  for (int i = 0; i < 256; ++i) levels[static_cast<size_t>(i)] = static_cast<uint8_t>(i);
  const auto result = testing::run(interpreter, levels);
  if (ops != nullptr) {
    for (const PlannedStep& step : interpreter.plan().steps) ops->push_back(step.op);
  }
  return result;
}

/// The ops that run; results, and memory, are checked against those of the file.
Ops ops_of_run(Sketch& s) {
  const Model model = s.load();
  changes_for_runs(s.graph(), {}, true);  // verifies
  Ops ops;
  EXPECT_EQ(run(model, {}, &ops), run(model, {"all"}));
  const auto peak = [&](std::vector<std::string> disabled) {
    InterpreterOptions options;
    options.disabled_passes = std::move(disabled);
    return Interpreter(model, options).plan().peak_bytes;
  };
  EXPECT_LE(peak({}), peak({"all"}));
  return ops;
}

TEST(MergeLookups, ProductWithItsOwnLogistic) {
  for (const DType type : {kI8, DType::kUInt8}) {
    Levels s(type);
    const int gate = s.unary("LOGISTIC", s.x, 1.0F / 256, -128);
    s.outputs({s.binary("MUL", s.x, gate, 0.04F, -100)});
    EXPECT_EQ(ops_of_run(s), Ops{"LOOKUP"});
  }
}

TEST(MergeLookups, HardSwishWithNumbers) {
  Levels s;
  const int sum = s.binary("ADD", s.x, s.number(127, 3.0F / 127, 0, {1, 1, 1}), 0.1F, -50);
  const int gate = s.unary("RELU6", sum, 6.0F / 255, -128);
  const int product = s.binary("MUL", s.x, gate, 0.06F, -20);
  s.outputs({s.binary("MUL", product, s.number(127, 1.0F / 6 / 127, 0), 0.03F, -30)});
  const Model model = s.load();
  EXPECT_EQ(ops_of_run(s), Ops{"LOOKUP"});
  Interpreter interpreter(model);  // the result of broadcasting with a constant of rank 3
  EXPECT_EQ(interpreter.tensor(interpreter.outputs()[0]).shape, (Shape{1, 4, 64}));
}

TEST(MergeLookups, ThroughFloats) {
  Levels s;
  const int real = s.compute("DEQUANTIZE", {s.x}, "real", kF32, {4, 64});
  const int root = s.compute("EXP", {real}, "root", kF32, {4, 64});
  const int back = s.quantize(s.compute("QUANTIZE", {root}, "back", kI8, {4, 64}), 0.7F, -128);
  s.outputs({s.unary("TANH", back, 1.0F / 128, 0)});
  EXPECT_EQ(ops_of_run(s), Ops{"LOOKUP"});
}

TEST(MergeLookups, WhatOthersReadStays) {
  Levels s;
  const int gate = s.unary("LOGISTIC", s.x, 1.0F / 256, -128);
  const int y = s.binary("MUL", s.x, gate, 0.04F, -100);
  s.outputs({y, gate});
  EXPECT_EQ(ops_of_run(s), (Ops{"LOGISTIC", "MUL"}));
  Levels t;
  const int a = t.unary("RELU", t.x, 0.05F, -128);
  const int b = t.unary("LOGISTIC", a, 1.0F / 256, -128);
  const int c = t.unary("TANH", b, 1.0F / 128, 0);
  t.outputs({c, t.unary("ABS", a, 0.05F, -128)});
  EXPECT_EQ(ops_of_run(t), (Ops{"RELU", "LOOKUP", "ABS"}));
}

TEST(MergeLookups, TwoTensorsAreNoTable) {
  Levels s;
  const int other = s.quantize(s.input("other", kI8, {4, 64}), 0.02F, 0);
  s.outputs({s.unary("TANH", s.binary("MUL", s.x, other, 0.04F, -10), 1.0F / 128, 0)});
  EXPECT_EQ(ops_of_run(s), (Ops{"MUL", "TANH"}));
  Levels many;  // a constant of several numbers depends on the place
  const int numbers = many.quantize(many.constant("c", kI8, {64}, std::vector<int8_t>(64, 5)), 0.1F, 0);
  many.outputs({many.unary("TANH", many.binary("MUL", many.x, numbers, 0.04F, -10), 1.0F / 128, 0)});
  EXPECT_EQ(ops_of_run(many), (Ops{"MUL", "TANH"}));
}

TEST(MergeLookups, ErrorsAreThoseOfTheNodes) {
  Levels s;
  const int gate = s.compute("LOGISTIC", {s.x}, "gate", kI8, {4, 64});  // not quantized
  s.outputs({s.binary("MUL", s.x, gate, 0.04F, -100)});
  const Model model = s.load();
  const auto thrown = testing::thrown_by([&] { Interpreter interpreter(model); });
  EXPECT_TRUE(thrown.names("LOGISTIC #0")) << thrown.message;
}

TEST(MergeLookups, ChainsOfAnyLength) {
  Levels s;
  int v = s.x;
  for (int i = 0; i < 40; ++i) v = s.unary(i % 2 == 0 ? "ABS" : "NEG", v, 0.05F, 0);
  s.outputs({v});
  const Ops ops = ops_of_run(s);
  EXPECT_LE(ops.size(), 4U);
}

TEST(MergeLookups, CustomOpsOfTheSameNameAreOthers) {
  Levels s;
  const int a = s.unary("TANH", s.x, 1.0F / 128, 0);
  const int b = s.unary("ABS", a, 1.0F / 128, 0);
  s.subgraph().nodes.back().op = ir::OpId::custom("ABS");
  s.subgraph().nodes.back().inputs.clear();
  s.outputs({s.unary("NEG", b, 1.0F / 128, 0)});
  const ir::ChangedNodes changes = changes_for_runs(s.graph(), {}, false);
  EXPECT_TRUE(changes.subgraphs[0].changed.empty());
}

}  // namespace
}  // namespace leadline::passes
