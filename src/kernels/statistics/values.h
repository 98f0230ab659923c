// SPDX-License-Identifier: Apache-2.0
// One pass over values that are to be described: their extremes, and the numbers of the bins they fall into.
#pragma once

#include <cstdint>

namespace leadline::kernels {

/// Bins on each side of zero: positive values (and zeros) have the numbers from 0, negative ones from kBinsPerSide.
inline constexpr int kBinsPerSide = 2048;
inline constexpr int kBins = 2 * kBinsPerSide;

struct Extremes {
  float min;           // with `magnitude` of a NaN or an infinity: anything
  float max;           //
  uint32_t magnitude;  // largest of all bits without the sign: at least 0x7F800000 when a value is not finite
};

/// Of at least one value. Zeros come out positive.
Extremes extremes(const float* values, int64_t count) noexcept;

/// bins[...] = number of each value's bin, in any order: the whole part of |value| * per_unit, a power of two, on the
/// side of its sign. Every value must be finite and inside the bins.
void number_bins(const float* values, int64_t count, float per_unit, uint16_t* bins) noexcept;

/// counts[bin] += the bin's numbers in all tables, which become 0.
inline constexpr int kTables = 4;
void fold_tables(uint16_t (*tables)[kBins], int64_t* counts) noexcept;

}  // namespace leadline::kernels
