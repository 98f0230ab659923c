// SPDX-License-Identifier: Apache-2.0
// Which way matrix products are cut, for shapes of real models.
#include "ops/loops/split.h"

#include <gtest/gtest.h>

namespace leadline::ops {
namespace {

constexpr int64_t kGrain = 32;

TEST(GemmSplit, ManyRowsAreCutIntoRows) {
  for (const int threads : {2, 3, 4}) {
    const GemmSplit split = split_gemm(112 * 112, 96, 16, kGrain, threads);
    EXPECT_TRUE(split.by_rows);
    EXPECT_EQ(split.parts, threads);
  }
}

TEST(GemmSplit, FewRowsAndManyColumnsAreCutIntoColumns) {
  // 49 rows are 9 tiles, 4 and 5 for two threads, and both would read all of B.
  EXPECT_FALSE(split_gemm(49, 1152, 192, kGrain, 2).by_rows);
  EXPECT_FALSE(split_gemm(49, 320, 960, kGrain, 2).by_rows);
  // 3 units of columns would give one thread twice as much.
  EXPECT_TRUE(split_gemm(49, 96, 576, kGrain, 2).by_rows);
  EXPECT_FALSE(split_gemm(1, 1000, 1280, kGrain, 2).by_rows);
}

TEST(GemmSplit, LayingOutRowsTwiceCounts) {
  EXPECT_FALSE(split_gemm(72, 256, 2000, 16, 2).by_rows);
  EXPECT_TRUE(split_gemm(72, 256, 2000, 16, 2, 100).by_rows);
}

TEST(GemmSplit, SmallProductsStayWhole) {
  EXPECT_EQ(split_gemm(1, 16, 96, kGrain, 4).parts, 1);
  EXPECT_EQ(split_gemm(20, 32, 32, kGrain, 4).parts, 1);
  // Of one row little is multiplied, but all weights are read.
  EXPECT_EQ(split_gemm(1, 144, 576, kGrain, 2).parts, 2);
}

TEST(GemmSplit, PartsAreWholeTilesThatCoverEverything) {
  for (const int64_t m : {0, 1, 5, 6, 7, 49, 200}) {
    for (const int64_t n : {0, 1, 31, 33, 320, 1001}) {
      for (const int threads : {1, 2, 3, 7, 1000}) {
        const GemmSplit split = split_gemm(m, n, 512, kGrain, threads);
        ASSERT_GE(split.parts, 1);
        ASSERT_LE(split.parts, threads);
        const int64_t limit = split.by_rows ? m : n;
        const int64_t unit = split.by_rows ? kernels::kGemmTileRows : kGrain;
        int64_t next = 0;
        for (int64_t i = 0; i < split.parts; ++i) {
          const IndexRange range = part_range(limit, unit, split.parts, i);
          ASSERT_EQ(range.begin, next);
          ASSERT_EQ(range.begin % unit, 0);
          next = range.end;
        }
        ASSERT_EQ(next, limit) << m << " " << n << " " << threads;
      }
    }
  }
}

}  // namespace
}  // namespace leadline::ops
