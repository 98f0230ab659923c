// SPDX-License-Identifier: Apache-2.0
// Which treatments last, once ranges are known.
#include "core/cancel.h"
#include "core/error.h"
#include "quantize/crossings.h"
#include "quantize/integers.h"
#include "quantize/propagation.h"
#include "quantize/recurrent.h"

namespace leadline::quantize {
namespace {

/// The first activation of a node for which there are no parameters; kAbsent: all have some.
int without_parameters(const ir::Subgraph& subgraph, int n, const Scales& scales) {
  const ir::Node& node = subgraph.nodes[static_cast<size_t>(n)];
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (is_activation(subgraph, node.inputs[i]) && !scales.input(node, n, static_cast<int>(i))) return node.inputs[i];
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (is_activation(subgraph, node.outputs[i]) && !scales.output(node, n, static_cast<int>(i))) {
      return node.outputs[i];
    }
  }
  return ir::kAbsent;
}

/// Leaves nodes of one subgraph float for lack of a range, until those that are left have all of theirs.
void resolve_subgraph(const ir::Graph& graph, int index, std::vector<NodeTreatment>& treatments,
                      const RangeOf& range_of) {
  const ir::Subgraph& subgraph = graph.subgraphs[static_cast<size_t>(index)];
  for (const QuantizationMode mode : {QuantizationMode::kInt8, QuantizationMode::kInt16x8}) {
    for (bool changed = true; changed;) {
      changed = false;
      check_cancelled();
      const Scales scales = propagate(graph, index, treatments, mode, range_of);
      for (size_t n = 0; n < subgraph.nodes.size(); ++n) {
        if (treatments[n].mode != mode) continue;
        const int v = without_parameters(subgraph, static_cast<int>(n), scales);
        if (v == ir::kAbsent) continue;
        treatments[n] = {QuantizationMode::kFloat,
                         fmt::format("no usable range of values is known of '{}'", subgraph.value(v).name)};
        changed = true;
      }
    }
  }
}

}  // namespace

void resolve_treatments(const ir::Graph& graph, Treatments& treatments, const RangeOf& range_of) {
  const std::vector<bool> entries = entry_subgraphs(graph);
  const Crossings crossings(graph);
  const RangeOf joined = crossings.joined(range_of);
  for (size_t s = 0; s < entries.size(); ++s) {
    if (!entries[s] && !crossings.caller(static_cast<int>(s))) continue;
    resolve_subgraph(graph, static_cast<int>(s), treatments[s], joined);
    treat_setters(graph.subgraphs[s], treatments[s]);
  }
}

Rounding rounding_of(const IntegerOptions& options, const ops::OpDef& op, int subgraph, const NodeTreatment& treatment,
                     const Shape& weights) {
  Rounding result;
  result.method = treatment.weights.rounding.value_or(options.rounding);
  result.planned = options.planned;
  if (!op.contraction.has_weights() || op.contraction.output_axis >= weights.rank()) return result;
  result.output_axis = op.contraction.output_axis;
  if (options.gram_of && treatment.node >= 0) result.gram = options.gram_of(subgraph, treatment.node);
  return result;
}

}  // namespace leadline::quantize
