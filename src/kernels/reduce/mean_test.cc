// SPDX-License-Identifier: Apache-2.0
// Vectorised sums and means against the plain loops of reduce.h, bit for bit, on every instruction set.
#include "kernels/reduce/mean.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "kernels/kernel_test_util.h"
#include "kernels/reduce/reduce.h"

namespace leadline::kernels {
namespace {

constexpr int64_t kColumns[] = {1, 3, 4, 7, 8, 9, 15, 16, 17, 31, 33, 40, 64, 65, 100, 128, 150, 300};

/// Sums over the first of two axes, or over the second.
template <typename T>
auto sums(const std::vector<T>& in, int64_t rows, int64_t columns, bool of_rows) {
  const int64_t dims[] = {rows, columns};
  const bool reduce[] = {!of_rows, of_rows};
  const ReducePlan plan = fold_shape(dims, reduce);
  std::vector<typename SumOp<T>::Acc> out(static_cast<size_t>(of_rows ? rows : columns));
  const auto finish = [&](auto acc, int64_t o) { out[static_cast<size_t>(o)] = acc; };
  if (plan.inner_reduced) {
    reduce_rows(plan, SumOp<T>{}, in.data(), 0, plan.kept.count, finish);
  } else {
    reduce_columns(plan, SumOp<T>{}, in.data(), 0, (plan.inner + kReduceBlock - 1) / kReduceBlock, finish);
  }
  return out;
}

TEST(MeanColumns, OfFloatsEqualThePlainLoop) {
  std::mt19937 random(1);
  for (int64_t rows : {2, 49, 128, 300}) {
    for (int64_t columns : kColumns) {
      if (columns == 1) continue;  // one column is a row
      const auto in = random_values<float>(rows * columns, -1.0, 1.5, random);
      const auto want = sums(in, rows, columns, false);
      const auto divisor = static_cast<double>(rows);
      for_each_target([&] {
        std::vector<float> out(static_cast<size_t>(columns));
        mean_columns_f32()({in.data(), columns, rows, columns, out.data()}, divisor);
        for (size_t c = 0; c < out.size(); ++c) ASSERT_EQ(out[c], static_cast<float>(want[c] / divisor)) << columns;
      });
    }
  }
}

template <typename T>
void compare_8(double least, double most) {
  std::mt19937 random(2);
  for (int64_t rows : {1, 49, 256, 257, 700}) {
    for (int64_t columns : kColumns) {
      const auto in = random_values<T>(rows * columns, least, most, random);
      const auto count = static_cast<int32_t>(rows);
      const MeanLevel level{.offset = 3 * count, .scale = 1.7F / static_cast<float>(rows), .zero_point = 5};
      for_each_target([&] {
        std::vector<T> out(static_cast<size_t>(columns));
        mean_columns_8<T>()({in.data(), columns, rows, columns, out.data()}, level);
        for (int64_t c = 0; c < columns; ++c) {
          int32_t sum = level.offset;
          for (int64_t r = 0; r < rows; ++r) sum += in[static_cast<size_t>(r * columns + c)];
          ASSERT_EQ(out[static_cast<size_t>(c)],
                    requantize(sum, level.scale, 5, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()))
              << rows << " x " << columns << ", column " << c;
        }
      });
    }
  }
}

TEST(MeanColumns, OfInt8AreRoundedHalfToEven) {
  compare_8<int8_t>(-128, 127);
  compare_8<int8_t>(-128, -127);
}
TEST(MeanColumns, OfUInt8AreRoundedHalfToEven) {
  compare_8<uint8_t>(0, 255);
  compare_8<uint8_t>(254, 255);
}

TEST(AddRow, EqualsThePlainLoopAtEveryLength) {
  std::mt19937 random(3);
  for (int64_t count : {1, 2, 15, 16, 17, 31, 256, 300, 2047, 2048, 2049, 5000}) {
    const auto in = random_values<float>(2 * count, -1.0, 1.5, random);
    const double want = sums(in, 2, count, true)[0];
    for_each_target([&] { EXPECT_EQ(add_row_f32()(0.0, in.data(), count), want) << count; });
  }
}

}  // namespace
}  // namespace leadline::kernels
