// SPDX-License-Identifier: Apache-2.0
// Products, convolutions and depthwise convolutions of int16 activations against the naive loops, bit for bit, on every
// instruction set.
#include "kernels/gemm/gemm_i16.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/thread_pool.h"
#include "kernels/conv/conv_i16.h"
#include "kernels/depthwise/depthwise.h"
#include "kernels/gemm/dot_i16.h"
#include "kernels/kernel_testing.h"
#include "kernels/reference/conv.h"
#include "kernels/reference/matmul.h"
#include "ops/loops/conv.h"
#include "ops/loops/depthwise.h"
#include "ops/loops/pack.h"

namespace leadline::kernels {
namespace {

using reference::FinishWide;
using reference::WideRounding;

constexpr WideRounding kRoundings[] = {WideRounding::kShortFactor, WideRounding::kReal, WideRounding::kNarrowSum};

/// Biases and factors of some channels in both forms.
struct Scales {
  Scales(int64_t channels, double largest_sum, std::mt19937& random) {
    for (int64_t i = 0; i < channels; ++i) {
      // Channels whose weights are tiny beside the others' have enormous biases.
      const bool enormous = i % 24 == 5;
      const double size = enormous ? 0x1p48 : largest_sum;
      const double bias = std::round(size / 3 * std::uniform_real_distribution<double>(-1, 1)(random));
      bias64.push_back(static_cast<int64_t>(bias));
      bias_real.push_back(bias);
      // Levels that fill the range and go beyond it, and every tenth channel a power of two, whose halves are ties.
      double factor = 40000.0 / size * std::uniform_real_distribution<double>(0.1, 3)(random);
      if (i % 10 == 0) factor = std::exp2(std::round(std::log2(factor)));
      real.push_back(factor);
      multipliers.push_back(quantize_multiplier(factor));
      short_factor.push_back(wide_factor(multipliers.back()));
    }
    for (int64_t i = 0; i < channels; ++i) {
      const auto* first = bias_real.data() + i;
      exact.push_back(std::any_of(first, first + std::min(kWidePanel, channels - i),
                                  [](double bias) { return std::abs(bias) > kWideShortBias; }));
    }
  }
  FinishWide plain(WideRounding rounding) const {
    return {.bias64 = bias64.data(),
            .multiplier = multipliers.data(),
            .rounding = rounding,
            .lo = -32700,
            .hi = 32760,
            .real = real.data()};
  }
  WideFinish fast(WideRounding rounding) const {
    return {.rounding = rounding,
            .bias = bias_real.data(),
            .factor = rounding == WideRounding::kReal ? real.data() : short_factor.data(),
            .multiplier = multipliers.data(),
            .exact = exact.data(),
            .lo = -32700,
            .hi = 32760};
  }
  std::vector<int64_t> bias64;
  std::vector<double> bias_real;
  std::vector<double> real;
  std::vector<double> short_factor;
  std::vector<Multiplier> multipliers;
  std::vector<uint8_t> exact;
};

/// Random values, and rows of the most extreme ones, whose sums are the largest there are.
std::vector<int16_t> activations(int64_t count, std::mt19937& random) {
  auto values = random_values<int16_t>(count, -32768, 32767, random);
  for (int64_t i = 0; i < count / 3; ++i) values[static_cast<size_t>(i)] = -32768;
  return values;
}
std::vector<int8_t> weights(int64_t count, std::mt19937& random) {
  auto values = random_values<int8_t>(count, -128, 127, random);
  for (int64_t i = 0; i < count / 3; ++i) values[static_cast<size_t>(i)] = -128;
  return values;
}

struct Product {
  int64_t m, n, k;
};

TEST(GemmI16, HasTheBitsOfPlainLoops) {
  constexpr Product kProducts[] = {{1, 1, 1},   {1, 40, 7},    {2, 16, 480}, {3, 17, 481},   {12, 33, 64},
                                   {13, 5, 29}, {29, 64, 962}, {5, 100, 2},  {1, 10, 16384}, {0, 4, 4}};
  for (const Product& p : kProducts) {
    SCOPED_TRACE(testing::Message() << p.m << "x" << p.n << "x" << p.k);
    std::mt19937 random(3);
    const int64_t lda = (p.k + 1) / 2 * 2;
    const auto a = activations(std::max<int64_t>(p.m, 1) * lda, random);
    const auto b = weights(p.n * p.k, random);
    const Scales scales(p.n, 32768.0 * 128 * static_cast<double>(p.k), random);
    for (const WideRounding rounding : kRoundings) {
      std::vector<int16_t> expected(static_cast<size_t>(p.m * p.n));
      const reference::Matmul<int16_t, int8_t, reference::FixedZero, FinishWide, int16_t> plain{
          {.m = p.m, .n = p.n, .k = p.k, .a_row = lda, .b_column = p.k, .c_row = p.n},
          a.data(),
          {},
          b.data(),
          0,
          scales.plain(rounding),
          expected.data()};
      reference::compute_outputs(plain, 0, plain.outputs());
      for_each_target([&] {
        const TestBytes packed(packed_bytes_i16(p.n, p.k));
        ops::pack_matrix_i16(b.data(), p.k, p.n, p.k, packed.data());
        std::vector<int16_t> c(expected.size());
        const GemmI16 g{a.data(), lda, p.m, packed.data(), p.n, p.k, scales.fast(rounding), c.data(), p.n};
        // In two parts, as threads would.
        const int64_t cut = std::min(p.n, kWidePanel);
        gemm_i16_range(g, {0, p.m}, {0, cut});
        gemm_i16_range(g, {0, p.m}, {cut, p.n});
        EXPECT_EQ(c, expected);
      });
    }
  }
}

TEST(DotsI16, AreExactWithTheLargestProducts) {
  std::mt19937 random(17);
  for (const int64_t k : {1, 15, 16, 33, 200, 4097}) {
    const int64_t n = 6;
    auto a = random_values<int16_t>(k, -32768, 32767, random);
    auto b = random_values<int16_t>(n * k, -32768, 32767, random);
    for (int64_t i = 0; i < k; ++i) {
      if (i % 3 != 0) a[static_cast<size_t>(i)] = -32768;
      b[static_cast<size_t>(i)] = -32768;
      b[static_cast<size_t>(k + i)] = 32767;
    }
    std::vector<int64_t> expected(static_cast<size_t>(n));
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t i = 0; i < k; ++i) {
        expected[static_cast<size_t>(j)] += int64_t{a[static_cast<size_t>(i)]} * b[static_cast<size_t>(j * k + i)];
      }
    }
    for_each_target([&] {
      std::vector<int64_t> sums(static_cast<size_t>(n));
      dots_i16(a.data(), b.data(), k, n, k, sums.data());
      EXPECT_EQ(sums, expected);
    });
  }
}

TEST(GemmI16, PacksColumnsThatAreGivenAsRows) {
  std::mt19937 random(5);
  constexpr int64_t kN = 37;
  constexpr int64_t kK = 75;
  const auto b = weights(kN * kK, random);
  std::vector<int8_t> transposed(b.size());
  for (int64_t i = 0; i < kN; ++i) {
    for (int64_t j = 0; j < kK; ++j) transposed[static_cast<size_t>(j * kN + i)] = b[static_cast<size_t>(i * kK + j)];
  }
  const int64_t bytes = packed_bytes_i16(kN, kK);
  const TestBytes rows(bytes);
  const TestBytes columns(bytes);
  ops::pack_matrix_i16(b.data(), kK, kN, kK, rows.data());
  ops::pack_matrix_i16_kn(transposed.data(), kN, kN, kK, columns.data());
  EXPECT_EQ(std::memcmp(rows.data(), columns.data(), static_cast<size_t>(bytes)), 0);
}

/// Runs a convolution by plain loops, and on `threads` threads.
void check_conv(const ConvShape& s, WideRounding rounding) {
  std::mt19937 random(11);
  const auto input = activations(s.batch * s.in_h * s.in_w * s.in_c, random);
  const auto filter = weights(s.out_c * s.filter_size(), random);
  const Scales scales(s.out_c, 32768.0 * 128 * static_cast<double>(s.filter_size()), random);
  std::vector<int16_t> expected(static_cast<size_t>(s.rows() * s.out_w * s.out_c));
  const reference::Conv<int16_t, int8_t, reference::FixedZero, FinishWide, int16_t> plain{
      {reference::conv_shape(s), input.data(), {}, filter.data(), 0, scales.plain(rounding), expected.data()}};
  reference::compute_outputs(plain, 0, plain.outputs());
  for_each_target([&] {
    const TestBytes packed(s.groups() * conv_group_bytes_i16(s));
    for (int64_t group = 0; group < s.groups(); ++group) {
      ops::pack_matrix_i16(filter.data() + group * s.group_out_c() * s.filter_size(), s.filter_size(), s.group_out_c(),
                           s.filter_size(), packed.data() + group * conv_group_bytes_i16(s));
    }
    for (const int threads : {1, 3}) {
      ThreadPool pool(threads);
      const TestBytes workspace(threads * conv_workspace_bytes_i16(s));
      std::vector<int16_t> output(expected.size());
      ops::convolve(ConvI16{s, input.data(), packed.data(), scales.fast(rounding), output.data()}, workspace.data(),
                    pool);
      EXPECT_EQ(output, expected);
    }
  });
}

TEST(ConvI16, HasTheBitsOfPlainLoops) {
  check_conv({.in_h = 9,
              .in_w = 7,
              .in_c = 3,
              .out_h = 9,
              .out_w = 7,
              .out_c = 21,
              .filter_h = 3,
              .filter_w = 3,
              .filter_c = 3,
              .pad_top = 1,
              .pad_left = 1},
             WideRounding::kShortFactor);
  check_conv({.batch = 2,
              .in_h = 11,
              .in_w = 8,
              .in_c = 8,
              .out_h = 5,
              .out_w = 4,
              .out_c = 12,
              .filter_h = 2,
              .filter_w = 3,
              .filter_c = 4,
              .stride_h = 2,
              .stride_w = 2,
              .pad_left = 1},
             WideRounding::kNarrowSum);
  check_conv({.in_h = 1, .in_w = 50, .in_c = 34, .out_h = 1, .out_w = 50, .out_c = 40, .filter_c = 34},
             WideRounding::kReal);
  check_conv({.in_h = 6, .in_w = 6, .in_c = 5, .out_h = 6, .out_w = 6, .out_c = 16, .filter_c = 5},
             WideRounding::kShortFactor);
  check_conv({.in_h = 12,
              .in_w = 10,
              .in_c = 61,
              .out_h = 8,
              .out_w = 6,
              .out_c = 3,
              .filter_h = 3,
              .filter_w = 3,
              .filter_c = 61,
              .dilation_h = 2,
              .dilation_w = 2},
             WideRounding::kShortFactor);
}

void check_depthwise(const DepthwiseShape& s) {
  std::mt19937 random(13);
  const auto input = activations(s.batch * s.in_h * s.in_w * s.in_c, random);
  const auto filter = weights(s.taps() * s.in_c, random);
  const Scales scales(s.in_c, 32768.0 * 128 * static_cast<double>(s.taps()), random);
  std::vector<int16_t> expected(static_cast<size_t>(s.rows() * s.out_w * s.in_c));
  const reference::Conv<int16_t, int8_t, reference::FixedZero, FinishWide, int16_t> plain{
      {{.batch = s.batch,
        .in_h = s.in_h,
        .in_w = s.in_w,
        .in_c = s.in_c,
        .out_h = s.out_h,
        .out_w = s.out_w,
        .out_c = s.in_c,
        .filter_h = s.filter_h,
        .filter_w = s.filter_w,
        .stride_h = s.stride_h,
        .stride_w = s.stride_w,
        .dilation_h = s.dilation_h,
        .dilation_w = s.dilation_w,
        .pad_h = s.pad_top,
        .pad_w = s.pad_left,
        .groups = s.in_c,
        .step_o = 1,
        .step_y = s.filter_w * s.in_c,
        .step_x = s.in_c},
       input.data(),
       {},
       filter.data(),
       0,
       scales.plain(WideRounding::kShortFactor),
       expected.data()}};
  reference::compute_outputs(plain, 0, plain.outputs());
  for_each_target([&] {
    for (const int threads : {1, 3}) {
      ThreadPool pool(threads);
      std::vector<int16_t> output(expected.size());
      ops::convolve(
          DepthwiseI16{s, input.data(), filter.data(), scales.fast(WideRounding::kShortFactor), output.data()}, pool);
      EXPECT_EQ(output, expected);
    }
  });
}

TEST(DepthwiseI16, HasTheBitsOfPlainLoops) {
  check_depthwise({.in_h = 9,
                   .in_w = 8,
                   .in_c = 40,
                   .out_h = 9,
                   .out_w = 8,
                   .filter_h = 3,
                   .filter_w = 3,
                   .pad_top = 1,
                   .pad_left = 1});
  check_depthwise({.batch = 2,
                   .in_h = 13,
                   .in_w = 11,
                   .in_c = 7,
                   .out_h = 7,
                   .out_w = 6,
                   .filter_h = 5,
                   .filter_w = 4,
                   .stride_h = 2,
                   .stride_w = 2,
                   .pad_top = 2,
                   .pad_left = 1});
  check_depthwise({.in_h = 20,
                   .in_w = 18,
                   .in_c = 130,
                   .out_h = 16,
                   .out_w = 14,
                   .filter_h = 3,
                   .filter_w = 3,
                   .dilation_h = 2,
                   .dilation_w = 2});
  // More of the filter outside than inside.
  check_depthwise({.in_h = 2,
                   .in_w = 1,
                   .in_c = 16,
                   .out_h = 2,
                   .out_w = 1,
                   .filter_h = 11,
                   .filter_w = 9,
                   .pad_top = 5,
                   .pad_left = 4});
}

}  // namespace
}  // namespace leadline::kernels
