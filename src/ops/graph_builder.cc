// SPDX-License-Identifier: Apache-2.0
// The part of GraphBuilder that opens and closes subgraphs, adds nodes and finishes the graph.
#include "ops/graph_builder.h"

#include <algorithm>

#include "core/cancel.h"
#include "core/error.h"
#include "core/join.h"
#include "ir/verifier.h"
#include "ops/flex/node_def.h"
#include "ops/op_ids.h"
#include "ops/resize.h"
#include "ops/verify.h"

namespace leadline::ops {
namespace {

/// Attributes that came with a later version of their op: readers that check versions refuse them in an older one.
int version_of_attributes(const ir::Attributes& attributes) {
  const auto* bilinear = ir::attributes_if<ResizeBilinearAttributes>(attributes);
  const auto* nearest = ir::attributes_if<ResizeNearestAttributes>(attributes);
  const bool half_pixels =
      (bilinear != nullptr && bilinear->half_pixel_centers) || (nearest != nullptr && nearest->half_pixel_centers);
  return half_pixels ? 3 : 1;
}

}  // namespace

int oldest_version(const ir::OpId& op) { return op == op::kBroadcastTo ? 2 : 1; }

void GraphBuilder::throw_in_context(const Error& error) const {
  throw Error(error.code(), fmt::format("{}: {}", join(scopes_, "/"), error.what()));
}

GraphBuilder::GraphBuilder() : graph_(std::make_shared<ir::Graph>()) {
  graph_->bytes = ModelBytes::copy({});
  new_subgraph("main");
}

void GraphBuilder::new_subgraph(const std::string& name) {
  const auto index = static_cast<int>(graph_->subgraphs.size());
  graph_->subgraphs.emplace_back();
  graph_->subgraphs.back().name = name;
  states_.emplace_back();
  for (auto& sample : states_.back().samples) sample = std::make_unique<Inference>(*graph_, index);
  states_.back().possible.fill(true);
  current_.push_back(index);
}

int GraphBuilder::begin_subgraph(const std::string& name) {
  new_subgraph(name);
  return current_.back();
}

void GraphBuilder::end_subgraph(const std::vector<int>& outputs) {
  in_context([&] {
    require(current_.size() > 1, ErrorCode::kInternal, "no subgraph is open");
    for (int v : outputs) check_index(v);
    subgraph().outputs = outputs;
    current_.pop_back();
  });
}

void GraphBuilder::drop_subgraphs(int first) {
  require(first > 0 && std::all_of(current_.begin(), current_.end(), [&](int open) { return open < first; }),
          ErrorCode::kInternal, "subgraph {} is open", first);
  if (static_cast<size_t>(first) >= states_.size()) return;
  graph_->subgraphs.resize(static_cast<size_t>(first));
  states_.resize(static_cast<size_t>(first));
}

DType GraphBuilder::first_type(const std::vector<int>& inputs) const {
  if (inputs.empty() || inputs[0] == ir::kAbsent) return DType::kFloat32;
  check_index(inputs[0]);
  return value(inputs[0]).dtype;
}

int GraphBuilder::node(const std::string& op, const std::vector<int>& inputs, const std::string& name) {
  return node(op, inputs, name, first_type(inputs));
}

int GraphBuilder::node(const std::string& op, const std::vector<int>& inputs, const std::string& name, DType dtype) {
  return node(op, inputs, name, nullptr, dtype);
}

int GraphBuilder::node(const std::string& op, const std::vector<int>& inputs, const std::string& name,
                       std::shared_ptr<const ir::Attributes> attributes, DType dtype, Quantization quantization) {
  NodeSpec spec;
  spec.op = op;
  spec.inputs = inputs;
  spec.outputs = {{name, dtype, std::move(quantization), {}}};
  spec.attributes = std::move(attributes);
  return add(std::move(spec))[0];
}

namespace {

/// The states of these ops are variables in the format, also where a node sets them in every run.
void mark_states(ir::Subgraph& subgraph, const ir::Node& node) {
  if (!ir::is_one_of(node.op, {op::kUnidirectionalSequenceLstm})) return;
  constexpr size_t kStates[] = {18, 19};
  for (const size_t i : kStates) {
    if (i >= node.inputs.size() || node.inputs[i] == ir::kAbsent) continue;
    ir::Value& value = subgraph.value(node.inputs[i]);
    if (!value.constant) value.variable = true;
  }
}

}  // namespace

std::vector<int> GraphBuilder::add(NodeSpec spec) {
  check_cancelled();
  conflict_.reset();
  return in_context([&] {
    const OpDef* row = spec.custom ? registry().find(ir::OpId::custom(spec.op)) : registry().find_named(spec.op);
    const bool described = !spec.outputs.empty() && std::all_of(spec.outputs.begin(), spec.outputs.end(),
                                                                [](const NodeOutput& o) { return o.dims.has_value(); });
    require(row != nullptr || described, kBadArgument, "unknown op '{}'", spec.op);
    for (int v : spec.inputs) {
      if (v != ir::kAbsent) check_index(v);
    }
    const size_t values = subgraph().values.size();
    const size_t nodes = subgraph().nodes.size();
    const auto possible = state().possible;
    try {
      ir::Node node;
      node.op = row != nullptr ? row->id : ir::OpId::custom(spec.op);
      node.inputs = spec.inputs;
      for (const NodeOutput& o : spec.outputs) {
        node.outputs.push_back(add_value(o.name, o.dtype, o.quantization));
        subgraph().values.back().has_rank = false;  // until it is inferred
      }
      node.attributes = spec.attributes != nullptr ? spec.attributes : custom_attributes(row, spec.custom_options);
      const int oldest = std::max(oldest_version(node.op), version_of_attributes(*node.attributes));
      node.version = spec.version != 0 ? spec.version : oldest;
      if (!spec.custom_options.empty()) {
        graph_->storage.push_back(std::make_shared<const std::vector<std::byte>>(spec.custom_options));
        node.custom_options = *graph_->storage.back();
      }
      const std::vector<int> outputs = node.outputs;
      mark_states(subgraph(), node);
      subgraph().nodes.push_back(std::move(node));
      if (row != nullptr) verify_node(subgraph(), static_cast<int>(nodes));
      for (const NodeOutput& output : spec.outputs) {
        if (output.dims) check_dims(output.name, *output.dims, true);
      }
      infer_last_node(spec);
      if (fold_last_node()) subgraph().nodes.pop_back();
      return outputs;
    } catch (...) {
      state().possible = possible;
      roll_back(values, nodes);
      throw;
    }
  });
}

/// Whether a node asks how a size that is not known compares with a number above 1. Its answer for the samples says
/// nothing of others: none of them may be as large, or just that number.
bool GraphBuilder::is_threshold(const ir::Node& node) const {
  if (!ir::is_one_of(node.op,
                     {op::kEqual, op::kNotEqual, op::kLess, op::kLessEqual, op::kGreater, op::kGreaterEqual})) {
    return false;
  }
  const bool constants[] = {value(node.inputs[0]).constant, value(node.inputs[1]).constant};
  if (constants[0] == constants[1]) return false;
  const auto numbers = known_ints(node.inputs[constants[0] ? 0 : 1]);
  return numbers && std::any_of(numbers->begin(), numbers->end(), [](int64_t number) { return number > 1; });
}

bool GraphBuilder::fold_last_node() {
  if (is_threshold(subgraph().nodes.back())) return false;
  const std::vector<int> outputs = subgraph().nodes.back().outputs;
  const std::vector<size_t> used = samples_in_use();
  const auto same = [&](int v) {
    const Fact& first = state().samples[used[0]]->fact(v);
    return std::all_of(used.begin(), used.end(), [&](size_t s) {
      const Fact& fact = state().samples[s]->fact(v);
      return fact.known && fact.data == first.data && fact.shape == first.shape;
    });
  };
  if (outputs.empty() || !std::all_of(outputs.begin(), outputs.end(), same)) return false;
  for (int v : outputs) make_constant(v, state().samples[used[0]]->fact(v).data);
  return true;
}

void GraphBuilder::roll_back(size_t values, size_t nodes) {
  for (size_t v = values; v < subgraph().values.size(); ++v) state().names.erase(subgraph().values[v].name);
  std::erase_if(state().free, [&](const State::Free& free) { return static_cast<size_t>(free.value) >= values; });
  subgraph().values.resize(values);
  subgraph().nodes.resize(nodes);
  for (auto& sample : state().samples) sample->truncate(values);
}

std::shared_ptr<ir::Graph> GraphBuilder::finish(const std::vector<int>& outputs) {
  SignatureNames input_names;
  SignatureNames output_names;
  for (int v : graph_->subgraphs[0].inputs) input_names.emplace_back(value(v).name, v);
  for (int v : outputs) {
    check_index(v);
    output_names.emplace_back(value(v).name, v);
  }
  return finish(input_names, output_names);
}

std::shared_ptr<ir::Graph> GraphBuilder::finish(const SignatureNames& inputs, const SignatureNames& outputs,
                                                const std::string& key) {
  return in_context([&] {
    require(current_.size() == 1, ErrorCode::kInternal, "subgraph '{}' is still open", subgraph().name);
    subgraph().outputs.clear();
    // A value may be several outputs: each is found at its place.
    for (const auto& [name, v] : outputs) subgraph().outputs.push_back(v);
    graph_->signatures = {{key, 0, inputs, outputs}};
    ir::verify(*graph_);
    verify_nodes(*graph_);
    states_.clear();
    return std::move(graph_);
  });
}

}  // namespace leadline::ops
