// SPDX-License-Identifier: Apache-2.0
// Sums of products, the same to the last bit on every CPU: no value depends on how many are computed at once.
#pragma once

#include <cstdint>

namespace leadline::kernels {

/// sums[i] += factor * values[i], rounded twice.
void add_scaled(float factor, const float* values, int64_t count, float* sums) noexcept;

}  // namespace leadline::kernels
