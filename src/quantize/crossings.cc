// SPDX-License-Identifier: Apache-2.0
#include "quantize/crossings.h"

#include <algorithm>

#include "ir/verifier.h"
#include "ops/control_flow.h"
#include "ops/op_ids.h"

namespace leadline::quantize {
namespace {

/// Of a WHILE the body, of an IF the first branch.
int main_callee(const ir::Node& node) {
  if (const auto* loop = ir::attributes_if<ops::WhileAttributes>(*node.attributes)) return loop->body_subgraph;
  return ir::attributes_as<ops::IfAttributes>(node).then_subgraph;
}

std::vector<std::optional<Crossings::Caller>> find_callers(const ir::Graph& graph) {
  std::vector<int> calls(graph.subgraphs.size());
  std::vector<std::optional<Crossings::Caller>> callers(graph.subgraphs.size());
  if (!calls.empty()) calls[0] = 2;
  for (const ir::Signature& signature : graph.signatures) calls[static_cast<size_t>(signature.subgraph)] = 2;
  for (size_t s = 0; s < graph.subgraphs.size(); ++s) {
    const std::vector<ir::Node>& nodes = graph.subgraphs[s].nodes;
    for (size_t n = 0; n < nodes.size(); ++n) {
      for (const int called : ir::called_subgraphs(nodes[n])) {
        calls[static_cast<size_t>(called)] += is_call(nodes[n]) ? 1 : 2;
        callers[static_cast<size_t>(called)] = {static_cast<int>(s), static_cast<int>(n)};
      }
    }
  }
  for (size_t s = 0; s < calls.size(); ++s) {
    if (calls[s] != 1) callers[s].reset();
  }
  return callers;
}

}  // namespace

bool is_call(const ir::Node& node) { return ir::is_one_of(node.op, {op::kWhile, op::kIf}); }

Crossings::Crossings(const ir::Graph& graph) : callers_(find_callers(graph)) {
  for (const ir::Subgraph& subgraph : graph.subgraphs) {
    inputs_.push_back(subgraph.inputs);
    outputs_.push_back(subgraph.outputs);
  }
  std::vector<std::pair<Place, Place>> read;  // by a call, and what stands for it inside
  for (size_t s = 0; s < graph.subgraphs.size(); ++s) {
    const auto number = static_cast<int>(s);
    for (const ir::Node& node : graph.subgraphs[s].nodes) {
      if (!is_call(node)) continue;
      const bool loop = ir::is_one_of(node.op, {op::kWhile});
      for (size_t i = 0; i < node.outputs.size(); ++i) {
        for (const int called : ir::called_subgraphs(node)) {
          const auto& outputs = outputs_[static_cast<size_t>(called)];
          if (loop && called != main_callee(node)) continue;
          if (i < outputs.size()) join({number, node.outputs[i]}, {called, outputs[i]});
          if (loop) join({number, node.outputs[i]}, {called, inputs_[static_cast<size_t>(called)].at(i)});
        }
      }
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        const auto inside = inside_input(node, i);
        if (!inside || node.inputs[i] == ir::kAbsent) continue;
        for (const int called : ir::called_subgraphs(node)) {
          join(*inside, {called, inputs_[static_cast<size_t>(called)].at(loop ? i : i - 1)});
        }
        read.emplace_back(Place{number, node.inputs[i]}, *inside);
      }
    }
  }
  for (const auto& [place, parent] : parents_) members_[root(place)].push_back(place);
  for (const auto& [place, inside] : read) members_[root(inside)].push_back(place);
}

Place Crossings::root(Place place) const {
  for (auto found = parents_.find(place); found != parents_.end() && found->second != place;
       found = parents_.find(place)) {
    place = found->second;
  }
  return place;
}

void Crossings::join(Place a, Place b) {
  parents_.try_emplace(a, a);
  parents_.try_emplace(b, b);
  parents_[root(a)] = root(b);
}

bool Crossings::calls_its_own(const ir::Node& node) const {
  const std::vector<int> called = ir::called_subgraphs(node);
  return std::all_of(called.begin(), called.end(), [this](int s) { return caller(s).has_value(); });
}

std::optional<Place> Crossings::inside_input(const ir::Node& node, size_t i) const {
  const int callee = main_callee(node);
  if (!ir::is_one_of(node.op, {op::kWhile})) {
    if (i == 0) return {};
    --i;
  }
  const auto& inputs = inputs_[static_cast<size_t>(callee)];
  if (i >= inputs.size()) return {};
  return Place{callee, inputs[i]};
}

std::optional<Place> Crossings::inside_output(const ir::Node& node, size_t i) const {
  const int callee = main_callee(node);
  const auto& outputs = outputs_[static_cast<size_t>(callee)];
  if (i >= outputs.size()) return {};
  return Place{callee, outputs[i]};
}

RangeOf Crossings::joined(const RangeOf& range_of) const {
  return [this, range_of](int subgraph, int tensor, int bits, bool symmetric) -> std::optional<RealRange> {
    const Place place{subgraph, tensor};
    if (!parents_.contains(place)) return range_of(subgraph, tensor, bits, symmetric);
    std::optional<RealRange> result;
    for (const Place& member : members_.at(root(place))) {
      const auto range = range_of(member.subgraph, member.value, bits, symmetric);
      if (!range) continue;
      if (!result) result = range;
      result->min = std::min(result->min, range->min);
      result->max = std::max(result->max, range->max);
    }
    return result;
  };
}

}  // namespace leadline::quantize
