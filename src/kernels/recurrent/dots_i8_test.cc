// SPDX-License-Identifier: Apache-2.0
#include "kernels/recurrent/dots_i8.h"

#include <gtest/gtest.h>

#include <cstring>

#include "kernels/kernel_testing.h"

namespace leadline::kernels {
namespace {

TEST(DotsI8, AreExactForAnySizesAndStayInsideTheMatrix) {
  std::mt19937 random(19);
  for (const int64_t k : {1, 7, 16, 28, 31, 32, 33, 64, 100, 1000, 32767}) {
    for (const int64_t rows : {1, 3, 4, 9, 70}) {
      if (k > 1000 && rows > 4) continue;
      // Memory that ends with the matrix, so that sanitizers see a read behind it.
      const TestBytes matrix(rows * k);
      auto* b = reinterpret_cast<int8_t*>(matrix.data());
      const auto values = random_values<int8_t>(rows * k, -128, 127, random);
      std::memcpy(b, values.data(), values.size());
      auto x = random_values<int8_t>(k, -128, 127, random);
      if (k == 32767) {
        std::fill(x.begin(), x.end(), int8_t{-128});
        std::fill(b, b + k, int8_t{-128});
      }
      for (const int32_t zero_point : {0, 127, -5}) {
        std::vector<int32_t> expected(static_cast<size_t>(rows));
        for (int64_t r = 0; r < rows; ++r) {
          for (int64_t i = 0; i < k; ++i) {
            expected[static_cast<size_t>(r)] += (x[static_cast<size_t>(i)] - zero_point) * b[r * k + i];
          }
        }
        for_each_target([&] {
          std::vector<int32_t> sums(static_cast<size_t>(rows));
          dots_i8(x.data(), zero_point, b, rows, k, sums.data());
          EXPECT_EQ(sums, expected) << rows << " x " << k << ", zero point " << zero_point;
        });
      }
    }
  }
}

}  // namespace
}  // namespace leadline::kernels
