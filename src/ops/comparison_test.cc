// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <limits>

#include "core/string_tensor.h"
#include "ops/op_testing.h"

namespace leadline::ops {
namespace {

using Bits = std::vector<uint8_t>;

template <typename T>
Bits compare(const char* op, const std::vector<T>& a, const std::vector<T>& b, Quantization qa = {},
             Quantization qb = {}) {
  OpTester t(op);
  t.input<T>({static_cast<int64_t>(a.size())}, a, std::move(qa));
  t.input<T>({static_cast<int64_t>(b.size())}, b, std::move(qb)).output(DType::kBool);
  t.run();
  return t.result<uint8_t>(0);
}

TEST(Comparison, AllSixOnFloats) {
  const std::vector<float> a = {1, 2, 3};
  const std::vector<float> b = {2};
  EXPECT_EQ(compare("EQUAL", a, b), (Bits{0, 1, 0}));
  EXPECT_EQ(compare("NOT_EQUAL", a, b), (Bits{1, 0, 1}));
  EXPECT_EQ(compare("LESS", a, b), (Bits{1, 0, 0}));
  EXPECT_EQ(compare("LESS_EQUAL", a, b), (Bits{1, 1, 0}));
  EXPECT_EQ(compare("GREATER", a, b), (Bits{0, 0, 1}));
  EXPECT_EQ(compare("GREATER_EQUAL", a, b), (Bits{0, 1, 1}));
}

TEST(Comparison, NanEqualsNothing) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(compare<float>("EQUAL", {nan}, {nan}), (Bits{0}));
  EXPECT_EQ(compare<float>("NOT_EQUAL", {nan}, {nan}), (Bits{1}));
}

TEST(Comparison, QuantizedOperandsMeetOnOneScale) {
  // 10 * 0.5 = 5 and 50 * 0.1 = 5.
  EXPECT_EQ(compare<int8_t>("EQUAL", {10, 11}, {50, 50}, quantized(0.5F), quantized(0.1F)), (Bits{1, 0}));
  EXPECT_EQ(compare<uint8_t>("GREATER", {138, 137}, {128}, quantized(0.5F, 128), quantized(0.1F, 80)), (Bits{1, 0}));
}

TEST(Comparison, EightBitsWithoutScalesArePlain) { EXPECT_EQ(compare<int8_t>("LESS", {1, -5}, {0}), (Bits{0, 1})); }

std::vector<std::byte> strings(const std::vector<std::string>& values) {
  int64_t characters = 0;
  for (const auto& v : values) characters += static_cast<int64_t>(v.size());
  const auto count = static_cast<int64_t>(values.size());
  std::vector<std::byte> bytes(static_cast<size_t>(*string_tensor_bytes(count, characters)));
  StringTensorWriter writer(bytes, count);
  for (const auto& v : values) writer.add(v);
  return bytes;
}

TEST(Comparison, StringsBroadcast) {
  OpTester t("EQUAL");
  t.raw_input(DType::kString, {3}, strings({"a", "", "bc"})).raw_input(DType::kString, {1}, strings({"bc"}));
  t.output(DType::kBool);
  t.run();
  EXPECT_EQ(t.result<uint8_t>(0), (Bits{0, 0, 1}));
}

TEST(Comparison, BrokenStringsAreAnError) {
  auto bytes = strings({"a", "b"});
  bytes[4] = std::byte{200};
  OpTester t("NOT_EQUAL");
  t.raw_input(DType::kString, {2}, bytes).raw_input(DType::kString, {1}, strings({"b"})).output(DType::kBool);
  EXPECT_THROW(t.run(), Error);
}

TEST(Comparison, StringsHaveNoOrder) {
  OpTester t("LESS");
  t.raw_input(DType::kString, {1}, strings({"a"})).raw_input(DType::kString, {1}, strings({"b"}));
  t.output(DType::kBool);
  EXPECT_THROW(t.run(), Error);
}

}  // namespace
}  // namespace leadline::ops
