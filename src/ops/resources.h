// SPDX-License-Identifier: Apache-2.0
// State that outlives a run: the variables of VAR_HANDLE and the tables of HASHTABLE, named by resource tensors, and
// the generators of random ops.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/buffer.h"
#include "core/tensor.h"
#include "ir/graph.h"
#include "kernels/random/philox.h"
#include "ops/lookup_table.h"

namespace leadline::ops {

/// Hears of memory before it is taken and after it was given back, so that plans stay equal to counts.
using PlanListener = std::function<void(int64_t bytes, MemoryCategory category)>;

/// Variables and tables by number. Not thread-safe: belongs to one interpreter (or to several that take turns).
class Resources {
 public:
  explicit Resources(std::shared_ptr<Budget> budget) : budget_(std::move(budget)) {}
  /// `listener` gets positive bytes before an allocation and negative ones after a release.
  void set_listener(PlanListener listener) { listener_ = std::move(listener); }

  /// The number of the variable called `name`; made on first use.
  int32_t handle(const std::string& name);
  /// Whether `id` is the number of a variable, or of a table.
  bool valid(int32_t id) const { return exists(id) && !variables_[static_cast<size_t>(id)].is_table; }
  bool is_table(int32_t id) const { return exists(id) && variables_[static_cast<size_t>(id)].is_table; }

  /// A plan begins, or continues in the middle of a run (`running`): until it reserves something, variables have the
  /// shapes they hold, which are certain only when running.
  void begin_plan(bool running);
  bool running() const { return running_; }
  void set_running(bool running) { running_ = running; }
  /// Says while planning that variable or table `id` will hold this; allocate() takes memory for its first contents.
  void reserve(int32_t id, DType dtype, const Shape& shape, int64_t bytes);
  /// Whether the plan so far assigns the variable.
  bool reserved(int32_t id) const { return variables_[static_cast<size_t>(id)].reserved; }
  /// The shape that the plan so far leaves, else the held one, if there is one.
  const Shape* shape(int32_t id) const;
  /// Bytes that allocate() will take beyond what is held.
  int64_t pending_bytes() const;
  int64_t held_bytes() const;
  void allocate();

  /// Copies a tensor in; takes other memory when the size differs.
  void assign(int32_t id, const TensorView& value);
  /// The contents, or null data when nothing was assigned yet.
  TensorView read(int32_t id) const;

  /// The number of table `table_id`; made with these types on first use.
  int32_t table_handle(int32_t table_id, DType key, DType value);
  DType table_key(int32_t id) const { return variables_[static_cast<size_t>(id)].key_dtype; }
  DType table_value(int32_t id) const { return variables_[static_cast<size_t>(id)].dtype; }
  /// Fills a table, unless it is filled already. The tensors have the table's types and were checked.
  void import_table(int32_t id, const TensorView& keys, const TensorView& values);
  /// The table, or null when nothing was imported yet.
  const LookupTable* table(int32_t id) const;

  /// The generator of a random op, which continues from run to run also where the node is planned again in each; null
  /// on first use, for the op to make it.
  std::shared_ptr<kernels::Philox>& generator(const ir::Node& node) { return generators_[&node]; }
  /// No op planned so far has variables, tables or random numbers.
  bool empty() const { return variables_.empty() && generators_.empty(); }
  /// Random ops that are planned from now on start from their seeds again.
  void restart_generators() { generators_.clear(); }

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
    Shape planned;          // what the last node planned so far assigns
    bool reserved = false;  // `planned` counts
    bool assigned = false;
    bool is_table = false;
    DType key_dtype = DType::kFloat32;  // of a table
    std::optional<LookupTable> table;   // in `memory`; what it holds counts while `assigned`
    Buffer memory;
  };
  bool exists(int32_t id) const { return id >= 0 && id < static_cast<int32_t>(variables_.size()); }
  friend class Workspace;
  void take(Variable& variable, int64_t bytes);
  Buffer take_buffer(int64_t bytes, MemoryCategory category);

  std::shared_ptr<Budget> budget_;
  PlanListener listener_;
  std::set<int> initialized_;
  std::map<std::string, int32_t> ids_;
  std::vector<Variable> variables_;
  std::map<const ir::Node*, std::shared_ptr<kernels::Philox>> generators_;
  bool running_ = false;
};

/// Memory for work outside a kernel's run, such as counting results to learn an output's shape: charged and entered in
/// the plan for as long as this lives.
class Workspace {
 public:
  Workspace(Resources& resources, int64_t bytes);
  ~Workspace();
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  std::byte* data() const { return memory_.data(); }

 private:
  Resources& resources_;
  Buffer memory_;
};

}  // namespace leadline::ops
