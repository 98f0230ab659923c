// SPDX-License-Identifier: Apache-2.0
#include "quantize/propagation.h"

#include <cmath>

#include "core/cancel.h"
#include "ops/registry.h"

namespace leadline::quantize {
namespace {

const ops::QuantizationRule& rule_of(const ir::Node& node) {
  static const ops::QuantizationRule kNone;
  const ops::OpDef* op = ops::row_of(node);
  return op == nullptr ? kNone : op->quantize;
}

/// One run over a subgraph. Values know their range ("seen") or not; some of those ranges are dropped in favour of
/// parameters that come from elsewhere; then parameters spread until nothing changes.
class Propagation {
 public:
  Propagation(const ir::Subgraph& subgraph, const std::vector<NodeTreatment>& treatments, QuantizationMode mode,
              DType type)
      : subgraph_(subgraph),
        type_(type),
        producer_(subgraph.values.size(), -1),
        consumers_(subgraph.values.size()),
        seen_(subgraph.values.size()),
        given_up_(subgraph.values.size()),
        firm_(subgraph.values.size()),
        done_(subgraph.nodes.size()),
        takes_part_(subgraph.nodes.size()) {
    scales_.values.resize(subgraph.values.size());
    for (size_t n = 0; n < subgraph.nodes.size(); ++n) {
      takes_part_[n] = treatments[n].mode == mode;
      for (int v : subgraph.nodes[n].outputs) {
        if (v != ir::kAbsent) producer_[index(v)] = static_cast<int>(n);
      }
      for (int v : subgraph.nodes[n].inputs) {
        if (v != ir::kAbsent) consumers_[index(v)].push_back(static_cast<int>(n));
      }
    }
  }

  Scales run(const std::vector<std::optional<RealRange>>& ranges) {
    for (size_t v = 0; v < ranges.size(); ++v) seen_[v] = ranges[v].has_value();
    give_up_forwards();
    if (type_ == DType::kInt8) give_up_backwards();
    for (size_t v = 0; v < ranges.size(); ++v) {
      if (!seen_[v] || given_up_[v]) continue;
      scales_.values[v] = activation_parameters(*ranges[v], type_);
      firm_[v] = true;
    }
    spread();
    // What was dropped for parameters that never came.
    for (size_t v = 0; v < ranges.size(); ++v) {
      if (!scales_.values[v] && seen_[v]) scales_.values[v] = activation_parameters(*ranges[v], type_);
    }
    return std::move(scales_);
  }

 private:
  static size_t index(int i) { return static_cast<size_t>(i); }
  const ir::Node& node(int n) const { return subgraph_.nodes[index(n)]; }
  bool is_float(int v) const { return v != ir::kAbsent && subgraph_.values[index(v)].dtype == DType::kFloat32; }
  bool is_constant(int v) const { return subgraph_.values[index(v)].constant; }
  bool shares_scale(int n) const { return takes_part_[index(n)] && rule_of(node(n)).same_scale; }
  ops::FixedParameters fixed_output(int n) const {
    const ops::QuantizationRule& rule = rule_of(node(n));
    return type_ == DType::kInt8 ? rule.output.int8 : rule.output.int16;
  }
  int float_operands(int n) const {
    int count = 0;
    for (int v : node(n).inputs) count += is_float(v) ? 1 : 0;
    return count;
  }

  void give_up_forwards() {
    for (size_t i = 0; i < takes_part_.size(); ++i) {
      if (!takes_part_[i]) continue;
      const auto n = static_cast<int>(i);
      bool give_up = fixed_output(n).scale != 0.0F;
      if (shares_scale(n) && float_operands(n) == 1) {
        for (int v : node(n).inputs) give_up = give_up || (is_float(v) && seen_[index(v)]);
      }
      if (!give_up) continue;
      for (int v : node(n).outputs) {
        if (is_float(v)) given_up_[index(v)] = true;
      }
    }
  }

  void give_up_backwards() {
    std::vector<int> pending;
    for (size_t v = 0; v < seen_.size(); ++v) {
      if (seen_[v] && !given_up_[v]) pending.push_back(static_cast<int>(v));
    }
    std::vector<bool> followed(seen_.size());
    while (!pending.empty()) {
      const int v = pending.back();
      pending.pop_back();
      const int n = producer_[index(v)];
      if (followed[index(v)] || n < 0 || !shares_scale(n)) continue;
      followed[index(v)] = true;
      for (int input : node(n).inputs) {
        if (!is_float(input) || !seen_[index(input)]) continue;
        given_up_[index(input)] = true;
        pending.push_back(input);
      }
    }
  }

  void spread() {
    const auto nodes = static_cast<int>(takes_part_.size());
    // int16: in order, so that what is moved keeps its parameters until it meets others.
    for (int n = 0; type_ == DType::kInt16 && n < nodes; ++n) settle(n);
    work_.clear();
    for (int n = 0; n < nodes; ++n) work_.push_back(n);
    PacedCheck check;
    while (!work_.empty()) {
      check.count(256);
      const int n = work_.back();
      work_.pop_back();
      settle(n);
    }
  }

  /// Sets the parameters that a node's operands must have, once these are known.
  void settle(int n) {
    if (!takes_part_[index(n)] || done_[index(n)]) return;
    if (shares_scale(n)) {
      const std::optional<Parameters> shared = shared_parameters(n);
      if (!shared) return;  // until a neighbour has some
      done_[index(n)] = true;
      for (size_t i = 0; i < node(n).inputs.size(); ++i) set_input(n, static_cast<int>(i), *shared);
      for (size_t i = 0; i < node(n).outputs.size(); ++i) set_output(n, static_cast<int>(i), *shared);
    }
    done_[index(n)] = true;
    const ops::FixedParameters fixed = fixed_output(n);
    if (fixed.scale == 0.0F) return;
    for (size_t i = 0; i < node(n).outputs.size(); ++i) {
      set_output(n, static_cast<int>(i), {fixed.scale, fixed.zero_point});
    }
  }

  /// Parameters that all operands of a node must have: firm ones first, and a single operand or result before one of
  /// many.
  std::optional<Parameters> shared_parameters(int n) const {
    const ir::Node& at = node(n);
    std::vector<int> firm;
    std::vector<int> loose;
    const auto collect = [&](const std::vector<int>& values) {
      for (int v : values) {
        if (!is_float(v) || !scales_.values[index(v)]) continue;
        (firm_[index(v)] ? firm : loose).push_back(v);
      }
    };
    collect(at.inputs);
    const size_t firm_inputs = firm.size();
    const size_t loose_inputs = loose.size();
    if (at.inputs.size() == 1 && firm_inputs == 1) return scales_.values[index(firm[0])];
    collect(at.outputs);
    if (at.outputs.size() == 1 && firm.size() > firm_inputs) return scales_.values[index(firm.back())];
    if (!firm.empty()) return scales_.values[index(firm[0])];
    if (at.inputs.size() == 1 && loose_inputs == 1) return scales_.values[index(loose[0])];
    if (at.outputs.size() == 1 && loose.size() > loose_inputs) return scales_.values[index(loose.back())];
    if (!loose.empty()) return scales_.values[index(loose[0])];
    return {};
  }

  void set_input(int n, int i, const Parameters& parameters) {
    const int v = node(n).inputs[index(i)];
    if (!is_float(v)) return;
    std::optional<Parameters>& known = scales_.values[index(v)];
    if (is_constant(v) || (known && *known != parameters)) {
      scales_.inputs[{n, i}] = parameters;
      return;
    }
    if (known) return;
    known = parameters;
    if (producer_[index(v)] >= 0) work_.push_back(producer_[index(v)]);
    for (int consumer : consumers_[index(v)]) work_.push_back(consumer);
  }

  void set_output(int n, int i, const Parameters& parameters) {
    const int v = node(n).outputs[index(i)];
    if (!is_float(v)) return;
    std::optional<Parameters>& known = scales_.values[index(v)];
    if (known && *known != parameters) {
      scales_.outputs[{n, i}] = parameters;
      return;
    }
    if (known) return;
    known = parameters;
    for (int consumer : consumers_[index(v)]) work_.push_back(consumer);
  }

  const ir::Subgraph& subgraph_;
  DType type_;
  std::vector<int> producer_;
  std::vector<std::vector<int>> consumers_;
  std::vector<bool> seen_;      // has a range
  std::vector<bool> given_up_;  // its own range does not count
  std::vector<bool> firm_;      // its parameters are those of its range
  std::vector<bool> done_;
  std::vector<bool> takes_part_;
  std::vector<int> work_;
  Scales scales_;
};

}  // namespace

std::optional<Parameters> Scales::input(const ir::Node& node, int node_index, int i) const {
  const auto own = inputs.find({node_index, i});
  return own != inputs.end() ? own->second : values[static_cast<size_t>(node.inputs[static_cast<size_t>(i)])];
}

std::optional<Parameters> Scales::output(const ir::Node& node, int node_index, int i) const {
  const auto own = outputs.find({node_index, i});
  return own != outputs.end() ? own->second : values[static_cast<size_t>(node.outputs[static_cast<size_t>(i)])];
}

bool is_activation(const ir::Subgraph& subgraph, int value) {
  if (value == ir::kAbsent) return false;
  const ir::Value& v = subgraph.value(value);
  return v.dtype == DType::kFloat32 && !v.constant;
}

Scales propagate(const ir::Graph& graph, int subgraph, const std::vector<NodeTreatment>& treatments,
                 QuantizationMode mode, const RangeOf& range_of) {
  const ir::Subgraph& at = graph.subgraphs[static_cast<size_t>(subgraph)];
  const DType type = mode == QuantizationMode::kInt16x8 ? DType::kInt16 : DType::kInt8;
  const int bits = type == DType::kInt16 ? 16 : 8;
  std::vector<std::optional<RealRange>> ranges(at.values.size());
  for (size_t v = 0; v < at.values.size(); ++v) {
    if (is_activation(at, static_cast<int>(v))) {
      if (v % 64 == 63) check_cancelled();  // a range may take a search
      ranges[v] = range_of(subgraph, static_cast<int>(v), bits, type == DType::kInt16);
      // A scale must be a finite number.
      if (ranges[v] && !std::isfinite(activation_parameters(*ranges[v], type).scale)) ranges[v].reset();
    }
  }
  return Propagation(at, treatments, mode, type).run(ranges);
}

}  // namespace leadline::quantize
