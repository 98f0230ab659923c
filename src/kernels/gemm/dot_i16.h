// SPDX-License-Identifier: Apache-2.0
// Exact sums of products of int16 values, as FULLY_CONNECTED with int16 weights has them.
#pragma once

#include <cstdint>

namespace leadline::kernels {

/// sums[j] = sum over k of a[k] * b[j * ldb + k], for n rows of b. k is at most 2^31.
void dots_i16(const int16_t* a, const int16_t* b, int64_t ldb, int64_t n, int64_t k, int64_t* sums) noexcept;

}  // namespace leadline::kernels
