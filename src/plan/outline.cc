// SPDX-License-Identifier: Apache-2.0
#include "plan/outline.h"

#include <algorithm>
#include <memory>
#include <numeric>

namespace leadline::plan {
namespace {

/// What runs as a node whose work others do.
const ir::Node& absorbed_node() {
  static const ir::Node nothing = [] {
    ir::Node node;
    node.attributes = std::make_shared<ir::NoAttributes>();
    return node;
  }();
  return nothing;
}

bool makes(const ir::Node& node, int value) {
  return std::find(node.outputs.begin(), node.outputs.end(), value) != node.outputs.end();
}

}  // namespace

Outline::Outline(const ir::Graph& graph, int subgraph, const ir::ChangedNodes* changed, bool keep_all,
                 const ops::Host& host)
    : subgraph_index_(subgraph),
      subgraph_(graph.subgraphs[static_cast<size_t>(subgraph)]),
      changed_(changed),
      source_(subgraph_.values.size()),
      is_output_(subgraph_.values.size()) {
  find_nodes();
  for (const ir::Node* node : nodes_) rows_.push_back(host.find(*node));
  std::iota(source_.begin(), source_.end(), 0);
  for (int v : subgraph_.outputs) is_output_[static_cast<size_t>(v)] = true;
  find_last_uses();
  if (!keep_all) find_half_constants();
}

const ir::ChangedSubgraph* Outline::changes() const {
  return changed_ == nullptr ? nullptr : &changed_->subgraphs[static_cast<size_t>(subgraph_index_)];
}

const ir::ChangedNode* Outline::changed(int index) const {
  return changes() == nullptr ? nullptr : changes()->find(index);
}

int Outline::absorbed_count() const { return changes() == nullptr ? 0 : static_cast<int>(changes()->absorbed.size()); }

void Outline::find_nodes() {
  for (const ir::Node& node : subgraph_.nodes) nodes_.push_back(&node);
  has_step_.assign(nodes_.size(), true);
  if (changes() == nullptr) return;
  for (const ir::ChangedNode& changed : changes()->changed) nodes_[static_cast<size_t>(changed.number)] = &changed.node;
  for (int n : changes()->absorbed) {
    nodes_[static_cast<size_t>(n)] = &absorbed_node();
    has_step_[static_cast<size_t>(n)] = false;
  }
}

bool Outline::is_merged_away(int value) const {
  if (changed_ == nullptr) return false;
  const bool in_file = std::any_of(subgraph_.nodes.begin(), subgraph_.nodes.end(),
                                   [&](const ir::Node& node) { return makes(node, value); });
  return in_file &&
         std::none_of(nodes_.begin(), nodes_.end(), [&](const ir::Node* node) { return makes(*node, value); });
}

void Outline::find_last_uses() {
  read_count_.assign(subgraph_.values.size(), 0);
  for (const ir::Node& node : subgraph_.nodes) {
    for (int v : node.inputs) {
      if (v != ir::kAbsent) ++read_count_[static_cast<size_t>(v)];
    }
  }
  last_use_.assign(subgraph_.values.size(), -1);
  for (int v : subgraph_.outputs) last_use_[static_cast<size_t>(v)] = node_count();
  for (int n = node_count() - 1; n >= 0; --n) {
    const ir::Node& node = this->node(n);
    const bool view = row(n) != nullptr && row(n)->sharing == ops::Sharing::kView;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == ir::kAbsent) continue;
      int& last = last_use_[static_cast<size_t>(node.inputs[i])];
      last = std::max(last, n);
      if (view && i == 0) last = std::max(last, last_use(node.outputs[0]));
    }
  }
}

void Outline::find_half_constants() {
  std::vector<bool> taken_as_half(subgraph_.values.size(), true);
  for (int n = 0; n < node_count(); ++n) {
    const ir::Node& node = this->node(n);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const bool accepts = row(n) != nullptr && i < 64 && (row(n)->half_inputs >> i & 1U) != 0;
      if (node.inputs[i] != ir::kAbsent && !accepts) taken_as_half[static_cast<size_t>(node.inputs[i])] = false;
    }
  }
  std::vector<int> dense_of = source_;  // the constant that DENSIFY makes dense, by its output
  for (int n = 0; n < node_count(); ++n) {
    const ir::Node& node = this->node(n);
    if (row(n) == nullptr) continue;
    if (row(n)->densifies && node.inputs.size() == 1 && node.inputs[0] != ir::kAbsent) {
      dense_of[static_cast<size_t>(node.outputs[0])] = node.inputs[0];
    }
    if (!row(n)->dequantizes_f16) continue;
    const int stored = dense_of[static_cast<size_t>(node.inputs[0])];
    const ir::Value& half = subgraph_.value(stored);
    const auto wide = static_cast<size_t>(node.outputs[0]);
    if (!half.constant || half.dtype != DType::kFloat16) continue;
    if (!taken_as_half[wide] || is_output(node.outputs[0])) continue;
    if (subgraph_.values[wide].dtype != DType::kFloat32 || subgraph_.values[wide].variable) continue;
    source_[wide] = stored;
    has_step_[static_cast<size_t>(n)] = false;
  }
}

}  // namespace leadline::plan
