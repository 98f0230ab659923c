// SPDX-License-Identifier: Apache-2.0
#include "debug/mixed_graph.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "debug/comparison_graph.h"
#include "debug/index.h"
#include "debug/twin.h"
#include "ir/verifier.h"
#include "ops/registry.h"

namespace leadline::debug {

/// Writes one mixed subgraph. Conversions between types are made when they are read, so that none is left over.
class MixedGraphs::Mixer {
 public:
  Mixer(const ir::Subgraph& quantized, const ir::Subgraph& reference, const Match& match,
        const std::vector<bool>& floats, Rounded rounded)
      : q_(quantized), f_(reference), match_(match), floats_(floats), rounded_(rounded), target_(quantized) {
    target_.nodes.clear();
    mapped_.resize(q_.values.size());
    for (size_t v = 0; v < mapped_.size(); ++v) mapped_[v] = static_cast<int>(v);
    real_.assign(q_.values.size(), -1);
    widened_.assign(q_.values.size(), -1);
    pending_.assign(q_.values.size(), -1);
    constants_.assign(f_.values.size(), -1);
  }

  ir::Subgraph run() {
    for (size_t n = 0; n < q_.nodes.size(); ++n) {
      const ir::Node& node = q_.nodes[n];
      if (changes_type_only(node)) {
        pending_[at(node.outputs[0])] = static_cast<int>(n);
      } else if (floats_[n]) {
        add_float(static_cast<int>(n));
      } else {
        add_as_it_is(node);
      }
    }
    for (int& v : target_.outputs) v = present(v);
    return std::move(target_);
  }

 private:
  int add_value(ir::Value value) {
    target_.values.push_back(std::move(value));
    return static_cast<int>(target_.values.size()) - 1;
  }

  void convert(ir::OpId op, int from, int to) {
    ir::Node node = ops::make_node(op, {from}, {to});
    if (op == op::kDequantize) node.version = 3;  // knows all types and channels
    target_.nodes.push_back(std::move(node));
  }

  /// Value `v` of the quantized subgraph in the target, in its own type.
  int present(int v) {
    if (v == ir::kAbsent) return v;
    if (const int n = std::exchange(pending_[at(v)], -1); n >= 0) {
      const ir::Node& node = q_.nodes[at(n)];
      const int from = node.inputs[0];
      if (q_.values[at(v)].dtype == DType::kFloat32 && real_[at(from)] >= 0) {
        mapped_[at(v)] = real_[at(from)];  // was not rounded
      } else {
        ir::Node copy = node;
        copy.inputs[0] = real_[at(from)] >= 0 && node.op == op::kQuantize ? real_[at(from)] : present(from);
        target_.nodes.push_back(std::move(copy));
      }
    } else if (real_[at(v)] >= 0 && mapped_[at(v)] == kNotRounded) {
      mapped_[at(v)] = v;
      convert(op::kQuantize, real_[at(v)], v);
    }
    return mapped_[at(v)];
  }

  /// The same as float32, not rounded where that can be had.
  int as_float(int v) {
    if (real_[at(v)] >= 0) return real_[at(v)];
    if (q_.values[at(v)].dtype == DType::kFloat32) return present(v);
    const int n = rounded_ == Rounded::kValues ? -1 : pending_[at(v)];
    if (n >= 0 && q_.nodes[at(n)].op == op::kQuantize) {
      const int from = q_.nodes[at(n)].inputs[0];
      if (real_[at(from)] >= 0 || q_.values[at(from)].dtype == DType::kFloat32) return as_float(from);
    }
    if (widened_[at(v)] < 0) {
      ir::Value value;
      value.name = q_.values[at(v)].name + "/dequantized";
      value.dtype = DType::kFloat32;
      value.shape = q_.values[at(v)].shape;
      value.signature = q_.values[at(v)].signature;
      value.has_rank = q_.values[at(v)].has_rank;
      const int from = present(v);
      widened_[at(v)] = add_value(std::move(value));
      convert(op::kDequantize, from, widened_[at(v)]);
    }
    return widened_[at(v)];
  }

  int constant(int float_value) {
    int& place = constants_[at(float_value)];
    if (place < 0) place = add_value(f_.values[at(float_value)]);
    return place;
  }

  void add_float(int n) {
    const ir::Node& node = q_.nodes[at(n)];
    ir::Node twin = f_.nodes[at(match_.node[at(n)])];
    for (size_t i = 0; i < twin.inputs.size(); ++i) {
      const int y = twin.inputs[i];
      if (y == ir::kAbsent) continue;
      if (f_.values[at(y)].constant) {
        const bool rounded = rounded_ == Rounded::kWeights && is_rounded_weight(node, i);
        twin.inputs[i] = rounded ? as_float(node.inputs[i]) : constant(y);
      } else {
        twin.inputs[i] = f_.values[at(y)].dtype == DType::kFloat32 ? as_float(node.inputs[i]) : present(node.inputs[i]);
      }
    }
    for (size_t i = 0; i < twin.outputs.size(); ++i) {
      const int v = node.outputs[i];
      ir::Value value = f_.values[at(twin.outputs[i])];
      value.name = q_.values[at(v)].name + "/float";
      const bool rounded = q_.values[at(v)].dtype != value.dtype;
      twin.outputs[i] = add_value(std::move(value));
      mapped_[at(v)] = rounded ? kNotRounded : twin.outputs[i];
      if (rounded) real_[at(v)] = twin.outputs[i];
    }
    for (int& v : twin.intermediates) v = add_value(f_.values[at(v)]);
    const std::vector<int> made = twin.outputs;
    target_.nodes.push_back(std::move(twin));
    if (rounded_ != Rounded::kValues) return;
    for (size_t i = 0; i < made.size(); ++i) {
      const int v = node.outputs[i];
      if (real_[at(v)] != made[i]) continue;
      mapped_[at(v)] = v;
      convert(op::kQuantize, made[i], v);
      real_[at(v)] = -1;  // whoever reads it as float reads what is left of it
    }
  }

  /// Integers with scales that DEQUANTIZE reads; biases have 32 bits, which are as good as float.
  bool is_rounded_weight(const ir::Node& node, size_t i) const {
    if (i >= node.inputs.size() || node.inputs[i] == ir::kAbsent) return false;
    const ir::Value& value = q_.values[at(node.inputs[i])];
    const bool readable = value.dtype == DType::kInt8 || value.dtype == DType::kUInt8 || value.dtype == DType::kInt4;
    return value.constant && readable && is_quantized(value);
  }

  void add_as_it_is(const ir::Node& node) {
    ir::Node copy = node;
    for (int& v : copy.inputs) v = present(v);
    target_.nodes.push_back(std::move(copy));
  }

  static constexpr int kNotRounded = -2;

  const ir::Subgraph& q_;
  const ir::Subgraph& f_;
  const Match& match_;
  const std::vector<bool>& floats_;
  const Rounded rounded_;
  ir::Subgraph target_;
  std::vector<int> mapped_;     // by value of the quantized subgraph: its place in the target
  std::vector<int> real_;       // what it was before it would have been rounded; -1: it is rounded
  std::vector<int> widened_;    // its float32 form after rounding
  std::vector<int> pending_;    // the conversion that makes it, as long as nothing read it
  std::vector<int> constants_;  // by value of the float subgraph: where it is in the target, or -1
};

MixedGraphs::MixedGraphs(std::shared_ptr<const ir::Graph> reference, std::shared_ptr<const ir::Graph> quantized,
                         int entry)
    : reference_(std::move(reference)), quantized_(std::move(quantized)), entry_(entry) {
  const ir::Subgraph& q = quantized_->subgraphs[at(entry)];
  const ir::Subgraph& f = reference_->subgraphs[at(entry)];
  match_ = match_subgraphs(q, f);
  ir::Subgraph unused;
  const TwinBuilder twins(q, f, match_, unused, true);
  for (size_t n = 0; n < q.nodes.size(); ++n) {
    const int node = static_cast<int>(n);
    const bool real_results = std::all_of(q.nodes[n].outputs.begin(), q.nodes[n].outputs.end(),
                                          [&](int v) { return v != ir::kAbsent && is_real(q.values[at(v)]); });
    candidates_.push_back(!changes_type_only(q.nodes[n]) && real_results && twins.obstacle(node).empty() &&
                          !twins.unchanged(node));
  }
  for (size_t i = 0; i < f.outputs.size(); ++i) {
    int place = static_cast<int>(i);
    for (size_t k = 0; k < q.outputs.size(); ++k) {
      if (match_.value[at(q.outputs[k])] == f.outputs[i]) place = static_cast<int>(k);
    }
    const bool comparable = at(place) < q.outputs.size() && is_real(q.values[at(q.outputs[at(place)])]) &&
                            f.values[at(f.outputs[i])].dtype == DType::kFloat32;
    outputs_.push_back(comparable ? place : -1);
  }
}

std::shared_ptr<const ir::Graph> MixedGraphs::with_float(const std::vector<bool>& nodes, Rounded rounded) const {
  auto graph = std::make_shared<ir::Graph>(*quantized_);
  graph->bytes = join_bytes(reference_, quantized_);
  graph->signatures.clear();  // they number tensors of the quantized model
  graph->subgraphs[at(entry_)] =
      Mixer(quantized_->subgraphs[at(entry_)], reference_->subgraphs[at(entry_)], match_, nodes, rounded).run();
  ir::verify(*graph);
  return graph;
}

}  // namespace leadline::debug
