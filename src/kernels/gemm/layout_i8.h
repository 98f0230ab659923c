// SPDX-License-Identifier: Apache-2.0
// The packed right-hand side of the 8-bit gemm: int32 column sums for n rounded up to 16, then the panels from the next
// kAlignment boundary.
#pragma once

#include <cstdint>

#include "core/buffer.h"

namespace leadline::kernels {

constexpr int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }
inline int64_t panels_offset(int64_t n) { return align_up(round_up(n, 16) * static_cast<int64_t>(sizeof(int32_t))); }

}  // namespace leadline::kernels
