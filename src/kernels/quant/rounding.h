// SPDX-License-Identifier: Apache-2.0
// Rounding that vectorizes on every target.
#pragma once

namespace leadline::kernels {

/// Nearest integer, ties to even, for |x| < 2^22: adding 1.5 * 2^23 leaves no bits for a fraction.
inline float round_even(float x) { return (x + 12582912.0F) - 12582912.0F; }

}  // namespace leadline::kernels
