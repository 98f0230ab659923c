// SPDX-License-Identifier: Apache-2.0
#include "ops/stablehlo_indexing.h"

#include <gtest/gtest.h>

#include <functional>

#include "core/half.h"
#include "ops/op_testing.h"

namespace leadline::ops {
namespace {

const std::vector<float> kSquare = {0, 1, 2, 10, 11, 12, 20, 21, 22};  // 3 x 3: row and column

/// Rows of a 3 x 3 operand by number.
StablehloGatherAttributes row_gather() {
  StablehloGatherAttributes a;
  a.offset_dims = {1};
  a.collapsed_slice_dims = {0};
  a.start_index_map = {0};
  a.index_vector_dim = 1;
  a.slice_sizes = {1, 3};
  return a;
}

template <typename I>
OpTester gather(StablehloGatherAttributes a, const Shape& shape, const std::vector<I>& indices) {
  OpTester t("STABLEHLO_GATHER");
  t.attributes(std::move(a)).input<float>({3, 3}, kSquare).input<I>(shape, indices).output(DType::kFloat32);
  return t;
}

TEST(StablehloGather, PicksRowsAndMovesStartsInside) {
  auto t = gather<int64_t>(row_gather(), {3, 1}, {1, INT64_MAX, INT64_MIN});
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{3, 3}));
  EXPECT_EQ(t.result<float>(0), (std::vector<float>{10, 11, 12, 20, 21, 22, 0, 1, 2}));
}

TEST(StablehloGather, IndicesWithoutAVectorAxisAreScalars) {
  StablehloGatherAttributes a = row_gather();
  a.index_vector_dim = 1;
  auto t = gather<int32_t>(a, {2}, {2, 0});
  t.run();
  EXPECT_EQ(t.result<float>(0), (std::vector<float>{20, 21, 22, 0, 1, 2}));
}

TEST(StablehloGather, WindowsStartAtMappedCoordinates) {
  StablehloGatherAttributes a;
  a.offset_dims = {0, 2};
  a.start_index_map = {1, 0};
  a.index_vector_dim = 0;
  a.slice_sizes = {2, 1};
  // Vectors are columns of the indices: (column 2, row 0) and (column 0, row 9, moved to 1).
  auto t = gather<int32_t>(a, {2, 2}, {2, 0, 0, 9});
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{2, 2, 1}));
  EXPECT_EQ(t.result<float>(0), (std::vector<float>{2, 10, 12, 20}));
}

TEST(StablehloGather, RefusesWhatDoesNotFit) {
  const auto refused = [](const std::function<void(StablehloGatherAttributes&)>& change) {
    StablehloGatherAttributes a = row_gather();
    change(a);
    EXPECT_THROW(gather<int32_t>(a, {3, 1}, {0, 0, 0}).run(), Error);
  };
  refused([](auto& a) { a.slice_sizes = {1, 4}; });
  refused([](auto& a) { a.slice_sizes = {0, 3}; });
  refused([](auto& a) { a.slice_sizes = {1, -1}; });
  refused([](auto& a) { a.slice_sizes = {1}; });
  refused([](auto& a) { a.offset_dims = {2}; });
  refused([](auto& a) { a.offset_dims = {-1}; });
  refused([](auto& a) { a.offset_dims = {}; });
  refused([](auto& a) { a.offset_dims.assign(9, 0); });
  refused([](auto& a) { a.collapsed_slice_dims = {0, 0}; });
  refused([](auto& a) { a.start_index_map = {2}; });
  refused([](auto& a) { a.start_index_map = {0, 1}; });
  refused([](auto& a) { a.index_vector_dim = 3; });
  refused([](auto& a) { a.index_vector_dim = -1; });
}

/// Rows of updates into a 3 x 3 operand.
StablehloScatterAttributes row_scatter() {
  StablehloScatterAttributes a;
  a.update_window_dims = {1};
  a.inserted_window_dims = {0};
  a.scatter_dims_to_operand_dims = {0};
  a.index_vector_dim = 1;
  return a;
}

template <typename T>
OpTester scatter(StablehloScatterAttributes a, const std::vector<ir::OpId>& body, const std::vector<T>& operand,
                 const std::vector<int32_t>& rows, const std::vector<T>& updates) {
  OpTester t("STABLEHLO_SCATTER");
  const auto n = static_cast<int64_t>(rows.size());
  t.attributes(std::move(a))
      .body(body)
      .template input<T>({3, 3}, operand)
      .template input<int32_t>({n, 1}, rows)
      .template input<T>({n, 3}, updates)
      .output(dtype_of<T>());
  return t;
}

TEST(StablehloScatter, ReplacesRowsInOrderAndSkipsWhatIsOutside) {
  auto t = scatter<float>(row_scatter(), {}, kSquare, {1, 3, -1, 1}, {1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 5, 6});
  t.run();
  EXPECT_EQ(t.result<float>(0), (std::vector<float>{0, 1, 2, 4, 5, 6, 20, 21, 22}));
}

TEST(StablehloScatter, CombinesAsTheComputationSays) {
  const std::vector<int32_t> ones(9, 2);
  const auto first_row = [&](const ir::OpId& op) {
    auto t = scatter<int32_t>(row_scatter(), {op}, ones, {0, 0}, {1, 2, 3, -4, 5, 6});
    t.run();
    auto all = t.result<int32_t>(0);
    all.resize(3);
    return all;
  };
  EXPECT_EQ(first_row(op::kStablehloAdd), (std::vector<int32_t>{-1, 9, 11}));
  EXPECT_EQ(first_row(op::kStablehloMultiply), (std::vector<int32_t>{-8, 20, 36}));
  EXPECT_EQ(first_row(op::kStablehloMaximum), (std::vector<int32_t>{2, 5, 6}));
  EXPECT_EQ(first_row(op::kStablehloMinimum), (std::vector<int32_t>{-4, 2, 2}));
}

TEST(StablehloScatter, WindowsMayHangOverTheEdge) {
  StablehloScatterAttributes a;
  a.update_window_dims = {0};
  a.scatter_dims_to_operand_dims = {0};
  a.index_vector_dim = 0;
  OpTester t("STABLEHLO_SCATTER");
  t.attributes(a).input<uint8_t>({3}, {1, 2, 3}).input<int64_t>({1}, {-1}).input<uint8_t>({3}, {7, 8, 9});
  t.output(DType::kUInt8).run();
  EXPECT_EQ(t.result<uint8_t>(0), (std::vector<uint8_t>{8, 9, 3}));
}

TEST(StablehloScatter, AddsHalfPrecision) {
  StablehloScatterAttributes a;
  a.inserted_window_dims = {0};
  a.scatter_dims_to_operand_dims = {0};
  a.index_vector_dim = 1;
  const auto halves = [](float value) {
    std::vector<std::byte> bytes(2);
    const uint16_t bits = float_to_half(value);
    std::memcpy(bytes.data(), &bits, 2);
    return bytes;
  };
  OpTester t("STABLEHLO_SCATTER");
  t.attributes(a).body({op::kStablehloAdd}).raw_input(DType::kFloat16, {1}, halves(1.5F)).input<int32_t>({1, 1}, {0});
  t.raw_input(DType::kFloat16, {1}, halves(2.25F)).output(DType::kFloat16).run();
  EXPECT_EQ(half_to_float(t.result<uint16_t>(0)[0]), 3.75F);
}

TEST(StablehloScatter, RefusesOtherComputationsAndWhatDoesNotFit) {
  const auto refused = [](const std::function<void(StablehloScatterAttributes&)>& change,
                          const std::vector<ir::OpId>& body = {}) {
    StablehloScatterAttributes a = row_scatter();
    change(a);
    EXPECT_THROW(scatter<float>(a, body, kSquare, {1}, {1, 2, 3}).run(), Error);
  };
  refused([](auto&) {}, {op::kSub});
  refused([](auto&) {}, {op::kStablehloAdd, op::kStablehloAdd});
  refused([](auto& a) { a.update_window_dims = {2}; });
  refused([](auto& a) { a.update_window_dims = {1, 1}; });
  refused([](auto& a) { a.inserted_window_dims = {}; });
  refused([](auto& a) { a.inserted_window_dims = {5}; });
  refused([](auto& a) { a.scatter_dims_to_operand_dims = {-1}; });
  refused([](auto& a) { a.scatter_dims_to_operand_dims = {}; });
  refused([](auto& a) { a.index_vector_dim = 7; });
  refused([](auto& a) {
    a.index_vector_dim = 0;
    a.update_window_dims = {0};
    a.scatter_dims_to_operand_dims = {0};
  });
}

}  // namespace
}  // namespace leadline::ops
