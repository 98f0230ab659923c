// SPDX-License-Identifier: Apache-2.0
// int16 activations with int8 weights (int16x8) on the vector kernels: CONV_2D, DEPTHWISE_CONV_2D, FULLY_CONNECTED.
// What they do not take runs in the naive loops: int8 weights or biases computed while running, zero points, and sums
// that would not fit (kernels::kWideMaxDepth).
#pragma once

#include <memory>

#include "kernels/conv/conv2d.h"
#include "kernels/depthwise/depthwise.h"
#include "ops/contraction.h"

namespace leadline::ops {

/// Whether sums of `depth` products of this contraction can be computed by the kernels below.
bool has_wide_kernel(const Contraction& f, int64_t depth);

/// A convolution; FULLY_CONNECTED is one of 1x1. `channels_last`: as of make_conv_kernel().
std::unique_ptr<Kernel> make_wide_conv(PrepareContext& c, const Contraction& contraction,
                                       const kernels::ConvShape& shape, bool channels_last = false);

/// Rows [m, k] times int16 weights [n, k], which may be computed while running.
bool has_int16_product(const Contraction& f, int64_t depth);
std::unique_ptr<Kernel> make_int16_product(PrepareContext& c, const Contraction& contraction, int64_t m, int64_t n,
                                           int64_t k);

/// A depthwise convolution of multiplier 1 with at most kernels::kMaxTaps taps.
std::unique_ptr<Kernel> make_wide_depthwise(PrepareContext& c, const Contraction& contraction,
                                            const kernels::DepthwiseShape& shape);

}  // namespace leadline::ops
