// SPDX-License-Identifier: Apache-2.0
// Statistics as bytes, to be kept or sent to another process, and the number that identifies a model. Equal statistics
// give equal bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/charge.h"
#include "ir/graph.h"
#include "quantize/statistics.h"

namespace leadline::quantize {

std::vector<std::byte> to_bytes(const ModelStatistics& statistics);

/// Everything is checked, so that what comes out could have come from samples. `charge` is raised before memory is
/// taken. Throws Error(kInvalidArgument) for bytes that to_bytes() did not make; BudgetError.
ModelStatistics from_bytes(std::span<const std::byte> bytes, Charge& charge);

/// Depends on structure, names, types and shapes, and on the size, beginning and end of every constant.
uint64_t fingerprint(const ir::Graph& graph);

/// Of no samples, for the tensors that are watched: float inputs of subgraphs, float outputs of nodes, float variables.
/// `grams`: with a Gram matrix for each layer.
ModelStatistics empty_statistics(const ir::Graph& graph, bool histograms, bool grams = false);

}  // namespace leadline::quantize
