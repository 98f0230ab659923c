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

#include "kernels/kernel_testing.h"
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
  for (int64_t rows : {2, 49, 128, 300, 600}) {
    for (int64_t columns : kColumns) {
      if (columns == 1) continue;  // one column is a row
      const auto in = random_values<float>(rows * columns, -1.0, 1.5, random);
      const auto want = sums(in, rows, columns, false);
      const auto divisor = static_cast<double>(rows);
      for_each_target([&] {
        std::vector<float> out(static_cast<size_t>(columns));
        const ColumnSums<float> c{in.data(), columns, rows, columns, out.data()};
        mean_columns_f32()(c, divisor, {0, rows}, nullptr);
        for (size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], static_cast<float>(want[i] / divisor)) << columns;
        const std::vector<float> whole = out;
        out.assign(out.size(), 0);
        ColumnState state;
        for (int64_t row = 0; row < rows; row += kColumnSumRows) {
          mean_columns_f32()(c, divisor, {row, std::min(rows, row + kColumnSumRows)}, &state);
        }
        ASSERT_EQ(out, whole) << columns << " in ranges of rows";
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
        const ColumnSums<T> sums{in.data(), columns, rows, columns, out.data()};
        mean_columns_8<T>()(sums, level, {0, rows}, nullptr);
        const std::vector<T> whole = out;
        out.assign(out.size(), T{0});
        ColumnState state;
        for (int64_t row = 0; row < rows; row += kColumnSumRows) {
          mean_columns_8<T>()(sums, level, {row, std::min(rows, row + kColumnSumRows)}, &state);
        }
        ASSERT_EQ(out, whole) << columns << " in ranges of rows";
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

/// Values of every kind of range, compared with the whole.
template <typename Op>
void compare_ranges() {
  std::mt19937 random(4);
  const auto in = random_values<float>(5 * 3000, 0.9, 1.1, random);
  for (const bool of_rows : {true, false}) {
    const int64_t dims[] = {of_rows ? 5 : 3000, of_rows ? 3000 : 5};
    const bool reduce[] = {!of_rows, of_rows};
    const ReducePlan plan = fold_shape(dims, reduce);
    std::vector<typename Op::Acc> whole(5), ranges(5);
    const auto finish = [](auto& to) { return [&to](auto acc, int64_t o) { to[static_cast<size_t>(o)] = acc; }; };
    if (of_rows) {
      reduce_rows(plan, Op{}, in.data(), 0, 5, finish(whole));
      for (int64_t o = 0; o < 5; ++o) {
        RowReduction<Op> state(Op{});
        for (int64_t i = 0; i < 3000; i += 7 * kReduceGrain) {
          reduce_values(plan, Op{}, in.data() + o * 3000, {i, std::min<int64_t>(3000, i + 7 * kReduceGrain)}, state);
        }
        finish(ranges)(state.acc, o);
      }
    } else {
      reduce_columns(plan, Op{}, in.data(), 0, 1, finish(whole));
      ColumnReduction<Op> state(Op{});
      for (int64_t r = 0; r < 3000; r += 77) {
        reduce_columns_of(plan, Op{}, in.data(), 0, r, std::min<int64_t>(3000, r + 77), state);
      }
      finish_columns(plan, 0, state, finish(ranges));
    }
    EXPECT_EQ(ranges, whole) << of_rows;
  }
}

TEST(Reduce, RangesGiveTheBitsOfTheWhole) {
  compare_ranges<SumOp<float>>();
  compare_ranges<ProdOp<float>>();
  compare_ranges<ExtremeOp<float, true>>();
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
