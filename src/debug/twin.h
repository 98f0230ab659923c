// SPDX-License-Identifier: Apache-2.0
// The float node that a quantized node stands for, put beside it: it has the float model's weights and reads what the
// quantized node reads.
#pragma once

#include <string>
#include <vector>

#include "debug/match.h"
#include "ir/graph.h"

namespace leadline::debug {

/// Nodes and values that are added to a copy of a quantized subgraph.
class TwinBuilder {
 public:
  /// With `raw_inputs` values that were made by QUANTIZE are read before it.
  TwinBuilder(const ir::Subgraph& quantized, const ir::Subgraph& reference, const Match& match, ir::Subgraph& target,
              bool raw_inputs);

  /// Why node `n` has no twin; empty when it can have one.
  std::string obstacle(int n) const;
  /// Whether node `n` computes as before: a twin would give the same.
  bool unchanged(int n) const;
  /// Appends the twin of node `n`, and what it reads, to the target. Returns its outputs. `mapped` says where a value
  /// of the quantized subgraph is in the target.
  std::vector<int> add(int n, const std::vector<int>& mapped);
  /// A float32 form of value `v` of the quantized subgraph, in the target.
  int as_float(int v, const std::vector<int>& mapped);

  int add_value(ir::Value value);

 private:
  int constant(int float_value);

  const ir::Subgraph& q_;
  const ir::Subgraph& f_;
  const Match& match_;
  ir::Subgraph& target_;
  const bool raw_inputs_;
  std::vector<int> producer_;   // by value of the quantized subgraph
  std::vector<int> constants_;  // by value of the float subgraph: where it is in the target, or -1
};

}  // namespace leadline::debug
