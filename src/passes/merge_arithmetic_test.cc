// SPDX-License-Identifier: Apache-2.0
#include "tests/cpp/passes_testing.h"

namespace leadline::passes {
namespace {

TEST(MergeArithmetic, NeutralOperandsVanish) {
  Bench b;
  const int x = b.input("x", kF32, {-1, 3});
  const int one = b.constant("one", kF32, {}, std::vector<float>{1});
  const int zeros = b.constant("zeros", kF32, {3}, std::vector<float>{0, 0, 0});
  int y = b.node("EXP", {x}, "e");
  y = b.node("MUL", {one, y}, "m");
  y = b.node("SUB", {y, zeros}, "s");
  y = b.node("DIV", {y, one}, "d");
  y = b.node("ADD", {y, zeros}, "y");
  EXPECT_EQ(ops_after_passes(b, {y}), Ops{"EXP"});
}

TEST(MergeArithmetic, OperandsThatAreNotNeutralStay) {
  Bench b;
  const int x = b.input("x", kF32, {1, 3});
  const int zero = b.constant("zero", kF32, {}, std::vector<float>{0});
  const int tall = b.constant("tall", kF32, {2, 1}, std::vector<float>{1, 1});
  const int minus = b.node("SUB", {zero, b.node("EXP", {x}, "e")}, "minus");
  EXPECT_EQ(ops_after_passes(b, {b.node("MUL", {minus, tall}, "y")}), (Ops{"EXP", "SUB", "MUL"}));
}

TEST(MergeArithmetic, ConstantsOfAChainBecomeOne) {
  for (const bool sum : {true, false}) {
    Bench b;
    const int x = b.input("x", kF32, {2, 3});
    int y = b.node("EXP", {x}, "e");
    y = b.node(sum ? "SUB" : "DIV", {y, b.floats({})}, "first");
    y = b.node(sum ? "ADD" : "MUL", {b.floats({3}), y}, "second");
    y = b.node("RELU", {b.node(sum ? "SUB" : "DIV", {y, b.floats({1, 1})}, "third")}, "y");
    EXPECT_EQ(ops_after_passes(b, {y}), (Ops{"EXP", sum ? "ADD" : "MUL"}));
  }
}

TEST(MergeArithmetic, ChainsKeepWhatOthersReadAndWhatOverflows) {
  Bench b;
  const int x = b.node("EXP", {b.input("x", kF32, {2, 3})}, "e");
  const int first = b.node("ADD", {x, b.floats({})}, "first");
  EXPECT_EQ(ops_after_passes(b, {b.node("ADD", {first, b.floats({})}, "y"), first}), (Ops{"EXP", "ADD", "ADD"}));
  Bench large;
  int y = large.node("EXP", {large.input("x", kF32, {2, 3})}, "e");
  const int tiny = large.constant("tiny", kF32, {}, std::vector<float>{1e-30F});
  y = large.node("MUL", {large.node("MUL", {y, tiny}, "first"), tiny}, "y");
  EXPECT_EQ(ops_after_passes(large, {y}), (Ops{"EXP", "MUL", "MUL"}));
}

}  // namespace
}  // namespace leadline::passes
