// SPDX-License-Identifier: Apache-2.0
// How integers stand for real numbers: real = scale * (q - zero_point).
#pragma once

#include <cstdint>
#include <vector>

namespace leadline {

/// Affine quantization of a tensor, as a legal Graph holds it.
/// Invariant: scale and zero_point have the same count: 0 (not quantized), 1 (per tensor) or the size of
/// dimension `axis` (per channel); scales are finite and positive; zero points fit the tensor's type.
struct Quantization {
  std::vector<float> scale;
  std::vector<int64_t> zero_point;
  int axis = 0;
  // Observed range, kept for the writer; kernels do not read it.
  std::vector<float> min;
  std::vector<float> max;
  // Blockwise quantization: indices of the tensors with scales and zero points (-1: none). block_size
  // 0 means that there is none.
  int block_scales = -1;
  int block_zero_points = -1;
  int block_size = 0;

  bool quantized() const noexcept { return !scale.empty() || block_size > 0; }
  bool per_channel() const noexcept { return scale.size() > 1; }
  /// Scale and zero point of a tensor that is quantized per tensor; 0 where it is not quantized.
  float scale0() const noexcept { return scale.empty() ? 0.0F : scale[0]; }
  int32_t zero_point0() const noexcept { return zero_point.empty() ? 0 : static_cast<int32_t>(zero_point[0]); }

  friend bool operator==(const Quantization&, const Quantization&) = default;
};

}  // namespace leadline
