// SPDX-License-Identifier: Apache-2.0
// Which node and tensor of a float model a node and tensor of its quantized form stand for. Found by structure first
// (the same op on operands that stand for each other), because converters rename tensors; names decide where structure
// leaves a choice.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"

namespace leadline::debug {

struct Match {
  std::vector<int> value;           // by value of the quantized subgraph: the float one, or -1
  std::vector<int> node;            // by node: the float one, or -1
  std::vector<int> input;           // by input of the float subgraph: position in the quantized one's
  std::vector<bool> from_constant;  // by value: a constant, or one that was widened by DEQUANTIZE
};

/// Throws Error(kInvalidArgument) when the inputs do not belong together.
Match match_subgraphs(const ir::Subgraph& quantized, const ir::Subgraph& reference);

/// QUANTIZE and DEQUANTIZE, which change how values are written and not what they mean.
bool changes_type_only(const ir::Node& node);

/// Values that stand for real numbers: float32, float16, and integers with a scale.
bool is_real(const ir::Value& value);
bool is_quantized(const ir::Value& value);

}  // namespace leadline::debug
