// SPDX-License-Identifier: Apache-2.0
#include "leadline/types.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <vector>

#include "core/error.h"

namespace leadline {
namespace {

constexpr int64_t kMaxInt64 = std::numeric_limits<int64_t>::max();

ErrorCode code_of(const auto& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::kInternal;
}

TEST(DType, NamesAreUniqueAndLeadBackToTheType) {
  std::set<std::string> names;
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto type = static_cast<DType>(i);
    EXPECT_TRUE(names.insert(dtype_name(type)).second) << dtype_name(type);
    EXPECT_EQ(dtype_from_name(dtype_name(type)), type);
  }
}

TEST(DType, NamesAreThoseOfNumpy) {
  EXPECT_STREQ(dtype_name(DType::kFloat32), "float32");
  EXPECT_STREQ(dtype_name(DType::kBool), "bool");
  EXPECT_STREQ(dtype_name(DType::kString), "string");
  EXPECT_STREQ(dtype_name(DType::kComplex64), "complex64");
  EXPECT_STREQ(dtype_name(DType::kUInt16), "uint16");
  EXPECT_STREQ(dtype_name(DType::kInt4), "int4");
  EXPECT_STREQ(dtype_name(DType::kBFloat16), "bfloat16");
  EXPECT_STREQ(dtype_name(DType::kFloat8E5M2), "float8_e5m2");
}

TEST(DType, ValuesOutsideTheEnumerationAreUnknownAndHaveNoSize) {
  for (const int value : {-128, -1, kDTypeCount, 127}) {
    EXPECT_STREQ(dtype_name(static_cast<DType>(value)), "unknown");
    EXPECT_EQ(dtype_bits(static_cast<DType>(value)), 0);
  }
  EXPECT_FALSE(dtype_from_name("unknown"));
  EXPECT_FALSE(dtype_from_name(""));
  EXPECT_FALSE(dtype_from_name("Float32"));
}

TEST(DType, BitsFollowTheType) {
  EXPECT_EQ(dtype_bits(DType::kFloat64), 64);
  EXPECT_EQ(dtype_bits(DType::kComplex128), 128);
  EXPECT_EQ(dtype_bits(DType::kBool), 8);
  EXPECT_EQ(dtype_bits(DType::kUInt4), 4);
  EXPECT_EQ(dtype_bits(DType::kInt2), 2);
  EXPECT_EQ(dtype_bits(DType::kVariant), 0);
}

TEST(Shape, ScalarHasOneElement) {
  const Shape scalar;
  EXPECT_EQ(scalar.rank(), 0);
  EXPECT_EQ(scalar.elements(), 1);
  EXPECT_EQ(scalar.to_string(), "[]");
}

TEST(Shape, HoldsItsDimensionsInOrder) {
  const Shape shape{1, 224, 220, 3};
  EXPECT_EQ(shape.rank(), 4);
  EXPECT_EQ(shape[2], 220);
  EXPECT_EQ(shape.elements(), 224 * 220 * 3);
  EXPECT_EQ(shape.to_string(), "[1, 224, 220, 3]");
  const std::vector<int32_t> narrow = {1, 224, 220, 3};
  EXPECT_EQ(Shape(std::span<const int32_t>(narrow)), shape);
}

TEST(Shape, EqualityComparesRankAndSizes) {
  EXPECT_EQ((Shape{2, 3}), (Shape{2, 3}));
  EXPECT_FALSE((Shape{2, 3}) == (Shape{3, 2}));
  EXPECT_FALSE((Shape{2, 3}) == (Shape{2, 3, 1}));
  EXPECT_FALSE(Shape{} == Shape{0});
}

TEST(Shape, RefusesNegativeSizesAndTooManyDimensions) {
  EXPECT_EQ(code_of([] { Shape{2, -1}; }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([] { Shape{1, 1, 1, 1, 1, 1, 1, 1, 1}; }), ErrorCode::kInvalidArgument);
  const std::vector<int32_t> negative = {-5};
  EXPECT_EQ(code_of([&] { Shape{std::span<const int32_t>(negative)}; }), ErrorCode::kInvalidArgument);
}

TEST(Shape, PushBackStopsAtTheLargestRank) {
  Shape shape;
  for (int i = 0; i < kMaxRank; ++i) shape.push_back(i);
  EXPECT_EQ(shape.to_string(), "[0, 1, 2, 3, 4, 5, 6, 7]");
  EXPECT_EQ(code_of([&] { shape.push_back(1); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(shape.rank(), kMaxRank);
  Shape other;
  EXPECT_EQ(code_of([&] { other.push_back(-1); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(other.rank(), 0);
}

TEST(Shape, CheckedElementsRefusesOverflow) {
  EXPECT_EQ((Shape{kMaxInt64}).checked_elements(), kMaxInt64);
  EXPECT_FALSE((Shape{kMaxInt64, 2}).checked_elements());
  EXPECT_FALSE((Shape{int64_t{1} << 32, int64_t{1} << 32, int64_t{1} << 32}).checked_elements());
  EXPECT_EQ((Shape{kMaxInt64, 2}).elements(), kMaxInt64);
}

TEST(Shape, AZeroMakesAnyShapeEmpty) {
  EXPECT_EQ((Shape{0, kMaxInt64, 4}).checked_elements(), 0);
  EXPECT_EQ((Shape{kMaxInt64, kMaxInt64, 0}).checked_elements(), 0);
}

TEST(StorageBytes, PacksSubByteTypesAndRoundsUp) {
  EXPECT_EQ(storage_bytes(DType::kInt4, {0}), 0);
  EXPECT_EQ(storage_bytes(DType::kInt4, {1}), 1);
  EXPECT_EQ(storage_bytes(DType::kInt4, {3, 3}), 5);
  EXPECT_EQ(storage_bytes(DType::kInt2, {4}), 1);
  EXPECT_EQ(storage_bytes(DType::kInt2, {5}), 2);
  EXPECT_EQ(storage_bytes(DType::kInt4, {kMaxInt64}), kMaxInt64 / 2 + 1);
}

TEST(StorageBytes, MultipliesByTheElementSizeOrSaysItDoesNotFit) {
  EXPECT_EQ(storage_bytes(DType::kFloat32, {2, 3}), 24);
  EXPECT_EQ(storage_bytes(DType::kComplex128, {}), 16);
  EXPECT_EQ(storage_bytes(DType::kString, {kMaxInt64, 2}), 0);
  EXPECT_FALSE(storage_bytes(DType::kFloat32, {int64_t{1} << 61}));
  EXPECT_FALSE(storage_bytes(DType::kInt8, {int64_t{1} << 32, int64_t{1} << 31}));
}

}  // namespace
}  // namespace leadline
