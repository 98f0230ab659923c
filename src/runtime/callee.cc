// SPDX-License-Identifier: Apache-2.0
// The part of a Runner that serves control-flow nodes: inputs and outputs inside the arena, memory from the caller.
#include <algorithm>
#include <cstring>

#include "core/cancel.h"
#include "core/error.h"
#include "runtime/runner.h"

namespace leadline::runtime {

bool Runner::plan(std::span<const Shape> inputs) {
  require(inputs.size() == plan_.subgraph().inputs.size(), ErrorCode::kInvalidModel,
          "subgraph {} is called with {} inputs, it has {}", plan_.subgraph_index(), inputs.size(),
          plan_.subgraph().inputs.size());
  if (!started_ || !std::equal(inputs.begin(), inputs.end(), planned_shapes_.begin(), planned_shapes_.end())) {
    start(inputs, std::vector<int64_t>(inputs.size(), 0));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (dtype_bits(input_type(static_cast<int>(i))) == 0) return false;  // strings: the size is in the data
  }
  return plan_.segments().size() == 1 && plan_.complete();
}

const Shape& Runner::output_shape(int i) const {
  return plan_.values()[static_cast<size_t>(plan_.subgraph().outputs[static_cast<size_t>(i)])].shape;
}

int64_t Runner::workspace_bytes() const { return plan_.segments()[0].arena_bytes; }

DType Runner::input_type(int i) const {
  return plan_.subgraph().values[static_cast<size_t>(plan_.subgraph().inputs[static_cast<size_t>(i)])].dtype;
}

DType Runner::output_type(int i) const {
  return plan_.subgraph().values[static_cast<size_t>(plan_.subgraph().outputs[static_cast<size_t>(i)])].dtype;
}

std::span<const TensorView> Runner::run(std::span<const TensorView> inputs, std::byte* workspace) {
  std::vector<Shape> shapes;
  std::vector<int64_t> string_bytes;
  for (size_t i = 0; i < inputs.size(); ++i) {
    shapes.push_back(inputs[i].shape);
    string_bytes.push_back(dtype_bits(input_type(static_cast<int>(i))) == 0 ? inputs[i].bytes : 0);
  }
  // The inputs may be results of the last run: its memory stays until they are copied.
  struct LastRun {
    Runner& runner;
    std::vector<BoundSegment> segments;
    void give_back() {
      for (BoundSegment& segment : segments) runner.give_back(segment.arena, MemoryCategory::kArena);
    }
    ~LastRun() { give_back(); }
  } last_run{*this, {}};
  if (!started_ || shapes != planned_shapes_ || string_bytes != planned_bytes_) {
    std::swap(last_run.segments, bound_);
    start(shapes, string_bytes);
    bound_base_.reset();
  } else if (bound_.size() > 1) {
    for (size_t s = 1; s < bound_.size(); ++s) last_run.segments.push_back(std::move(bound_[s]));
    bound_.resize(1);
  }
  allocate();
  if (workspace == nullptr) {
    if (bound_[0].arena == nullptr) take_arena(0);
    workspace = bound_[0].arena->data();
  }
  plan_.rewind();
  sync_folded();
  if (workspace != bound_base_) {
    bind(0, workspace);
    bound_base_ = workspace;
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    plan::PlannedValue& slot = plan_.values()[static_cast<size_t>(plan_.subgraph().inputs[i])];
    if (slot.storage == Storage::kArena && slot.bytes > 0 && slot.address != inputs[i].data) {
      copy_bytes(slot.address, inputs[i].data, slot.bytes);
    }
    slot.computed = true;
  }
  results_.clear();
  last_run.give_back();
  run_segments();
  copy_outputs();
  return results_;
}

void Runner::copy_outputs() {
  const std::vector<int>& outputs = plan_.subgraph().outputs;
  results_.clear();
  for (int v : outputs) results_.push_back(view(v));
  const size_t last = plan_.segments().size() - 1;
  std::byte* base = last == 0 ? bound_base_.value_or(nullptr) : bound_[last].arena->data();
  for (const plan::OutputCopy& copy : plan_.output_copies()) {
    TensorView& result = results_[static_cast<size_t>(copy.output)];
    if (copy.bytes > 0) copy_bytes(base + copy.offset, result.data, copy.bytes);
    result.data = base + copy.offset;
  }
}

}  // namespace leadline::runtime
