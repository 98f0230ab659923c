// SPDX-License-Identifier: Apache-2.0
// The NumericVerify nodes of a debug model, and TensorFlow's five numbers about what they compute.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "ir/graph.h"
#include "leadline/debug_result.h"

namespace leadline::debug {

/// By subgraph and node.
std::vector<VerifiedLayer> find_verified_layers(const ir::Graph& graph);

/// For how many samples stddev, mean_error, max_abs_error and mean_squared_error are numbers.
using NumberCounts = std::array<int64_t, 4>;

/// Adds what one sample says about a layer. A statistic that is NaN for the sample is left out, as numpy.nanmean does
/// it.
void add_differences(VerifiedStatistics& sums, NumberCounts& numbers, std::span<const float> differences);

/// Sums of samples to means; NaN for a statistic that is a number for none.
VerifiedStatistics mean_of(VerifiedStatistics sums, const NumberCounts& numbers);

}  // namespace leadline::debug
