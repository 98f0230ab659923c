// SPDX-License-Identifier: Apache-2.0
#include "ops/batch_matmul.h"

#include <gtest/gtest.h>

#include <span>
#include <vector>

#include "core/cancel.h"
#include "kernels/quant/dynamic.h"
#include "kernels/reference/matmul.h"
#include "ops/contraction_testing.h"
#include "ops/loops/quantize_rows.h"

namespace leadline::ops {
namespace {

namespace ref = kernels::reference;
constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(BatchMatmul, MultipliesRowsByColumns) {
  OpTester t("BATCH_MATMUL");
  t.input<float>({1, 2, 3}, {1, 2, 3, 4, 5, 6}, {}, false).input<float>({1, 3, 2}, {7, 8, 9, 10, 11, 12}, {}, false);
  t.output(DType::kFloat32).run();
  EXPECT_EQ(t.shape(0), (Shape{1, 2, 2}));
  EXPECT_EQ(t.result<float>(0), (std::vector<float>{58, 64, 139, 154}));
}

struct Case {
  std::vector<int64_t> lhs_batch, rhs_batch;
  int64_t m, k, n;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << testing::PrintToString(c.lhs_batch) << " and " << testing::PrintToString(c.rhs_batch) << ", " << c.m << 'x'
       << c.k << 'x' << c.n;
}

class BatchMatmulForms : public testing::TestWithParam<std::tuple<Case, bool, bool>> {
 protected:
  const Case& p() const { return std::get<0>(GetParam()); }
  bool adj_x() const { return std::get<1>(GetParam()); }
  bool adj_y() const { return std::get<2>(GetParam()); }
  static Shape matrices(std::vector<int64_t> dims, int64_t rows, int64_t columns) {
    dims.insert(dims.end(), {rows, columns});
    return Shape(std::span<const int64_t>(dims));
  }
  Shape lhs_shape() const {
    return adj_x() ? matrices(p().lhs_batch, p().k, p().m) : matrices(p().lhs_batch, p().m, p().k);
  }
  Shape rhs_shape() const {
    return adj_y() ? matrices(p().rhs_batch, p().n, p().k) : matrices(p().rhs_batch, p().k, p().n);
  }
  OpTester tester() const {
    BatchMatmulAttributes a;
    a.adj_x = adj_x();
    a.adj_y = adj_y();
    OpTester t("BATCH_MATMUL");
    t.threads(2).attributes(a);
    return t;
  }
  /// Index of the matrix that `batch` of `output` reads from an operand with these outer dimensions.
  static int64_t source(const Shape& output, int64_t batch, const std::vector<int64_t>& dims) {
    int64_t index = 0;
    int64_t step = 1;
    const int rank = output.rank() - 2;
    for (int axis = rank - 1; axis >= 0; --axis) {
      const int own = axis - (rank - static_cast<int>(dims.size()));
      if (own >= 0) {
        if (dims[static_cast<size_t>(own)] != 1) index += batch % output[axis] * step;
        step *= dims[static_cast<size_t>(own)];
      }
      batch /= output[axis];
    }
    return index;
  }
  template <typename Out, typename A, typename B, typename Zero, typename Finish>
  std::vector<Out> naive(const Shape& output, const std::vector<A>& lhs, bool lhs_transposed, Zero zero,
                         const std::vector<B>& rhs, int32_t rhs_zero, const Finish& finish) const {
    const auto [m, k, n] = std::tuple{p().m, p().k, p().n};
    const ref::MatmulShape s{.m = m,
                             .n = n,
                             .k = k,
                             .a_row = lhs_transposed ? 1 : k,
                             .a_depth = lhs_transposed ? m : 1,
                             .b_column = adj_y() ? k : 1,
                             .b_depth = adj_y() ? 1 : n,
                             .c_row = n};
    std::vector<Out> result(static_cast<size_t>(output.elements()));
    for (int64_t batch = 0; batch < output.elements() / (m * n); ++batch) {
      const int64_t left = source(output, batch, p().lhs_batch);
      const int64_t right = source(output, batch, p().rhs_batch);
      reference_product(s, lhs.data() + left * m * k, zero, rhs.data() + right * k * n, rhs_zero, finish,
                        result.data() + batch * m * n, left * m);
    }
    return result;
  }
};

TEST_P(BatchMatmulForms, FloatMatchesTheNaiveLoop) {
  const auto lhs = random_values<float>(lhs_shape().elements(), 1);
  const auto rhs = random_values<float>(rhs_shape().elements(), 2);
  for (const bool known : {true, false}) {
    OpTester t = tester();
    t.input<float>(lhs_shape(), lhs, {}, false).input<float>(rhs_shape(), rhs, {}, known).output(DType::kFloat32).run();
    const auto expected =
        naive<float>(t.shape(0), lhs, adj_x(), ref::FixedZero{}, rhs, 0, ref::FinishFloat{nullptr, -kInf, kInf});
    const auto result = t.result<float>(0);
    for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(result[i], expected[i], 1e-5F) << i;
  }
}

TEST_P(BatchMatmulForms, Int8MatchesTheNaiveLoop) {
  const auto lhs = random_values<int8_t>(lhs_shape().elements(), 1, -128, 127);
  const auto rhs = random_values<int8_t>(rhs_shape().elements(), 2, -128, 127);
  OpTester t = tester();
  t.input<int8_t>(lhs_shape(), lhs, quantized(0.02F, 3), false)
      .input<int8_t>(rhs_shape(), rhs, quantized(0.03F, -9), false);
  t.output(DType::kInt8, quantized(0.4F, 8)).run();
  const float scale = 0.02F * 0.03F / 0.4F;
  const ref::FinishQuantized<int8_t> finish{nullptr, &scale, 8, -128, 127, 0};
  EXPECT_EQ(t.result<int8_t>(0), naive<int8_t>(t.shape(0), lhs, adj_x(), ref::FixedZero{3}, rhs, -9, finish));
}

TEST_P(BatchMatmulForms, Int8ToInt32IsThePlainSum) {
  const auto lhs = random_values<int8_t>(lhs_shape().elements(), 1, -128, 127);
  const auto rhs = random_values<int8_t>(rhs_shape().elements(), 2, -128, 127);
  OpTester t = tester();
  t.input<int8_t>(lhs_shape(), lhs, {}, false).input<int8_t>(rhs_shape(), rhs, {}, false).output(DType::kInt32).run();
  EXPECT_EQ(t.result<int32_t>(0),
            naive<int32_t>(t.shape(0), lhs, adj_x(), ref::FixedZero{}, rhs, 0, ref::FinishInt32{}));
}

TEST_P(BatchMatmulForms, Int16MatchesFixedPoint) {
  const auto lhs = random_values<int16_t>(lhs_shape().elements(), 1, -32768, 32767);
  const auto rhs16 = random_values<int16_t>(rhs_shape().elements(), 2, -32768, 32767);
  const auto rhs8 = random_values<int8_t>(rhs_shape().elements(), 2, -128, 127);
  auto run = [&](const auto& rhs, float rhs_scale) {
    OpTester t = tester();
    t.input<int16_t>(lhs_shape(), lhs, quantized(0.5F), false).input(rhs_shape(), rhs, quantized(rhs_scale), false);
    t.output(DType::kInt16, quantized(2.0F)).run();
    const kernels::Multiplier multiplier = kernels::quantize_multiplier(double{0.5F * rhs_scale} / double{2.0F});
    const ref::FinishWide finish{.multiplier = &multiplier, .lo = -32768, .hi = 32767, .step = 0};
    EXPECT_EQ(t.result<int16_t>(0), naive<int16_t>(t.shape(0), lhs, adj_x(), ref::FixedZero{}, rhs, 0, finish));
  };
  run(rhs16, 0.0001F);
  run(rhs8, 0.02F);
}

TEST_P(BatchMatmulForms, ColumnsOfIntegerProductsHaveTheirOwnScales) {
  const auto lhs = random_values<int16_t>(lhs_shape().elements(), 1, -128, 127);
  const auto rhs = random_values<int8_t>(rhs_shape().elements(), 2, -128, 127);
  const Quantization q = channel_quantized(p().n, rhs_shape().rank() - (adj_y() ? 2 : 1), 0.02F);
  std::vector<float> scales;
  std::vector<kernels::Multiplier> multipliers;
  for (const float s : q.scale) {
    scales.push_back(0.5F * s / 2.0F);
    multipliers.push_back(kernels::quantize_multiplier(double{0.5F * s} / double{2.0F}));
  }
  OpTester wide = tester();
  wide.input<int16_t>(lhs_shape(), lhs, quantized(0.5F), false).input<int8_t>(rhs_shape(), rhs, q);
  wide.output(DType::kInt16, quantized(2.0F)).run();
  const ref::FinishWide finish16{.multiplier = multipliers.data(), .lo = -32768, .hi = 32767};
  EXPECT_EQ(wide.result<int16_t>(0), naive<int16_t>(wide.shape(0), lhs, adj_x(), ref::FixedZero{}, rhs, 0, finish16));
  const std::vector<int8_t> lhs8(lhs.begin(), lhs.end());
  OpTester narrow = tester();
  narrow.input<int8_t>(lhs_shape(), lhs8, quantized(0.5F, 3), false).input<int8_t>(rhs_shape(), rhs, q);
  narrow.output(DType::kInt8, quantized(2.0F)).run();
  const ref::FinishQuantized<int8_t> finish8{nullptr, scales.data(), 0, -128, 127};
  EXPECT_EQ(narrow.result<int8_t>(0),
            naive<int8_t>(narrow.shape(0), lhs8, adj_x(), ref::FixedZero{3}, rhs, 0, finish8));
}

TEST_P(BatchMatmulForms, DynamicRangeQuantizesRowByRow) {
  const auto lhs = random_values<float>(lhs_shape().elements(), 1);
  const auto rhs = random_values<int8_t>(rhs_shape().elements(), 2, -127, 127);
  const int axis = rhs_shape().rank() - (adj_y() ? 2 : 1);
  const auto [m, k, n] = std::tuple{p().m, p().k, p().n};
  const Quantization q = channel_quantized(n, axis, 0.01F);
  for (const bool known : {true, false}) {
    OpTester t = tester();
    t.input<float>(lhs_shape(), lhs, {}, false).input<int8_t>(rhs_shape(), rhs, q, known).output(DType::kFloat32).run();
    std::vector<float> rows = lhs;
    for (int64_t i = 0; adj_x() && i < static_cast<int64_t>(lhs.size()); ++i) {
      const int64_t matrix = i / (m * k);
      rows[static_cast<size_t>(matrix * m * k + i % m * k + i % (m * k) / m)] = lhs[static_cast<size_t>(i)];
    }
    const int64_t count = static_cast<int64_t>(rows.size()) / k;
    std::vector<int8_t> levels(rows.size());
    std::vector<float> scales(static_cast<size_t>(count));
    std::vector<int32_t> zeros(static_cast<size_t>(count));
    ThreadPool pool(1);
    quantize_rows(rows.data(), count, k, levels.data(), {scales.data(), zeros.data()}, pool);
    const auto expected = naive<float>(t.shape(0), levels, false, ref::RowZero{zeros.data()}, rhs, 0,
                                       ref::FinishHybrid{scales.data(), q.scale.data(), nullptr, -kInf, kInf});
    const auto result = t.result<float>(0);
    for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(result[i], expected[i], 1e-5F) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, BatchMatmulForms,
    testing::Combine(testing::Values(Case{{}, {}, 3, 4, 5}, Case{{2}, {2}, 7, 16, 33}, Case{{5}, {1}, 2, 9, 4},
                                     Case{{}, {3}, 4, 5, 6}, Case{{2, 1}, {1, 3}, 2, 3, 4},
                                     Case{{2, 1, 2}, {3, 1}, 4, 20, 3}, Case{{2, 1, 2, 1, 2}, {2, 2, 1}, 1, 6, 2},
                                     Case{{3}, {3}, 1, 17, 9}, Case{{2}, {1, 2}, 5, 40, 1}, Case{{9}, {9}, 6, 10, 35},
                                     Case{{}, {2}, 1, 3, 1}),
                     testing::Bool(), testing::Bool()));

/// More columns than are packed at once, more rows than are prepared at once.
class LargeIntegerProducts : public testing::TestWithParam<std::tuple<bool, bool>> {
 protected:
  static constexpr int64_t kM = 13, kN = 70, kK = 70'000;
  OpTester tester() const {
    BatchMatmulAttributes a;
    std::tie(a.adj_x, a.adj_y) = GetParam();
    OpTester t("BATCH_MATMUL");
    t.threads(2).attributes(a);
    return t;
  }
  Shape lhs_shape() const { return std::get<0>(GetParam()) ? Shape{kK, kM} : Shape{kM, kK}; }
  Shape rhs_shape() const { return std::get<1>(GetParam()) ? Shape{kN, kK} : Shape{kK, kN}; }
};

TEST_P(LargeIntegerProducts, AreExact) {
  const auto lhs = random_values<int8_t>(kM * kK, 1, -128, 127);
  const auto rhs = random_values<int8_t>(kN * kK, 2, -128, 127);
  OpTester t = tester();
  t.input<int8_t>(lhs_shape(), lhs, {}, false).input<int8_t>(rhs_shape(), rhs, {}, false).output(DType::kInt32).run();
  const auto [adj_x, adj_y] = GetParam();
  const ref::MatmulShape s{.m = kM,
                           .n = kN,
                           .k = kK,
                           .a_row = adj_x ? 1 : kK,
                           .a_depth = adj_x ? kM : 1,
                           .b_column = adj_y ? kK : 1,
                           .b_depth = adj_y ? 1 : kN,
                           .c_row = kN};
  std::vector<int32_t> expected(kM * kN);
  reference_product(s, lhs.data(), ref::FixedZero{}, rhs.data(), 0, ref::FinishInt32{}, expected.data());
  EXPECT_EQ(t.result<int32_t>(0), expected);
}

TEST_P(LargeIntegerProducts, OfDynamicRangeAreThoseOfConstants) {
  const auto lhs = random_values<float>(kM * kK, 1);
  const auto rhs = random_values<int8_t>(kN * kK, 2, -127, 127);
  std::vector<std::vector<float>> results;
  for (const bool known : {true, false}) {
    OpTester t = tester();
    t.input<float>(lhs_shape(), lhs, {}, false).input<int8_t>(rhs_shape(), rhs, quantized(0.01F), known);
    t.output(DType::kFloat32).run();
    results.push_back(t.result<float>(0));
  }
  EXPECT_EQ(results[0], results[1]);
}

INSTANTIATE_TEST_SUITE_P(Forms, LargeIntegerProducts, testing::Combine(testing::Bool(), testing::Bool()));

class LargeFloatProducts : public testing::TestWithParam<std::tuple<bool, bool>> {};

TEST_P(LargeFloatProducts, AreDoneInPiecesThatCanBeStoppedBetween) {
  constexpr int64_t kM = 2100, kN = 1100, kK = 4000;
  BatchMatmulAttributes a;
  std::tie(a.adj_x, a.adj_y) = GetParam();
  std::vector<float> lhs(kM * kK);
  std::vector<float> rhs(kK * kN);
  float sum = 0;  // all values are small integers, and so is every sum
  for (int64_t k = 0; k < kK; ++k) {
    const auto left = static_cast<float>(1 + k % 2);
    const auto right = static_cast<float>(k % 3);
    sum += left * right;
    for (int64_t i = 0; i < kM; ++i)
      lhs[static_cast<size_t>(a.adj_x ? k * kM + i : i * kK + k)] = left * static_cast<float>(i % 7 - 3);
    for (int64_t j = 0; j < kN; ++j)
      rhs[static_cast<size_t>(a.adj_y ? j * kK + k : k * kN + j)] = right * static_cast<float>(j % 5 - 2);
  }
  OpTester t("BATCH_MATMUL");
  t.threads(2).attributes(a);
  t.input<float>(a.adj_x ? Shape{kK, kM} : Shape{kM, kK}, lhs, {}, false);
  t.input<float>(a.adj_y ? Shape{kN, kK} : Shape{kK, kN}, rhs, {}, false).output(DType::kFloat32);
  int asked = 0;
  const RunCheck count = [&] { ++asked; };
  {
    const WorkLimit limit(count);
    t.run();
  }
  EXPECT_GE(asked, 4);
  const auto result = t.result<float>(0);
  for (int64_t i = 0; i < kM; ++i) {
    for (int64_t j = 0; j < kN; ++j) {
      const float expected = sum * static_cast<float>((i % 7 - 3) * (j % 5 - 2));
      ASSERT_EQ(result[static_cast<size_t>(i * kN + j)], expected) << i << ' ' << j;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, LargeFloatProducts, testing::Combine(testing::Bool(), testing::Bool()));

TEST(BatchMatmul, NothingToSumGivesZeros) {
  OpTester t("BATCH_MATMUL");
  t.input<float>({2, 2, 0}, {}, {}, false).input<float>({2, 0, 3}, {}, {}, false).output(DType::kFloat32).run();
  EXPECT_EQ(t.shape(0), (Shape{2, 2, 3}));
  EXPECT_EQ(t.result<float>(0), std::vector<float>(12, 0.0F));
}

TEST(BatchMatmul, WidensAConstantFloat16Matrix) {
  const std::vector<uint16_t> rhs = {0x3C00, 0x4000, 0x4200, 0x4400};  // 1 2 3 4
  OpTester t("BATCH_MATMUL");
  const auto bytes = std::as_bytes(std::span(rhs));
  const std::vector<std::byte> half(bytes.begin(), bytes.end());
  t.raw_input(DType::kFloat16, {2, 2}, half, {}, false).raw_input(DType::kFloat16, {2, 2}, half);
  t.output(DType::kFloat16).run();
  EXPECT_EQ(t.result<uint16_t>(0), (std::vector<uint16_t>{0x4700, 0x4900, 0x4B80, 0x4D80}));  // 7 10 15 22
}

TEST(BatchMatmul, EmptyOperandsGiveAnEmptyOutput) {
  OpTester t("BATCH_MATMUL");
  t.input<float>({0, 2, 4}, {}, {}, false)
      .input<float>({4, 3}, random_values<float>(12, 1))
      .output(DType::kFloat32)
      .run();
  EXPECT_EQ(t.shape(0), (Shape{0, 2, 3}));
}

TEST(BatchMatmul, RefusesOperandsThatDoNotMultiply) {
  auto make = [](const Shape& lhs, const Shape& rhs) {
    OpTester t("BATCH_MATMUL");
    t.input<float>(lhs, random_values<float>(lhs.elements(), 1))
        .input<float>(rhs, random_values<float>(rhs.elements(), 1));
    t.output(DType::kFloat32);
    return t;
  };
  OpTester depth = make({2, 3}, {2, 3});
  expect_refused(depth, "do not multiply");
  OpTester batch = make({2, 2, 3}, {3, 3, 2});
  expect_refused(batch, "do not broadcast");
  OpTester rank = make({3}, {3, 2});
  expect_refused(rank, "expected rank 2 or more");
  OpTester types("BATCH_MATMUL");
  types.input<int8_t>({1, 1}, {1}, quantized(1.0F)).input<float>({1, 1}, {1}).output(DType::kInt8, quantized(1.0F));
  expect_refused(types, "input 1");
}

}  // namespace
}  // namespace leadline::ops
