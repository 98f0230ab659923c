// SPDX-License-Identifier: Apache-2.0
#include "passes/editor.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "core/error.h"
#include "ir/field_finder.h"
#include "ir/verifier.h"
#include "ops/inference.h"
#include "ops/registry.h"

namespace leadline::passes {
namespace {

/// Finds the field that holds a fused activation, and changes it on demand.
class ActivationField final : public ir::FieldFinder {
 public:
  std::optional<int8_t> found;
  std::optional<int8_t> wanted;
  using FieldFinder::field;
  void field(const char* name, int8_t& value) override {
    if (std::string_view(name) != "fused_activation_function") return;
    found = value;
    if (wanted) value = *wanted;
  }
};

bool is_pure_within(const ir::Graph& graph, const ir::Subgraph& subgraph, const ir::Node& node, size_t depth) {
  const ops::OpDef* op = ops::row_of(node);
  if (op == nullptr) return false;
  for (const auto* list : {&node.inputs, &node.outputs}) {
    for (int v : *list) {
      if (v != ir::kAbsent && subgraph.value(v).variable) return false;
    }
  }
  const std::vector<int> calls = ir::called_subgraphs(node);
  if (calls.empty()) return op->pure;
  if (depth == 0) return false;
  return std::all_of(calls.begin(), calls.end(), [&](int call) {
    const ir::Subgraph& body = graph.subgraphs[static_cast<size_t>(call)];
    return std::all_of(body.nodes.begin(), body.nodes.end(),
                       [&](const ir::Node& inner) { return is_pure_within(graph, body, inner, depth - 1); });
  });
}

}  // namespace

std::vector<int64_t> dims_of(const ir::Value& value) {
  if (value.signature) return {value.signature->begin(), value.signature->end()};
  return {value.shape.begin(), value.shape.end()};
}

bool is_reshape(const ir::Node& node) {
  const ops::OpDef* op = ops::row_of(node);
  return op != nullptr && op->reshapes;
}

bool is_pure(const ir::Graph& graph, const ir::Subgraph& subgraph, const ir::Node& node) {
  constexpr size_t kDeepEnough = 4;
  return is_pure_within(graph, subgraph, node, kDeepEnough);
}

ir::Graph& PassTarget::change() const {
  require(changed_ != nullptr, ErrorCode::kInternal, "a pass for runs changes more than nodes");
  return *changed_;
}

Editor::Editor(PassTarget target, int subgraph) : target_(target), index_(subgraph) {
  for (const ir::Node& node : this->subgraph().nodes) nodes_.push_back(&node);
  if (for_runs()) {
    for (const auto& [n, node] : target_.overlay(index_)) nodes_[static_cast<size_t>(n)] = &node;
  }
  const size_t values = this->subgraph().values.size();
  producer_.assign(values, -1);
  consumers_.resize(values);
  is_output_.assign(values, false);
  is_input_.assign(values, false);
  for (int v : this->subgraph().outputs) is_output_[static_cast<size_t>(v)] = true;
  for (int v : this->subgraph().inputs) is_input_[static_cast<size_t>(v)] = true;
  removed_.assign(nodes_.size(), false);
  for (int n = 0; n < node_count(); ++n) {
    removed_[static_cast<size_t>(n)] = node(n).op.is_none();
    for (int v : node(n).outputs) producer_[static_cast<size_t>(v)] = n;
    for (int v : node(n).inputs) {
      if (v != ir::kAbsent) consumers_[static_cast<size_t>(v)].insert(n);
    }
  }
}

Editor::~Editor() {
  if (for_runs()) return;
  auto& nodes = target_.change().subgraphs[static_cast<size_t>(index_)].nodes;
  size_t kept = 0;
  for (size_t n = 0; n < nodes.size(); ++n) {
    if (removed_[n]) continue;
    if (kept != n) nodes[kept] = std::move(nodes[n]);
    ++kept;
  }
  nodes.resize(kept);
}

ir::Node& Editor::change(int n) {
  const auto at = static_cast<size_t>(n);
  if (!for_runs()) return target_.change().subgraphs[static_cast<size_t>(index_)].nodes[at];
  ir::Node& node = target_.overlay(index_).try_emplace(n, *nodes_[at]).first->second;
  nodes_[at] = &node;
  return node;
}

ir::Value& Editor::change_value(int v) { return target_.change().subgraphs[static_cast<size_t>(index_)].value(v); }

void Editor::make_constant(int v, std::vector<std::byte> bytes) {
  auto& storage = target_.change().storage;
  storage.push_back(std::make_shared<const std::vector<std::byte>>(std::move(bytes)));
  change_value(v).constant = true;
  change_value(v).data = *storage.back();
  change_value(v).source = nullptr;
}

void Editor::make_constant(int v, ir::Source source) {
  change_value(v).constant = true;
  change_value(v).source = std::move(source);
}

bool Editor::used_once(int v) const {
  if (is_output(v) || consumers(v).size() != 1) return false;
  const auto& inputs = node(*consumers(v).begin()).inputs;
  return std::count(inputs.begin(), inputs.end(), v) == 1;
}

void Editor::set_inputs(int n, std::vector<int> inputs) {
  ir::Node& target = change(n);
  for (int v : target.inputs) {
    if (v != ir::kAbsent) consumers_[static_cast<size_t>(v)].erase(n);
  }
  target.inputs = std::move(inputs);
  for (int v : target.inputs) {
    if (v != ir::kAbsent) consumers_[static_cast<size_t>(v)].insert(n);
  }
}

void Editor::set_input(int n, int i, int v) {
  std::vector<int> inputs = node(n).inputs;
  if (i >= static_cast<int>(inputs.size())) inputs.resize(static_cast<size_t>(i) + 1, ir::kAbsent);
  inputs[static_cast<size_t>(i)] = v;
  set_inputs(n, std::move(inputs));
}

void Editor::set_attributes(int n, std::shared_ptr<const ir::Attributes> attributes) {
  change(n).attributes = std::move(attributes);
}

void Editor::swap_ops(int a, int b) {
  ir::Node& first = change(a);
  ir::Node& second = change(b);
  std::swap(first.op, second.op);
  std::swap(first.version, second.version);
  std::swap(first.attributes, second.attributes);
  std::swap(first.custom_options, second.custom_options);
}

void Editor::become(int n, const ir::OpId& op, std::vector<int> inputs,
                    std::shared_ptr<const ir::Attributes> attributes) {
  ir::Node& target = change(n);
  target.op = op;
  target.version = 1;
  target.attributes = attributes != nullptr ? std::move(attributes) : ops::make_node(op, {}, {}).attributes;
  target.custom_options = {};
  set_inputs(n, std::move(inputs));
}

void Editor::remove(int n) {
  set_inputs(n, {});
  for (int v : node(n).outputs) producer_[static_cast<size_t>(v)] = -1;
  ir::Node& target = change(n);
  target.outputs.clear();
  removed_[static_cast<size_t>(n)] = true;
  if (!for_runs()) return;
  target.op = ir::OpId();
  target.attributes = std::make_shared<ir::NoAttributes>();
  target.intermediates.clear();
  target.custom_options = {};
}

void Editor::set_output(int n, int v) {
  ir::Node& target = change(n);
  producer_[static_cast<size_t>(target.outputs[0])] = -1;
  target.outputs[0] = v;
  producer_[static_cast<size_t>(v)] = n;
}

bool Editor::replace(int from, int to) {
  if (is_output(from)) {
    // The maker of `to` writes `from` instead, and everybody reads that: the output keeps its name and number.
    const int maker = producer(to);
    const int old_maker = producer(from);
    if (maker < 0 || is_output(to) || is_input(to) || value(to).variable || value(from).variable) return false;
    if (node(maker).outputs.size() != 1 || old_maker < 0 || node(old_maker).outputs.size() != 1) return false;
    if (value(to).dtype != value(from).dtype || !(value(to).quantization == value(from).quantization)) return false;
    remove(old_maker);
    set_output(maker, from);
    std::swap(from, to);
    if (!for_runs()) {  // runs infer shapes of their own
      change_value(to).shape = value(from).shape;
      change_value(to).signature = value(from).signature;
    }
  }
  const std::set<int> readers = consumers(from);
  for (int n : readers) {
    std::vector<int> inputs = node(n).inputs;
    std::replace(inputs.begin(), inputs.end(), from, to);
    set_inputs(n, std::move(inputs));
  }
  return true;
}

int Editor::add_value(const std::string& name, DType dtype, const Shape& shape) {
  ir::Value fresh;
  fresh.name = name;
  fresh.dtype = dtype;
  fresh.shape = shape;
  fresh.has_rank = true;
  target_.change().subgraphs[static_cast<size_t>(index_)].values.push_back(std::move(fresh));
  producer_.push_back(-1);
  consumers_.emplace_back();
  is_output_.push_back(false);
  is_input_.push_back(false);
  return static_cast<int>(subgraph().values.size()) - 1;
}

int Editor::add_constant(const std::string& name, DType dtype, const Shape& shape, std::vector<std::byte> bytes) {
  const int v = add_value(name, dtype, shape);
  make_constant(v, std::move(bytes));
  return v;
}

int Editor::add_constant(const std::string& name, DType dtype, const Shape& shape, ir::Source source) {
  if (source->bytes() <= ops::kSmallConstant) return add_constant(name, dtype, shape, ir::read_all(*source));
  const int v = add_value(name, dtype, shape);
  make_constant(v, std::move(source));
  return v;
}

ir::Source Editor::source_of(int v) const { return ir::source_of(graph(), value(v)); }

void Editor::materialize(int v) { make_constant(v, ir::read_all(*value(v).source)); }

std::optional<std::vector<int64_t>> Editor::ints(int v) const {
  if (!is_constant(v) || value(v).source) return {};
  const ir::Value& constant = value(v);
  if (constant.dtype != DType::kInt32 && constant.dtype != DType::kInt64) return {};
  const size_t size = constant.dtype == DType::kInt32 ? 4 : 8;
  std::vector<int64_t> numbers(constant.data.size() / size);
  for (size_t i = 0; i < numbers.size(); ++i) {
    int32_t narrow = 0;
    std::memcpy(size == 4 ? static_cast<void*>(&narrow) : &numbers[i], constant.data.data() + i * size, size);
    if (size == 4) numbers[i] = narrow;
  }
  return numbers;
}

std::optional<float> Editor::number(int v) const {
  const auto numbers = floats(v, 1);
  if (!numbers || numbers->size() != 1) return {};
  return (*numbers)[0];
}

std::optional<std::vector<float>> Editor::floats(int v, int64_t limit) const {
  if (!is_constant(v) || value(v).dtype != DType::kFloat32) return {};
  const int64_t bytes = ir::constant_bytes(value(v));
  if (bytes > limit * static_cast<int64_t>(sizeof(float))) return {};
  std::vector<float> numbers(static_cast<size_t>(bytes) / sizeof(float));
  source_of(v)->read(std::as_writable_bytes(std::span(numbers)));
  return numbers;
}

std::optional<ir::Activation> activation_of(const ir::Attributes& attributes) {
  ActivationField field;
  attributes.clone()->visit(field);
  if (!field.found) return {};
  return static_cast<ir::Activation>(*field.found);
}

std::shared_ptr<const ir::Attributes> with_activation(const ir::Attributes& attributes, ir::Activation activation) {
  std::shared_ptr<ir::Attributes> copy = attributes.clone();
  ActivationField field;
  field.wanted = static_cast<int8_t>(activation);
  copy->visit(field);
  return copy;
}

}  // namespace leadline::passes
