// SPDX-License-Identifier: Apache-2.0
#include "ops/sparse_to_dense.h"

#include <gtest/gtest.h>

#include "ops/op_testing.h"

namespace leadline::ops {
namespace {

using Ints = std::vector<int32_t>;

OpTester dense(const Shape& index_shape, const std::vector<int64_t>& indices, const Ints& shape,
               const Shape& value_shape, const Ints& values) {
  OpTester t("SPARSE_TO_DENSE");
  t.input<int64_t>(index_shape, indices).input<int32_t>({static_cast<int64_t>(shape.size())}, shape, {}, false);
  t.input<int32_t>(value_shape, values).input<int32_t>({}, {-1}).output(DType::kInt32);
  t.run();
  return t;
}

TEST(SparseToDense, IndicesOfEveryRank) {
  EXPECT_EQ(dense({}, {1}, {3}, {}, {5}).result<int32_t>(0), (Ints{-1, 5, -1}));
  EXPECT_EQ(dense({2}, {2, 0}, {3}, {2}, {5, 6}).result<int32_t>(0), (Ints{6, -1, 5}));
  const OpTester t = dense({2, 2}, {0, 1, 1, 0}, {2, 2}, {2}, {5, 6});
  EXPECT_EQ(t.shape(0), (Shape{2, 2}));
  EXPECT_EQ(t.result<int32_t>(0), (Ints{-1, 5, 6, -1}));
}

TEST(SparseToDense, OneValueForAllAndTheLastOfEqualIndices) {
  EXPECT_EQ(dense({2}, {2, 0}, {3}, {}, {5}).result<int32_t>(0), (Ints{5, -1, 5}));
  EXPECT_EQ(dense({2}, {1, 1}, {2}, {2}, {5, 6}).result<int32_t>(0), (Ints{-1, 6}));
}

TEST(SparseToDense, NothingToWrite) {
  EXPECT_EQ(dense({0, 2}, {}, {1, 2}, {0}, {}).result<int32_t>(0), (Ints{-1, -1}));
  EXPECT_EQ(dense({0, 2}, {}, {0, 2}, {0}, {}).shape(0), (Shape{0, 2}));
}

TEST(SparseToDense, RefusesWhatDoesNotFit) {
  EXPECT_THROW(dense({1}, {3}, {3}, {1}, {5}), Error);
  EXPECT_THROW(dense({1}, {-1}, {3}, {1}, {5}), Error);
  EXPECT_THROW(dense({1}, {int64_t{1} << 40}, {3}, {1}, {5}), Error);
  EXPECT_THROW(dense({2}, {0, 1}, {3}, {1}, {5}), Error);
  EXPECT_THROW(dense({1, 2}, {0, 1}, {3}, {1}, {5}), Error);
  EXPECT_THROW(dense({1}, {0}, {-3}, {1}, {5}), Error);
}

}  // namespace
}  // namespace leadline::ops
