// SPDX-License-Identifier: Apache-2.0
// What quantizing rows of floats to int8 while running begins and ends with.
#pragma once

#include <cstdint>

namespace leadline::kernels {

/// Smallest and largest of some values and 0.
struct RowRange {
  float min = 0.0F;
  float max = 0.0F;
};

/// real = scale * (q - zero_point)
struct RowQuantization {
  float scale = 1.0F;
  int32_t zero_point = 0;
};

}  // namespace leadline::kernels
