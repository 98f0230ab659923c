// SPDX-License-Identifier: Apache-2.0
// Rows of bilinear resizing of NHWC images, vectorised over channels.
#pragma once

#include <cstdint>

namespace leadline::kernels {

/// One axis of an output pixel: the two input positions and how much the second one weighs.
template <typename Weight>
struct ResizeTap {
  int64_t first = 0;
  int64_t second = 0;
  Weight weight = 0;
};

/// Bits of the weights of 8-bit images: two weights and 8 bits fit into 32.
inline constexpr int kResizeWeightBits = 11;

/// What a row of output pixels is computed from.
template <typename T, typename Weight>
struct BilinearRow {
  const T* top = nullptr;  // the two input rows
  const T* bottom = nullptr;
  Weight weight = 0;  // of `bottom`
  const ResizeTap<Weight>* columns = nullptr;
  int64_t pixels = 0;
  int64_t channels = 0;
  T* out = nullptr;
};

/// Floats weigh by floats. 8-bit values weigh by integers of kResizeWeightBits; the sum of all four is rounded once, to
/// nearest, ties up.
template <typename T, typename Weight>
using BilinearRowFunction = void (*)(const BilinearRow<T, Weight>& row) noexcept;

/// The row function for this CPU: <float, float>, <int8_t, int32_t> or <uint8_t, int32_t>.
template <typename T, typename Weight>
BilinearRowFunction<T, Weight> bilinear_row() noexcept;

}  // namespace leadline::kernels
