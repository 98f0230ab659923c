// SPDX-License-Identifier: Apache-2.0
#include "ops/cast.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>

#include "core/half.h"
#include "ops/op_testing.h"

namespace leadline::ops {
namespace {

template <typename To, typename From>
std::vector<To> cast(const std::vector<From>& values, DType from = dtype_of<From>(), DType to = dtype_of<To>()) {
  std::vector<std::byte> bytes(values.size() * sizeof(From));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  OpTester t("CAST");
  t.raw_input(from, {static_cast<int64_t>(values.size())}, bytes).output(to);
  t.run();
  return t.result<To>(0);
}

TEST(Cast, FloatToIntegerTruncatesAndSaturates) {
  const std::vector<float> in = {1.9F, -1.9F, 1e20F, -1e20F, INFINITY, -INFINITY, NAN};
  EXPECT_EQ((cast<int32_t>(in)), (std::vector<int32_t>{1, -1, INT32_MAX, INT32_MIN, INT32_MAX, INT32_MIN, INT32_MAX}));
  EXPECT_EQ((cast<uint8_t>(in)), (std::vector<uint8_t>{1, 0, 255, 0, 255, 0, 255}));
  EXPECT_EQ((cast<int64_t>(in)), (std::vector<int64_t>{1, -1, INT64_MAX, INT64_MIN, INT64_MAX, INT64_MIN, INT64_MAX}));
  EXPECT_EQ((cast<int32_t, double>({2147483647.5, -2147483648.9})), (std::vector<int32_t>{INT32_MAX, INT32_MIN}));
}

TEST(Cast, IntegersWrap) {
  EXPECT_EQ((cast<int8_t, int32_t>({127, 128, -129, 256})), (std::vector<int8_t>{127, -128, 127, 0}));
  EXPECT_EQ((cast<uint32_t, int64_t>({-1})), (std::vector<uint32_t>{UINT32_MAX}));
  EXPECT_EQ((cast<float, int64_t>({1LL << 40})), (std::vector<float>{1099511627776.0F}));
}

TEST(Cast, BoolBothWays) {
  EXPECT_EQ((cast<uint8_t>(std::vector<float>{0, -0.0F, 0.1F, NAN}, DType::kFloat32, DType::kBool)),
            (std::vector<uint8_t>{0, 0, 1, 1}));
  EXPECT_EQ((cast<float>(std::vector<uint8_t>{0, 1, 7}, DType::kBool)), (std::vector<float>{0, 1, 1}));
}

TEST(Cast, SixteenBitFloats) {
  EXPECT_EQ((cast<uint16_t>(std::vector<float>{1, 65520}, DType::kFloat32, DType::kFloat16)),
            (std::vector<uint16_t>{0x3C00, 0x7C00}));
  EXPECT_EQ((cast<int32_t>(std::vector<uint16_t>{0xC500}, DType::kFloat16)), (std::vector<int32_t>{-5}));
  EXPECT_EQ((cast<uint16_t>(std::vector<uint16_t>{0x3C00}, DType::kFloat16, DType::kBFloat16)),
            (std::vector<uint16_t>{0x3F80}));
  EXPECT_EQ((cast<float>(std::vector<uint16_t>{0x3F80}, DType::kBFloat16)), (std::vector<float>{1}));
}

TEST(Cast, ComplexNumbersKeepTheirRealPart) {
  EXPECT_EQ((cast<int32_t>(std::vector<std::complex<float>>{{2.5F, 9}}, DType::kComplex64)), (std::vector<int32_t>{2}));
  EXPECT_EQ((cast<std::complex<float>>(std::vector<int32_t>{3}, DType::kInt32, DType::kComplex64)),
            (std::vector<std::complex<float>>{{3, 0}}));
}

TEST(Cast, PackedIntegers) {
  OpTester t("CAST");
  t.raw_input(DType::kInt4, {3}, {std::byte{0x8F}, std::byte{0x07}}).output(DType::kFloat32);
  t.run();
  EXPECT_EQ(t.result<float>(0), (std::vector<float>{-1, -8, 7}));
  OpTester back("CAST");
  back.input<float>({5}, {-1.9F, 100, -100, NAN, 3}).output(DType::kInt4);
  back.run();
  EXPECT_EQ(back.result<uint8_t>(0), (std::vector<uint8_t>{0x7F, 0x78, 0x03}));
  OpTester two("CAST");
  two.raw_input(DType::kInt2, {4}, {std::byte{0b10'11'00'01}}).output(DType::kFloat32);
  two.run();
  EXPECT_EQ(two.result<float>(0), (std::vector<float>{1, 0, -1, -2}));
  OpTester unsigned4("CAST");
  unsigned4.raw_input(DType::kUInt4, {1}, {std::byte{0x0F}}).output(DType::kFloat32);
  unsigned4.run();
  EXPECT_EQ(unsigned4.result<float>(0), (std::vector<float>{15}));
}

TEST(Cast, RefusesStrings) {
  OpTester t("CAST");
  t.raw_input(DType::kString, {0}, {}).output(DType::kInt32);
  EXPECT_THROW(t.run(), Error);
}

}  // namespace
}  // namespace leadline::ops
