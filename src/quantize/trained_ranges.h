// SPDX-License-Identifier: Apache-2.0
// Ranges that a model brings along: training for quantization puts FAKE_QUANT nodes where integers will be, and learns
// their ranges. A model with them becomes integers without samples.
#pragma once

#include <map>
#include <optional>
#include <utility>

#include "ir/graph.h"
#include "quantize/parameters.h"

namespace leadline::quantize {

/// Whether the node rounds an activation to the levels of 8 bits.
bool is_trained_rounding(const ir::Subgraph& subgraph, const ir::Node& node);

/// Of values that such nodes read and make, in the subgraphs that may become integers.
class TrainedRanges {
 public:
  explicit TrainedRanges(const ir::Graph& graph);
  bool empty() const { return ranges_.empty(); }
  /// These ranges for 8 bits, and `other` for all else. Used up to the end of this object.
  RangeOf before(RangeOf other) const;

 private:
  std::map<std::pair<int, int>, RealRange> ranges_;  // by subgraph and value
};

}  // namespace leadline::quantize
