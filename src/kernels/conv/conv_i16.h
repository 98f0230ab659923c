// SPDX-License-Identifier: Apache-2.0
// 2-D convolution of int16 activations with int8 filters on the packed product of gemm_i16.h: NHWC input, output pixels
// gathered into a bounded workspace, or read in place for 1x1 filters. Zero points are 0.
// Invariant: an output has the same bits whatever part it is computed in.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/conv/conv2d.h"
#include "kernels/gemm/gemm_i16.h"

namespace leadline::kernels {

/// shape.method is not looked at, filter_size() is at most kWideMaxDepth.
struct ConvI16 {
  ConvShape shape;
  const int16_t* input = nullptr;
  const std::byte* filter = nullptr;  // a packed matrix [group_out_c, filter_size] for each group, one after the other
  WideFinish finish;                  // of out_c channels
  int16_t* output = nullptr;
};

/// Bytes of one group's matrix.
int64_t conv_group_bytes_i16(const ConvShape& s) noexcept;
/// Bytes of workspace for one thread, a multiple of kAlignment.
int64_t conv_workspace_bytes_i16(const ConvShape& s) noexcept;
/// Pixels that are gathered at a time: parts cut at multiples of it cost no more than whole ones.
int64_t conv_pixel_block_i16(const ConvShape& s) noexcept;
/// Whether pixels are gathered before they are multiplied.
bool conv_gathers_i16(const ConvShape& s) noexcept;

/// Pixels, counted over the batch, and of these the channels `columns` of each group, from a multiple of kWidePanel.
void conv_part(const ConvI16& conv, IndexRange pixels, IndexRange columns, std::byte* workspace) noexcept;

}  // namespace leadline::kernels
