// SPDX-License-Identifier: Apache-2.0
// The vectorised parts of softmax over rows of 8-bit values: the maximum, and the results of all values a row may have.
#pragma once

#include <cstdint>

namespace leadline::kernels {

/// The largest of count > 0 values; T is int8_t or uint8_t.
template <typename T>
using RowMax8 = T (*)(const T* in, int64_t count) noexcept;
template <typename T>
RowMax8<T> row_max_8() noexcept;

/// levels[i] = clamp(zero_point + round(min(values[i] * factor, 65536))) for 256 values >= 0, clamped to T's range.
/// Halves are rounded up, NaN counts as 65536.
template <typename T>
using SoftmaxLevels8 = void (*)(const float* values, float factor, int32_t zero_point, T* levels) noexcept;
template <typename T>
SoftmaxLevels8<T> softmax_levels_8() noexcept;

}  // namespace leadline::kernels
