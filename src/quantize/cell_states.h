// SPDX-License-Identifier: Apache-2.0
// What calibration has to see inside a fused LSTM: the op shows its cell state after the last step alone, but integers
// have to hold that of every step. So a node is computed once more, before it runs, step by step.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "ir/graph.h"
#include "leadline/observer.h"

namespace leadline::quantize {

class CellStates {
 public:
  explicit CellStates(const ir::Graph& graph) : graph_(graph) {}

  /// Memory that nodes of the graph need here.
  static int64_t bytes(const ir::Graph& graph);

  /// Calls `see` with the tensor of the cell state and its values in each step, if `node` is about to run a sequence of
  /// floats; otherwise it does nothing. The node's own states stay as they are.
  void replay(const ObservedNode& node, const std::function<void(int tensor, std::span<const float>)>& see);

 private:
  const ir::Graph& graph_;
  std::vector<float> memory_;
};

}  // namespace leadline::quantize
