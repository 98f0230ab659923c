// SPDX-License-Identifier: Apache-2.0
// The rewrite of nodes that compute with integers: parameters for their activations, quantized constants, and
// conversions where float and integers meet.
#pragma once

#include <string>

#include "ir/graph.h"
#include "ops/op.h"
#include "quantize/constants.h"
#include "quantize/parameters.h"
#include "quantize/treatment.h"

namespace leadline::quantize {

struct IntegerOptions {
  DType input_type = DType::kFloat32;  // of float inputs and outputs of entry subgraphs: float32, int8, ...
  DType output_type = DType::kFloat32;
  bool per_channel = true;          // a scale for each output channel of convolutions
  bool per_channel_dense = true;    // and of FULLY_CONNECTED
  std::string quantized_name = {};  // of what floats are quantized into; empty: the name of the floats and the type
  WeightRounding rounding = WeightRounding::kNearest;
  GramOf gram_of = {};   // for WeightRounding::kComq; may be empty
  bool planned = false;  // sizes alone matter
};

/// How the constant weights of a node of the float graph are rounded.
Rounding rounding_of(const IntegerOptions& options, const ops::OpDef& op, int subgraph, const NodeTreatment& treatment,
                     const Shape& weights);

/// The axis of an op's weights with a scale for each slice; -1: one scale for all.
int channel_axis(const IntegerOptions& options, const ops::OpDef& op, const Shape& weights);

/// Leaves nodes float that have an activation without a known range; they get a reason.
void resolve_treatments(const ir::Graph& graph, Treatments& treatments, const RangeOf& range_of);

/// Turns nodes with the treatments kInt8 and kInt16 into their integer form: of entry subgraphs, and of those that one
/// WHILE or IF calls, which agrees with them on the types of what crosses over. Other nodes, those with other
/// treatments too, see the float values they saw. `treatments` are settled and have an entry for each node; the result
/// is in step with the new nodes. Constants become sources that are read while the file is written. Names: inputs and
/// outputs of the graph keep theirs; where they stay float, the integer beside them ends in "_int8" or
/// "_int16". Values between nodes keep their names; "_float" and "_requantized" mark what conversions make of them.
/// Throws Error(kUnsupported), naming the tensor, for constants that are not finite.
Treatments quantize_integers(ir::Graph& graph, const Treatments& treatments, const RangeOf& range_of,
                             const IntegerOptions& options);

}  // namespace leadline::quantize
