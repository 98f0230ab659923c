// SPDX-License-Identifier: Apache-2.0
#include "ops/arithmetic.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>

#include "ops/op_testing.h"

namespace leadline::ops {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

AddAttributes add_with(ir::Activation activation, bool pot_scale_int16 = true) {
  AddAttributes a;
  a.activation = activation;
  a.pot_scale_int16 = pot_scale_int16;
  return a;
}

TEST(Add, BroadcastsRowsColumnsAndScalars) {
  OpTester t("ADD");
  t.input<float>({2, 1, 3}, {1, 2, 3, 4, 5, 6}).input<float>({2, 1}, {10, 20}).output(DType::kFloat32);
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{2, 2, 3}));
  EXPECT_EQ(t.result<float>(0), (std::vector<float>{11, 12, 13, 21, 22, 23, 14, 15, 16, 24, 25, 26}));
}

TEST(Add, ClampsToTheFusedActivation) {
  OpTester t("ADD");
  t.attributes(add_with(ir::Activation::kRelu6));
  t.input<float>({3}, {-5, 2, 9}).input<float>({}, {1}).output(DType::kFloat32);
  t.run();
  EXPECT_EQ(t.result<float>(0), (std::vector<float>{0, 3, 6}));
}

TEST(Add, ActivationsThatTfliteDoesNotFuseChangeNothing) {
  for (const ir::Activation activation : {ir::Activation::kTanh, ir::Activation::kSignBit}) {
    OpTester t("ADD");
    t.attributes(add_with(activation));
    t.input<float>({2}, {1, -4}).input<float>({1}, {1}).output(DType::kFloat32);
    t.run();
    EXPECT_EQ(t.result<float>(0), (std::vector<float>{2, -3}));
  }
}

TEST(Add, IntegersWrapAround) {
  OpTester t("ADD");
  t.input<int32_t>({2}, {std::numeric_limits<int32_t>::max(), 1}).input<int32_t>({2}, {1, 2}).output(DType::kInt32);
  t.run();
  EXPECT_EQ(t.result<int32_t>(0), (std::vector<int32_t>{std::numeric_limits<int32_t>::min(), 3}));
}

TEST(Add, EmptyTensorsGiveEmptyResults) {
  OpTester t("ADD");
  t.input<float>({2, 0, 3}, {}).input<float>({3}, {1, 2, 3}).output(DType::kFloat32);
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{2, 0, 3}));
}

TEST(Add, ManyThreadsGiveTheSameBits) {
  std::vector<float> a(300'000);
  std::vector<float> b(1000);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i) * 0.1F;
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i) * 0.3F;
  OpTester one("ADD");
  one.input<float>({300, 1000}, a).input<float>({1000}, b).output(DType::kFloat32);
  one.run();
  OpTester three("ADD");
  three.input<float>({300, 1000}, a).input<float>({1000}, b).output(DType::kFloat32).threads(3);
  three.run();
  EXPECT_EQ(one.result<float>(0), three.result<float>(0));
  EXPECT_EQ(one.result<float>(0)[123'456], a[123'456] + b[456]);
}

TEST(Add, QuantizedIsTheRealSum) {
  OpTester t("ADD");
  t.input<int8_t>({4}, {-128, 0, 50, 127}, quantized(0.02F, -10));
  t.input<int8_t>({4}, {3, -3, 50, 127}, quantized(0.05F, 4));
  t.output(DType::kInt8, quantized(0.1F, -1));
  t.run();
  const auto got = t.result<int8_t>(0);
  const float a[] = {-118 * 0.02F, 10 * 0.02F, 60 * 0.02F, 137 * 0.02F};
  const float b[] = {-1 * 0.05F, -7 * 0.05F, 46 * 0.05F, 123 * 0.05F};
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(got[i], std::round((a[i] + b[i]) / 0.1F) - 1, 1) << i;
}

TEST(Add, QuantizedReluStopsAtTheZeroPoint) {
  OpTester t("ADD");
  t.attributes(add_with(ir::Activation::kRelu));
  t.input<uint8_t>({2}, {0, 255}, quantized(1.0F, 128)).input<uint8_t>({1}, {128}, quantized(1.0F, 128));
  t.output(DType::kUInt8, quantized(1.0F, 128));
  t.run();
  EXPECT_EQ(t.result<uint8_t>(0), (std::vector<uint8_t>{128, 255}));
}

TEST(Add, Int16WithPowerOfTwoScalesShiftsOneOperand) {
  OpTester t("ADD");
  t.input<int16_t>({3}, {100, -100, 32767}, quantized(0x1p-12F));
  t.input<int16_t>({3}, {3, 5, 32767}, quantized(0x1p-14F));
  t.output(DType::kInt16, quantized(0x1p-12F));
  t.run();
  EXPECT_EQ(t.result<int16_t>(0), (std::vector<int16_t>{101, -99, 32767}));
}

TEST(Add, Int16WithGeneralScales) {
  OpTester t("ADD");
  t.attributes(add_with(ir::Activation::kNone, false));
  t.input<int16_t>({2}, {10000, -20000}, quantized(0.0003F)).input<int16_t>({2}, {5000, 7}, quantized(0.001F));
  t.output(DType::kInt16, quantized(0.0005F));
  t.run();
  const auto got = t.result<int16_t>(0);
  EXPECT_NEAR(got[0], (3.0 + 5.0) / 0.0005, 1);
  EXPECT_NEAR(got[1], (-6.0 + 0.007) / 0.0005, 1);
}

TEST(Add, Int16WithoutQuantizationIsPlain) {
  OpTester t("ADD");
  t.input<int16_t>({2}, {1000, -7}).input<int16_t>({1}, {5}).output(DType::kInt16);
  t.run();
  EXPECT_EQ(t.result<int16_t>(0), (std::vector<int16_t>{1005, -2}));
}

TEST(Add, RejectsWhatDoesNotFit) {
  OpTester shapes("ADD");
  shapes.input<float>({2}, {1, 2}).input<float>({3}, {1, 2, 3}).output(DType::kFloat32);
  EXPECT_THROW(shapes.run(), Error);
  OpTester types("ADD");
  types.input<float>({1}, {1}).input<int32_t>({1}, {1}).output(DType::kFloat32);
  EXPECT_THROW(types.run(), Error);
  OpTester scales("ADD");
  scales.input<int8_t>({1}, {1}).input<int8_t>({1}, {1}).output(DType::kInt8);
  EXPECT_THROW(scales.run(), Error);
  OpTester zero_point("ADD");
  zero_point.input<int16_t>({1}, {1}, quantized(1.0F, 3)).input<int16_t>({1}, {1}, quantized(1.0F));
  zero_point.output(DType::kInt16, quantized(1.0F));
  EXPECT_THROW(zero_point.run(), Error);
}

TEST(Sub, QuantizedIsTheRealDifference) {
  OpTester t("SUB");
  t.input<int8_t>({1}, {20}, quantized(0.1F)).input<int8_t>({3}, {-50, 0, 50}, quantized(0.2F));
  t.output(DType::kInt8, quantized(0.25F));
  t.run();
  const auto got = t.result<int8_t>(0);
  EXPECT_NEAR(got[0], 48, 1);
  EXPECT_NEAR(got[1], 8, 1);
  EXPECT_NEAR(got[2], -32, 1);
}

TEST(Mul, ComplexNumbers) {
  using Complex = std::complex<float>;
  const std::vector<Complex> a = {{1, 2}, {0, 1}};
  const std::vector<Complex> b = {{3, -1}};
  const auto bytes = [](const std::vector<Complex>& v) {
    const auto* begin = reinterpret_cast<const std::byte*>(v.data());
    return std::vector<std::byte>(begin, begin + v.size() * sizeof(Complex));
  };
  OpTester t("MUL");
  t.raw_input(DType::kComplex64, {2}, bytes(a)).raw_input(DType::kComplex64, {1}, bytes(b));
  t.output(DType::kComplex64);
  t.run();
  EXPECT_EQ(t.result<Complex>(0), (std::vector<Complex>{{5, 5}, {1, 3}}));
}

TEST(Mul, QuantizedInt16) {
  OpTester t("MUL");
  t.input<int16_t>({2}, {32767, -1000}, quantized(0x1p-15F)).input<int16_t>({2}, {16384, 2000}, quantized(0x1p-15F));
  t.output(DType::kInt16, quantized(0x1p-15F));
  t.run();
  EXPECT_EQ(t.result<int16_t>(0), (std::vector<int16_t>{16384, -61}));
}

TEST(Mul, Int16ToInt8Narrows) {
  OpTester t("MUL");
  t.input<int16_t>({2}, {16384, -32768}, quantized(0x1p-15F)).input<int16_t>({2}, {16384, 16384}, quantized(0x1p-15F));
  t.output(DType::kInt8, quantized(0x1p-7F));
  t.run();
  EXPECT_EQ(t.result<int8_t>(0), (std::vector<int8_t>{32, -64}));
}

TEST(Div, FloatByZeroIsInfinite) {
  OpTester t("DIV");
  t.input<float>({2}, {1, -1}).input<float>({}, {0}).output(DType::kFloat32);
  t.run();
  EXPECT_EQ(t.result<float>(0), (std::vector<float>{kInf, -kInf}));
}

TEST(Div, IntegerByZeroIsAnError) {
  OpTester t("DIV");
  t.input<int32_t>({2}, {1, 2}).input<int32_t>({2}, {1, 0}).output(DType::kInt32);
  EXPECT_THROW(t.run(), Error);
  OpTester q("DIV");
  q.input<int8_t>({1}, {1}, quantized(1.0F, 5)).input<int8_t>({1}, {7}, quantized(1.0F, 7));
  q.output(DType::kInt8, quantized(1.0F));
  EXPECT_THROW(q.run(), Error);
}

TEST(Div, SmallestIntegerByMinusOneDoesNotTrap) {
  OpTester t("DIV");
  t.input<int32_t>({2}, {std::numeric_limits<int32_t>::min(), -7}).input<int32_t>({2}, {-1, 2}).output(DType::kInt32);
  t.run();
  EXPECT_EQ(t.result<int32_t>(0), (std::vector<int32_t>{std::numeric_limits<int32_t>::min(), -3}));
}

TEST(Div, QuantizedIsTheRealQuotient) {
  OpTester t("DIV");
  t.input<uint8_t>({2}, {200, 10}, quantized(0.1F, 128)).input<uint8_t>({2}, {64, 200}, quantized(0.5F, 100));
  t.output(DType::kUInt8, quantized(0.01F, 128));
  t.run();
  EXPECT_EQ(t.result<uint8_t>(0), (std::vector<uint8_t>{88, 104}));
}

TEST(SquaredDifference, FloatAndQuantized) {
  OpTester f("SQUARED_DIFFERENCE");
  f.input<float>({2}, {3, -1}).input<float>({1}, {1}).output(DType::kFloat32);
  f.run();
  EXPECT_EQ(f.result<float>(0), (std::vector<float>{4, 4}));
  OpTester q("SQUARED_DIFFERENCE");
  q.input<int8_t>({3}, {10, -20, 60}, quantized(0.1F)).input<int8_t>({3}, {0, 10, -60}, quantized(0.05F));
  q.output(DType::kInt8, quantized(1.0F, -128));
  q.run();
  const auto got = q.result<int8_t>(0);
  EXPECT_NEAR(got[0], -127, 1);
  EXPECT_NEAR(got[1], -122, 1);
  EXPECT_NEAR(got[2], -47, 1);
}

TEST(Stablehlo, AddAndMultiplyNeedEqualShapes) {
  OpTester add("STABLEHLO_ADD");
  add.input<int8_t>({2}, {100, 1}).input<int8_t>({2}, {100, 2}).output(DType::kInt8);
  add.run();
  EXPECT_EQ(add.result<int8_t>(0), (std::vector<int8_t>{-56, 3}));
  OpTester broadcast("STABLEHLO_MULTIPLY");
  broadcast.input<float>({2}, {1, 2}).input<float>({1}, {2}).output(DType::kFloat32);
  EXPECT_THROW(broadcast.run(), Error);
}

}  // namespace
}  // namespace leadline::ops
