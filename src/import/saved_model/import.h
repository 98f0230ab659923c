// SPDX-License-Identifier: Apache-2.0
// SavedModel directories -> Graph.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "import/saved_model/saved_model.h"
#include "ir/graph.h"

namespace leadline::saved_model {

/// Order and tensor names of the inputs and outputs of a model with one signature, each with its name there.
struct PlainInterface {
  std::vector<std::pair<std::string, std::string>> inputs;
  std::vector<std::pair<std::string, std::string>> outputs;
  bool empty() const noexcept { return inputs.empty() && outputs.empty(); }
};

/// The graph of the signatures of a SavedModel: one subgraph and one signature for each, with the names they have in
/// the SavedModel. Large weights stay sources. Throws what read_saved_model does, and Error(kUnsupported) naming the
/// node for ops that cannot be expressed.
std::shared_ptr<ir::Graph> import_saved_model(const std::string& directory, const ReadOptions& options = {});

/// What becomes of ops that Leadline has no conversion for; an error when neither is allowed.
struct ForeignOps {
  bool select_tf_ops = false;     // TensorFlow's own ("Flex") ops, unless they are to be custom and Leadline has no row
  bool allow_custom_ops = false;  // custom ops
};

/// The same of a model that was read. `interface`: as in leadline/converter.h.
std::shared_ptr<ir::Graph> import_flat_model(const FlatModel& model, ForeignOps foreign = {},
                                             const PlainInterface& interface = {});

}  // namespace leadline::saved_model
