// SPDX-License-Identifier: Apache-2.0
// The part of a Runner that gives inputs, outputs and variables their memory: the caller's, or its own.
#include <cstring>

#include "core/cancel.h"
#include "core/error.h"
#include "runtime/runner.h"

namespace leadline::runtime {
namespace {

bool overlap(const std::byte* a, int64_t a_bytes, const std::byte* b, int64_t b_bytes) {
  if (a_bytes == 0 || b_bytes == 0) return false;
  const auto first = reinterpret_cast<uintptr_t>(a);
  const auto second = reinterpret_cast<uintptr_t>(b);
  return first < second + static_cast<uintptr_t>(b_bytes) && second < first + static_cast<uintptr_t>(a_bytes);
}

}  // namespace

const CallerMemory* Runner::caller_memory(int value) const {
  if (callee_) return nullptr;
  const auto it = session_.caller_memory.find(value);
  return it == session_.caller_memory.end() ? nullptr : &it->second;
}

/// Kernels never write to inputs: nothing is computed in place outside the arena.
bool Runner::is_written(int value) const {
  return plan_.values()[static_cast<size_t>(value)].storage != Storage::kInput;
}

bool Runner::needs_own_memory(int value) const {
  const plan::PlannedValue& planned = plan_.values()[static_cast<size_t>(value)];
  if (planned.root != value || !planned.shape_known || caller_memory(value) != nullptr) return false;
  if (planned.storage == Storage::kVariable) return !variables_.contains(value);
  return (planned.storage == Storage::kInput || planned.storage == Storage::kOutput) && !io_.contains(value);
}

bool Runner::lacks_memory() const {
  for (size_t v = 0; v < plan_.values().size(); ++v) {
    if (needs_own_memory(static_cast<int>(v))) return true;
  }
  return false;
}

/// Gives an input, output or variable whose shape is known its memory and address. A variable's own memory begins with
/// the state that stands for zero; the caller's has the state already.
void Runner::give_memory(int value) {
  const plan::PlannedValue& planned = plan_.values()[static_cast<size_t>(value)];
  if (planned.root != value || !planned.shape_known) return;
  if (planned.storage == Storage::kVariable) {
    give_own_memory(value, variables_, MemoryCategory::kVariables);
  } else if (planned.storage == Storage::kInput || planned.storage == Storage::kOutput) {
    give_own_memory(value, io_, MemoryCategory::kInputsOutputs);
  }
}

void Runner::give_own_memory(int value, std::map<int, std::shared_ptr<Buffer>>& memories, MemoryCategory category) {
  plan::PlannedValue& planned = plan_.values()[static_cast<size_t>(value)];
  const auto own = memories.find(value);
  if (const CallerMemory* theirs = caller_memory(value)) {
    if (own != memories.end()) {
      give_back(own->second, category);
      memories.erase(own);
    }
    const bool fits = theirs->shape == planned.shape && theirs->bytes == planned.bytes;
    planned.address = fits ? theirs->data : nullptr;
    return;
  }
  if (own != memories.end() && own->second->bytes() == align_up(planned.bytes)) {
    planned.address = own->second->data();
    return;
  }
  if (own != memories.end()) {
    give_back(own->second, category);
    memories.erase(own);
  }
  planned.address = nullptr;
  const auto place = memories.emplace(value, nullptr).first;
  try {
    place->second = take(planned.bytes, category);
  } catch (...) {
    memories.erase(place);
    throw;
  }
  planned.address = place->second->data();
  if (planned.storage == Storage::kVariable) clear_variable(value);
}

void Runner::check_caller_memory(int value, const CallerMemory& memory) const {
  require(!memory.read_only || !is_written(value), ErrorCode::kInvalidArgument,
          "tensor {} '{}' is written by a run, the memory bound to it is read-only", value,
          plan_.subgraph().values[static_cast<size_t>(value)].name);
  if (plan_.known_before_run(value)) require_fit(value, memory);
}

void Runner::require_fit(int value, const CallerMemory& memory) const {
  const plan::PlannedValue& planned = plan_.values()[static_cast<size_t>(value)];
  const std::string& name = plan_.subgraph().values[static_cast<size_t>(value)].name;
  require(
      memory.shape == planned.shape && memory.bytes == planned.bytes, ErrorCode::kInvalidArgument,
      "tensor {} '{}' has shape {} and takes {} bytes, the memory bound to it has shape {} and {} bytes: bind other "
      "memory, or unbind it",
      value, name, planned.shape.to_string(), planned.bytes, memory.shape.to_string(), memory.bytes);
}

void Runner::check_caller_memory() const {
  const auto check = [&](int value, const CallerMemory& memory, const std::byte* other, int64_t bytes, bool written,
                         const std::string& whose) {
    const bool harmful = (written || is_written(value)) && overlap(memory.data, memory.bytes, other, bytes);
    require(!harmful, ErrorCode::kInvalidArgument,
            "the memory bound to tensor {} '{}' overlaps that of {}, and a run writes to it", value,
            plan_.subgraph().values[static_cast<size_t>(value)].name, whose);
  };
  const auto name = [&](int v) {
    return fmt::format("tensor {} '{}'", v, plan_.subgraph().values[static_cast<size_t>(v)].name);
  };
  for (const auto& [value, memory] : session_.caller_memory) {
    check_caller_memory(value, memory);
    for (const auto& [other, second] : session_.caller_memory) {
      if (other != value) check(value, memory, second.data, second.bytes, is_written(other), name(other));
    }
    for (const auto* buffers : {&io_, &variables_}) {
      for (const auto& [other, buffer] : *buffers) {
        if (other != value) check(value, memory, buffer->data(), buffer->bytes(), is_written(other), name(other));
      }
    }
    if (!bound_.empty() && bound_[0].arena != nullptr) {
      check(value, memory, bound_[0].arena->data(), bound_[0].arena->bytes(), true, "intermediate results");
    }
  }
}

void Runner::rebind() {
  for (size_t v = 0; v < plan_.values().size(); ++v) give_memory(static_cast<int>(v));
  follow_roots();
  const std::vector<plan::Step>& steps = plan_.segments()[0].steps;
  for (size_t i = 0; i < steps.size(); ++i) {
    const ir::Node& node = plan_.node(steps[i].node);
    BoundStep& bound = bound_[0].steps[i];
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      if (node.inputs[k] == ir::kAbsent) continue;
      bound.inputs[k].data = plan_.values()[static_cast<size_t>(plan_.source(node.inputs[k]))].address;
    }
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      bound.outputs[k].data = plan_.values()[static_cast<size_t>(node.outputs[k])].address;
    }
  }
}

/// Outputs that no node computes have their bytes in the file.
void Runner::copy_constant_outputs() {
  for (const auto& [value, memory] : session_.caller_memory) {
    const plan::PlannedValue& planned = plan_.values()[static_cast<size_t>(value)];
    const bool fixed = planned.storage == Storage::kConstant || planned.storage == Storage::kFolded;
    if (fixed && memory.bytes > 0) copy_bytes(memory.data, planned.address, memory.bytes);
  }
}

}  // namespace leadline::runtime
