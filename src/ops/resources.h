// SPDX-License-Identifier: Apache-2.0
// State that outlives a run and is named by resource tensors: the variables of VAR_HANDLE.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "base/tensor.h"

namespace leadline::ops {

/// Hears of memory before it is taken and after it was given back, so that plans stay equal to counts.
using PlanListener = std::function<void(int64_t bytes, MemoryCategory category)>;

/// Variables by number. Not thread-safe: belongs to one interpreter (or to several that take turns).
class Resources {
 public:
  explicit Resources(std::shared_ptr<Budget> budget) : budget_(std::move(budget)) {}
  /// `listener` gets positive bytes before an allocation and negative ones after a release.
  void set_listener(PlanListener listener) { listener_ = std::move(listener); }

  /// The number of the variable called `name`; made on first use.
  int32_t handle(const std::string& name);
  bool valid(int32_t id) const { return id >= 0 && id < static_cast<int32_t>(variables_.size()); }

  /// Says while planning that variable `id` will hold this; memory is taken by allocate().
  void reserve(int32_t id, DType dtype, const Shape& shape, int64_t bytes);
  /// The reserved or held shape, if there is one.
  const Shape* shape(int32_t id) const;
  /// Bytes that allocate() will take beyond what is held.
  int64_t pending_bytes() const;
  int64_t held_bytes() const;
  void allocate();

  /// Copies a tensor in; takes other memory when the size differs.
  void assign(int32_t id, const TensorView& value);
  /// The contents, or null data when nothing was assigned yet.
  TensorView read(int32_t id) const;
  /// Whether the initialiser `subgraph` has run for this state.
  bool initialized(int subgraph) const { return initialized_.contains(subgraph); }
  void mark_initialized(int subgraph) { initialized_.insert(subgraph); }
  /// Forgets all contents; initialisers run again.
  void reset();

 private:
  struct Variable {
    std::string name;
    DType dtype = DType::kFloat32;
    Shape shape;
    int64_t bytes = 0;
    bool reserved = false;
    bool assigned = false;
    Buffer memory;
  };
  void take(Variable& variable, int64_t bytes);

  std::shared_ptr<Budget> budget_;
  PlanListener listener_;
  std::set<int> initialized_;
  std::map<std::string, int32_t> ids_;
  std::vector<Variable> variables_;
};

}  // namespace leadline::ops
