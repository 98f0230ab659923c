// SPDX-License-Identifier: Apache-2.0
// What is to become of each node of a float graph: the recipe, the mode and the rules of the ops, put together. The
// rewrites (integers.h, weights.h) do what it says.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"

namespace leadline::quantize {

enum class Treatment {
  kFloat,     // stays as it is
  kFloat16,   // weights as float16 behind DEQUANTIZE
  kHybrid,    // int8 weights, float activations: quantized while running
  kWidened8,  // int8 weights behind DEQUANTIZE
  kWidened4,  // int4 weights behind DEQUANTIZE
  kInt8,      // int8 activations and weights
  kInt16,     // int16 activations, int8 weights
};

struct NodeTreatment {
  Treatment treatment = Treatment::kFloat;
  std::string reason;  // why a node that was to be quantized stays float
};

/// By subgraph, then by node.
using Treatments = std::vector<std::vector<NodeTreatment>>;

}  // namespace leadline::quantize
