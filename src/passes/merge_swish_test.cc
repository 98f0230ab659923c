// SPDX-License-Identifier: Apache-2.0
#include "tests/cpp/passes_testing.h"

namespace leadline::passes {
namespace {

TEST(MergeSwish, ProductWithItsOwnLogistic) {
  for (const bool first : {true, false}) {
    Bench b;
    const int x = b.node("NEG", {b.input("x", kF32, {3, 7})}, "minus");
    const int gate = b.node("LOGISTIC", {x}, "gate");
    const int y = b.node("MUL", first ? std::vector<int>{gate, x} : std::vector<int>{x, gate}, "y");
    EXPECT_EQ(ops_of_run(b, {y}), (Ops{"NEG", "SWISH"}));
  }
}

TEST(MergeSwish, OthersStay) {
  Bench b;
  const int x = b.node("NEG", {b.input("x", kF32, {3, 7})}, "minus");
  const int gate = b.node("LOGISTIC", {x}, "gate");
  EXPECT_EQ(ops_of_run(b, {b.node("MUL", {x, gate}, "y"), gate}), (Ops{"NEG", "LOGISTIC", "MUL"}));
  Bench other;
  const int z = other.input("x", kF32, {3, 7});
  const int w = other.node("MUL", {other.node("NEG", {z}, "n"), other.node("LOGISTIC", {z}, "g")}, "y");
  EXPECT_EQ(ops_of_run(other, {w}), (Ops{"NEG", "LOGISTIC", "MUL"}));
}

}  // namespace
}  // namespace leadline::passes
