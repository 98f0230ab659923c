// SPDX-License-Identifier: Apache-2.0
// One graph that runs a float model and its quantized form on the same inputs and brings their values together at
// probes. Nodes are interleaved, so that values live no longer than their comparison takes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace leadline::debug {

/// A LeadlineProbe node: operand 0 is the quantized model's value, 1 what its node should have made of the same inputs
/// (or absent), 2 the float model's value (or absent).
struct Probe {
  enum class Kind {
    kLayer,
    kOutput,  // of the model
  };
  Kind kind = Kind::kLayer;
  int subgraph = 0;    // of the comparison graph and of the quantized model
  int probe_node = 0;  // in the comparison graph
  int node = -1;       // in the quantized model; -1: its input is quantized
  int tensor = 0;
  int float_node = -1;
  int float_tensor = -1;
  bool own = false;
  bool accumulated = false;
  std::string note;
};

struct ComparisonGraph {
  std::shared_ptr<const ir::Graph> graph;
  std::vector<Probe> probes;           // in the order they run, subgraph by subgraph
  std::vector<std::string> unmatched;  // nodes without a counterpart
};

/// The comparison runs subgraph `entry`. With `own_error` each float node also runs on the quantized model's values.
/// Throws Error(kInvalidArgument) when the models do not belong together.
ComparisonGraph make_comparison(std::shared_ptr<const ir::Graph> reference, std::shared_ptr<const ir::Graph> quantized,
                                int entry, bool own_error);

/// The bytes of both, for a graph whose constants lie in either.
std::shared_ptr<ModelBytes> join_bytes(std::shared_ptr<const ir::Graph> a, std::shared_ptr<const ir::Graph> b);

/// The quantized model with a float node on dequantized inputs and a NumericVerify beside each quantized node.
ir::Graph make_debug_graph(const ir::Graph& reference, const ir::Graph& quantized);

}  // namespace leadline::debug
