// SPDX-License-Identifier: Apache-2.0
#include "ops/resources.h"

#include <cstring>

#include "core/error.h"
#include "core/work.h"

namespace leadline::ops {

int32_t Resources::handle(const std::string& name) {
  if (const auto it = ids_.find(name); it != ids_.end()) return it->second;
  Variable variable;
  variable.name = name;
  variables_.push_back(std::move(variable));
  try {
    return ids_.emplace(name, static_cast<int32_t>(variables_.size()) - 1).first->second;
  } catch (...) {
    variables_.pop_back();
    throw;
  }
}

void Resources::begin_plan(bool running) {
  running_ = running;
  for (Variable& v : variables_) v.reserved = false;
}

void Resources::reserve(int32_t id, DType dtype, const Shape& shape, int64_t bytes) {
  Variable& v = variables_[static_cast<size_t>(id)];
  v.planned = shape;
  v.reserved = true;
  if (v.assigned) return;
  v.dtype = dtype;
  v.shape = shape;
  v.bytes = bytes;
}

const Shape* Resources::shape(int32_t id) const {
  const Variable& v = variables_[static_cast<size_t>(id)];
  if (v.reserved) return &v.planned;
  return v.assigned ? &v.shape : nullptr;
}

int64_t Resources::pending_bytes() const {
  int64_t bytes = 0;
  for (const Variable& v : variables_) {
    if (v.reserved) bytes += std::max<int64_t>(0, align_up(v.bytes) - v.memory.bytes());
  }
  return bytes;
}

int64_t Resources::held_bytes() const {
  int64_t bytes = 0;
  for (const Variable& v : variables_) bytes += v.memory.bytes();
  return bytes;
}

void Resources::allocate() {
  for (Variable& v : variables_) {
    if (v.reserved && v.memory.bytes() < align_up(v.bytes)) take(v, v.bytes);
  }
}

void Resources::take(Variable& variable, int64_t bytes) {
  const int64_t held = variable.memory.bytes();
  variable.table.reset();
  variable.memory = Buffer();
  variable.assigned = false;  // and stays so when the new memory is refused
  if (listener_ && held > 0) listener_(-held, MemoryCategory::kVariables);
  variable.memory = take_buffer(bytes, MemoryCategory::kVariables);
}

Buffer Resources::take_buffer(int64_t bytes, MemoryCategory category) {
  if (listener_) listener_(align_up(bytes), category);
  try {
    return Buffer(budget_, bytes, category);
  } catch (...) {
    if (listener_) listener_(-align_up(bytes), category);
    throw;
  }
}

void Resources::assign(int32_t id, const TensorView& value) {
  Variable& v = variables_[static_cast<size_t>(id)];
  if (v.memory.bytes() != align_up(value.bytes)) take(v, value.bytes);
  v.dtype = value.dtype;
  v.shape = value.shape;
  v.bytes = value.bytes;
  v.assigned = true;
  if (value.bytes > 0) copy_bytes(v.memory.data(), value.data, value.bytes);
}

TensorView Resources::read(int32_t id) const {
  const Variable& v = variables_[static_cast<size_t>(id)];
  if (!v.assigned) return {};
  static const Quantization kNone;
  return {v.dtype, v.shape, v.memory.data(), v.bytes, &kNone};
}

int32_t Resources::table_handle(int32_t table_id, DType key, DType value) {
  // No variable has this name: theirs hold another separator.
  const int32_t id = handle(fmt::format("table\x1e{}", table_id));
  Variable& v = variables_[static_cast<size_t>(id)];
  if (!v.is_table) {
    v.is_table = true;
    v.key_dtype = key;
    v.dtype = value;
  }
  return id;
}

void Resources::import_table(int32_t id, const TensorView& keys, const TensorView& values) {
  Variable& v = variables_[static_cast<size_t>(id)];
  if (v.assigned) return;
  const auto bytes = LookupTable::memory_bytes(keys.elements(), keys.bytes, values.bytes);
  require(bytes.has_value(), ErrorCode::kRuntime, "a table of {} keys is too large", keys.elements());
  if (v.memory.bytes() != align_up(*bytes)) take(v, *bytes);
  v.bytes = *bytes;
  v.table.emplace(v.memory.data(), keys, values);
  v.assigned = true;
}

const LookupTable* Resources::table(int32_t id) const {
  const Variable& v = variables_[static_cast<size_t>(id)];
  return v.assigned && v.table ? &*v.table : nullptr;
}

void Resources::reset() {
  for (Variable& v : variables_) v.assigned = false;
  initialized_.clear();
}

// Of the arena's kind: that is where a kernel's own scratch lies.
Workspace::Workspace(Resources& resources, int64_t bytes)
    : resources_(resources), memory_(resources.take_buffer(bytes, MemoryCategory::kArena)) {}

Workspace::~Workspace() {
  const int64_t bytes = memory_.bytes();
  memory_ = Buffer();
  if (resources_.listener_) resources_.listener_(-bytes, MemoryCategory::kArena);
}

}  // namespace leadline::ops
