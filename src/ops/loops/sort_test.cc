// SPDX-License-Identifier: Apache-2.0
#include "ops/loops/sort.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

namespace leadline::ops {
namespace {

void check_sorted(std::vector<int64_t> values) {
  std::vector<int64_t> expected = values;
  std::sort(expected.begin(), expected.end());
  int asked = 0;
  const WorkLimit limit([&] { ++asked; });
  sort_in_pieces(values.data(), static_cast<int64_t>(values.size()), std::less<>());
  EXPECT_EQ(values, expected);
  EXPECT_GE(asked, static_cast<int>((static_cast<int64_t>(values.size()) - 1) / kSortAtOnce)) << "of " << values.size();
}

std::vector<int64_t> ascending(int64_t count) {
  std::vector<int64_t> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), 0);
  return values;
}

TEST(SortInPieces, ValuesOfAnyOrder) {
  for (const int64_t count : {int64_t{0}, int64_t{1}, int64_t{100}, kSortAtOnce, kSortAtOnce + 1, 5 * kSortAtOnce}) {
    std::vector<int64_t> values = ascending(count);
    check_sorted(values);
    std::reverse(values.begin(), values.end());
    check_sorted(values);
    std::shuffle(values.begin(), values.end(), std::mt19937(5));
    check_sorted(values);
  }
}

TEST(SortInPieces, RangesThatDoNotDivideAreSortedAnyway) {
  std::vector<int64_t> values = ascending(3 * kSortAtOnce);
  std::shuffle(values.begin(), values.end(), std::mt19937(5));
  std::vector<int64_t> expected = ascending(3 * kSortAtOnce);
  sort_detail::sort_part(values.data(), static_cast<int64_t>(values.size()), std::less<>(), 0);
  EXPECT_EQ(values, expected);
}

}  // namespace
}  // namespace leadline::ops
