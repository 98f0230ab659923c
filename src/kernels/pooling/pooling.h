// SPDX-License-Identifier: Apache-2.0
// Maximum and average over windows of NHWC images, a row of output pixels at a time, vectorised over channels.
#pragma once

#include <cstdint>

namespace leadline::kernels {

enum class Pooling : uint8_t { kMax, kAverage };

/// Averages of 8-bit values take at most this many values: their sums are kept in 16 bits.
inline constexpr int64_t kMaxAveraged8 = 256;

/// The input columns [begin, end) of a window; never empty.
struct PoolSpan {
  int64_t begin = 0;
  int64_t end = 0;
};

/// What a row of output pixels is computed from.
template <typename T>
struct PoolRow {
  const T* in = nullptr;  // the first input row of the windows
  int64_t rows = 0;       // how many input rows they have
  int64_t row_stride = 0;
  const PoolSpan* columns = nullptr;  // of each output pixel
  int64_t pixels = 0;
  int64_t channels = 0;
  T lo{};  // the results are clamped to [lo, hi]
  T hi{};
  T* out = nullptr;
};

template <typename T>
using PoolRowFunction = void (*)(const PoolRow<T>& row) noexcept;

/// The row function for this CPU; T is float, int8_t or uint8_t. The maximum passes over NaN; averages of integers are
/// rounded to nearest, ties away from zero.
template <typename T>
PoolRowFunction<T> pool_row_function(Pooling pooling) noexcept;

}  // namespace leadline::kernels
