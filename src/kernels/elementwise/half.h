// SPDX-License-Identifier: Apache-2.0
// float16 and bfloat16 as storage: arithmetic happens in float, results are rounded to nearest even.
#pragma once

#include <bit>
#include <cstdint>

namespace leadline::kernels {

/// IEEE 754 binary16.
class Half {
 public:
  Half() = default;
  explicit Half(float value) : bits_(round(value)) {}
  explicit operator float() const { return widen(bits_); }

 private:
  static uint16_t round(float value) {
    const auto wide = std::bit_cast<uint32_t>(value);
    const auto sign = static_cast<uint16_t>((wide >> 16) & 0x8000U);
    const uint32_t magnitude = wide & 0x7FFFFFFFU;
    if (magnitude > 0x7F800000U) return static_cast<uint16_t>(sign | 0x7E00U);
    if (magnitude >= 0x477FF000U) return static_cast<uint16_t>(sign | 0x7C00U);  // rounds to 65536 or more
    if (magnitude < 0x38800000U) {
      // Subnormal: adding 0.5 leaves the 24 bits of value * 2^24, rounded, at the low end of the sum.
      const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
      return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3F000000U));
    }
    const uint32_t odd = (magnitude >> 13) & 1U;
    return static_cast<uint16_t>(sign | ((magnitude - 0x38000000U + 0xFFFU + odd) >> 13));
  }

  static float widen(uint16_t bits) {
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000U) << 16;
    const uint32_t magnitude = bits & 0x7FFFU;
    if (magnitude >= 0x7C00U) return std::bit_cast<float>(sign | 0x7F800000U | ((magnitude & 0x3FFU) << 13));
    if (magnitude >= 0x0400U) return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000U));
    const float subnormal = static_cast<float>(magnitude) * 0x1p-24F;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(subnormal));
  }

  uint16_t bits_ = 0;
};

/// The upper half of a float.
class BFloat16 {
 public:
  BFloat16() = default;
  explicit BFloat16(float value) : bits_(round(value)) {}
  explicit operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits_) << 16); }

 private:
  static uint16_t round(float value) {
    const auto wide = std::bit_cast<uint32_t>(value);
    if ((wide & 0x7FFFFFFFU) > 0x7F800000U) return static_cast<uint16_t>((wide >> 16) | 0x40U);
    return static_cast<uint16_t>((wide + 0x7FFFU + ((wide >> 16) & 1U)) >> 16);
  }

  uint16_t bits_ = 0;
};

static_assert(sizeof(Half) == 2 && sizeof(BFloat16) == 2);

}  // namespace leadline::kernels
