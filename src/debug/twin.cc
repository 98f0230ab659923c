// SPDX-License-Identifier: Apache-2.0
#include "debug/twin.h"

#include <algorithm>

#include "debug/index.h"
#include "ir/verifier.h"
#include "ops/registry.h"

namespace leadline::debug {
namespace {}  // namespace

TwinBuilder::TwinBuilder(const ir::Subgraph& quantized, const ir::Subgraph& reference, const Match& match,
                         ir::Subgraph& target, bool raw_inputs)
    : q_(quantized), f_(reference), match_(match), target_(target), raw_inputs_(raw_inputs) {
  producer_.assign(q_.values.size(), -1);
  constants_.assign(f_.values.size(), -1);
  for (size_t n = 0; n < q_.nodes.size(); ++n) {
    for (int v : q_.nodes[n].outputs) producer_[at(v)] = static_cast<int>(n);
  }
}

std::string TwinBuilder::obstacle(int n) const {
  const int found = match_.node[at(n)];
  if (found < 0) return "the float model has no such node";
  const ir::Node& node = q_.nodes[at(n)];
  const ir::Node& reference = f_.nodes[at(found)];
  if (!ir::called_subgraphs(reference).empty()) return "it runs other subgraphs";
  for (int v : reference.inputs) {
    if (v != ir::kAbsent && f_.values[at(v)].variable) return "it keeps state between runs";
    if (v != ir::kAbsent && f_.values[at(v)].dtype == DType::kResource) return "it uses resources";
  }
  for (size_t i = 0; i < reference.inputs.size(); ++i) {
    const int y = reference.inputs[i];
    if (y == ir::kAbsent || f_.values[at(y)].constant) continue;
    if (i >= node.inputs.size() || node.inputs[i] == ir::kAbsent) return "it has other operands than the float node";
    const ir::Value& x = q_.values[at(node.inputs[i])];
    const bool same_type = x.dtype == f_.values[at(y)].dtype;
    if (!same_type && !(is_real(x) && f_.values[at(y)].dtype == DType::kFloat32))
      return "its operands have other types";
  }
  return {};
}

bool TwinBuilder::unchanged(int n) const {
  const ir::Node& node = q_.nodes[at(n)];
  const auto plain = [&](int v) {
    return v == ir::kAbsent || (!is_quantized(q_.values[at(v)]) && q_.values[at(v)].dtype != DType::kFloat16 &&
                                (q_.values[at(v)].constant || !match_.from_constant[at(v)]));
  };
  return std::all_of(node.inputs.begin(), node.inputs.end(), plain) &&
         std::all_of(node.outputs.begin(), node.outputs.end(), plain);
}

int TwinBuilder::add_value(ir::Value value) {
  target_.values.push_back(std::move(value));
  return static_cast<int>(target_.values.size()) - 1;
}

int TwinBuilder::constant(int float_value) {
  int& place = constants_[at(float_value)];
  if (place < 0) place = add_value(f_.values[at(float_value)]);
  return place;
}

int TwinBuilder::as_float(int v, const std::vector<int>& mapped) {
  const ir::Value& value = q_.values[at(v)];
  if (value.dtype == DType::kFloat32) return mapped[at(v)];
  const int maker = producer_[at(v)];
  if (raw_inputs_ && maker >= 0 && q_.nodes[at(maker)].op == op::kQuantize) {
    const int raw = q_.nodes[at(maker)].inputs[0];
    if (q_.values[at(raw)].dtype == DType::kFloat32) return mapped[at(raw)];
  }
  ir::Value widened;
  widened.name = value.name + "/dequantized";
  widened.dtype = DType::kFloat32;
  widened.shape = value.shape;
  widened.signature = value.signature;
  widened.has_rank = value.has_rank;
  const int result = add_value(std::move(widened));
  ir::Node node = ops::make_node(op::kDequantize, {mapped[at(v)]}, {result});
  node.version = 3;  // knows all types and channels
  target_.nodes.push_back(std::move(node));
  return result;
}

std::vector<int> TwinBuilder::add(int n, const std::vector<int>& mapped) {
  const ir::Node& node = q_.nodes[at(n)];
  const ir::Node& reference = f_.nodes[at(match_.node[at(n)])];
  ir::Node twin = reference;
  for (size_t i = 0; i < twin.inputs.size(); ++i) {
    const int y = reference.inputs[i];
    if (y == ir::kAbsent) continue;
    if (f_.values[at(y)].constant) {
      twin.inputs[i] = constant(y);
    } else if (f_.values[at(y)].dtype == DType::kFloat32) {
      twin.inputs[i] = as_float(node.inputs[i], mapped);
    } else {
      twin.inputs[i] = mapped[at(node.inputs[i])];
    }
  }
  for (size_t i = 0; i < twin.outputs.size(); ++i) {
    ir::Value value = f_.values[at(reference.outputs[i])];
    value.name = q_.values[at(node.outputs[i])].name + "/float";
    twin.outputs[i] = add_value(std::move(value));
  }
  for (int& v : twin.intermediates) v = add_value(f_.values[at(v)]);
  target_.nodes.push_back(twin);
  return twin.outputs;
}

}  // namespace leadline::debug
