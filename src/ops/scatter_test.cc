// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "ops/op_testing.h"

namespace leadline::ops {
namespace {

template <typename T>
std::vector<T> scattered(const Shape& index_shape, const std::vector<int32_t>& indices, const Shape& update_shape,
                         const std::vector<T>& updates, const std::vector<int32_t>& shape, bool known = true) {
  OpTester t("SCATTER_ND");
  t.input<int32_t>(index_shape, indices, {}, known).input<T>(update_shape, updates, {}, known);
  t.input<int32_t>({static_cast<int64_t>(shape.size())}, shape, {}, known).output(dtype_of<T>()).threads(2);
  EXPECT_EQ(t.infer(false), known);
  t.run();
  EXPECT_EQ(t.shape(0), Shape(std::span<const int32_t>(shape)));
  return t.result<T>(0);
}

TEST(ScatterNd, ElementsAndSlices) {
  EXPECT_EQ(scattered<float>({2, 1}, {3, 1}, {2}, {9, 8}, {5}), (std::vector<float>{0, 8, 0, 9, 0}));
  EXPECT_EQ(scattered<int32_t>({2, 1}, {2, 0}, {2, 2}, {1, 2, 3, 4}, {3, 2}, false),
            (std::vector<int32_t>{3, 4, 0, 0, 1, 2}));
  EXPECT_EQ(scattered<int64_t>({1, 2, 2}, {0, 1, 1, 0}, {1, 2}, {5, 6}, {2, 2}), (std::vector<int64_t>{0, 5, 6, 0}));
}

TEST(ScatterNd, UpdatesOfOnePlaceAddUpAndWrap) {
  EXPECT_EQ(scattered<float>({3, 1}, {1, 1, 1}, {3}, {1, 2, 3}, {2}), (std::vector<float>{0, 6}));
  EXPECT_EQ(scattered<int8_t>({2, 1}, {0, 0}, {2}, {127, 1}, {1}), (std::vector<int8_t>{-128}));
  EXPECT_EQ(scattered<int32_t>({2, 1}, {0, 0}, {2}, {INT32_MAX, 2}, {1}), (std::vector<int32_t>{INT32_MIN + 1}));
  EXPECT_EQ(scattered<bool>({3, 1}, {1, 1, 2}, {3}, {true, true, false}, {3}), (std::vector<bool>{false, true, false}));
}

TEST(ScatterNd, LargeSlicesOnTwoThreads) {
  const std::vector<float> updates(2 * 100'000, 1.5F);
  const auto result = scattered<float>({2, 1}, {1, 1}, {2, 100'000}, updates, {2, 100'000});
  EXPECT_EQ(std::count(result.begin(), result.end(), 0.0F), 100'000);
  EXPECT_EQ(std::count(result.begin(), result.end(), 3.0F), 100'000);
}

TEST(ScatterNd, EmptyTuplesNameTheWholeOutput) {
  EXPECT_EQ(scattered<int32_t>({2, 0}, {}, {2, 3}, {1, 2, 3, 10, 20, 30}, {3}), (std::vector<int32_t>{11, 22, 33}));
}

TEST(ScatterNd, EmptyTensors) {
  EXPECT_EQ(scattered<float>({0, 1}, {}, {0, 2}, {}, {2, 2}), (std::vector<float>{0, 0, 0, 0}));
  EXPECT_EQ(scattered<float>({1, 1}, {0}, {1, 0}, {}, {2, 0}), (std::vector<float>{}));
  EXPECT_THROW(scattered<float>({1, 1}, {0}, {1, 2}, {1, 2}, {0, 2}), Error);
}

TEST(ScatterNd, Int64Indices) {
  OpTester t("SCATTER_ND");
  t.input<int64_t>({1, 1}, {1}).input<uint8_t>({1}, {7}).input<int64_t>({1}, {2}).output(DType::kUInt8);
  t.run();
  EXPECT_EQ(t.result<uint8_t>(0), (std::vector<uint8_t>{0, 7}));
}

TEST(ScatterNd, IndicesOutsideAreRefused) {
  for (const int32_t bad : {-1, 2, INT32_MAX, INT32_MIN}) {
    EXPECT_THROW(scattered<float>({2, 1}, {0, bad}, {2}, {1, 2}, {2}), Error) << bad;
  }
}

TEST(ScatterNd, ShapesThatDoNotFitAreRefused) {
  EXPECT_THROW(scattered<float>({2, 1}, {0, 1}, {3}, {1, 2, 3}, {4}), Error);        // other number of updates
  EXPECT_THROW(scattered<float>({1, 1}, {0}, {1, 2}, {1, 2}, {4, 3}), Error);        // other slice
  EXPECT_THROW(scattered<float>({1, 3}, {0, 0, 0}, {1}, {1}, {2, 2}), Error);        // tuples too wide
  EXPECT_THROW(scattered<float>({1, 1}, {0}, {1}, {1}, {-1}), Error);                // negative size
  EXPECT_THROW(scattered<float>({1, 2}, {0, 0}, {1}, {1}, {INT32_MAX, -2}), Error);  // negative size
}

}  // namespace
}  // namespace leadline::ops
