// SPDX-License-Identifier: Apache-2.0
// 8-bit product of a matrix and a vector, the matrix read once and as it is in memory.
#pragma once

#include <cstdint>

namespace leadline::kernels {

/// sums[j] = sum over k of (a[k] - zero_point) * b[j * ldb + k] for j < n, exact modulo 2^32. `a` has int8_t, or
/// uint8_t when a_unsigned; b_sums[j] is the sum of row j of B.
struct GemvI8 {
  const void* a = nullptr;
  bool a_unsigned = false;
  int32_t zero_point = 0;
  const int8_t* b = nullptr;
  int64_t ldb = 0;
  const int32_t* b_sums = nullptr;
  int64_t n = 0;
  int64_t k = 0;
};
/// Adds the part over k in [k_begin, k_end); the first call, with k_begin == 0, starts from zero.
void gemv_dots_i8(const GemvI8& g, int64_t k_begin, int64_t k_end, int32_t* sums) noexcept;

}  // namespace leadline::kernels
