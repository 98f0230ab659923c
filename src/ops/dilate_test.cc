// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "ops/graph_builder.h"
#include "ops/op_testing.h"
#include "quantize/integers.h"

namespace leadline::ops {
namespace {

template <typename T>
std::pair<Shape, std::vector<T>> dilated(const Shape& shape, const std::vector<T>& values,
                                         const std::vector<int32_t>& dilations, T padding, bool known = true) {
  OpTester t("DILATE");
  t.input<T>(shape, values);
  t.input<int32_t>({static_cast<int64_t>(dilations.size())}, dilations, {}, known);
  t.input<T>({}, {padding}).output(dtype_of<T>());
  EXPECT_EQ(t.infer(false), known);
  t.run();
  return {t.shape(0), t.result<T>(0)};
}

TEST(Dilate, PutsPaddingBetweenElements) {
  for (const bool known : {true, false}) {
    const auto [shape, values] = dilated<int32_t>({2, 2}, {1, 2, 3, 4}, {2, 3}, -1, known);
    EXPECT_EQ(shape, (Shape{3, 4}));
    EXPECT_EQ(values, (std::vector<int32_t>{1, -1, -1, 2, -1, -1, -1, -1, 3, -1, -1, 4}));
  }
}

TEST(Dilate, OneLeavesAnAxisAsItIs) {
  EXPECT_EQ(dilated<int8_t>({2, 2}, {1, 2, 3, 4}, {1, 1}, 9).second, (std::vector<int8_t>{1, 2, 3, 4}));
  EXPECT_EQ(dilated<int8_t>({2, 2}, {1, 2, 3, 4}, {2, 1}, 9).second, (std::vector<int8_t>{1, 2, 9, 9, 3, 4}));
  EXPECT_EQ(dilated<double>({1, 2}, {1, 2}, {7, 2}, 9).second, (std::vector<double>{1, 9, 2}));
}

TEST(Dilate, EmptyTensors) {
  const auto [shape, values] = dilated<float>({2, 0}, {}, {2, 3}, 1);
  EXPECT_EQ(shape, (Shape{3, 0}));
  EXPECT_TRUE(values.empty());
}

TEST(Dilate, RefusesBadDilations) {
  for (const int32_t bad : {0, -1, INT32_MIN}) {
    EXPECT_THROW(dilated<float>({2}, {1, 2}, {bad}, 0), Error) << bad;
    EXPECT_THROW(dilated<float>({2}, {1, 2}, {bad}, 0, false), Error) << bad;
  }
  EXPECT_THROW(dilated<float>({2}, {1, 2}, {1, 1}, 0), Error);
  EXPECT_THROW(dilated<float>({}, {1}, {}, 0), Error);
}

TEST(Dilate, KeepsItsScaleWhenQuantized) {
  GraphBuilder b;
  const int x = b.input("x", DType::kFloat32, {2, 3});
  const int dilations = b.constant("dilations", DType::kInt32, {2}, std::vector<int32_t>{2, 1});
  const int padding = b.constant("padding", DType::kFloat32, {}, std::vector<float>{0.5F});
  const auto graph = b.finish({b.node("DILATE", {x, dilations, padding}, "y")});
  quantize::Treatments treatments = quantize::plan_treatments(*graph, {});
  quantize::quantize_integers(*graph, treatments, [](int, int, int, bool) { return quantize::RealRange{-1.0, 1.0}; },
                              {});
  const ir::Subgraph& main = graph->subgraphs[0];
  const auto node =
      std::find_if(main.nodes.begin(), main.nodes.end(), [](const ir::Node& n) { return n.op == op::kDilate; });
  ASSERT_NE(node, main.nodes.end());
  const auto value = [&](int v) { return main.value(v); };
  for (int v : {node->inputs[0], node->inputs[2], node->outputs[0]}) {
    EXPECT_EQ(value(v).dtype, DType::kInt8);
    EXPECT_EQ(value(v).quantization, value(node->outputs[0]).quantization);
  }
}

}  // namespace
}  // namespace leadline::ops
