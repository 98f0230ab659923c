// SPDX-License-Identifier: Apache-2.0
// The NumericVerify nodes of a debug model, and TensorFlow's five numbers about what they compute.
#pragma once

#include <span>
#include <vector>

#include "ir/graph.h"
#include "leadline/debug_result.h"

namespace leadline::debug {

/// By subgraph and node.
std::vector<VerifiedLayer> find_verified_layers(const ir::Graph& graph);

/// Adds what one sample says about a layer; NaN in, NaN out.
void add_differences(VerifiedStatistics& sums, std::span<const float> differences);

/// Sums of samples to means.
VerifiedStatistics mean_of(VerifiedStatistics sums);

}  // namespace leadline::debug
