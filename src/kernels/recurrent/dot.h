// SPDX-License-Identifier: Apache-2.0
// Dot products of the recurrent kernels, in a form that compilers vectorise.
#pragma once

#include <cstdint>

#include "core/index_range.h"

namespace leadline::kernels {

/// A dot product of floats that is added up range by range; ranges begin at multiples of kLanes.
struct FloatDot {
  static constexpr int64_t kLanes = 16;
  float sums[kLanes] = {};

  /// Adds whole groups of the range.
  void add(const float* a, const float* b, IndexRange range) noexcept {
    for (int64_t i = range.begin; i + kLanes <= range.end; i += kLanes) {
      for (int64_t l = 0; l < kLanes; ++l) sums[l] += a[i + l] * b[i + l];
    }
  }
  /// The product of `count` values, once all whole groups are in.
  float total(const float* a, const float* b, int64_t count) const noexcept {
    float result = 0.0F;
    for (int64_t i = count / kLanes * kLanes; i < count; ++i) result += a[i] * b[i];
    for (const float sum : sums) result += sum;
    return result;
  }
};

inline float dot(const float* a, const float* b, int64_t count) noexcept {
  FloatDot sum;
  sum.add(a, b, {0, count});
  return sum.total(a, b, count);
}

/// Sum of weights[i] * (values[i] - zero_point).
inline int64_t dot(const int8_t* weights, const int8_t* values, int32_t zero_point, int64_t count) noexcept {
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
