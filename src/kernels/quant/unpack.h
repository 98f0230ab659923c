// SPDX-License-Identifier: Apache-2.0
// Weights in the format's compact types, widened to what kernels compute with.
#pragma once

#include <cstdint>

#include "core/half.h"

namespace leadline::kernels {

/// float32 from the bits of float16.
inline void unpack_half(const uint16_t* source, int64_t count, float* target) noexcept {
  for (int64_t i = 0; i < count; ++i) target[i] = half_to_float(source[i]);
}

/// Signed integers of `kBits` bits, packed into bytes from the low end on: `count` of them from number `first` on.
template <int kBits>
void unpack_signed(const uint8_t* source, int64_t first, int64_t count, int8_t* target) noexcept {
  static_assert(kBits == 2 || kBits == 4);
  constexpr int64_t kPerByte = 8 / kBits;
  source += first / kPerByte;
  const int64_t skipped = first % kPerByte;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t at = i + skipped;
    const int shift = static_cast<int>(at % kPerByte) * kBits;
    const int raised = (source[at / kPerByte] >> shift << (8 - kBits)) & 0xFF;
    target[i] = static_cast<int8_t>(static_cast<int8_t>(raised) >> (8 - kBits));
  }
}

}  // namespace leadline::kernels
