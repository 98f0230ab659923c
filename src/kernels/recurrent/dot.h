// SPDX-License-Identifier: Apache-2.0
// Dot products of the recurrent kernels, in a form that compilers vectorise.
#pragma once

#include <cstdint>

namespace leadline::kernels {

inline float dot(const float* a, const float* b, int64_t count) {
  constexpr int64_t kLanes = 16;
  float sums[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t l = 0; l < kLanes; ++l) sums[l] += a[i + l] * b[i + l];
  }
  float total = 0.0F;
  for (; i < count; ++i) total += a[i] * b[i];
  for (float sum : sums) total += sum;
  return total;
}

/// Sum of weights[i] * (values[i] - zero_point).
inline int64_t dot(const int8_t* weights, const int8_t* values, int32_t zero_point, int64_t count) {
  constexpr int64_t kChunk = 32768;  // of products below 2^15: the 32-bit sum cannot overflow
  int64_t total = 0;
  for (int64_t begin = 0; begin < count; begin += kChunk) {
    const int64_t end = begin + kChunk < count ? begin + kChunk : count;
    int32_t sum = 0;
    int32_t weight_sum = 0;
    for (int64_t i = begin; i < end; ++i) sum += weights[i] * values[i];
    if (zero_point != 0) {
      for (int64_t i = begin; i < end; ++i) weight_sum += weights[i];
    }
    total += sum - int64_t{weight_sum} * zero_point;
  }
  return total;
}

}  // namespace leadline::kernels
