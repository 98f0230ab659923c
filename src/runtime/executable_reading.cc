// SPDX-License-Identifier: Apache-2.0
// The part of an Executable that reads tensors: where they have memory, or by running the model again.
#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "core/error.h"
#include "runtime/executable.h"

namespace leadline::runtime {
namespace {

/// Copies one tensor when its node is done, and ends the run.
class TensorCatcher final : public Observer {
 public:
  struct Caught {};  // thrown when the tensor is there

  TensorCatcher(int subgraph, int index, std::shared_ptr<Budget> budget)
      : subgraph_(subgraph), index_(index), budget_(std::move(budget)) {}

  void after_node(const ObservedNode& node) override {
    if (node.subgraph != subgraph_) return;
    for (const ObservedTensor& tensor : node.outputs) {
      if (tensor.index != index_) continue;
      const auto bytes = static_cast<int64_t>(tensor.data.size());
      auto copy = std::make_shared<Buffer>(budget_, bytes, MemoryCategory::kInputsOutputs);
      if (bytes > 0) std::memcpy(copy->data(), tensor.data.data(), tensor.data.size());
      memory_ = {copy, copy->data(), bytes, tensor.dtype, tensor.shape, false};
      throw Caught();
    }
  }

  TensorMemory take() { return std::move(memory_); }

 private:
  const int subgraph_;
  const int index_;
  const std::shared_ptr<Budget> budget_;
  TensorMemory memory_;
};

}  // namespace

TensorMemory Executable::tensor(int index) {
  const std::lock_guard lock(mutex_);
  prepare();
  check_index(index);
  std::optional<TensorMemory> memory = find_memory(index);
  return memory ? std::move(*memory) : recompute(index);
}

/// The memory that holds the tensor; nothing: it has none, or other tensors may have overwritten it.
std::optional<TensorMemory> Executable::find_memory(int index) {
  const plan::PlannedValue& planned = this->planned(index);
  const ir::Value& source = value(index);
  if (const auto bound = caller_memory_.find(index); bound != caller_memory_.end()) {
    const CallerMemory& theirs = bound->second;
    return TensorMemory{theirs.owner, theirs.data, theirs.bytes, source.dtype, theirs.shape, theirs.read_only};
  }
  std::byte* const address = runner_->bindings().address(index);
  TensorMemory memory;
  memory.dtype = source.dtype;
  memory.shape = planned.shape_known ? planned.shape : source.shape;
  memory.bytes = planned.bytes;
  if (planned.storage == Storage::kConstant) {
    memory.owner = graph_;
    memory.read_only = true;  // perhaps a mapping of the file
    memory.data = address;
    return memory;
  }
  if (planned.storage == Storage::kFolded) {
    auto copy = std::make_shared<std::vector<std::byte>>(address, address + planned.bytes);
    memory.data = copy->data();
    memory.owner = std::move(copy);
    return memory;
  }
  auto owner = runner_->memory_of(index);
  if (!owner.has_value() || (address == nullptr && planned.bytes > 0)) return std::nullopt;
  memory.owner = std::move(*owner);
  memory.data = address;
  if (const auto root = caller_memory_.find(planned.root); root != caller_memory_.end()) {
    memory.read_only = root->second.read_only;
  }
  return memory;
}

/// Throws when a second run would not compute tensor `index` as the first did, or change what the next one computes.
void Executable::require_repeatable(int index) const {
  const std::string& name = value(index).name;
  bool computed = false;
  for (const ir::Node& node : subgraph().nodes) {
    computed = computed || std::find(node.outputs.begin(), node.outputs.end(), index) != node.outputs.end();
  }
  require(computed, kBadArgument,
          "tensor {} '{}' has no value: no node computes it, and it is not an input or a constant", index, name);
  const std::vector<int>& outputs = subgraph().outputs;
  const bool kept = options_.preserve_all_tensors || std::find(outputs.begin(), outputs.end(), index) != outputs.end();
  require(!kept, kBadArgument, "tensor {} '{}' has no value yet: invoke() computes it, and its shape", index, name);
  bool state = !environment_->user_ops.empty() || !environment_->resources->empty();
  for (const ir::Subgraph& part : graph_->subgraphs) {
    for (const ir::Value& v : part.values) state = state || v.variable;
  }
  for (const plan::Segment& segment : runner_->plan().segments) {
    for (const plan::Step& step : segment.steps) state = state || step.persistent_bytes > 0;
  }
  require(!state, kBadArgument,
          "tensor {} '{}' is an intermediate result whose memory is reused, and it cannot be computed again, as the "
          "model has state (variables, tables, random numbers or registered custom ops): create the interpreter with "
          "preserve_all_tensors to read it",
          index, name);
}

/// Everything it takes is charged beside this executable, and given back before it returns but for the tensor.
TensorMemory Executable::recompute(int index) {
  require_repeatable(index);
  try {
    if (auto memory = run_again(index, options_)) return std::move(*memory);
    // Weights of 16 bits that their readers take as they are: only whoever wants all tensors has them widened.
    InterpreterOptions options = options_;
    options.preserve_all_tensors = true;
    if (auto memory = run_again(index, std::move(options))) return std::move(*memory);
  } catch (const BudgetError& error) {
    throw BudgetError(fmt::format("tensor {} '{}' is an intermediate result, and computing it again does not fit: {}",
                                  index, value(index).name, error.what()),
                      error.needed(), error.limit());
  }
  fail(ErrorCode::kInternal, "tensor {} '{}' was not computed", index, value(index).name);
}

/// Tensor `index` of a run of the graph as it is in the file, on the same inputs, up to the node that computes it;
/// nothing: no node did.
std::optional<TensorMemory> Executable::run_again(int index, InterpreterOptions options) {
  TensorCatcher catcher(options_.subgraph, index, parent_budget());
  Executable again(model_, std::move(options));
  for (const int v : subgraph().inputs) {
    if (!value(v).constant) again.resize_input(v, shapes_[input_places_.at(v)], false);
  }
  again.add_observer(&catcher);
  for (const int v : subgraph().inputs) {
    if (value(v).constant) continue;
    TensorMemory input = find_memory(v).value();
    if (value(v).dtype == DType::kString) {
      again.set_tensor(v, {input.data, static_cast<size_t>(input.bytes)});
    } else {
      again.bind(v, std::move(input));
    }
  }
  try {
    again.invoke({});
  } catch (const TensorCatcher::Caught&) {
    return catcher.take();
  }
  return again.find_memory(index);  // of what was folded while planning
}

}  // namespace leadline::runtime
