// SPDX-License-Identifier: Apache-2.0
#include "ops/graph_builder.h"

#include <algorithm>
#include <cstring>

#include "core/cancel.h"
#include "core/error.h"
#include "core/rethrow_if_fatal.h"
#include "ir/sources.h"
#include "ir/verifier.h"
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

}  // namespace

int oldest_version(const ir::OpId& op) { return op == op::kBroadcastTo ? 2 : 1; }

template <typename Body>
auto GraphBuilder::in_context(Body&& body) {
  if (scopes_.empty()) return body();
  try {
    return body();
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", fmt::join(scopes_, "/"), error.what()));
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

int GraphBuilder::add_value(const std::string& name, DType dtype, Quantization quantization) {
  ir::Value value;
  value.name = unique_name(name);
  value.dtype = dtype;
  value.has_rank = true;
  value.quantization = std::move(quantization);
  subgraph().values.push_back(std::move(value));
  return static_cast<int>(subgraph().values.size()) - 1;
}

std::vector<size_t> GraphBuilder::samples_in_use() {
  if (!state().differ) return {0};
  std::vector<size_t> used;
  for (size_t s = 0; s < kSizeSamples; ++s) {
    if (state().possible[s]) used.push_back(s);
  }
  return used;
}

void GraphBuilder::tell_samples_apart(const Dims& dims) {
  if (state().differ || std::count(dims.begin(), dims.end(), -1) == 0) return;
  state().differ = true;
  for (size_t s = 1; s < kSizeSamples; ++s) state().samples[s]->take_facts(*state().samples[0]);
}

void GraphBuilder::set_sample_shapes(int index, const SizeSamples& shapes) {
  for (const size_t s : samples_in_use()) {
    if (shapes[s]) state().samples[s]->set_shape(index, *shapes[s]);
  }
  settle_shape(index);
}

void GraphBuilder::set_dims(int index, const Dims& dims) {
  tell_samples_apart(dims);
  set_sample_shapes(index, sample_shapes(dims));
}

void GraphBuilder::settle_shape(int index) {
  ir::Value& value = subgraph().values[static_cast<size_t>(index)];
  const SizeSamples all = samples(index);
  int rank = 0;
  for (const size_t s : samples_in_use()) rank = std::max(rank, all[s]->rank());
  std::vector<size_t> fewer;  // a size of 1 that goes
  for (const size_t s : samples_in_use()) {
    if (all[s]->rank() < rank) fewer.push_back(s);
  }
  if (!fewer.empty()) {
    rule_out(fewer, std::make_exception_ptr(
                        Error(ErrorCode::kUnsupported,
                              fmt::format("'{}' has a rank that depends on unknown dimensions", value.name))));
  }
  const SizeSamples shapes = samples(index);
  value.shape = *shapes[samples_in_use()[0]];
  std::vector<int32_t> signature;
  bool unknown = false;
  for (int axis = 0; axis < rank; ++axis) {
    const auto size = shapes.common_size(axis);
    require(!size || *size <= INT32_MAX, ErrorCode::kUnsupported, "'{}' has a dimension of {}, more than 32 bits",
            value.name, size.value_or(0));
    signature.push_back(static_cast<int32_t>(size.value_or(-1)));
    if (!size) value.shape.set(axis, 1);
    unknown = unknown || !size;
  }
  if (unknown) value.signature = std::move(signature);
}

int GraphBuilder::input(const std::string& name, DType dtype, const Dims& dims, Quantization quantization) {
  return in_context([&] {
    check_dims(name, dims, true);
    const int index = add_value(name, dtype, std::move(quantization));
    tell_samples_apart(dims);
    SizeSamples shapes;
    for (size_t s = 0; s < kSizeSamples; ++s) shapes[s] = sample_shape(dims, s, subgraph().inputs.size());
    set_sample_shapes(index, shapes);
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      if (dims[axis] < 0) state().unknown_inputs.emplace_back(index, static_cast<int>(axis));
    }
    subgraph().inputs.push_back(index);
    return index;
  });
}

SizeSamples GraphBuilder::samples(int index) {
  check_index(index);
  SizeSamples shapes;
  for (size_t s = 0; s < kSizeSamples; ++s) {
    if (state().possible[s]) shapes[s] = state().samples[state().differ ? s : 0]->fact(index).shape;
  }
  return shapes;
}

int GraphBuilder::input(const std::string& name, DType dtype, const Dims& dims, const SizeSamples& samples) {
  const int index = input(name, dtype, dims);
  SizeSamples shapes = this->samples(index);
  for (size_t s = 0; s < kSizeSamples; ++s) {
    if (!samples[s]) state().possible[s] = false;
    if (!samples[s] || samples[s]->rank() != static_cast<int>(dims.size())) continue;
    for (int axis = 0; axis < samples[s]->rank(); ++axis) {
      const bool take = dims[static_cast<size_t>(axis)] < 0 && !samples.common_size(axis);
      if (take && shapes[s]) shapes[s]->set(axis, (*samples[s])[axis]);
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
  ir::Value& value = subgraph().values[static_cast<size_t>(index)];
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
            fmt::join(dims, ", "), needed.value_or(-1), bytes.size());
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
            fmt::join(dims, ", "), needed.value_or(-1), source == nullptr ? 0 : source->bytes());
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

std::vector<int> GraphBuilder::add(NodeSpec spec) {
  check_cancelled();
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
      node.version = spec.version != 0 ? spec.version : oldest_version(node.op);
      node.inputs = spec.inputs;
      for (const NodeOutput& o : spec.outputs) node.outputs.push_back(add_value(o.name, o.dtype, o.quantization));
      node.attributes = spec.attributes != nullptr ? spec.attributes
                        : row != nullptr           ? std::shared_ptr<const ir::Attributes>(new_attributes(*row))
                                                   : std::make_shared<ir::NoAttributes>();
      if (!spec.custom_options.empty()) {
        graph_->storage.push_back(std::make_shared<const std::vector<std::byte>>(spec.custom_options));
        node.custom_options = *graph_->storage.back();
      }
      const std::vector<int> outputs = node.outputs;
      subgraph().nodes.push_back(std::move(node));
      if (row != nullptr) verify_node(subgraph(), static_cast<int>(nodes));
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

bool GraphBuilder::infer_sample(const NodeSpec& spec, int node, size_t sample) {
  if (state().samples[sample]->infer(node)) return true;
  const std::vector<int> outputs = subgraph().nodes.back().outputs;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto& dims = spec.outputs[i].dims;
    require(dims.has_value(), ErrorCode::kUnsupported, "{}: the shape of its output {} depends on data of the run",
            ir::describe_node(subgraph(), node), i);
    Shape shape = sample_shape(*dims, sample);
    const auto& like = spec.outputs[i].samples;
    if (like && (*like)[sample] && (*like)[sample]->rank() == shape.rank()) {
      for (int axis = 0; axis < shape.rank(); ++axis) {
        if ((*dims)[static_cast<size_t>(axis)] < 0) shape.set(axis, (*(*like)[sample])[axis]);
      }
    }
    state().samples[sample]->set_shape(outputs[i], shape);
  }
  return false;
}

void GraphBuilder::infer_last_node(const NodeSpec& spec) {
  const auto index = static_cast<int>(subgraph().nodes.size()) - 1;
  const std::vector<int> outputs = subgraph().nodes.back().outputs;
  for (const NodeOutput& output : spec.outputs) {
    if (output.dims) check_dims(output.name, *output.dims, true);
  }
  if (!state().differ && !infer_sample(spec, index, 0)) {
    for (const NodeOutput& output : spec.outputs) tell_samples_apart(*output.dims);
  }
  if (state().differ) {
    std::vector<size_t> failed;
    std::exception_ptr error;
    for (const size_t s : samples_in_use()) {
      try {
        infer_sample(spec, index, s);
      } catch (const Error& caught) {
        rethrow_if_fatal(caught);
        if (failed.empty()) error = std::current_exception();
        failed.push_back(s);
      }
    }
    if (!failed.empty()) rule_out(failed, error);
  }
  for (int output : outputs) settle_shape(output);
}

void GraphBuilder::rule_out(const std::vector<size_t>& failed, const std::exception_ptr& error) {
  const auto sizes = [&] {
    std::vector<bool> differ;
    for (const auto& [value, axis] : state().unknown_inputs) differ.push_back(!samples(value).common_size(axis));
    return differ;
  };
  const std::vector<bool> before = sizes();
  for (const size_t s : failed) state().possible[s] = false;
  const bool any = std::count(state().possible.begin(), state().possible.end(), true) > 1;
  if (!any || sizes() != before) std::rethrow_exception(error);
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
  subgraph().values.resize(values);
  subgraph().nodes.resize(nodes);
  for (auto& sample : state().samples) sample->truncate(values);
}

Dims GraphBuilder::dims(int index) const {
  check_index(index);
  const ir::Value& v = value(index);
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
