// SPDX-License-Identifier: Apache-2.0
// float32 convolution over three axes: input [N,D,H,W,C], filter [KD,KH,KW,C,O] packed as one matrix.
// Invariant: results do not depend on the number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "core/index_range.h"

namespace leadline::kernels {

/// Sizes along one spatial axis.
struct ConvAxis {
  int64_t input = 0;
  int64_t output = 0;
  int64_t filter = 0;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t pad = 0;  // before the first element

  /// True when every output reads the input at its own place only.
  bool identity() const { return filter == 1 && stride == 1 && pad == 0 && input == output; }
};

struct Conv3DShape {
  int64_t batch = 0;
  int64_t in_c = 0;
  int64_t out_c = 0;
  ConvAxis d, h, w;

  int64_t pixels() const { return batch * d.output * h.output * w.output; }
  int64_t filter_size() const { return d.filter * h.filter * w.filter * in_c; }
};

/// One convolution; nothing but `output` is written.
struct Conv3DF32 {
  Conv3DShape shape;
  const float* input = nullptr;
  const std::byte* filter = nullptr;  // pack_f32_kn with n = out_c, k = filter_size()
  const float* bias = nullptr;        // out_c values, or null
  float* output = nullptr;
  float lo = -std::numeric_limits<float>::infinity();
  float hi = std::numeric_limits<float>::infinity();
};

/// Workspace for each thread.
int64_t conv3d_workspace_bytes(const Conv3DShape& shape) noexcept;

/// Computes output pixels, of these the channels `columns`, and adds only the filter's values in `depth`: as ConvPart
/// of conv2d.h. `workspace` is kAlignment-aligned.
void conv3d_part(const Conv3DF32& conv, IndexRange pixels, IndexRange columns, IndexRange depth,
                 std::byte* workspace) noexcept;

}  // namespace leadline::kernels
