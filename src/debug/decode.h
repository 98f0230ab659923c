// SPDX-License-Identifier: Apache-2.0
// Real values of tensors: what integers with scales, float16 and packed small integers stand for.
#pragma once

#include <cstdint>

#include "core/quantization.h"
#include "leadline/types.h"

namespace leadline::debug {

/// Reads elements of a tensor as float32. The tensor's data outlive it.
class Decoder {
 public:
  /// Types without real values give no elements: see readable().
  Decoder(DType dtype, const Shape& shape, const std::byte* data, const Quantization& quantization);

  static bool readable(DType dtype, const Quantization& quantization);
  /// Elements [first, first + count) to `out`.
  void read(int64_t first, int64_t count, float* out) const;

 private:
  template <typename T>
  void read_levels(int64_t first, int64_t count, float* out) const;
  void read_packed(int64_t first, int64_t count, float* out) const;

  DType dtype_;
  const std::byte* data_;
  const Quantization& quantization_;
  int64_t inner_ = 1;  // elements that share a scale
};

}  // namespace leadline::debug
