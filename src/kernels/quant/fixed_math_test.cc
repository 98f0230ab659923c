// SPDX-License-Identifier: Apache-2.0
// That the bits are TFLite's is shown by the tests of the recurrent ops; here, that they are near the real functions.
#include "kernels/quant/fixed_math.h"

#include <gtest/gtest.h>

#include <cmath>

namespace leadline::kernels {
namespace {

TEST(FixedMath, LogisticOfEveryInput) {
  for (int x = -32768; x <= 32767; ++x) {
    const double exact = 32768.0 / (1.0 + std::exp(-x / 4096.0));
    ASSERT_NEAR(logistic_q15(static_cast<int16_t>(x)), exact, 16.0) << x;
  }
}

TEST(FixedMath, TanhOfEveryInputAndFormat) {
  for (int bits = 0; bits <= 6; ++bits) {
    for (int x = -32768; x <= 32767; ++x) {
      const double exact = 32768.0 * std::tanh(std::ldexp(x, bits - 15));
      ASSERT_NEAR(tanh_q15(static_cast<int16_t>(x), bits), exact, 40.0) << x << " with " << bits << " integer bits";
    }
  }
}

TEST(FixedMath, InverseSquareRootOverTheWholeRange) {
  for (int64_t value = 1; value <= std::numeric_limits<int32_t>::max(); value = value * 3 / 2 + 1) {
    const Multiplier m = inverse_sqrt_multiplier(static_cast<int32_t>(value));
    const double got = std::ldexp(m.value, m.shift - 31);
    EXPECT_NEAR(got * std::sqrt(static_cast<double>(value)), 1.0, 1e-4) << value;
  }
  EXPECT_EQ(inverse_sqrt_multiplier(0).value, std::numeric_limits<int32_t>::max());
}

}  // namespace
}  // namespace leadline::kernels
