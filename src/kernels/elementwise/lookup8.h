// SPDX-License-Identifier: Apache-2.0
// 8-bit values through a table of 256 bytes, vectorised.
#pragma once

#include <cstdint>

namespace leadline::kernels {

/// out[i] = table[in[i]] for i in [0, count); `out` may be `in`. Signed values are given as their bits.
using Lookup8Row = void (*)(const uint8_t* table, const uint8_t* in, uint8_t* out, int64_t count) noexcept;

/// The row function for this CPU.
Lookup8Row lookup8_row() noexcept;

}  // namespace leadline::kernels
