// SPDX-License-Identifier: Apache-2.0
#include "ir/sources.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "core/half.h"
#include "tests/cpp/sketch.h"

namespace leadline::ir {
namespace {

using testing::thrown_by;

template <typename T>
Source source_of(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return owned_source({bytes.begin(), bytes.end()});
}

template <typename T>
std::vector<T> values_of(const Source& source) {
  const std::vector<std::byte> bytes = read_all(*source);
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

template <typename T>
std::vector<T> counting(size_t count) {
  std::vector<T> values(count);
  std::iota(values.begin(), values.end(), T{0});
  return values;
}

/// Counts how often it is read.
class Counted final : public ConstantSource {
 public:
  explicit Counted(int& reads) : reads_(reads) {}
  int64_t bytes() const override { return 24; }
  void read(std::span<std::byte> out) const override {
    ++reads_;
    std::fill(out.begin(), out.end(), std::byte{0});
  }

 private:
  int& reads_;
};

TEST(Sources, TransposesAnyPermutation) {
  const Source source = source_of(counting<int16_t>(24));
  const int order[] = {2, 0, 1};
  const auto result = values_of<int16_t>(transposed_source(source, {2, 3, 4}, order, 2));
  for (int a = 0; a < 4; ++a) {
    for (int b = 0; b < 2; ++b) {
      for (int c = 0; c < 3; ++c) EXPECT_EQ(result[static_cast<size_t>(a * 6 + b * 3 + c)], b * 12 + c * 4 + a);
    }
  }
}

TEST(Sources, TransposesEveryElementSize) {
  const int order[] = {1, 0};
  EXPECT_EQ(values_of<int8_t>(transposed_source(source_of(counting<int8_t>(6)), {2, 3}, order, 1)),
            (std::vector<int8_t>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(values_of<double>(transposed_source(source_of(counting<double>(6)), {2, 3}, order, 8)),
            (std::vector<double>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(values_of<double>(transposed_source(source_of(counting<double>(12)), {2, 3}, order, 16)),
            (std::vector<double>{0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11}));
}

TEST(Sources, TransposesMatricesBeyondABlock) {
  constexpr int kRows = 5 * 14, kColumns = 45;
  const int order[] = {2, 0, 1};  // the last axis to the front: the transpose of a matrix of 70 rows
  const auto result =
      values_of<int32_t>(transposed_source(source_of(counting<int32_t>(kRows * kColumns)), {5, 14, 45}, order, 4));
  for (int row = 0; row < kRows; ++row) {
    for (int column = 0; column < kColumns; ++column) {
      ASSERT_EQ(result[static_cast<size_t>(column * kRows + row)], row * kColumns + column);
    }
  }
}

TEST(Sources, TwoTranspositionsBecomeOne) {
  const Source source = source_of(counting<float>(6));
  const int order[] = {1, 0};
  const Source once = transposed_source(source, {2, 3}, order, 4);
  EXPECT_EQ(transposed_source(once, {3, 2}, order, 4), source);
}

TEST(Sources, NothingIsReadBeforeItIsNeeded) {
  int reads = 0;
  const int order[] = {1, 0};
  const Source source = std::make_shared<Counted>(reads);
  const Source made = scaled_source(transposed_source(source, {2, 3}, order, 4), {3, 2}, 1, {1, 2});
  EXPECT_EQ(made->bytes(), 24);
  EXPECT_EQ(reads, 0);
  read_all(*made);
  EXPECT_EQ(reads, 1);
}

TEST(Sources, ScalesAlongAnAxis) {
  const Source source = source_of(std::vector<float>{1, 2, 3, 4, 5, 6});
  EXPECT_EQ(values_of<float>(scaled_source(source, {2, 3}, 0, {10, 100})),
            (std::vector<float>{10, 20, 30, 400, 500, 600}));
  EXPECT_EQ(values_of<float>(scaled_source(source, {2, 3}, 1, {1, 0, -1})), (std::vector<float>{1, 0, -3, 4, 0, -6}));
  EXPECT_EQ(values_of<float>(scaled_source(source, {1, 3, 2}, 1, {1, 2, 3})), (std::vector<float>{1, 2, 6, 8, 15, 18}));
}

TEST(Sources, CombinesVectors) {
  const Source a = source_of(std::vector<float>{1, 2});
  const Source b = source_of(std::vector<float>{10, 20});
  EXPECT_EQ(values_of<float>(combined_source({{a, b, -1.0F}, {b, nullptr, 0.5F}})), (std::vector<float>{-5, -30}));
}

TEST(Sources, ConvertsInPlaceWhenElementsGetWider) {
  const std::vector<uint16_t> halves = {float_to_half(1.5F), float_to_half(-2.0F), float_to_half(65504.0F)};
  EXPECT_EQ(values_of<float>(converted_source(source_of(halves), DType::kFloat16, DType::kFloat32)),
            (std::vector<float>{1.5F, -2.0F, 65504.0F}));
  EXPECT_EQ(values_of<int64_t>(converted_source(source_of(std::vector<int8_t>{-1, 7}), DType::kInt8, DType::kInt64)),
            (std::vector<int64_t>{-1, 7}));
  const std::vector<uint16_t> brain = {float_to_bfloat16(3.0F)};
  EXPECT_EQ(values_of<float>(converted_source(source_of(brain), DType::kBFloat16, DType::kFloat32)),
            std::vector<float>{3.0F});
}

TEST(Sources, ConversionsSaturate) {
  const double inf = std::numeric_limits<double>::infinity();
  const Source wide = source_of(std::vector<double>{1e30, -1e30, inf, std::nan(""), 2.9, -2.9});
  EXPECT_EQ(values_of<int32_t>(converted_source(wide, DType::kFloat64, DType::kInt32)),
            (std::vector<int32_t>{INT32_MAX, INT32_MIN, INT32_MAX, 0, 2, -2}));
  EXPECT_EQ(values_of<int32_t>(
                converted_source(source_of(std::vector<int64_t>{int64_t{1} << 40, -5}), DType::kInt64, DType::kInt32)),
            (std::vector<int32_t>{INT32_MAX, -5}));
  EXPECT_EQ(values_of<uint8_t>(converted_source(source_of(std::vector<float>{0, 0.5F}), DType::kFloat32, DType::kBool)),
            (std::vector<uint8_t>{0, 1}));
  EXPECT_FALSE(convertible(DType::kString, DType::kFloat32));
}

TEST(Sources, SlicesAndConcatenatesAreInverse) {
  const Source source = source_of(counting<float>(24));
  const int64_t first[] = {0, 0, 0};
  const int64_t second[] = {0, 1, 0};
  const Source left = sliced_source(source, {2, 3, 4}, first, {2, 1, 4}, 4);
  const Source right = sliced_source(source, {2, 3, 4}, second, {2, 2, 4}, 4);
  EXPECT_EQ(values_of<float>(left), (std::vector<float>{0, 1, 2, 3, 12, 13, 14, 15}));
  EXPECT_EQ(values_of<float>(concatenated_source({left, right}, {{2, 1, 4}, {2, 2, 4}}, 1, 4)), counting<float>(24));
  EXPECT_EQ(values_of<float>(concatenated_source({left, left}, {{2, 1, 4}, {2, 1, 4}}, 0, 4)).size(), 16U);
}

TEST(Sources, TheirMemoryIsPlanned) {
  const Source source = source_of(counting<float>(6));  // 24 bytes
  const int order[] = {1, 0};
  const int64_t begin[] = {0, 1};
  const Source turned = transposed_source(source, {2, 3}, order, 4);
  EXPECT_EQ(extra_bytes(*source), 0);
  EXPECT_EQ(extra_bytes(*turned), 24);
  EXPECT_EQ(extra_bytes(*scaled_source(source, {2, 3}, 0, {1, 2})), 0);
  EXPECT_EQ(extra_bytes(*scaled_source(turned, {3, 2}, 0, {1, 2, 3})), 24);
  EXPECT_EQ(extra_bytes(*combined_source({{source, nullptr, 1.0F}, {turned, nullptr, 1.0F}})), 72);
  EXPECT_EQ(extra_bytes(*converted_source(source, DType::kFloat32, DType::kFloat64)), 0);
  EXPECT_EQ(extra_bytes(*converted_source(source, DType::kFloat32, DType::kFloat16)), 24);
  EXPECT_EQ(extra_bytes(*sliced_source(source, {2, 3}, begin, {2, 2}, 4)), 24);
  EXPECT_EQ(extra_bytes(*concatenated_source({source, source}, {{2, 3}, {2, 3}}, 1, 4)), 24);
  EXPECT_EQ(extra_bytes(*concatenated_source({source, source}, {{2, 3}, {2, 3}}, 0, 4)), 0);
}

TEST(Sources, WrongSizesAreRefused) {
  const Source source = source_of(counting<float>(6));
  const int order[] = {1, 0};
  const int twice[] = {0, 0};
  const int64_t begin[] = {0, 2};
  EXPECT_EQ(thrown_by([&] { transposed_source(source, {2, 4}, order, 4); }).code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(thrown_by([&] { transposed_source(source, {2, 3}, twice, 4); }).code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(thrown_by([&] { scaled_source(source, {2, 3}, 1, {1, 2}); }).code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(thrown_by([&] { sliced_source(source, {2, 3}, begin, {2, 2}, 4); }).code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(thrown_by([&] { concatenated_source({source, source}, {{2, 3}, {3, 2}}, 0, 4); }).code,
            ErrorCode::kInvalidArgument);
}

TEST(Sources, EmptyTensorsAreFine) {
  const Source empty = owned_source({});
  const int order[] = {1, 0};
  EXPECT_TRUE(read_all(*transposed_source(empty, {0, 3}, order, 4)).empty());
  EXPECT_TRUE(read_all(*scaled_source(empty, {2, 0}, 0, {1, 2})).empty());
  EXPECT_TRUE(read_all(*converted_source(empty, DType::kFloat16, DType::kFloat32)).empty());
}

}  // namespace
}  // namespace leadline::ir
