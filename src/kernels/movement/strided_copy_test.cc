// SPDX-License-Identifier: Apache-2.0
// The strided copy against the obvious loop, over many layouts, element sizes and thread counts.
#include "kernels/movement/strided_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "ops/loops/copy.h"

namespace leadline::kernels {
namespace {

/// Element by element, without any of the tricks of the real one.
void copy_plainly(const StridedCopy& block, int64_t size, const std::vector<std::byte>& from,
                  std::vector<std::byte>& to) {
  const int64_t total = block.elements();
  for (int64_t n = 0; n < total; ++n) {
    int64_t rest = n;
    int64_t at_from = block.from;
    int64_t at_to = block.to;
    for (int d = block.rank - 1; d >= 0; --d) {
      const auto& axis = block.axes[static_cast<size_t>(d)];
      at_from += rest % axis.size * axis.from;
      at_to += rest % axis.size * axis.to;
      rest /= axis.size;
    }
    std::memcpy(to.data() + at_to * size, from.data() + at_from * size, static_cast<size_t>(size));
  }
}

void expect_same(const StridedCopy& block, int64_t from_elements, int64_t to_elements) {
  for (const int64_t size : {1, 2, 4, 8, 16}) {
    std::vector<std::byte> from(static_cast<size_t>(from_elements * size));
    std::mt19937 random(7);
    for (std::byte& b : from) b = static_cast<std::byte>(random());
    std::vector<std::byte> expected(static_cast<size_t>(to_elements * size), std::byte{0x5A});
    auto one = expected;
    auto two = expected;
    copy_plainly(block, size, from, expected);
    ThreadPool single(1);
    ops::copy_strided(block, size, from.data(), one.data(), single);
    ThreadPool pair(2);
    ops::copy_strided(block, size, from.data(), two.data(), pair);
    ASSERT_TRUE(one == expected) << "element size " << size;
    ASSERT_TRUE(two == expected) << "element size " << size << ", two threads";
    std::vector<std::byte> pieces(expected.size(), std::byte{0x5A});
    const CopyPlan plan = plan_copy(block, size);
    for (int64_t point = 0; point < plan.points; point += 3) {
      for (int64_t i = 0; i < plan.run; i += kCopyTile) {
        copy_range(plan, from.data(), pieces.data(), {point, std::min(plan.points, point + 3)},
                   {i, std::min(plan.run, i + kCopyTile)});
      }
    }
    ASSERT_TRUE(pieces == expected) << "element size " << size << ", in pieces";
  }
}

StridedCopy transposed(const std::vector<int64_t>& shape, const std::vector<int>& order) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t d = shape.size() - 1; d-- > 0;) strides[d] = strides[d + 1] * shape[d + 1];
  StridedCopy block;
  for (const int axis : order) block.add(shape[static_cast<size_t>(axis)], strides[static_cast<size_t>(axis)]);
  block.pack();
  return block;
}

TEST(StridedCopy, EveryPermutationOfFourAxes) {
  const std::vector<int64_t> shape = {3, 33, 5, 40};
  std::vector<int> order = {0, 1, 2, 3};
  do {
    expect_same(transposed(shape, order), 3 * 33 * 5 * 40, 3 * 33 * 5 * 40);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(StridedCopy, SmallRunsActAsElements) {
  for (const int64_t run : {1, 2, 3, 4, 5, 8, 16})
    expect_same(transposed({17, 9, run}, {1, 0, 2}), 153 * run, 153 * run);
}

TEST(StridedCopy, StepsBackwardsRepeatsAndSkips) {
  StridedCopy block;
  block.from = 2 + 4 * 10;
  block.to = 3;
  block.add(5, -10, 40);
  block.add(3, 0, 12);
  block.add(4, 2, 3);
  expect_same(block, 50, 5 * 40 + 3 * 12);
}

TEST(StridedCopy, NothingIsTouchedWhenAnAxisIsEmpty) {
  StridedCopy block;
  block.add(4, 1, 1);
  block.add(0, 1, 1);
  expect_same(block, 4, 4);
}

TEST(StridedCopy, AScalarIsOneElement) { expect_same({}, 1, 1); }

TEST(StridedCopy, SourcesComeInRowMajorOrder) {
  std::vector<int64_t> seen;
  const auto see = [&](int64_t from) { seen.push_back(from); };
  for_each_source(transposed({2, 3}, {1, 0}), 0, 6, see);
  EXPECT_EQ(seen, (std::vector<int64_t>{0, 3, 1, 4, 2, 5}));
  for_each_source(transposed({2, 3}, {1, 0}), 3, 5, see);
  EXPECT_EQ(seen, (std::vector<int64_t>{0, 3, 1, 4, 2, 5, 4, 2}));
}

TEST(FillElements, RepeatsAnyPattern) {
  for (const int64_t size : {1, 2, 4, 8, 16}) {
    std::vector<std::byte> element(static_cast<size_t>(size));
    for (size_t i = 0; i < element.size(); ++i) element[i] = static_cast<std::byte>(i + 1);
    std::vector<std::byte> out(static_cast<size_t>(size) * 37 + 1, std::byte{0});
    fill_elements(out.data(), 37, element.data(), size);
    for (size_t i = 0; i + 1 < out.size(); ++i) ASSERT_EQ(out[i], element[i % element.size()]);
    EXPECT_EQ(out.back(), std::byte{0});
  }
}

}  // namespace
}  // namespace leadline::kernels
