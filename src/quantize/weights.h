// SPDX-License-Identifier: Apache-2.0
// Rewrites of weights alone: float16, int8 and int4 for kernels that quantize activations while running, int8 and int4
// behind DEQUANTIZE. Activations stay float.
#pragma once

#include <cstdint>
#include <string>

#include "ir/graph.h"
#include "quantize/treatment.h"

namespace leadline::quantize {

struct WeightOptions {
  bool per_channel = true;             // a scale for each output channel where the kernels take it
  bool per_channel_dense = true;       // and of FULLY_CONNECTED
  int64_t min_weight_elements = 1024;  // constants of fewer elements stay float, but for float16 and by a recipe
  WeightRounding rounding = WeightRounding::kNearest;
  GramOf gram_of = {};   // for WeightRounding::kComq; may be empty
  bool planned = false;  // sizes alone matter
};

/// Why none of the node's constants can be treated so; empty when some can, and for treatments that are about more than
/// weights.
std::string weights_obstacle(const ir::Subgraph& subgraph, const ir::Node& node, const NodeTreatment& treatment,
                             const WeightOptions& options);

/// Replaces constants of nodes whose treatment keeps float activations; new ones are made while the file is written.
/// Other nodes, those with an obstacle, and what others use as float, stay as they are. `treatments` has an entry for
/// each node of each subgraph. Values keep their numbers; nodes are added in front of and behind others: the result is
/// `treatments` in step with them, kFloat for new nodes. Throws Error(kUnsupported), naming the tensor, for weights
/// that are not finite.
Treatments quantize_weights(ir::Graph& graph, const Treatments& treatments, const WeightOptions& options);

}  // namespace leadline::quantize
