// SPDX-License-Identifier: Apache-2.0
// float16 and bfloat16 as storage types for elementwise loops: arithmetic happens in float, results are rounded to
// nearest even.
#pragma once

#include <cstdint>

#include "core/half.h"

namespace leadline::kernels {

/// IEEE 754 binary16.
class Half {
 public:
  Half() = default;
  explicit Half(float value) : bits_(float_to_half(value)) {}
  explicit operator float() const { return half_to_float(bits_); }

 private:
  uint16_t bits_ = 0;
};

/// The upper half of a float.
class BFloat16 {
 public:
  BFloat16() = default;
  explicit BFloat16(float value) : bits_(float_to_bfloat16(value)) {}
  explicit operator float() const { return bfloat16_to_float(bits_); }

 private:
  uint16_t bits_ = 0;
};

}  // namespace leadline::kernels
