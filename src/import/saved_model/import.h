// SPDX-License-Identifier: Apache-2.0
// SavedModel directories -> Graph.
#pragma once

#include <memory>
#include <string>

#include "import/saved_model/saved_model.h"
#include "ir/graph.h"

namespace leadline::saved_model {

/// The graph of the signatures of a SavedModel: one subgraph and one signature for each, with the names they have in
/// the SavedModel. Large weights stay sources. Throws what read_saved_model does, and Error(kUnsupported) naming the
/// node for ops that cannot be expressed.
std::shared_ptr<ir::Graph> import_saved_model(const std::string& directory, const ReadOptions& options = {});

/// The same of a model that was read.
std::shared_ptr<ir::Graph> import_flat_model(const FlatModel& model, bool allow_custom_ops = false);

}  // namespace leadline::saved_model
