// SPDX-License-Identifier: Apache-2.0
// The float gemm against plain loops, on every instruction set, over shapes that leave every kind of remainder.
#include "kernels/gemm/gemm_f32.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "kernels/kernel_testing.h"
#include "ops/loops/gemm.h"
#include "ops/loops/pack.h"

namespace leadline::kernels {
namespace {

struct Case {
  int64_t m, n, k;
};

constexpr Case kCases[] = {{1, 1, 1},    {1, 7, 3},    {1, 64, 33},  {1, 131, 17},  {2, 33, 5},
                           {2, 67, 300}, {3, 16, 64},  {4, 31, 29},  {5, 9, 13},    {6, 16, 1},
                           {6, 17, 2},   {7, 48, 257}, {12, 8, 256}, {13, 1, 511},  {97, 5, 11},
                           {101, 37, 3}, {23, 29, 0},  {0, 4, 4},    {103, 53, 521}};

struct Problem {
  explicit Problem(Case size, unsigned seed = 1) : s(size), random(seed) {
    a = random_values<float>(s.m * lda(), -1, 1, random);
    b = random_values<float>(s.n * s.k, -1, 1, random);
    bias = random_values<float>(s.n, -1, 1, random);
    c.assign(static_cast<size_t>(s.m * ldc()), kSentinel);
  }
  static constexpr float kSentinel = 12345.0F;
  int64_t lda() const { return s.k + 3; }
  int64_t ldc() const { return s.n + 2; }
  GemmF32 args(const TestBytes& packed) {
    return {a.data(), lda(), s.m, packed.data(), s.n, s.k, bias.data(), c.data(), ldc(), -0.5F, 2.0F};
  }
  double expected(int64_t row, int64_t col, const GemmF32& g) const {
    double sum = g.bias == nullptr ? 0 : bias[static_cast<size_t>(col)];
    for (int64_t i = 0; i < s.k; ++i) {
      sum += static_cast<double>(a[static_cast<size_t>(row * lda() + i)]) * b[static_cast<size_t>(col * s.k + i)];
    }
    return std::min<double>(g.hi, std::max<double>(g.lo, sum));
  }
  void check(const GemmF32& g) const {
    for (int64_t row = 0; row < s.m; ++row) {
      for (int64_t col = 0; col < ldc(); ++col) {
        const float got = c[static_cast<size_t>(row * ldc() + col)];
        if (col >= s.n) {
          ASSERT_EQ(got, kSentinel) << "wrote beyond the row";
        } else {
          ASSERT_NEAR(got, expected(row, col, g), 1e-6 * static_cast<double>(s.k + 4)) << row << ", " << col;
        }
      }
    }
  }

  Case s;
  std::mt19937 random;
  std::vector<float> a, b, bias, c;
};

TEST(GemmF32Test, MatchesPlainLoops) {
  for_each_target([] {
    for (const Case& size : kCases) {
      SCOPED_TRACE(testing::Message() << size.m << " x " << size.n << " x " << size.k);
      Problem p(size);
      const TestBytes packed(packed_bytes_f32(size.n, size.k));
      ops::pack_matrix(p.b.data(), size.k, size.n, size.k, packed.data());
      const GemmF32 g = p.args(packed);
      ThreadPool one(1);
      ops::gemm_f32(g, one);
      p.check(g);
    }
  });
}

TEST(GemmF32Test, WorksWithoutBiasAndClamp) {
  for_each_target([] {
    Problem p({7, 19, 23});
    const TestBytes packed(packed_bytes_f32(19, 23));
    ops::pack_matrix(p.b.data(), 23, 19, 23, packed.data());
    GemmF32 g = p.args(packed);
    g.bias = nullptr;
    g.lo = -std::numeric_limits<float>::infinity();
    g.hi = std::numeric_limits<float>::infinity();
    gemm_f32_range(g, 0, 7, 0, 19);
    p.check(g);
  });
}

TEST(GemmF32Test, PacksTransposedAndHalfPrecisionSources) {
  for_each_target([] {
    for (const Case& size : {Case{3, 37, 19}, Case{1, 5, 1}, Case{8, 64, 31}}) {
      Problem p(size);
      std::vector<float> kn(static_cast<size_t>(size.k * size.n));
      for (int64_t col = 0; col < size.n; ++col) {
        for (int64_t i = 0; i < size.k; ++i) {
          kn[static_cast<size_t>(i * size.n + col)] = p.b[static_cast<size_t>(col * size.k + i)];
        }
      }
      const auto bytes = static_cast<size_t>(packed_bytes_f32(size.n, size.k));
      const TestBytes from_nk(packed_bytes_f32(size.n, size.k));
      const TestBytes from_kn(packed_bytes_f32(size.n, size.k));
      std::memset(from_nk.data(), 0, bytes);  // bytes that a narrow last panel leaves over are not written
      std::memset(from_kn.data(), 0, bytes);
      ops::pack_matrix(p.b.data(), size.k, size.n, size.k, from_nk.data());
      ops::pack_matrix_kn(kn.data(), size.n, size.n, size.k, from_kn.data());
      EXPECT_EQ(std::memcmp(from_nk.data(), from_kn.data(), bytes), 0);
    }
  });
  // Zero, smallest and largest subnormal, smallest normal, one, largest, infinity, with signs.
  const std::vector<uint16_t> half = {0x0000, 0x0001, 0x03FF, 0x0400, 0x3C00, 0x7BFF, 0x7C00, 0x8000, 0xBC00, 0xC500};
  const std::vector<float> whole = {0.0F,     0x1p-24F, 0x1.ff8p-15F, 0x1p-14F, 1.0F,
                                    65504.0F, INFINITY, -0.0F,        -1.0F,    -5.0F};
  const auto count = static_cast<int64_t>(half.size());
  const TestBytes packed(packed_bytes_f32(count, 1));
  ops::pack_matrix(half.data(), 1, count, 1, packed.data());
  const float one = 1.0F;
  std::vector<float> c(half.size());
  gemm_f32_range({&one, 1, 1, packed.data(), count, 1, nullptr, c.data(), count}, 0, 1, 0, count);
  EXPECT_EQ(c, whole);
}

TEST(GemmF32Test, PartsHaveTheBitsOfTheWhole) {
  for_each_target([] {
    Problem p({53, 101, 700});
    const TestBytes packed(packed_bytes_f32(101, 700));
    ops::pack_matrix(p.b.data(), 700, 101, 700, packed.data());
    GemmF32 g = p.args(packed);
    gemm_f32_range(g, 0, 53, 0, 101);
    const std::vector<float> whole = p.c;
    std::vector<float> parts(whole.size(), Problem::kSentinel);
    g.c = parts.data();
    for (int64_t row = 0; row < 53; row += 7) {
      for (int64_t col = 0; col < 101; col += kGemmColumnGrain) {
        gemm_f32_range(g, row, std::min<int64_t>(53, row + 7), col, std::min<int64_t>(101, col + kGemmColumnGrain));
      }
    }
    EXPECT_EQ(parts, whole);
    std::vector<float> slices(whole.size(), Problem::kSentinel);
    g.c = slices.data();
    for (const auto& [k0, k1] : {std::pair<int64_t, int64_t>{0, 100}, {100, 101}, {101, 700}}) {
      g.a = p.a.data() + k0;
      for (int64_t row = 0; row < 53; row += 3) gemm_f32_slice(g, row, std::min<int64_t>(53, row + 3), 0, 101, k0, k1);
    }
    EXPECT_EQ(slices, whole);
  });
}

TEST(GemmF32Test, RangesArePackedAsTheWholeIs) {
  for_each_target([] {
    constexpr int64_t kN = 101, kK = 200;
    const Problem p({1, kN, kK});
    const auto bytes = static_cast<size_t>(packed_bytes_f32(kN, kK));
    std::vector<uint16_t> half(p.b.size());
    for (size_t i = 0; i < half.size(); ++i) half[i] = static_cast<uint16_t>(0x3000 + i);
    const auto check = [&](auto pack, const auto* b, int64_t ldb, bool by_rows) {
      const TestBytes whole(packed_bytes_f32(kN, kK));
      const TestBytes ranges(packed_bytes_f32(kN, kK));
      std::memset(whole.data(), 0, bytes);
      std::memset(ranges.data(), 0, bytes);
      pack(b, ldb, kN, kK, whole.data(), {0, kN}, {0, kK});
      for (int64_t col = 0; col < kN; col += kGemmColumnGrain) {
        for (int64_t k = 0; k < kK; k += kPackDepthGrain) {
          pack(b + (by_rows ? col * ldb + k : k * ldb + col), ldb, kN, kK, ranges.data(),
               {col, std::min(kN, col + kGemmColumnGrain)}, {k, std::min(kK, k + kPackDepthGrain)});
        }
      }
      EXPECT_EQ(std::memcmp(whole.data(), ranges.data(), bytes), 0);
    };
    check(pack_f32, p.b.data(), kK, true);
    check(pack_f32_kn, p.b.data(), kN, false);
    check(pack_f32_from_f16, half.data(), kK, true);
  });
}

TEST(GemmF32Test, ThreadsDoNotChangeTheResult) {
  for (const Case& size : {Case{1, 1000, 500}, Case{200, 64, 128}, Case{10, 300, 300}}) {
    Problem p(size);
    const TestBytes packed(packed_bytes_f32(size.n, size.k));
    ops::pack_matrix(p.b.data(), size.k, size.n, size.k, packed.data());
    GemmF32 g = p.args(packed);
    ThreadPool one(1);
    ops::gemm_f32(g, one);
    const std::vector<float> single = p.c;
    p.c.assign(p.c.size(), Problem::kSentinel);
    ThreadPool three(3);
    ops::gemm_f32(g, three);
    EXPECT_EQ(p.c, single);
  }
}

TEST(GemmF32Test, NanPassesTheClamp) {
  for_each_target([] {
    const TestBytes packed(packed_bytes_f32(3, 1));
    const float b[] = {1.0F, NAN, -9.0F};
    ops::pack_matrix(b, 1, 3, 1, packed.data());
    const float one = 1.0F;
    float c[3];
    gemm_f32_range({&one, 1, 1, packed.data(), 3, 1, nullptr, c, 3, 0.0F, 6.0F}, 0, 1, 0, 3);
    EXPECT_EQ(c[0], 1.0F);
    EXPECT_TRUE(std::isnan(c[1]));
    EXPECT_EQ(c[2], 0.0F);
  });
}

}  // namespace
}  // namespace leadline::kernels
