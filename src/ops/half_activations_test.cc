// SPDX-License-Identifier: Apache-2.0
#include "ops/half_activations.h"

#include <gtest/gtest.h>

#include "core/half.h"
#include "ops/contraction_testing.h"
#include "ops/reduce.h"

namespace leadline::ops {
namespace {

std::vector<std::byte> half_bytes(const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * 2);
  for (size_t i = 0; i < values.size(); ++i) {
    const uint16_t bits = float_to_half(values[i]);
    std::memcpy(bytes.data() + i * 2, &bits, 2);
  }
  return bytes;
}

std::vector<float> half_values(const OpTester& t) {
  std::vector<float> values;
  for (const uint16_t bits : t.result<uint16_t>(0)) values.push_back(half_to_float(bits));
  return values;
}

TEST(HalfActivations, AreSummedInFloatAndRoundedOnce) {
  OpTester t("FULLY_CONNECTED");
  // In float16, 2048 + 1 is 2048: every partial sum but the last one would lose the ones.
  t.raw_input(DType::kFloat16, {1, 4}, half_bytes({2048, 1, 1, 2}), {}, false);
  t.raw_input(DType::kFloat16, {2, 4}, half_bytes({1, 1, 1, 1, 0.5F, 0, 0, -1}));
  t.raw_input(DType::kFloat16, {2}, half_bytes({0, 3})).output(DType::kFloat16).run();
  EXPECT_EQ(t.shape(0), (Shape{1, 2}));
  EXPECT_EQ(half_values(t), (std::vector<float>{2052, 1025}));
}

TEST(HalfActivations, WaitForAxesThatAreComputed) {
  OpTester t("SUM");
  t.attributes(ReduceAttributes());
  t.raw_input(DType::kFloat16, {2, 2}, half_bytes({1, 2, 3, 5}), {}, false);
  t.input<int32_t>({1}, {0}, {}, false).output(DType::kFloat16).run();
  EXPECT_EQ(t.shape(0), (Shape{2}));
  EXPECT_EQ(half_values(t), (std::vector<float>{4, 7}));
}

TEST(HalfActivations, NeedAHalfOutput) {
  OpTester t("BATCH_MATMUL");
  t.raw_input(DType::kFloat16, {1, 1}, half_bytes({1}), {}, false);
  t.raw_input(DType::kFloat16, {1, 1}, half_bytes({1}), {}, false).output(DType::kFloat32);
  EXPECT_THROW(t.run(), Error);
}

}  // namespace
}  // namespace leadline::ops
