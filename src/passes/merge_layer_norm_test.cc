// SPDX-License-Identifier: Apache-2.0
#include "ops/reduce.h"
#include "tests/cpp/passes_testing.h"

namespace leadline::passes {
namespace {

/// Layer normalization in parts.
class Norm : public Bench {
 public:
  explicit Norm(int axis = -1, const Dims& dims = {2, 5, 19}) : axis_(axis) {
    x = node("NEG", {input("x", kF32, dims)}, "x");
  }
  int mean_of(int v, const char* name) {
    ops::ReduceAttributes keep;
    keep.keep_dims = true;
    return node("MEAN", {v, ints({axis_})}, name, keep);
  }
  int inverse(int squares) {
    return node("RSQRT", {node("ADD", {mean_of(squares, "variance"), number(1e-3F)}, "sum")}, "root");
  }
  int x = 0;

 private:
  int axis_;
};

TEST(MergeLayerNorm, Differences) {
  for (const int form : {0, 1, 2}) {
    for (const int extras : {0, 1, 2}) {
      Norm b;
      const int mean = b.mean_of(b.x, "mean");
      const int d = b.node("SUB", {b.x, mean}, "d");
      const int squares = form == 0   ? b.node("MUL", {d, d}, "s")
                          : form == 1 ? b.node("SQUARE", {d}, "s")
                                      : b.node("SQUARED_DIFFERENCE", {b.x, mean}, "s");
      int y = b.node("MUL", {d, b.inverse(squares)}, "y");
      if (extras > 0) y = b.node("MUL", {y, b.floats({19})}, "scaled");
      if (extras > 1) y = b.node("ADD", {b.floats({1, 19}), y}, "shifted");
      EXPECT_EQ(ops_of_run(b, {y}), (Ops{"NEG", "LAYER_NORM"})) << form << ' ' << extras;
    }
  }
}

TEST(MergeLayerNorm, ScaleAndOffset) {
  for (const bool negated : {false, true}) {
    for (const bool gain : {false, true}) {
      Norm b(2);
      const int mean = b.mean_of(b.x, "mean");
      int s = b.inverse(b.node("SQUARED_DIFFERENCE", {mean, b.x}, "s"));
      if (gain) s = b.node("MUL", {s, b.floats({19})}, "scale");
      const int offset = negated ? b.node("MUL", {b.node("NEG", {mean}, "n"), s}, "o")
                                 : b.node("SUB", {b.floats({19}), b.node("MUL", {mean, s}, "m")}, "o");
      EXPECT_EQ(ops_of_run(b, {b.node("ADD", {b.node("MUL", {b.x, s}, "p"), offset}, "y")}), (Ops{"NEG", "LAYER_NORM"}))
          << negated << gain;
    }
  }
}

TEST(MergeLayerNorm, OthersStay) {
  Norm along_another(1);
  const int mean = along_another.mean_of(along_another.x, "mean");
  const int d = along_another.node("SUB", {along_another.x, mean}, "d");
  const int root = along_another.inverse(along_another.node("SQUARE", {d}, "s"));
  EXPECT_EQ(ops_of_run(along_another, {along_another.node("MUL", {d, root}, "y")}).size(), 8U);
  Norm shown;  // the mean is a result too
  const int m = shown.mean_of(shown.x, "mean");
  const int e = shown.node("SUB", {shown.x, m}, "d");
  EXPECT_EQ(ops_of_run(shown, {shown.node("MUL", {e, shown.inverse(shown.node("SQUARE", {e}, "s"))}, "y"), m}).size(),
            8U);
  Norm full;  // a sum with a whole tensor is not part of it
  const int n = full.mean_of(full.x, "mean");
  const int f = full.node("SUB", {full.x, n}, "d");
  const int y = full.node("MUL", {f, full.inverse(full.node("SQUARE", {f}, "s"))}, "y");
  EXPECT_EQ(ops_of_run(full, {full.node("ADD", {y, full.floats({2, 5, 19})}, "z")}), (Ops{"NEG", "LAYER_NORM", "ADD"}));
}

TEST(MergeLayerNorm, InputsOfAnotherRankRunAsInTheFile) {
  Norm b(2);
  const int d = b.node("SUB", {b.x, b.mean_of(b.x, "mean")}, "d");
  const auto graph = b.finish({b.node("MUL", {d, b.inverse(b.node("SQUARE", {d}, "s"))}, "y")});
  const Model model = Model::from_bytes(model::write(*graph));
  std::vector<std::vector<float>> results;
  for (const bool passes : {true, false}) {
    InterpreterOptions options;
    if (!passes) options.disabled_passes = {"all"};
    Interpreter interpreter(model, options);
    interpreter.resize_input(interpreter.inputs()[0], {2, 3, 5, 2});
    results.push_back(testing::run(interpreter, numbers(60, 1)));
  }
  EXPECT_EQ(results[0], results[1]);
}

}  // namespace
}  // namespace leadline::passes
