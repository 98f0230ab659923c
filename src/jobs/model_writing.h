// SPDX-License-Identifier: Apache-2.0
// Graphs that jobs make, as models: written and read back, so that what is planned and what is run are the same form.
#pragma once

#include <memory>

#include "ir/graph.h"
#include "jobs/phase_memory.h"
#include "leadline/budget.h"
#include "leadline/model.h"
#include "leadline/progress.h"

namespace leadline::jobs {

/// What write_model() takes at its peak, the model that comes out included.
PhaseMemory writing_memory(const ir::Graph& graph);

/// The graph as a model in memory of its own, charged to `budget` and freed with the model. The graph is charged while
/// it is written.
Model write_model(std::unique_ptr<ir::Graph> graph, const std::shared_ptr<Budget>& budget,
                  const Progress& progress = {});

/// A model to plan with: the structure of what write_model() makes, and its small constants. Large constants are zeros
/// that take no memory as long as they are only read. Charged to no budget; a plan says the same of both.
Model outline_of(const ir::Graph& graph);

}  // namespace leadline::jobs
