// SPDX-License-Identifier: Apache-2.0
// The quantized model with some of its nodes computing in float, as the float model's nodes do: what quantization of
// these nodes costs at the outputs is the difference.
#pragma once

#include <memory>
#include <vector>

#include "debug/match.h"
#include "ir/graph.h"

namespace leadline::debug {

/// What nodes that compute in float keep of their quantized form.
enum class Rounded {
  kNothing,
  kWeights,  ///< their weights
  kValues,   ///< what they read and make
};

class MixedGraphs {
 public:
  /// Of subgraph `entry` of both. Throws Error(kInvalidArgument) when the models do not belong together.
  MixedGraphs(std::shared_ptr<const ir::Graph> reference, std::shared_ptr<const ir::Graph> quantized, int entry);

  /// By node of the quantized model: quantized, and able to compute in float.
  const std::vector<bool>& candidates() const { return candidates_; }
  const Match& match() const { return match_; }
  /// The quantized model in which these nodes (by node; of candidates) compute in float, with the float model's
  /// weights, on what reaches them. Values between two of them are not rounded; what other nodes read is rounded as
  /// before. Constants stay in their models.
  std::shared_ptr<const ir::Graph> with_float(const std::vector<bool>& nodes,
                                              Rounded rounded = Rounded::kNothing) const;
  /// By output of the float model: position among the outputs of the quantized model and of mixed ones; -1: none that
  /// can be compared.
  const std::vector<int>& outputs() const { return outputs_; }

 private:
  class Mixer;

  std::shared_ptr<const ir::Graph> reference_;
  std::shared_ptr<const ir::Graph> quantized_;
  int entry_;
  Match match_;
  std::vector<bool> candidates_;
  std::vector<int> outputs_;
};

}  // namespace leadline::debug
