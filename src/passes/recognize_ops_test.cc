// SPDX-License-Identifier: Apache-2.0
#include "ops/reduce.h"
#include "tests/cpp/passes_testing.h"

namespace leadline::passes {
namespace {

/// Numbers from -5 to 5 or so, where activations bend.
int spread(Bench& b, const Dims& dims = {2, 3, 4}) {
  return b.node("NEG", {b.node("MUL", {b.input("x", kF32, dims), b.number(5)}, "wide")}, "spread");
}

TEST(RecognizeOps, HardSwishInEverySpelling) {
  for (int spelling = 0; spelling < 6; ++spelling) {
    SCOPED_TRACE(spelling);
    Bench b;
    const int x = b.node("NEG", {b.input("x", kF32, {2, 3, 4})}, "minus");
    const int gate = b.node("RELU6", {b.node("ADD", {x, b.number(3)}, "sum")}, "gate");
    const int sixth = b.number(1.0F / 6);
    int y = 0;
    if (spelling == 0) y = b.node("MUL", {b.node("MUL", {x, gate}, "m"), sixth}, "y");
    if (spelling == 1) y = b.node("MUL", {x, b.node("MUL", {gate, sixth}, "m")}, "y");
    if (spelling == 2) y = b.node("MUL", {gate, b.node("MUL", {sixth, x}, "m")}, "y");
    if (spelling == 3) y = b.node("DIV", {b.node("MUL", {gate, x}, "m"), b.number(6)}, "y");
    if (spelling == 4) y = b.node("MUL", {x, b.node("DIV", {gate, b.number(6)}, "m")}, "y");
    if (spelling == 5) {
      const int sum = b.node("ADD", {b.number(3), x}, "sum");
      const int clipped = b.node("MINIMUM", {b.node("MAXIMUM", {sum, b.number(0)}, "low"), b.number(6)}, "high");
      y = b.node("MUL", {b.node("MUL", {clipped, sixth}, "m"), x}, "y");
    }
    EXPECT_EQ(ops_after_passes(b, {y}), (Ops{"NEG", "HARD_SWISH"}));
  }
}

TEST(RecognizeOps, GatesOfOtherDataAreNoHardSwish) {
  Bench b;
  const int x = b.node("NEG", {b.input("x", kF32, {2, 3})}, "minus");
  const int other = b.input("other", kF32, {2, 3});
  const int gate = b.node("RELU6", {b.node("ADD", {x, b.number(3)}, "sum")}, "gate");
  const int y = b.node("MUL", {other, b.node("MUL", {gate, b.number(1.0F / 6)}, "m")}, "y");
  EXPECT_EQ(ops_after_passes(b, {y}), (Ops{"NEG", "ADD", "MUL", "MUL"}));
  Bench half;
  const int z = half.node("NEG", {half.input("x", kF32, {2, 3})}, "minus");
  const int wrong = half.node("RELU6", {half.node("ADD", {z, half.number(2)}, "sum")}, "gate");
  const int w = half.node("MUL", {half.node("MUL", {z, wrong}, "m"), half.number(1.0F / 6)}, "y");
  EXPECT_EQ(ops_after_passes(half, {w}), (Ops{"NEG", "ADD", "MUL", "MUL"}));
}

TEST(RecognizeOps, ClipsAreRelus) {
  const struct {
    float low, high;
    const char* op;
  } cases[] = {{0, 6, "RELU6"}, {0, 1, "RELU_0_TO_1"}, {-1, 1, "RELU_N1_TO_1"}};
  for (const auto& c : cases) {
    for (const bool low_first : {true, false}) {
      Bench b;
      const int x = spread(b);
      const int low = b.number(c.low);
      const int high = b.number(c.high);
      const int y = low_first ? b.node("MINIMUM", {b.node("MAXIMUM", {x, low}, "m"), high}, "y")
                              : b.node("MAXIMUM", {low, b.node("MINIMUM", {high, x}, "m")}, "y");
      EXPECT_EQ(ops_after_passes(b, {y}).back(), c.op);
    }
  }
  Bench b;
  const int y = b.node("MAXIMUM", {b.node("MINIMUM", {spread(b), b.number(2)}, "m"), b.number(0)}, "y");
  EXPECT_EQ(ops_after_passes(b, {y}).back(), "RELU");
}

TEST(RecognizeOps, LeakyReluAndPrelu) {
  Bench leaky;
  const int x = spread(leaky);
  const int y = leaky.node("MAXIMUM", {leaky.node("MUL", {x, leaky.number(0.2F)}, "m"), x}, "y");
  EXPECT_EQ(ops_after_passes(leaky, {y}).back(), "LEAKY_RELU");
  Bench steep;  // more than 1: the larger is on the other side
  const int z = spread(steep);
  EXPECT_EQ(
      ops_after_passes(steep, {steep.node("MAXIMUM", {steep.node("MUL", {z, steep.number(2)}, "m"), z}, "y")}).back(),
      "MAXIMUM");
  Bench b;
  const int w = spread(b);
  const int negative = b.node("RELU", {b.node("NEG", {w}, "n")}, "negative");
  const int sum = b.node("ADD", {b.node("RELU", {w}, "p"), b.node("MUL", {b.floats({1, 4}), negative}, "m")}, "y");
  EXPECT_EQ(ops_after_passes(b, {sum}).back(), "PRELU");
}

TEST(RecognizeOps, GeluWithTanh) {
  for (const bool power : {true, false}) {
    Bench b;
    const int x = spread(b);
    const int cube =
        power ? b.node("POW", {x, b.number(3)}, "cube") : b.node("MUL", {x, b.node("SQUARE", {x}, "s")}, "cube");
    const int sum = b.node("ADD", {x, b.node("MUL", {b.number(0.044715F), cube}, "m")}, "sum");
    const int tanh = b.node("TANH", {b.node("MUL", {b.number(0.7978845608F), sum}, "a")}, "tanh");
    const int gate = b.node("ADD", {b.number(1), tanh}, "gate");
    const int y = b.node("MUL", {b.node("MUL", {b.number(0.5F), x}, "half"), gate}, "y");
    EXPECT_EQ(ops_after_passes(b, {y}), (Ops{"MUL", "NEG", "GELU"}));
  }
}

TEST(RecognizeOps, L2NormalizationAlongTheLastAxis) {
  for (const bool last : {true, false}) {
    Bench b;
    const int x = b.node("NEG", {b.input("x", kF32, {2, 3, 4})}, "minus");
    ops::ReduceAttributes keep;
    keep.keep_dims = true;
    const int sum = b.node("SUM", {b.node("SQUARE", {x}, "s"), b.ints({last ? -1 : 1})}, "sum", keep);
    const int root = b.node("RSQRT", {b.node("MAXIMUM", {sum, b.number(1e-12F)}, "m")}, "root");
    const auto left = ops_after_passes(b, {b.node("MUL", {x, root}, "y")});
    EXPECT_EQ(left.size(), last ? 2U : 6U);
    EXPECT_EQ(left.back(), last ? "L2_NORMALIZATION" : "MUL");
  }
}

}  // namespace
}  // namespace leadline::passes
