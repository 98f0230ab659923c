// SPDX-License-Identifier: Apache-2.0
#include "ops/size_search.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "ops/concatenation.h"
#include "ops/graph_builder.h"
#include "ops/reshape.h"

namespace leadline::ops {
namespace {

/// Builds until the sizes fit; returns the sizes of the last value, nothing when they never do.
template <typename Build>
std::optional<Dims> searched(Build build) {
  for (SizeSearch search;;) {
    GraphBuilder b;
    b.choose_sizes(search.choices());
    try {
      return b.dims(build(b));
    } catch (const Error&) {
      if (!search.next(b.conflict())) return {};
    }
  }
}

int concat(GraphBuilder& b, const std::vector<int>& parts, int axis) {
  ConcatenationAttributes attributes;
  attributes.axis = axis;
  return b.node("CONCATENATION", parts, "both", attributes);
}

TEST(SizeSearch, ASizeThatIsAMultipleOfAnother) {
  const auto dims = searched([](GraphBuilder& b) {
    const int images = b.input("images", DType::kFloat32, {-1, -1, 4, 3});
    const int rows = b.input("rows", DType::kFloat32, {-1, -1, 3});
    const std::vector<int32_t> flat = {-1, 3};
    const int target = b.constant("target", DType::kInt32, {2}, flat);
    const auto as_rows = [&](int x) { return b.node("RESHAPE", {x, target}, "flat"); };
    return concat(b, {as_rows(images), as_rows(rows)}, 1);
  });
  ASSERT_TRUE(dims.has_value());
  EXPECT_EQ(*dims, (Dims{-1, 6}));
}

TEST(SizeSearch, ASizeThatIsANumberOfTheModel) {
  const auto dims = searched([](GraphBuilder& b) {
    const int x = b.input("x", DType::kFloat32, {3, -1});
    const int table = b.constant("table", DType::kFloat32, {3, 77}, std::vector<float>(231));
    return concat(b, {x, table}, 0);
  });
  ASSERT_TRUE(dims.has_value());
  EXPECT_EQ(*dims, (Dims{6, 77}));
}

TEST(SizeSearch, SizesThatDependOnData) {
  const auto dims = searched([](GraphBuilder& b) {
    const int x = b.input("x", DType::kFloat32, {-1, 8, 8, 3});
    const int condition = b.input("condition", DType::kBool, {-1});
    NodeSpec spec;
    spec.op = "Unknown";
    spec.inputs = {condition};
    spec.outputs = {{"y", DType::kFloat32, {}, Dims{-1, -1, -1, -1}}};
    spec.custom = true;
    return b.node("ADD", {x, b.add(std::move(spec))[0]}, "sum");
  });
  ASSERT_TRUE(dims.has_value());
  EXPECT_EQ(*dims, (Dims{-1, 8, 8, 3}));
}

TEST(SizeSearch, WhatNoSizesFitEnds) {
  const auto dims = searched([](GraphBuilder& b) {
    const int x = b.input("x", DType::kFloat32, {-1, 3});
    const int other = b.constant("other", DType::kFloat32, {2, 4}, std::vector<float>(8));
    return concat(b, {x, other}, 0);
  });
  EXPECT_FALSE(dims.has_value());
}

TEST(GraphBuilder, UnknownRanks) {
  GraphBuilder b;
  const int x = b.unranked_input("x", DType::kFloat32);
  const int y = b.node("TANH", {x}, "y");
  EXPECT_FALSE(b.has_rank(y));
  EXPECT_THROW(b.dims(y), Error);
  const int target = b.constant("target", DType::kInt32, {1}, std::vector<int32_t>{-1});
  EXPECT_EQ(b.dims(b.node("RESHAPE", {y, target}, "flat")), Dims{-1});
  const auto graph = b.finish({y});
  EXPECT_FALSE(graph->subgraphs[0].value(x).has_rank);
  EXPECT_FALSE(graph->subgraphs[0].value(x).signature.has_value());
}

}  // namespace
}  // namespace leadline::ops
