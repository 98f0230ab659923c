// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <complex>

#include "ops/op_testing.h"

namespace leadline::ops {
namespace {

template <typename T>
std::vector<T> run(const char* op, const std::vector<std::complex<T>>& data, DType from, DType to) {
  const auto bytes = std::as_bytes(std::span(data));
  OpTester t(op);
  t.raw_input(from, {static_cast<int64_t>(data.size())}, {bytes.begin(), bytes.end()}).output(to);
  t.run();
  return t.result<T>(0);
}

const std::vector<std::complex<float>> kFloats = {{3, -4}, {0, 1}, {3e38F, 3e37F}};
const std::vector<std::complex<double>> kDoubles = {{3, -4}, {0, 1}, {1e300, 1e300}};

TEST(Complex, RealAndImaginaryParts) {
  EXPECT_EQ(run("REAL", kFloats, DType::kComplex64, DType::kFloat32), (std::vector<float>{3, 0, 3e38F}));
  EXPECT_EQ(run("IMAG", kFloats, DType::kComplex64, DType::kFloat32), (std::vector<float>{-4, 1, 3e37F}));
  EXPECT_EQ(run("REAL", kDoubles, DType::kComplex128, DType::kFloat64), (std::vector<double>{3, 0, 1e300}));
  EXPECT_EQ(run("IMAG", kDoubles, DType::kComplex128, DType::kFloat64), (std::vector<double>{-4, 1, 1e300}));
}

TEST(Complex, AbsoluteValuesDoNotOverflowOnTheWay) {
  const auto floats = run("COMPLEX_ABS", kFloats, DType::kComplex64, DType::kFloat32);
  EXPECT_EQ(floats[0], 5.0F);
  EXPECT_EQ(floats[1], 1.0F);
  EXPECT_FLOAT_EQ(floats[2], 3.0149627e38F);
  const auto doubles = run("COMPLEX_ABS", kDoubles, DType::kComplex128, DType::kFloat64);
  EXPECT_EQ(doubles[0], 5.0);
  EXPECT_DOUBLE_EQ(doubles[2], 1.4142135623730951e300);
}

TEST(Complex, EmptyTensors) { EXPECT_TRUE(run<float>("REAL", {}, DType::kComplex64, DType::kFloat32).empty()); }

TEST(Complex, TypesThatDoNotGoTogetherAreRefused) {
  EXPECT_THROW(run("REAL", kFloats, DType::kComplex64, DType::kFloat64), Error);
  EXPECT_THROW(run("IMAG", kDoubles, DType::kComplex128, DType::kFloat32), Error);
  OpTester t("COMPLEX_ABS");
  t.input<float>({1}, {1}).output(DType::kFloat32);
  EXPECT_THROW(t.run(), Error);
}

}  // namespace
}  // namespace leadline::ops
