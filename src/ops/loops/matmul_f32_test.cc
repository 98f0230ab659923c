// SPDX-License-Identifier: Apache-2.0
// Products of operands as they are, whole matrices and vectors, against plain loops and the packed gemm.
#include "ops/loops/matmul_f32.h"

#include <gtest/gtest.h>

#include "kernels/gemm/gemm_f32.h"
#include "kernels/gemm/gemv_f32.h"
#include "kernels/kernel_testing.h"
#include "ops/loops/gemm.h"
#include "ops/loops/pack.h"

namespace leadline::ops {

using namespace kernels;  // NOLINT(google-build-using-namespace)

namespace {

struct Case {
  int64_t m, n, k;
};

// Every kind of remainder, with and without a packed A, and beyond one block in each direction.
constexpr Case kCases[] = {{1, 1, 1},     {3, 5, 7},     {6, 16, 256},  {7, 33, 257},   {13, 200, 300},
                           {64, 193, 31}, {5, 1100, 20}, {97, 1025, 9}, {2050, 33, 10}, {0, 3, 3},
                           {4, 0, 3},     {4, 9, 0},     {2100, 201, 3}};

class Problem {
 public:
  Problem(Case size, bool a_transposed, bool b_transposed) : s(size), random(7) {
    const int64_t a_rows = a_transposed ? s.k : s.m;
    const int64_t b_rows = b_transposed ? s.n : s.k;
    g = {.lda = (a_transposed ? s.m : s.k) + 1,
         .a_transposed = a_transposed,
         .ldb = (b_transposed ? s.k : s.n) + 2,
         .b_transposed = b_transposed,
         .m = s.m,
         .n = s.n,
         .k = s.k,
         .ldc = s.n + 3,
         .lo = -0.75F,
         .hi = 1.5F};
    a = random_values<float>(a_rows * g.lda, -1, 1, random);
    b = random_values<float>(b_rows * g.ldb, -1, 1, random);
    bias = random_values<float>(s.n, -1, 1, random);
    c.assign(static_cast<size_t>(s.m * g.ldc), kSentinel);
    g.a = a.data();
    g.b = b.data();
    g.bias = bias.data();
    g.c = c.data();
  }
  static constexpr float kSentinel = 12345.0F;

  /// The product by the packed gemm, of which each output is the same chain of additions.
  std::vector<float> expected() const {
    std::vector<float> rows(static_cast<size_t>(s.m * s.k));
    for (int64_t i = 0; i < s.m; ++i) {
      for (int64_t q = 0; q < s.k; ++q) {
        rows[static_cast<size_t>(i * s.k + q)] = a[static_cast<size_t>(g.a_transposed ? q * g.lda + i : i * g.lda + q)];
      }
    }
    const TestBytes packed(packed_bytes_f32(s.n, s.k));
    g.b_transposed ? pack_matrix(g.b, g.ldb, s.n, s.k, packed.data())
                   : pack_matrix_kn(g.b, g.ldb, s.n, s.k, packed.data());
    std::vector<float> result(c.size(), kSentinel);
    gemm_f32_range({rows.data(), s.k, s.m, packed.data(), s.n, s.k, g.bias, result.data(), g.ldc, g.lo, g.hi}, 0, s.m,
                   0, s.n);
    return result;
  }
  std::vector<float> run(int threads) {
    const TestBytes workspace(matmul_f32_workspace_bytes(s.m, s.n, s.k, g.a_transposed));
    c.assign(c.size(), kSentinel);
    ThreadPool pool(threads);
    matmul_f32(g, workspace.data(), pool);
    return c;
  }

  Case s;
  std::mt19937 random;
  MatmulF32 g;
  std::vector<float> a, b, bias, c;
};

TEST(MatmulF32Test, HasTheBitsOfThePackedGemmWithAnyNumberOfThreads) {
  for_each_target([] {
    for (const Case& size : kCases) {
      for (const int form : {0, 1, 2, 3}) {
        SCOPED_TRACE(testing::Message() << size.m << " x " << size.n << " x " << size.k << ", form " << form);
        Problem p(size, (form & 1) != 0, (form & 2) != 0);
        const std::vector<float> expected = p.expected();
        EXPECT_EQ(p.run(1), expected);
        EXPECT_EQ(p.run(3), expected);
      }
    }
  });
}

TEST(MatmulF32Test, WorkspaceIsBounded) {
  EXPECT_LE(matmul_f32_workspace_bytes(1 << 20, 1 << 20, 1 << 20, true), 3 << 20);
  EXPECT_LE(matmul_f32_workspace_bytes(128, 128, 64, false), 128 * 64 * 4);
}

TEST(GemvF32Test, MatchesPlainLoops) {
  ThreadPool pool(3);
  for_each_target([&] {
    for (const int64_t n : {1, 2, 4, 5, 15, 16, 33, 100, 2050, 4500}) {
      for (const int64_t k : {0, 1, 2, 7, 8, 9, 16, 31, 65, 200}) {
        SCOPED_TRACE(testing::Message() << n << " x " << k);
        std::mt19937 random(3);
        const auto x = random_values<float>(k, -1, 1, random);
        const auto matrix = random_values<float>((n + 1) * (k + 1), -1, 1, random);
        std::vector<float> rows(static_cast<size_t>(n), 9.0F), dots(static_cast<size_t>(n), 9.0F);
        ops::gemv_rows_f32(x.data(), matrix.data(), n + 1, n, k, rows.data(), pool);
        ops::gemv_dots_f32(x.data(), matrix.data(), k + 1, n, k, dots.data(), pool);
        for (int64_t j = 0; j < n; ++j) {
          double by_rows = 0, by_dots = 0;
          for (int64_t i = 0; i < k; ++i) {
            const double factor = x[static_cast<size_t>(i)];
            by_rows += factor * matrix[static_cast<size_t>(i * (n + 1) + j)];
            by_dots += factor * matrix[static_cast<size_t>(j * (k + 1) + i)];
          }
          ASSERT_NEAR(rows[static_cast<size_t>(j)], by_rows, 1e-6 * static_cast<double>(k + 4));
          ASSERT_NEAR(dots[static_cast<size_t>(j)], by_dots, 1e-6 * static_cast<double>(k + 4));
        }
      }
    }
  });
}

TEST(GemvF32Test, SlicesGiveTheBitsOfTheWhole) {
  for_each_target([] {
    constexpr int64_t kN = 7, kK = 500;
    std::mt19937 random(3);
    const auto x = random_values<float>(kK, -1, 1, random);
    const auto matrix = random_values<float>(kN * kK, -1, 1, random);
    std::vector<float> whole(kN), slices(kN), state(kN * kDotsState);
    kernels::gemv_dots_f32(x.data(), matrix.data(), kK, kN, kK, whole.data());
    for (int64_t k = 0; k < kK; k += kDotsDepthGrain) {
      kernels::gemv_dots_f32_slice(x.data(), matrix.data(), kK, kN, kK, k, std::min(kK, k + kDotsDepthGrain),
                                   state.data(), slices.data());
    }
    EXPECT_EQ(slices, whole);
    kernels::gemv_rows_f32(x.data(), matrix.data(), kN, kN, kK, whole.data(), false);
    for (int64_t k = 0; k < kK; k += 13) {
      kernels::gemv_rows_f32(x.data() + k, matrix.data() + k * kN, kN, kN, std::min<int64_t>(13, kK - k), slices.data(),
                             k > 0);
    }
    EXPECT_EQ(slices, whole);
  });
}

TEST(GemvF32Test, ThreadsDoNotChangeTheResult) {
  std::mt19937 random(3);
  const auto x = random_values<float>(700, -1, 1, random);
  const auto matrix = random_values<float>(700 * 701, -1, 1, random);
  for (const auto gemv : {ops::gemv_rows_f32, ops::gemv_dots_f32}) {
    ThreadPool one(1), four(4);
    std::vector<float> single(699), many(699);
    gemv(x.data(), matrix.data(), 701, 699, 700, single.data(), one);
    gemv(x.data(), matrix.data(), 701, 699, 700, many.data(), four);
    EXPECT_EQ(single, many);
  }
}

}  // namespace
}  // namespace leadline::ops
