// SPDX-License-Identifier: Apache-2.0
#include "quantize/trained_ranges.h"

#include "ops/fake_quant.h"
#include "ops/op_ids.h"
#include "quantize/propagation.h"
#include "quantize/treatment.h"

namespace leadline::quantize {
namespace {

constexpr int kBits = 8;

const ops::FakeQuantAttributes* rounding_of(const ir::Node& node) {
  if (!ir::is_one_of(node.op, {op::kFakeQuant})) return nullptr;
  return ir::attributes_if<ops::FakeQuantAttributes>(*node.attributes);
}

/// All 256 levels; a narrow range leaves the lowest one out.
std::optional<RealRange> range_of(const ops::FakeQuantAttributes& rounding) {
  const auto levels = ops::levels_of(rounding);
  if (!levels) return {};
  const double scale = levels->scale;
  return RealRange{levels->lo - (rounding.narrow_range ? scale : 0.0), levels->hi};
}

}  // namespace

bool is_trained_rounding(const ir::Subgraph& subgraph, const ir::Node& node) {
  const ops::FakeQuantAttributes* rounding = rounding_of(node);
  return rounding != nullptr && rounding->num_bits == kBits && ops::levels_of(*rounding) &&
         is_activation(subgraph, node.inputs[0]);
}

TrainedRanges::TrainedRanges(const ir::Graph& graph) {
  const std::vector<bool> entries = entry_subgraphs(graph);
  for (size_t s = 0; s < entries.size(); ++s) {
    if (!entries[s]) continue;
    const ir::Subgraph& subgraph = graph.subgraphs[s];
    const auto number = static_cast<int>(s);
    // What a node makes has its range; what it reads has another only if another node made it.
    for (const ir::Node& node : subgraph.nodes) {
      if (is_trained_rounding(subgraph, node)) ranges_[{number, node.outputs[0]}] = *range_of(*rounding_of(node));
    }
    for (const ir::Node& node : subgraph.nodes) {
      if (is_trained_rounding(subgraph, node))
        ranges_.try_emplace({number, node.inputs[0]}, *range_of(*rounding_of(node)));
    }
  }
}

RangeOf TrainedRanges::before(RangeOf other) const {
  return [this, other = std::move(other)](int subgraph, int tensor, int bits, bool symmetric) {
    const auto found = bits == kBits ? ranges_.find({subgraph, tensor}) : ranges_.end();
    return found != ranges_.end() ? std::optional(found->second) : other(subgraph, tensor, bits, symmetric);
  };
}

}  // namespace leadline::quantize
