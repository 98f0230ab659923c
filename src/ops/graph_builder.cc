// SPDX-License-Identifier: Apache-2.0
#include "ops/graph_builder.h"

#include <algorithm>
#include <cstring>

#include "core/cancel.h"
#include "core/error.h"
#include "core/join.h"
#include "ir/sources.h"
#include "ir/verifier.h"
#include "ops/flex/node_def.h"
#include "ops/op_ids.h"
#include "ops/resize.h"
#include "ops/verify.h"

namespace leadline::ops {
namespace {

constexpr ErrorCode kBadArgument = ErrorCode::kInvalidArgument;

void check_dims(const std::string& name, const Dims& dims, bool may_be_unknown) {
  require(dims.size() <= kMaxRank, ErrorCode::kUnsupported, "'{}' has rank {}, Leadline handles up to {}", name,
          dims.size(), kMaxRank);
  for (int64_t size : dims) {
    require(size >= (may_be_unknown ? -1 : 0) && size <= INT32_MAX, kBadArgument,
            "'{}' has a dimension of {}, expected one that fits int32", name, size);
  }
}

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

template <typename Body>
auto GraphBuilder::in_context(Body&& body) {
  if (scopes_.empty()) return body();
  try {
    return body();
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", join(scopes_, "/"), error.what()));
  }
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

void GraphBuilder::check_index(int value) const {
  require(value >= 0 && value < static_cast<int>(subgraph().values.size()), kBadArgument,
          "value {} does not exist: subgraph '{}' has {}", value, subgraph().name, subgraph().values.size());
}

std::string GraphBuilder::unique_name(const std::string& name) {
  auto& names = state().names;
  const auto [it, is_new] = names.try_emplace(name, 0);
  if (is_new) return name;
  for (;;) {
    std::string candidate = fmt::format("{}_{}", name, ++names[name]);
    if (names.try_emplace(candidate, 0).second) return candidate;
  }
}

bool GraphBuilder::is_input(int index) const {
  const std::vector<int>& inputs = subgraph().inputs;
  return std::find(inputs.begin(), inputs.end(), index) != inputs.end();
}

void GraphBuilder::rename(int index, const std::string& name) {
  check_index(index);
  ir::Value& value = subgraph().value(index);
  if (value.name == name) return;
  state().names.erase(value.name);
  value.name = unique_name(name);
}

int GraphBuilder::add_value(const std::string& name, DType dtype, Quantization quantization) {
  ir::Value value;
  value.name = unique_name(name);
  value.dtype = dtype;
  value.has_rank = true;
  value.quantization = std::move(quantization);
  subgraph().values.push_back(std::move(value));
  return static_cast<int>(subgraph().values.size()) - 1;
}

int GraphBuilder::input(const std::string& name, DType dtype, const Dims& dims, Quantization quantization) {
  return in_context([&] {
    check_dims(name, dims, true);
    const int index = add_value(name, dtype, std::move(quantization));
    tell_samples_apart(dims);
    SizeSamples shapes;
    const auto number = static_cast<int>(subgraph().inputs.size());
    for (size_t s = 0; s < kSizeSamples; ++s) {
      shapes[s] = sample_shape(dims, s, subgraph().inputs.size());
      for (int axis = 0; axis < shapes[s]->rank(); ++axis) {
        const auto chosen = choices_.find({current_.back(), number, axis});
        if (chosen != choices_.end()) shapes[s]->set(axis, chosen->second[s]);
      }
    }
    set_sample_shapes(index, shapes);
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      if (dims[axis] < 0) state().unknown_inputs.emplace_back(index, static_cast<int>(axis));
    }
    subgraph().inputs.push_back(index);
    return index;
  });
}

int GraphBuilder::unranked_input(const std::string& name, DType dtype) {
  return in_context([&] {
    const int index = add_value(name, dtype, {});
    tell_samples_apart({-1});
    state().unranked = true;
    SizeSamples shapes;
    constexpr size_t kRanks = 6;
    for (size_t s = 0; s < kSizeSamples; ++s) shapes[s] = sample_shape(Dims((s + 2) % kRanks, -1), s);
    set_sample_shapes(index, shapes);
    subgraph().inputs.push_back(index);
    return index;
  });
}

int GraphBuilder::input(const std::string& name, DType dtype, const Dims& dims, const SizeSamples& samples) {
  const int index = input(name, dtype, dims);
  state().is_body = true;
  SizeSamples shapes = this->samples(index);
  for (size_t s = 0; s < kSizeSamples; ++s) {
    if (!samples[s]) state().possible[s] = false;
    if (!samples[s] || samples[s]->rank() != static_cast<int>(dims.size())) continue;
    for (int axis = 0; axis < samples[s]->rank(); ++axis) {
      if (dims[static_cast<size_t>(axis)] >= 0 || !shapes[s]) continue;
      const auto common = samples.common_size(axis);
      if (!common) shapes[s]->set(axis, (*samples[s])[axis]);
      // It starts as this size and may become another: any, or, where the body cuts it into tiles, a multiple.
      if (common && *common > 0 && s % 2 == 1) shapes[s]->set(axis, *common * static_cast<int64_t>(1 + s / 2));
    }
  }
  set_sample_shapes(index, shapes);
  return index;
}

int GraphBuilder::variable(const std::string& name, DType dtype, const Dims& dims, Quantization quantization) {
  return in_context([&] {
    check_dims(name, dims, false);
    const int index = add_value(name, dtype, std::move(quantization));
    subgraph().values.back().variable = true;
    set_dims(index, dims);
    return index;
  });
}

void GraphBuilder::make_constant(int index, std::vector<std::byte> bytes) {
  graph_->storage.push_back(std::make_shared<const std::vector<std::byte>>(std::move(bytes)));
  ir::Value& value = subgraph().value(index);
  value.constant = true;
  value.data = *graph_->storage.back();
}

int GraphBuilder::constant(const std::string& name, DType dtype, const Dims& dims, std::span<const std::byte> bytes,
                           Quantization quantization) {
  return in_context([&] {
    check_dims(name, dims, false);
    const auto needed = storage_bytes(dtype, Shape(std::span<const int64_t>(dims)));
    require(dtype_bits(dtype) == 0 || needed == static_cast<int64_t>(bytes.size()), kBadArgument,
            "constant '{}' of type {} and shape [{}] needs {} bytes, it is given {}", name, dtype_name(dtype),
            join(dims, ", "), needed.value_or(-1), bytes.size());
    const int index = add_value(name, dtype, std::move(quantization));
    set_dims(index, dims);
    make_constant(index, {bytes.begin(), bytes.end()});
    return index;
  });
}

int GraphBuilder::constant(const std::string& name, DType dtype, const Dims& dims,
                           std::shared_ptr<const ir::ConstantSource> source, Quantization quantization) {
  return in_context([&] {
    check_dims(name, dims, false);
    const auto needed = storage_bytes(dtype, Shape(std::span<const int64_t>(dims)));
    require(dtype_bits(dtype) > 0 && source != nullptr && needed == source->bytes(), kBadArgument,
            "constant '{}' of type {} and shape [{}] needs {} bytes, its source has {}", name, dtype_name(dtype),
            join(dims, ", "), needed.value_or(-1), source == nullptr ? 0 : source->bytes());
    std::vector<std::byte> small;
    const bool read_now = *needed <= kSmallConstant;
    if (read_now) small = ir::read_all(*source);
    const int index = add_value(name, dtype, std::move(quantization));
    set_dims(index, dims);
    if (read_now) {
      make_constant(index, std::move(small));
    } else {
      subgraph().values.back().constant = true;
      subgraph().values.back().source = std::move(source);
    }
    return index;
  });
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

bool GraphBuilder::fold_last_node() {
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

bool GraphBuilder::has_rank(int index) const {
  check_index(index);
  return value(index).has_rank;
}

Dims GraphBuilder::dims(int index) const {
  const ir::Value& v = value(index);
  require(has_rank(index), ErrorCode::kUnsupported,
          "'{}' has an unknown rank, which this needs to know; save the model with an input signature that has it",
          v.name);
  if (v.signature) return Dims(v.signature->begin(), v.signature->end());
  return Dims(v.shape);
}

std::optional<std::span<const std::byte>> GraphBuilder::known(int index) const {
  check_index(index);
  const ir::Value& v = value(index);
  if (!v.constant || v.source != nullptr) return {};
  return v.data;
}

std::optional<std::vector<int64_t>> GraphBuilder::known_ints(int index) const {
  const auto bytes = known(index);
  const DType type = value(index).dtype;
  if (!bytes || (type != DType::kInt32 && type != DType::kInt64)) return {};
  const size_t size = type == DType::kInt32 ? 4 : 8;
  std::vector<int64_t> numbers(bytes->size() / size);
  for (size_t i = 0; i < numbers.size(); ++i) {
    int32_t narrow = 0;
    if (type == DType::kInt32) {
      std::memcpy(&narrow, bytes->data() + i * size, size);
      numbers[i] = narrow;
    } else {
      std::memcpy(&numbers[i], bytes->data() + i * size, size);
    }
  }
  return numbers;
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
