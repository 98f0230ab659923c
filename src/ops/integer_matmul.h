// SPDX-License-Identifier: Apache-2.0
// 8-bit and dynamic range products of BATCH_MATMUL on the packed gemm.
#pragma once

#include "ops/float_matmul.h"

namespace leadline::ops {

/// int8 (or float32, quantized row by row) times int8. Beside 4 bytes a column, scratch has 8 MiB of packed columns, or
/// 32 columns a thread, and a few hundred KiB or 6 rows a thread.
std::unique_ptr<Kernel> make_integer_matmul(PrepareContext& c, const Products& products);

}  // namespace leadline::ops
