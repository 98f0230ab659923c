// SPDX-License-Identifier: Apache-2.0
// The part of GraphBuilder that infers shapes: every node with several sizes for each unknown dimension, and what
// follows when a check fails for some of them.
#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "core/rethrow_if_fatal.h"
#include "ops/graph_builder.h"

namespace leadline::ops {
namespace {

/// A number for output `output` of a node among choices of sizes, where inputs have theirs from 0 on.
int place_of(int node, size_t output) { return -1 - node * 64 - static_cast<int>(std::min<size_t>(output, 63)); }

}  // namespace

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

SizeSamples GraphBuilder::samples(int index) {
  check_index(index);
  SizeSamples shapes;
  for (size_t s = 0; s < kSizeSamples; ++s) {
    if (state().possible[s]) shapes[s] = state().samples[state().differ ? s : 0]->fact(index).shape;
  }
  return shapes;
}

void GraphBuilder::settle_shape(int index) {
  ir::Value& value = subgraph().value(index);
  const SizeSamples all = samples(index);
  int rank = 0;
  for (const size_t s : samples_in_use()) rank = std::max(rank, all[s]->rank());
  std::vector<size_t> fewer;  // a size of 1 that is dropped
  for (const size_t s : samples_in_use()) {
    if (all[s]->rank() < rank) fewer.push_back(s);
  }
  value.has_rank = fewer.empty() || !state().unranked;
  if (!value.has_rank) {
    value.shape = {};
    return;
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
    for (int axis = 0; axis < shape.rank(); ++axis) {
      const auto chosen = choices_.find({current_.back(), place_of(node, i), axis});
      if (chosen != choices_.end()) shape.set(axis, chosen->second[sample]);
    }
    state().samples[sample]->set_shape(outputs[i], shape);
  }
  return false;
}

void GraphBuilder::note_free_sizes(const NodeSpec& spec, int node) {
  const std::vector<int>& outputs = subgraph().nodes.back().outputs;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Dims& dims = *spec.outputs[i].dims;
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      if (dims[axis] < 0) state().free.push_back({outputs[i], static_cast<int>(axis), place_of(node, i)});
    }
  }
}

void GraphBuilder::infer_last_node(const NodeSpec& spec) {
  const auto index = static_cast<int>(subgraph().nodes.size()) - 1;
  const std::vector<int> outputs = subgraph().nodes.back().outputs;
  if (!state().differ && !infer_sample(spec, index, 0)) {
    for (const NodeOutput& output : spec.outputs) tell_samples_apart(*output.dims);
  }
  if (state().differ) {
    // What is computed from constants is the same in all samples.
    const std::vector<int>& inputs = subgraph().nodes.back().inputs;
    const bool all_constant = !inputs.empty() && std::all_of(inputs.begin(), inputs.end(), [&](int v) {
      return v == ir::kAbsent || value(v).constant;
    });
    bool deferred = false;
    std::vector<size_t> failed;
    std::exception_ptr error;
    const std::vector<size_t> used = samples_in_use();
    for (const size_t s : used) {
      if (s != used[0] && all_constant && failed.empty()) {
        for (const int output : outputs) state().samples[s]->take_fact(*state().samples[used[0]], output);
        continue;
      }
      try {
        if (!infer_sample(spec, index, s)) deferred = true;
      } catch (const Error& caught) {
        rethrow_if_fatal(caught);
        if (failed.empty()) error = std::current_exception();
        failed.push_back(s);
      }
    }
    if (!failed.empty()) rule_out(failed, error);
    if (deferred) note_free_sizes(spec, index);
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
  if (any && sizes() == before) return;
  for (const size_t s : failed) state().possible[s] = true;
  note_conflict();
  std::rethrow_exception(error);
}

void GraphBuilder::note_conflict() {
  if (state().is_body || subgraph().nodes.empty()) return;
  SizeConflict conflict;
  conflict.subgraph = current_.back();
  conflict.nodes = subgraph().nodes.size();
  conflict.samples.assign(state().possible.begin(), state().possible.end());
  for (const int v : subgraph().nodes.back().inputs) {
    if (v == ir::kAbsent) continue;
    conflict.operands.push_back(samples(v));
    conflict.contents.push_back(products(v));
  }
  const auto add_unknown = [&](int v, int axis, int place) {
    SizeConflict::Unknown unknown{place, axis, {}};
    const SizeSamples shapes = samples(v);
    for (size_t s = 0; s < kSizeSamples; ++s) {
      unknown.sizes[s] = shapes[s] && axis < shapes[s]->rank() ? (*shapes[s])[axis] : 1;
    }
    conflict.unknown.push_back(unknown);
  };
  const auto& inputs = subgraph().inputs;
  for (const auto& [v, axis] : state().unknown_inputs) {
    add_unknown(v, axis, static_cast<int>(std::find(inputs.begin(), inputs.end(), v) - inputs.begin()));
  }
  for (const State::Free& free : state().free) add_unknown(free.value, free.axis, free.place);
  conflict_ = std::move(conflict);
}

/// The product of the positive numbers in an int32 vector, where the samples know them.
std::optional<SampledSize> GraphBuilder::products(int index) {
  if (value(index).dtype != DType::kInt32) return {};
  SampledSize result = {};
  for (const size_t s : samples_in_use()) {
    const std::span<const std::byte> bytes =
        value(index).constant ? value(index).data : std::span<const std::byte>(state().samples[s]->fact(index).data);
    if (bytes.empty() || bytes.size() > kMaxRank * sizeof(int32_t)) return {};
    result[s] = 1;
    for (size_t i = 0; i < bytes.size(); i += sizeof(int32_t)) {
      int32_t number = 0;
      std::memcpy(&number, bytes.data() + i, sizeof(number));
      if (number > 0 && result[s] <= INT32_MAX) result[s] *= number;
    }
  }
  return result;
}

}  // namespace leadline::ops
