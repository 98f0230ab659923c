// SPDX-License-Identifier: Apache-2.0
// Does a series grow from round to round? Caches that fill, single steps, spikes, noise and memory that an allocator
// keeps are not growth; a leak that comes in steps is.
#pragma once

#include <cstdint>
#include <span>

#include "leadline/guard/laps.h"

namespace leadline::guard {

struct SeriesPoint {
  int64_t round;  // rising
  int64_t value;
};

/// Fewer points than these are too few.
inline constexpr size_t kFewestPoints = 12;

/// The series grows when all of this is true for the points after the warm-up (a quarter of the rounds, 3 to 20):
/// - the median of all slopes between two points is at least `floor`, and its 99.5 % interval lies above 0;
/// - the medians of the four quarters rise three times, none of them by less than a quarter of the mean rise: growth at
///   one or two places is a step;
/// - the later half rises at least a quarter as fast as the whole, and the rises do not shrink from quarter to quarter
///   to less than 70 % each: what settles is not growth;
/// - it has not stopped: no stretch at the end rises by less than a quarter of the rate, where none before it does for
///   half as long. A buffer that is full has stopped.
Growth fit_growth(std::span<const SeriesPoint> points, double floor);

}  // namespace leadline::guard
