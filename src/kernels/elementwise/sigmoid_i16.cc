// SPDX-License-Identifier: Apache-2.0
#include "kernels/elementwise/sigmoid_i16.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace leadline::kernels {
namespace {

/// logistic(i / 24) with 16 fractional bits.
std::array<uint16_t, 256> make_table() {
  // TFLite's table is the rounded function, but one more at these places.
  constexpr uint8_t kOneMore[] = {4,  8,  12, 14, 15, 16, 17, 19, 20,  21,  22,  25,  27,  28, 29,
                                  30, 31, 33, 34, 35, 37, 39, 40, 41,  43,  44,  45,  46,  49, 50,
                                  54, 62, 63, 64, 66, 82, 86, 93, 100, 103, 112, 116, 135, 255};
  std::array<uint16_t, 256> table{};
  for (size_t i = 0; i < table.size(); ++i) {
    table[i] = static_cast<uint16_t>(std::lround(65536.0 / (1.0 + std::exp(-static_cast<double>(i) / 24.0))));
  }
  for (const uint8_t i : kOneMore) ++table[i];
  return table;
}

const std::array<uint16_t, 256>& table() {
  static const std::array<uint16_t, 256> instance = make_table();
  return instance;
}

}  // namespace

SigmoidI16::SigmoidI16(float scale) : table_(&table()) {
  const double exponent = std::log2(static_cast<double>(scale));
  const double shift = std::round(exponent) + 12.0;
  if (std::abs(exponent - std::round(exponent)) < 1e-3 && (shift == 0.0 || shift == 1.0)) {
    factor_ = int64_t{3} << static_cast<int>(shift);
    return;
  }
  double factor = static_cast<double>(scale) * 4096.0 * 3.0;
  while (factor <= 32767.0 / 2.0 && shift_ <= 30) {
    ++shift_;
    factor *= 2.0;
  }
  factor_ = static_cast<int64_t>(std::min(factor, 2147483647.0));
  round_ = shift_ > 0 ? int64_t{1} << (shift_ - 1) : 0;
}

int16_t SigmoidI16::logistic(int16_t value) const {
  const int64_t x = rescale(value);
  const int64_t magnitude = std::abs(x);
  const int64_t index = magnitude >> 9;
  int64_t result = int64_t{0x7FFF} << 10;
  if (index < 255) {
    const int64_t low = (*table_)[static_cast<size_t>(index)];
    const int64_t high = (*table_)[static_cast<size_t>(index + 1)];
    result = (low << 9) + (magnitude & 0x1FF) * (high - low);
  }
  // Symmetric about 1/2; the table has 25 fractional bits here.
  result = x >= 0 ? result + (1 << 9) : (int64_t{1} << 25) - result + (1 << 9) - 1;
  return static_cast<int16_t>(result >> 10);
}

int16_t SigmoidI16::tanh(int16_t value) const {
  // tanh x = 2 logistic(2x) - 1: twice as many steps per unit.
  const int64_t x = rescale(value);
  const int64_t magnitude = std::abs(x);
  const int64_t index = magnitude >> 8;
  int64_t result = int64_t{0xFFFF} << 8;
  if (index < 255) {
    const int64_t low = (*table_)[static_cast<size_t>(index)];
    const int64_t high = (*table_)[static_cast<size_t>(index + 1)];
    result = (low << 8) + (magnitude & 0xFF) * (high - low);
  }
  constexpr int64_t kHalf = 1 << 23;
  result = x >= 0 ? result - kHalf + (1 << 7) : kHalf - result + (1 << 7) - 1;
  return static_cast<int16_t>(result >> 8);
}

}  // namespace leadline::kernels
