// SPDX-License-Identifier: Apache-2.0
// What quantization did to the constants of a node. Needs no run.
#pragma once

#include <vector>

#include "ir/graph.h"
#include "leadline/debug_result.h"

namespace leadline::debug {

/// Each float constant of node `float_node` against the quantized constant in its place, channel by channel.
std::vector<WeightError> weight_errors(const ir::Subgraph& quantized, int node, const ir::Subgraph& reference,
                                       int float_node);

}  // namespace leadline::debug
