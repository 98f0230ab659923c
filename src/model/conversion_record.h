// SPDX-License-Identifier: Apache-2.0
// The metadata entry CONVERSION_METADATA of a graph, read and written.
#pragma once

#include <optional>

#include "ir/graph.h"
#include "leadline/conversion_record.h"

namespace leadline::model {

/// Nothing when the graph has no such entry, or one that is damaged: it does not matter to a run.
std::optional<ConversionRecord> conversion_record(const ir::Graph& graph);

/// Replaces the entry or adds it; nothing removes it. All other metadata stays.
void set_conversion_record(ir::Graph& graph, const std::optional<ConversionRecord>& record);

/// Notes what was done to a model that says how it was made; one that does not is left as it is.
void add_optimization(ir::Graph& graph, ModelOptimization optimization);

}  // namespace leadline::model
