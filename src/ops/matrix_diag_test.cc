// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "ops/op_testing.h"

namespace leadline::ops {
namespace {

template <typename T>
std::vector<T> set_diag(const Shape& shape, const std::vector<T>& input, const Shape& diagonal_shape,
                        const std::vector<T>& diagonal) {
  OpTester t("MATRIX_SET_DIAG");
  t.input<T>(shape, input);
  t.input<T>(diagonal_shape, diagonal).output(dtype_of<T>());
  t.run();
  EXPECT_EQ(t.shape(0), shape);
  return t.result<T>(0);
}

TEST(MatrixDiag, OneMatrixForEachVector) {
  OpTester t("MATRIX_DIAG");
  t.input<float>({2, 2}, {1, 2, 3, 4}).output(DType::kFloat32);
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{2, 2, 2}));
  EXPECT_EQ(t.result<float>(0), (std::vector<float>{1, 0, 0, 2, 3, 0, 0, 4}));
}

TEST(MatrixDiag, SmallAndLargeElements) {
  OpTester bytes("MATRIX_DIAG");
  bytes.input<int8_t>({3}, {1, 2, 3}, quantized(0.5F, 7)).output(DType::kInt8, quantized(0.5F, 7));
  bytes.run();
  EXPECT_EQ(bytes.result<int8_t>(0), (std::vector<int8_t>{1, 0, 0, 0, 2, 0, 0, 0, 3}));
  OpTester wide("MATRIX_DIAG");
  wide.input<int64_t>({1, 2}, {1, INT64_MIN}).output(DType::kInt64);
  wide.run();
  EXPECT_EQ(wide.result<int64_t>(0), (std::vector<int64_t>{1, 0, 0, INT64_MIN}));
}

TEST(MatrixDiag, EmptyAndScalarInputs) {
  OpTester empty("MATRIX_DIAG");
  empty.input<float>({2, 0}, {}).output(DType::kFloat32);
  empty.run();
  EXPECT_EQ(empty.shape(0), (Shape{2, 0, 0}));
  OpTester scalar("MATRIX_DIAG");
  scalar.input<float>({}, {1}).output(DType::kFloat32);
  EXPECT_THROW(scalar.run(), Error);
}

TEST(MatrixSetDiag, WideTallAndSquareMatrices) {
  using Ints = std::vector<int32_t>;
  EXPECT_EQ(set_diag<int32_t>({2, 3}, {1, 1, 1, 1, 1, 1}, {2}, {7, 8}), (Ints{7, 1, 1, 1, 8, 1}));
  EXPECT_EQ(set_diag<int32_t>({3, 2}, {1, 1, 1, 1, 1, 1}, {2}, {7, 8}), (Ints{7, 1, 1, 8, 1, 1}));
  EXPECT_EQ(set_diag<int32_t>({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}, {2, 2}, {10, 20, 30, 40}),
            (Ints{10, 2, 3, 20, 30, 6, 7, 40}));
  EXPECT_EQ(set_diag<int32_t>({2, 1, 1}, {1, 2}, {2, 1}, {3, 4}), (Ints{3, 4}));
  EXPECT_EQ(set_diag<uint8_t>({1, 2, 2}, {1, 2, 3, 4}, {1, 2}, {9, 9}), (std::vector<uint8_t>{9, 2, 3, 9}));
  EXPECT_EQ(set_diag<int32_t>({0, 2, 2}, {}, {0, 2}, {}), (Ints{}));
}

TEST(MatrixSetDiag, RefusesDiagonalsThatDoNotFit) {
  EXPECT_THROW(set_diag<float>({2, 2}, {1, 2, 3, 4}, {1}, {1}), Error);
  EXPECT_THROW(set_diag<float>({2, 2}, {1, 2, 3, 4}, {3}, {1, 2, 3}), Error);
  EXPECT_THROW(set_diag<float>({2}, {1, 2}, {1}, {1}), Error);
}

}  // namespace
}  // namespace leadline::ops
