// SPDX-License-Identifier: Apache-2.0
// Dot products of one int8 vector with the rows of an int8 matrix that is read as it is in memory.
#pragma once

#include <cstdint>

namespace leadline::kernels {

/// Columns that dots_i8() takes at most: sums of products below 2^16 stay in 32 bits.
inline constexpr int64_t kDotsMaxColumns = 32767;

/// sums[r] = sum over k of (x[k] - zero_point) * b[r * k + ...] for the `rows` neighbouring rows at b. The zero point
/// is in [-128, 128].
void dots_i8(const int8_t* x, int32_t zero_point, const int8_t* b, int64_t rows, int64_t k, int32_t* sums) noexcept;

}  // namespace leadline::kernels
