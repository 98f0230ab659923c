// SPDX-License-Identifier: Apache-2.0
// Where a tensor's first byte may lie: what kernels rely on for memory that is not Leadline's own.
#pragma once

#include <algorithm>

#include "leadline/types.h"

namespace leadline {

/// The address is a multiple of this: the size of an element, at most 8. Strings begin with 32-bit numbers; a complex
/// number is two floats or doubles.
inline int dtype_alignment(DType type) noexcept {
  const int bits = dtype_bits(type);
  return bits == 0 ? 4 : std::clamp(bits, 8, 64) / 8;
}

}  // namespace leadline
