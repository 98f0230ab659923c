// SPDX-License-Identifier: Apache-2.0
// Which parameters each activation of a subgraph gets: from its range, from the op that makes it, or from the ops
// around it that need the same ones.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "ir/graph.h"
#include "quantize/parameters.h"
#include "quantize/treatment.h"

namespace leadline::quantize {

/// Parameters of all values as integers of one type.
struct Scales {
  /// By value; nothing where no node needs any, and where nothing is known.
  std::vector<std::optional<Parameters>> values;
  /// By node and operand, where an operand has to have other parameters than its value: it is rescaled on its way.
  /// Constants that share their parameters with other operands of their node have theirs here.
  std::map<std::pair<int, int>, Parameters> inputs;
  std::map<std::pair<int, int>, Parameters> outputs;

  std::optional<Parameters> input(const ir::Node& node, int node_index, int i) const;
  std::optional<Parameters> output(const ir::Node& node, int node_index, int i) const;
};

/// Parameters for the nodes of `subgraph` whose mode is `mode` (kInt8 or kInt16x8).
///
/// Where ops need equal parameters TensorFlow's converters decide as follows, and so does this: results of ops with one
/// float operand take over that operand's; operands of ops with several (CONCATENATION, MAXIMUM) get those of the
/// result, and so does what they were moved from. As int16, operands keep their own and are rescaled: symmetric ranges
/// would be widened too much. What nodes disagree on is rescaled.
Scales propagate(const ir::Graph& graph, int subgraph, const std::vector<NodeTreatment>& treatments,
                 QuantizationMode mode, const RangeOf& range_of);

/// True for a value that is computed, not constant, and float32.
bool is_activation(const ir::Subgraph& subgraph, int value);

}  // namespace leadline::quantize
