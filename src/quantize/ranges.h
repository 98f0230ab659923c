// SPDX-License-Identifier: Apache-2.0
// From statistics to the range that integers must cover.
#pragma once

#include "leadline/names.h"
#include "quantize/statistics.h"

namespace leadline::quantize {

/// Throws Error(kInvalidArgument) for numbers outside their range.
void check_rule(const CalibrationRule& rule, int bits);

/// The range for `bits` (8 or 16), inside what was seen, of a tensor with at least one finite value. `symmetric`: the
/// larger end will be used on both sides. Histogram methods need a histogram. Zero need not be inside: it is up to the
/// reader of the range, as integers must hold it.
///
/// - kPercentile: equal shares are cut off on both sides; symmetric: of the magnitudes.
/// - kMse: mean square error of rounding and clipping, each bin taken as evenly filled; one end after the other is
///   searched, at 1/64 steps and then 1/512, until none moves.
/// - kKl: thresholds t for the magnitude are tried; the values inside [-t, t], spread as integers would spread them,
///   are compared with all values, those outside added to the ends. Where integers are finer than the bins (16 bits)
///   nothing is lost by the largest range, which is taken.
Range choose_range(const TensorStatistics& statistics, const CalibrationRule& rule, int bits, bool symmetric);

}  // namespace leadline::quantize
