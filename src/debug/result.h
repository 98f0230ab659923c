// SPDX-License-Identifier: Apache-2.0
// From sums to the result that users read.
#pragma once

#include <optional>
#include <vector>

#include "debug/comparison.h"
#include "debug/comparison_graph.h"
#include "ir/graph.h"
#include "leadline/debug_result.h"

namespace leadline::debug {

struct ResultOptions {
  int worst_channels = 8;
  int histograms = 16;
};

/// Layers, outputs and suspects. Sample count, sizes and the plan are the caller's to fill in.
DebugResult make_result(const ir::Graph& reference, const ir::Graph& quantized, const ComparisonGraph& graph,
                        const Comparison& comparison, const ResultOptions& options);

/// The layers worth a look, ordered, each with a reason and an advice: a guess from what each loses by itself, for
/// where nothing was measured at the outputs.
std::vector<DebugSuspect> find_suspects(const std::vector<LayerDebug>& layers);

/// Why a region costs something at the outputs: its layer that loses most by itself. Nothing: it has no layer.
std::optional<DebugSuspect> suspect_of(const DebugRegion& region, const std::vector<LayerDebug>& layers);

}  // namespace leadline::debug
