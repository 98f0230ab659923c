// SPDX-License-Identifier: Apache-2.0
#include "runtime/bindings.h"

#include <algorithm>
#include <cstring>

namespace leadline::runtime {

static_assert(sizeof(BoundValue) == 16, "plan::Planner::structure_bytes() counts on it");

void Bindings::reset() {
  values_.assign(planner_.plan().values.size(), {});
  clear();
}

void Bindings::clear() {
  std::fill(values_.begin(), values_.end(), BoundValue{});
  segments_.clear();
  base_.reset();
}

/// Kernels never write to inputs that are constants.
std::byte* Bindings::fixed_address(int value) const { return const_cast<std::byte*>(planner_.fixed_data(value)); }

void Bindings::begin_run(bool rewound) {
  const std::vector<plan::PlannedValue>& planned = planner_.plan().values;
  for (size_t v = 0; v < values_.size(); ++v) {
    const bool fixed = planned[v].is_fixed();
    values_[v].computed = fixed || planned[v].storage == Storage::kVariable;
    if (!rewound) continue;
    if (fixed) values_[v].address = fixed_address(static_cast<int>(v));
    if (!planned[v].shape_known) values_[v].address = nullptr;
  }
}

TensorView Bindings::view(int value) const {
  const plan::PlannedValue& planned = planner_.plan().value(value);
  const ir::Value& source = planner_.outline().subgraph().value(value);
  return {source.dtype, planned.shape, address(value), planned.bytes, &source.quantization};
}

const CallerMemory* Bindings::caller_memory(int value) const {
  if (caller_ == nullptr) return nullptr;
  const auto it = caller_->find(value);
  return it == caller_->end() ? nullptr : &it->second;
}

bool Bindings::lacks_memory(int value) const {
  const plan::PlannedValue& planned = planner_.plan().value(value);
  if (planned.root != value || !planned.shape_known || caller_memory(value) != nullptr) return false;
  const bool kept = planned.storage == Storage::kVariable || planned.storage == Storage::kInput ||
                    planned.storage == Storage::kOutput;
  return kept && !blocks_.tensors().contains(value);
}

bool Bindings::lacks_memory() const {
  for (size_t v = 0; v < values_.size(); ++v) {
    if (lacks_memory(static_cast<int>(v))) return true;
  }
  return false;
}

void Bindings::provide(int value) {
  const plan::PlannedValue& planned = planner_.plan().value(value);
  if (planned.root != value || !planned.shape_known) return;
  const bool variable = planned.storage == Storage::kVariable;
  if (!variable && planned.storage != Storage::kInput && planned.storage != Storage::kOutput) return;
  if (const CallerMemory* theirs = caller_memory(value)) {
    blocks_.drop_tensor(value);
    values_[static_cast<size_t>(value)].address = theirs->fits(planned) ? theirs->data : nullptr;
    return;
  }
  values_[static_cast<size_t>(value)].address = nullptr;
  const bool fresh =
      blocks_.take_tensor(value, planned.bytes, variable ? MemoryCategory::kVariables : MemoryCategory::kInputsOutputs);
  use_own_memory(value);
  if (fresh && variable) clear_variable(value);
}

void Bindings::use_own_memory(int value) {
  const auto memory = blocks_.tensor(value);
  values_[static_cast<size_t>(value)].address = memory == nullptr ? nullptr : memory->data();
}

/// The state that stands for zero: quantized int8 variables hold their zero point, as in TFLite.
void Bindings::clear_variable(int value) {
  const ir::Value& source = planner_.outline().subgraph().value(value);
  const int level = source.dtype == DType::kInt8 ? source.quantization.zero_point0() : 0;
  const auto bytes = static_cast<size_t>(planner_.plan().value(value).bytes);
  if (address(value) != nullptr) std::memset(address(value), level, bytes);
}

/// Fixed values are where the planner has them; views, parts, and results computed in place, follow the memory they
/// live in.
void Bindings::follow_root(size_t v) {
  const plan::PlannedValue& planned = planner_.plan().values[v];
  if (planned.is_fixed()) {
    values_[v].address = fixed_address(static_cast<int>(v));
    return;
  }
  std::byte* base = address(planned.root);
  values_[v].address = base == nullptr ? nullptr : base + planned.shift;
}

void Bindings::follow_roots() {
  for (size_t v = 0; v < values_.size(); ++v) follow_root(v);
}

std::vector<BoundStep>& Bindings::segment_steps(size_t segment) {
  if (segments_.size() <= segment) segments_.resize(segment + 1);
  segments_[segment].resize(planner_.plan().segments[segment].steps.size());
  return segments_[segment];
}

void Bindings::set_packed(size_t segment, size_t position, const std::byte* packed) {
  segment_steps(segment)[position].packed = packed;
}

void Bindings::forget_segments(size_t first) {
  if (segments_.size() > first) segments_.resize(first);
}

void Bindings::bind(size_t segment, std::byte* arena) {
  const plan::SubgraphPlan& plan = planner_.plan();
  const plan::Outline& outline = planner_.outline();
  const auto bind_arena = [&](size_t v) {
    const plan::PlannedValue& planned = plan.values[v];
    if (planned.storage == Storage::kArena && planned.segment == static_cast<int>(segment)) {
      values_[v].address = arena + planned.offset;
    }
  };
  if (segment == 0) {
    for (size_t v = 0; v < values_.size(); ++v) bind_arena(v);
    follow_roots();
  } else {
    for (int v : plan.segments[segment].values) bind_arena(static_cast<size_t>(v));
    for (int v : plan.segments[segment].values) follow_root(static_cast<size_t>(v));
  }
  const std::vector<plan::Step>& steps = plan.segments[segment].steps;
  std::vector<BoundStep>& bound_steps = segment_steps(segment);
  for (size_t i = 0; i < steps.size(); ++i) {
    const ir::Node& node = outline.node(steps[i].node);
    BoundStep& bound = bound_steps[i];
    bound.inputs.assign(node.inputs.size(), {});
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      if (node.inputs[k] != ir::kAbsent) bound.inputs[k] = view(outline.source(node.inputs[k]));
    }
    bound.outputs.clear();
    for (int v : node.outputs) bound.outputs.push_back(view(v));
    bound.scratch = arena + steps[i].scratch_offset;
    bound.persistent = blocks_.persistent(steps[i].node);
  }
  if (segment == 0) base_ = arena;
}

void Bindings::rebind() {
  for (size_t v = 0; v < values_.size(); ++v) provide(static_cast<int>(v));
  follow_roots();
  const plan::Outline& outline = planner_.outline();
  const std::vector<plan::Step>& steps = planner_.plan().segments[0].steps;
  for (size_t i = 0; i < steps.size(); ++i) {
    const ir::Node& node = outline.node(steps[i].node);
    BoundStep& bound = segments_[0][i];
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      if (node.inputs[k] != ir::kAbsent) bound.inputs[k].data = address(outline.source(node.inputs[k]));
    }
    for (size_t k = 0; k < node.outputs.size(); ++k) bound.outputs[k].data = address(node.outputs[k]);
  }
}

}  // namespace leadline::runtime
