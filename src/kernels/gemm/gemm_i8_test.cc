// SPDX-License-Identifier: Apache-2.0
// The 8-bit gemm against plain loops, bit for bit, on every instruction set.
#include "kernels/gemm/gemm_i8.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/gemm/gemv_i8.h"
#include "kernels/kernel_testing.h"
#include "ops/loops/gemm.h"
#include "ops/loops/pack.h"

namespace leadline::kernels {
namespace {

struct Case {
  int64_t m, n, k;
};

constexpr Case kCases[] = {{1, 1, 1},     {1, 7, 3},    {1, 300, 37}, {2, 33, 5},  {2, 67, 300}, {3, 16, 64},
                           {4, 31, 29},   {5, 9, 13},   {6, 16, 1},   {6, 17, 2},  {7, 48, 257}, {12, 8, 256},
                           {13, 1, 511},  {97, 5, 11},  {101, 37, 3}, {23, 29, 0}, {0, 4, 4},    {53, 41, 2100},
                           {13, 140, 64}, {99, 64, 32}, {2, 10, 900}};

template <typename TA, typename TB>
struct Problem {
  Problem(Case size, int32_t za, int32_t zb) : s(size), a_zero(za), b_zero(zb), random(7) {
    a = random_values<TA>(s.m * lda(), std::numeric_limits<TA>::min(), std::numeric_limits<TA>::max(), random);
    b = random_values<TB>(s.n * s.k, std::numeric_limits<TB>::min(), std::numeric_limits<TB>::max(), random);
    bias = random_values<int32_t>(s.n, -5000, 5000, random);
    row_zero = random_values<int32_t>(s.m, std::numeric_limits<TA>::min(), std::numeric_limits<TA>::max(), random);
  }
  int64_t lda() const { return s.k + 3; }
  void pack(const TestBytes& packed) const {
    if constexpr (std::is_signed_v<TB>) {
      ops::pack_matrix(b.data(), s.k, s.n, s.k, packed.data());
    } else {
      ops::pack_matrix(b.data(), s.k, s.n, s.k, packed.data());
    }
  }
  GemmI8 args(const TestBytes& packed) const {
    GemmI8 g;
    g.a = a.data();
    g.a_unsigned = !std::is_signed_v<TA>;
    g.lda = lda();
    g.m = s.m;
    g.a_zero_point = a_zero;
    g.b = packed.data();
    g.b_zero_point = b_zero - (std::is_signed_v<TB> ? 0 : 128);
    g.n = s.n;
    g.k = s.k;
    g.bias = bias.data();
    return g;
  }
  int32_t expected(int64_t row, int64_t col, const GemmI8& g) const {
    int64_t sum = g.bias == nullptr ? 0 : bias[static_cast<size_t>(col)];
    const int32_t za = g.a_row_zero_points == nullptr ? a_zero : row_zero[static_cast<size_t>(row)];
    for (int64_t i = 0; i < s.k; ++i) {
      sum += static_cast<int64_t>(a[static_cast<size_t>(row * lda() + i)] - za) *
             (b[static_cast<size_t>(col * s.k + i)] - b_zero);
    }
    return static_cast<int32_t>(sum);
  }

  Case s;
  int32_t a_zero, b_zero;
  std::mt19937 random;
  std::vector<TA> a;
  std::vector<TB> b;
  std::vector<int32_t> bias, row_zero;
};

template <typename TA, typename TB>
void check_accumulators(int32_t za, int32_t zb) {
  for_each_target([&] {
    for (const Case& size : kCases) {
      SCOPED_TRACE(testing::Message() << size.m << " x " << size.n << " x " << size.k);
      const Problem<TA, TB> p(size, za, zb);
      const TestBytes packed(packed_bytes_i8(size.n, size.k));
      p.pack(packed);
      GemmI8 g = p.args(packed);
      ThreadPool one(1);
      const TestBytes workspace(gemm_i8_workspace_bytes(size.m, size.k));
      const int64_t ldc = size.n + 2;
      for (const bool slack : {false, true}) {
        g.a_slack = slack;
        std::vector<int32_t> c(static_cast<size_t>(size.m * ldc), 77);
        ops::gemm_i8(g, AccumulatorOutput{c.data(), ldc}, workspace.data(), one);
        for (int64_t row = 0; row < size.m; ++row) {
          for (int64_t col = 0; col < ldc; ++col) {
            ASSERT_EQ(c[static_cast<size_t>(row * ldc + col)], col < size.n ? p.expected(row, col, g) : 77)
                << row << ", " << col;
          }
        }
      }
    }
  });
}

TEST(GemmI8Test, SignedBySigned) { check_accumulators<int8_t, int8_t>(-7, 0); }
TEST(GemmI8Test, ExtremeZeroPoints) { check_accumulators<int8_t, int8_t>(-128, 0); }
TEST(GemmI8Test, UnsignedBySigned) { check_accumulators<uint8_t, int8_t>(255, 0); }
TEST(GemmI8Test, UnsignedByUnsignedWithZeroPoints) { check_accumulators<uint8_t, uint8_t>(128, 3); }
TEST(GemmI8Test, SignedByAsymmetricSigned) { check_accumulators<int8_t, int8_t>(5, -100); }

TEST(GemmI8Test, LargestProductsDoNotSaturate) {
  for_each_target([] {
    constexpr int64_t kDepth = 1024;
    const std::vector<uint8_t> a(kDepth, 255);
    const std::vector<int8_t> b(kDepth, -128);
    const TestBytes packed(packed_bytes_i8(1, kDepth));
    ops::pack_matrix(b.data(), kDepth, 1, kDepth, packed.data());
    GemmI8 g;
    g.a = a.data();
    g.a_unsigned = true;
    g.lda = kDepth;
    g.m = 1;
    g.b = packed.data();
    g.n = 1;
    g.k = kDepth;
    const TestBytes workspace(gemm_i8_workspace_bytes(1, kDepth));
    int32_t c = 0;
    gemm_i8_range(g, AccumulatorOutput{&c, 1}, 0, 1, 0, 1, workspace.data());
    EXPECT_EQ(c, -128 * 255 * kDepth);
  });
}

template <typename TC>
void check_requantized(int32_t zero_point, int32_t lo, int32_t hi) {
  for_each_target([&] {
    for (const Case& size : kCases) {
      SCOPED_TRACE(testing::Message() << size.m << " x " << size.n << " x " << size.k);
      Problem<int8_t, int8_t> p(size, 3, 0);
      const TestBytes packed(packed_bytes_i8(size.n, size.k));
      p.pack(packed);
      const GemmI8 g = p.args(packed);
      // A power of two among the scales makes exact ties, which must round to even.
      std::vector<float> scale = random_values<float>(size.n, 0.00001, 0.01, p.random);
      for (size_t i = 0; i < scale.size(); i += 3) scale[i] = 0x1p-9F;
      ThreadPool one(1);
      const TestBytes workspace(gemm_i8_workspace_bytes(size.m, size.k));
      const int64_t ldc = size.n + 3;
      std::vector<TC> c(static_cast<size_t>(size.m * ldc), TC{99});
      RequantizedOutput out;
      out.c = c.data();
      out.c_unsigned = !std::is_signed_v<TC>;
      out.ldc = ldc;
      out.scale = scale.data();
      out.zero_point = zero_point;
      out.lo = lo;
      out.hi = hi;
      ops::gemm_i8(g, out, workspace.data(), one);
      for (int64_t row = 0; row < size.m; ++row) {
        for (int64_t col = 0; col < ldc; ++col) {
          const int32_t want =
              col < size.n ? requantize(p.expected(row, col, g), scale[static_cast<size_t>(col)], zero_point, lo, hi)
                           : 99;
          ASSERT_EQ(c[static_cast<size_t>(row * ldc + col)], want) << row << ", " << col;
        }
      }
    }
  });
}

TEST(GemmI8Test, RequantizesToSigned) { check_requantized<int8_t>(-5, -128, 127); }
TEST(GemmI8Test, RequantizesToUnsigned) { check_requantized<uint8_t>(131, 0, 255); }
TEST(GemmI8Test, RequantizesWithFusedActivation) { check_requantized<int8_t>(-128, -128, 20); }

TEST(GemmI8Test, DequantizesWithRowScalesAndRowZeroPoints) {
  for_each_target([] {
    for (const Case& size : kCases) {
      SCOPED_TRACE(testing::Message() << size.m << " x " << size.n << " x " << size.k);
      Problem<int8_t, int8_t> p(size, 0, 0);
      const TestBytes packed(packed_bytes_i8(size.n, size.k));
      p.pack(packed);
      GemmI8 g = p.args(packed);
      g.bias = nullptr;
      g.a_row_zero_points = p.row_zero.data();
      const auto scale = random_values<float>(size.n, 0.001, 0.01, p.random);
      const auto row_scale = random_values<float>(size.m, 0.001, 0.1, p.random);
      const auto bias = random_values<float>(size.n, -1, 1, p.random);
      ThreadPool one(1);
      const TestBytes workspace(gemm_i8_workspace_bytes(size.m, size.k));
      std::vector<float> c(static_cast<size_t>(size.m * size.n));
      DequantizedOutput out;
      out.c = c.data();
      out.ldc = size.n;
      out.row_scale = row_scale.data();
      out.scale = scale.data();
      out.bias = bias.data();
      out.lo = -2.0F;
      ops::gemm_i8(g, out, workspace.data(), one);
      for (int64_t row = 0; row < size.m; ++row) {
        for (int64_t col = 0; col < size.n; ++col) {
          const double want =
              std::max(-2.0, static_cast<double>(p.expected(row, col, g)) * row_scale[static_cast<size_t>(row)] *
                                     scale[static_cast<size_t>(col)] +
                                 bias[static_cast<size_t>(col)]);
          ASSERT_NEAR(c[static_cast<size_t>(row * size.n + col)], want, 1e-6 * std::abs(want) + 1e-5);
        }
      }
    }
  });
}

TEST(GemmI8Test, ThreadsAndPartsDoNotChangeTheResult) {
  for (const Case& size : {Case{1, 1000, 500}, Case{200, 64, 128}, Case{10, 300, 300}}) {
    const Problem<int8_t, int8_t> p(size, 3, 0);
    const TestBytes packed(packed_bytes_i8(size.n, size.k));
    p.pack(packed);
    const GemmI8 g = p.args(packed);
    ThreadPool three(3);
    const TestBytes workspace(3 * gemm_i8_workspace_bytes(size.m, size.k));
    std::vector<int32_t> c(static_cast<size_t>(size.m * size.n));
    ops::gemm_i8(g, AccumulatorOutput{c.data(), size.n}, workspace.data(), three);
    for (int64_t row = 0; row < size.m; ++row) {
      for (int64_t col = 0; col < size.n; ++col) {
        ASSERT_EQ(c[static_cast<size_t>(row * size.n + col)], p.expected(row, col, g)) << row << ", " << col;
      }
    }
  }
}

/// Slices of k, one row and one tile of columns at a time, for each output stage.
template <typename TA, typename TB>
void check_deep(int32_t za, int32_t zb, bool row_zeros) {
  for_each_target([&] {
    for (const Case& size : {Case{2, 70, 300}, Case{1, 5, 1}, Case{3, 33, 129}}) {
      SCOPED_TRACE(testing::Message() << size.m << " x " << size.n << " x " << size.k);
      Problem<TA, TB> p(size, za, zb);
      const TestBytes packed(packed_bytes_i8(size.n, size.k));
      p.pack(packed);
      GemmI8 g = p.args(packed);
      if (row_zeros) g.a_row_zero_points = p.row_zero.data();
      const auto scale = random_values<float>(size.n, 0.001, 0.01, p.random);
      const auto row_scale = random_values<float>(size.m, 0.001, 0.1, p.random);
      const TestBytes workspace(gemm_i8_workspace_bytes(size.m, size.k));
      const auto compare = [&](auto output, auto* whole, auto* sliced) {
        output.ldc = size.n;
        output.c = whole->data();
        gemm_i8_range(g, output, 0, size.m, 0, size.n, workspace.data());
        output.c = sliced->data();
        for (int64_t row = 0; row < size.m; ++row) {
          for (int64_t col = 0; col < size.n; col += kGemmColumnGrain) {
            for (int64_t k = 0; k < size.k; k += kPackDepthGrain) {
              GemmI8 slice = g;
              slice.a = p.a.data() + k;
              gemm_i8_deep(
                  slice, output,
                  {row, {col, std::min(size.n, col + kGemmColumnGrain)}, {k, std::min(size.k, k + kPackDepthGrain)}},
                  workspace.data());
            }
          }
        }
        EXPECT_EQ(*sliced, *whole);
      };
      const auto count = static_cast<size_t>(size.m * size.n);
      std::vector<int32_t> sums(count), sums_sliced(count);
      compare(AccumulatorOutput{}, &sums, &sums_sliced);
      std::vector<int8_t> levels(count), levels_sliced(count);
      RequantizedOutput requantized;
      requantized.scale = scale.data();
      compare(requantized, &levels, &levels_sliced);
      std::vector<float> reals(count), reals_sliced(count);
      DequantizedOutput dequantized;
      dequantized.row_scale = row_scale.data();
      dequantized.scale = scale.data();
      compare(dequantized, &reals, &reals_sliced);
    }
  });
}

TEST(GemmI8Test, SlicesOfDeepProductsGiveTheBitsOfTheWhole) {
  check_deep<int8_t, int8_t>(-7, 0, false);
  check_deep<int8_t, int8_t>(0, 0, true);
  check_deep<uint8_t, uint8_t>(128, 3, false);
  check_deep<int8_t, int8_t>(5, -100, false);
}

TEST(GemmI8Test, RangesArePackedAsTheWholeIs) {
  for_each_target([] {
    constexpr int64_t kN = 101, kK = 203;
    const Problem<int8_t, int8_t> p({1, kN, kK}, 0, 0);
    const auto bytes = static_cast<size_t>(packed_bytes_i8(kN, kK));
    const auto check = [&](auto pack, const auto* b, int64_t ldb, bool by_rows) {
      const TestBytes whole(packed_bytes_i8(kN, kK));
      const TestBytes ranges(packed_bytes_i8(kN, kK));
      std::memset(whole.data(), 0, bytes);
      std::memset(ranges.data(), 0, bytes);
      std::memset(ranges.data(), 55, 4 * kN);  // sums from before
      pack(b, ldb, kN, kK, whole.data(), {0, kN}, {0, kK});
      for (int64_t col = 0; col < kN; col += kGemmColumnGrain) {
        for (int64_t k = 0; k < kK; k += kPackDepthGrain) {
          pack(b + (by_rows ? col * ldb + k : k * ldb + col), ldb, kN, kK, ranges.data(),
               {col, std::min(kN, col + kGemmColumnGrain)}, {k, std::min(kK, k + kPackDepthGrain)});
        }
      }
      EXPECT_EQ(std::memcmp(whole.data(), ranges.data(), bytes), 0);
    };
    check(pack_i8, p.b.data(), kK, true);
    check(pack_u8, reinterpret_cast<const uint8_t*>(p.b.data()), kK, true);
    check(pack_i8_kn, p.b.data(), kN, false);
  });
}

TEST(GemmI8Test, CompactWeightsArePackedAsWideOnesAre) {
  constexpr int64_t kN = 70, kK = 1101;
  for (const int bits : {4, 2}) {
    std::mt19937 random(8);
    const auto bytes = random_values<uint8_t>(kN * kK + 3, 0, 255, random);
    const ops::CompactWeights compact = ops::CompactWeights{bytes.data(), bits} + 3;
    std::vector<int8_t> wide(kN * kK);
    compact.unpack(kN * kK, wide.data());
    for (int64_t i = 0; i < 100; ++i) {
      const int shift = static_cast<int>((i + 3) * bits % 8);
      const int level = (bytes[static_cast<size_t>((i + 3) * bits / 8)] >> shift) & ((1 << bits) - 1);
      ASSERT_EQ(wide[static_cast<size_t>(i)], level < 1 << (bits - 1) ? level : level - (1 << bits));
    }
    const auto size = static_cast<size_t>(packed_bytes_i8(kN, kK));
    const TestBytes a(packed_bytes_i8(kN, kK));
    const TestBytes b(packed_bytes_i8(kN, kK));
    std::memset(a.data(), 0, size);
    std::memset(b.data(), 0, size);
    ops::pack_matrix(wide.data(), kK, kN, kK, a.data());
    ops::pack_matrix(compact, kK, kN, kK, b.data());
    EXPECT_EQ(std::memcmp(a.data(), b.data(), size), 0);
    ops::pack_matrix_kn(wide.data(), kN, kN, kK, a.data());
    ops::pack_matrix_kn(compact, kN, kN, kK, b.data());
    EXPECT_EQ(std::memcmp(a.data(), b.data(), size), 0);
  }
}

TEST(GemmI8Test, PacksTransposedSource) {
  for_each_target([] {
    const Problem<int8_t, int8_t> p({5, 37, 19}, 3, 0);
    std::vector<int8_t> kn(p.b.size());
    for (size_t col = 0; col < 37; ++col) {
      for (size_t i = 0; i < 19; ++i) kn[i * 37 + col] = p.b[col * 19 + i];
    }
    const TestBytes packed(packed_bytes_i8(37, 19));
    ops::pack_matrix_kn(kn.data(), 37, 37, 19, packed.data());
    const GemmI8 g = p.args(packed);
    const TestBytes workspace(gemm_i8_workspace_bytes(5, 19));
    std::vector<int32_t> c(5 * 37);
    gemm_i8_range(g, AccumulatorOutput{c.data(), 37}, 0, 5, 0, 37, workspace.data());
    for (int64_t row = 0; row < 5; ++row) {
      for (int64_t col = 0; col < 37; ++col) {
        ASSERT_EQ(c[static_cast<size_t>(row * 37 + col)], p.expected(row, col, g));
      }
    }
  });
}

template <typename T>
void check_gemv(int32_t zero_point) {
  for_each_target([&] {
    for (const int64_t k : {1, 3, 16, 31, 64, 129, 200, 1027}) {
      for (const int64_t n : {1, 3, 4, 10}) {
        std::mt19937 random(3);
        const auto a = random_values<T>(k, std::numeric_limits<T>::min(), std::numeric_limits<T>::max(), random);
        const auto b = random_values<int8_t>(n * (k + 1), -128, 127, random);
        std::vector<int32_t> b_sums(static_cast<size_t>(n)), want(b_sums), got(b_sums);
        for (int64_t j = 0; j < n; ++j) {
          for (int64_t i = 0; i < k; ++i) {
            const int32_t weight = b[static_cast<size_t>(j * (k + 1) + i)];
            b_sums[static_cast<size_t>(j)] += weight;
            want[static_cast<size_t>(j)] += (a[static_cast<size_t>(i)] - zero_point) * weight;
          }
        }
        const GemvI8 g{a.data(), !std::is_signed_v<T>, zero_point, b.data(), k + 1, b_sums.data(), n, k};
        gemv_dots_i8(g, 0, k, got.data());
        ASSERT_EQ(got, want) << k << " " << n;
        got.assign(got.size(), 99);
        for (int64_t i = 0; i < k; i += 37) gemv_dots_i8(g, i, std::min(k, i + 37), got.data());
        ASSERT_EQ(got, want) << k << " " << n << " in slices";
      }
    }
  });
}

TEST(GemvI8, DotProductsAreExactForSignedAndUnsignedVectors) {
  check_gemv<int8_t>(-128);
  check_gemv<int8_t>(5);
  check_gemv<uint8_t>(131);
}

}  // namespace
}  // namespace leadline::kernels
