// SPDX-License-Identifier: Apache-2.0
// The part of an Executable that callers reach tensors through: shapes, contents, memory of their own.
#include <fmt/core.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "core/alignment.h"
#include "core/error.h"
#include "core/join.h"
#include "core/string_tensor.h"
#include "core/work.h"
#include "runtime/executable.h"

namespace leadline::runtime {
namespace {

template <typename T>
bool contains(const std::vector<T>& list, const T& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

}  // namespace

void Executable::check_index(int index) const {
  require(index >= 0 && index < static_cast<int>(subgraph().values.size()), kBadArgument,
          "tensor {} does not exist: the model has {}", index, subgraph().values.size());
}

/// Names by which callers mean inputs or outputs, in the order in which they are tried.
std::vector<std::pair<std::string, int>> Executable::tensor_names(bool input) const {
  std::vector<std::pair<std::string, int>> names;
  for (const ir::Signature& signature : graph_->signatures) {
    const bool chosen =
        options_.signature.empty() ? signature.subgraph == options_.subgraph : signature.key == options_.signature;
    if (!chosen) continue;
    names = input ? signature.inputs : signature.outputs;
    break;
  }
  for (int v : input ? subgraph().inputs : subgraph().outputs) names.emplace_back(value(v).name, v);
  return names;
}

int Executable::find_tensor(const TensorKey& key, bool input) const {
  const char* const what = input ? "input" : "output";
  const std::vector<int>& tensors = input ? subgraph().inputs : subgraph().outputs;
  if (const std::optional<int> position = key.position()) {
    require(*position >= 0 && *position < static_cast<int>(tensors.size()), kBadArgument,
            "{} {} does not exist: the model has {}", what, *position, tensors.size());
    return tensors[static_cast<size_t>(*position)];
  }
  std::vector<std::string> known;
  for (const auto& [name, index] : tensor_names(input)) {
    if (name == key.name()) return index;
    const std::string quoted = fmt::format("'{}'", name);
    if (!contains(known, quoted)) known.push_back(quoted);
  }
  fail(kBadArgument, "the model has no {} called '{}'; expected one of: {}", what, key.name(), join(known, ", "));
}

int Executable::input_index(const TensorKey& key) const { return find_tensor(key, true); }
int Executable::output_index(const TensorKey& key) const { return find_tensor(key, false); }

void Executable::check_type(int index, const char* what, DType has, std::optional<DType> wanted) const {
  require(!wanted.has_value() || *wanted == has, kBadArgument,
          "{} '{}' (tensor {}) has elements of type {}, got {} for them", what, value(index).name, index,
          dtype_name(has), dtype_name(wanted.value_or(has)));
}

TensorMemory Executable::input(const TensorKey& key, std::optional<DType> type) {
  const int index = input_index(key);
  check_type(index, "input", value(index).dtype, type);
  TensorMemory memory = tensor(index);
  require(!memory.read_only, kBadArgument,
          "input '{}' (tensor {}) cannot be written: it is a constant, or bound to memory that is read-only",
          value(index).name, index);
  return memory;
}

TensorMemory Executable::output(const TensorKey& key, std::optional<DType> type) {
  const int index = output_index(key);
  check_type(index, "output", value(index).dtype, type);
  return tensor(index);
}

void Executable::resize_input(int index, const Shape& shape, bool strict) {
  const std::lock_guard lock(mutex_);
  check_index(index);
  const auto it = input_places_.find(index);
  require(it != input_places_.end(), kBadArgument, "tensor {} '{}' is not an input of the model", index,
          value(index).name);
  require(!value(index).constant && !value(index).variable, kBadArgument,
          "input {} '{}' is a {}, whose shape {} is fixed", index, value(index).name,
          value(index).constant ? "constant" : "variable", value(index).shape.to_string());
  if (strict) check_strict(index, shape);
  sized_[it->second] = true;
  Shape& current = shapes_[it->second];
  if (current == shape) return;
  current = shape;
  stage_ = Stage::kUnplanned;
}

std::vector<int> Executable::unsized_inputs() const {
  const std::lock_guard lock(mutex_);
  return find_unsized();
}

std::vector<int> Executable::find_unsized() const {
  std::vector<int> unsized;
  for (const int v : subgraph().inputs) {
    const std::optional<std::vector<int32_t>>& signature = value(v).signature;
    const bool open = signature ? contains(*signature, -1) : !value(v).has_rank && value(v).shape.rank() == 0;
    if (open && !value(v).constant && !value(v).variable && !sized_[input_places_.at(v)] && !contains(unsized, v))
      unsized.push_back(v);
  }
  return unsized;
}

/// With sizes that stand for unknown ones the model cannot be planned: `problem`.
void Executable::refuse_unsized(const std::vector<int>& inputs, const Error& problem) const {
  std::vector<std::string> names;
  std::vector<std::string> tried;
  for (const int v : inputs) {
    std::string shape = "unknown rank";
    if (const std::optional<std::vector<int32_t>>& signature = value(v).signature) {
      std::vector<std::string> sizes;
      for (const int32_t size : *signature) sizes.push_back(size < 0 ? "?" : std::to_string(size));
      shape = fmt::format("shape [{}]", join(sizes, ", "));
    }
    names.push_back(fmt::format("'{}' (tensor {}) of {}", value(v).name, v, shape));
    tried.push_back(shapes_[input_places_.at(v)].to_string());
  }
  // What has no kernel seldom gets one by other sizes: callers can still tell it from a missing shape.
  fail(problem.code() == ErrorCode::kUnsupported ? problem.code() : kBadArgument,
       "the model leaves sizes of input {} open: give the input a shape first (Python: resize_tensor_input() or "
       "plan(shapes=...); C++: resize_input(); command line: --shape). With {} in the place of what is unknown it "
       "cannot be planned: {}",
       join(names, ", "), join(tried, ", "), problem.what());
}

void Executable::check_strict(int index, const Shape& shape) const {
  const TensorInfo info = describe_tensor(subgraph(), index);
  require(static_cast<int>(info.shape_signature.size()) == shape.rank(), kBadArgument,
          "input '{}' has rank {}, the new shape {} has {}", info.name, info.shape_signature.size(), shape.to_string(),
          shape.rank());
  for (int i = 0; i < shape.rank(); ++i) {
    const int32_t fixed = info.shape_signature[static_cast<size_t>(i)];
    require(fixed == -1 || fixed == shape[i], kBadArgument,
            "dimension {} of input '{}' is fixed to {}, got {} (strict)", i, info.name, fixed, shape[i]);
  }
}

TensorInfo Executable::tensor_info(int index) const {
  const std::lock_guard lock(mutex_);
  check_index(index);
  TensorInfo info = describe_tensor(subgraph(), index);
  if (const auto it = input_places_.find(index); it != input_places_.end()) {
    info.shape = shapes_[it->second];
  } else if (stage_ != Stage::kUnplanned) {
    if (planned(index).shape_known) info.shape = planned(index).shape;
  }
  info.bytes = info.constant ? info.bytes : storage_bytes(info.dtype, info.shape).value_or(0);
  return info;
}

void Executable::set_tensor(int index, std::span<const std::byte> bytes) {
  const std::lock_guard lock(mutex_);
  prepare();
  check_index(index);
  const plan::PlannedValue& planned = this->planned(index);
  const bool input = planned.storage == Storage::kInput && planned.root == index;  // not a view of one
  require(input || planned.storage == Storage::kVariable, kBadArgument,
          "tensor {} '{}' is neither an input nor a variable, so it cannot be set", index, value(index).name);
  require(!input || !caller_memory_.contains(index), kBadArgument,
          "tensor {} '{}' is bound to memory of the caller: write there, or unbind it first", index, value(index).name);
  if (value(index).dtype == DType::kString) {
    const std::string problem = string_tensor_problem(bytes, planned.shape.elements());
    require(problem.empty(), kBadArgument, "tensor {} '{}': {}", index, value(index).name, problem);
    if (planned.bytes != static_cast<int64_t>(bytes.size())) {
      runner_->resize_string_input(index, static_cast<int64_t>(bytes.size()));
    }
  }
  require(static_cast<int64_t>(bytes.size()) == planned.bytes, kBadArgument,
          "tensor {} '{}' of shape {} takes {} bytes, got {}", index, value(index).name, planned.shape.to_string(),
          planned.bytes, bytes.size());
  copy_bytes(runner_->bindings().address(index), bytes.data(), static_cast<int64_t>(bytes.size()));
}

/// Throws when `memory` could not stand for the tensor, whatever its shape is now.
void Executable::check_bindable(int index, const TensorMemory& memory) const {
  check_index(index);
  const ir::Value& target = value(index);
  const bool input = contains(subgraph().inputs, index) && !target.constant;
  require(input || target.variable || contains(subgraph().outputs, index), kBadArgument,
          "tensor {} '{}' is not an input, output or variable, so it cannot be bound", index, target.name);
  require(dtype_bits(target.dtype) > 0, ErrorCode::kUnsupported,
          "tensor {} '{}' of type {} cannot be bound: its size depends on its contents", index, target.name,
          dtype_name(target.dtype));
  require(memory.dtype == target.dtype, kBadArgument, "tensor {} '{}' has type {}, the memory bound to it {}", index,
          target.name, dtype_name(target.dtype), dtype_name(memory.dtype));
  require(storage_bytes(memory.dtype, memory.shape) == memory.bytes, kBadArgument,
          "the memory for tensor {} '{}' has {} bytes, its shape {} takes another number", index, target.name,
          memory.bytes, memory.shape.to_string());
  require(memory.data != nullptr || memory.bytes == 0, kBadArgument, "the memory for tensor {} '{}' is null", index,
          target.name);
  require(reinterpret_cast<uintptr_t>(memory.data) % static_cast<uintptr_t>(dtype_alignment(target.dtype)) == 0,
          kBadArgument, "the memory for tensor {} '{}' of type {} is not aligned to {} bytes", index, target.name,
          dtype_name(target.dtype), dtype_alignment(target.dtype));
}

void Executable::note_rebound() {
  if (stage_ == Stage::kReady) stage_ = Stage::kRebound;
}

void Executable::bind(int index, TensorMemory memory) {
  CallerMemory before;  // destroyed after the lock: its owner may run code of the caller
  const std::lock_guard lock(mutex_);
  refresh();
  check_bindable(index, memory);
  CallerMemory theirs{std::move(memory.owner), memory.data, memory.bytes, memory.shape, memory.read_only};
  check_caller_memory(runner_->planner(), index, theirs);
  note_rebound();
  before = std::exchange(caller_memory_[index], std::move(theirs));
}

void Executable::unbind(int index) {
  CallerMemory before;
  const std::lock_guard lock(mutex_);
  check_index(index);
  auto bound = caller_memory_.extract(index);
  if (bound.empty()) return;
  note_rebound();
  before = std::move(bound.mapped());
}

}  // namespace leadline::runtime
