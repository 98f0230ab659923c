// SPDX-License-Identifier: Apache-2.0
// Rows of activations times packed weights: FULLY_CONNECTED, and convolutions that are nothing else.
#pragma once

#include "ops/packed_weights.h"

namespace leadline::ops {

/// Activations read as [m, k], weights as [n, k], output [m, n]. The contraction is packable(). Dynamic range quantizes
/// row by row.
std::unique_ptr<Kernel> make_gemm_kernel(PrepareContext& c, const Contraction& contraction, int64_t m, int64_t n,
                                         int64_t k);

}  // namespace leadline::ops
