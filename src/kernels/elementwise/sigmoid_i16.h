// SPDX-License-Identifier: Apache-2.0
// LOGISTIC and TANH of int16 by TFLite's interpolated table of the logistic function; results have 15 fractional bits.
#pragma once

#include <array>
#include <cstdint>

namespace leadline::kernels {

class SigmoidI16 {
 public:
  /// `scale` of the input, whose zero point is 0.
  explicit SigmoidI16(float scale);

  int16_t logistic(int16_t value) const;
  int16_t tanh(int16_t value) const;

 private:
  /// The input in units of 1/12288: 24 steps of the table per unit, each of 512 values.
  int64_t rescale(int16_t value) const { return (int64_t{value} * factor_ + round_) >> shift_; }

  const std::array<uint16_t, 256>* table_;
  int64_t factor_ = 0;
  int64_t round_ = 0;
  int shift_ = 0;
};

}  // namespace leadline::kernels
