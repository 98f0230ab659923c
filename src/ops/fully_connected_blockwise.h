// SPDX-License-Identifier: Apache-2.0
// FULLY_CONNECTED with int4 weights that have a scale for every block along the depth.
#pragma once

#include "kernels/reference/matmul.h"
#include "ops/op.h"

namespace leadline::ops {

/// True when the weights of a FULLY_CONNECTED are quantized in blocks.
bool has_block_weights(const OpContext& c);

/// Throws unless input and output are float32, the weights are constant int4 in whole blocks, and their scales a
/// float16 constant of the model with one value for every block of every unit.
void check_block_weights(const OpContext& c, const kernels::reference::MatmulShape& shape);

/// The kernel, for operands that passed the check.
std::unique_ptr<Kernel> make_block_kernel(PrepareContext& c, const kernels::reference::MatmulShape& shape,
                                          ir::Activation activation);

}  // namespace leadline::ops
