// SPDX-License-Identifier: Apache-2.0
// A model in memory: the verified graph over its file, what it is charged for, and what its executables share.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "io/mapped_file.h"
#include "ir/changed_nodes.h"
#include "ir/graph.h"
#include "leadline/model_info.h"
#include "passes/passes.h"
#include "runtime/packed_weights.h"

namespace leadline::runtime {

/// Immutable but for what executables add to it (packed weights, changes for runs). Thread-safe.
class LoadedModel {
 public:
  /// Maps and verifies a file; messages begin with its path. A null budget is the machine's. Throws Error, BudgetError.
  static std::shared_ptr<const LoadedModel> load(const std::string& path, std::shared_ptr<Budget> budget);
  /// The same for bytes in memory.
  static std::shared_ptr<const LoadedModel> read(const std::shared_ptr<ModelBytes>& bytes,
                                                 std::shared_ptr<Budget> budget);
  /// A model whose file is written into memory of its own, which is charged first.
  static std::shared_ptr<const LoadedModel> write(int64_t bytes, const ModelBytes::Fill& fill,
                                                  std::shared_ptr<Budget> budget);
  /// A graph made from others: its constants lie in their models, which are charged for them.
  static std::shared_ptr<const LoadedModel> from_graph(std::shared_ptr<const ir::Graph> graph,
                                                       std::shared_ptr<Budget> budget);
  ~LoadedModel();
  LoadedModel(const LoadedModel&) = delete;
  LoadedModel& operator=(const LoadedModel&) = delete;

  const std::shared_ptr<const ir::Graph>& graph() const { return graph_; }
  /// What the model is charged to.
  const std::shared_ptr<Budget>& budget() const { return budget_; }
  const std::shared_ptr<PackedWeightsCache>& packed_weights() const { return packed_weights_; }
  /// Bytes charged for the file and for the graph's structures.
  int64_t file_bytes() const { return file_bytes_; }
  int64_t graph_bytes() const { return graph_bytes_; }
  /// Bytes charged now, packed weights included.
  int64_t memory_bytes() const { return charged_->used(); }

  /// Throws Error(kIo) when the model's file was damaged while it was mapped: what was computed from it is void.
  void require_intact(bool cheap = false) const {
    if (graph_->bytes) graph_->bytes->require_intact(cheap);
  }

  /// What passes make of the graph for runs, made once for each set of disabled passes and charged to the model; null
  /// when they change nothing or the budget has no room.
  std::shared_ptr<const ir::ChangedNodes> changes_for_runs(const passes::PassNames& disabled) const;

 private:
  explicit LoadedModel(std::shared_ptr<Budget> budget);
  void charge_file(int64_t bytes);
  void use_graph(std::shared_ptr<const ir::Graph> graph);
  void read_graph(const std::shared_ptr<ModelBytes>& bytes);

  std::shared_ptr<Budget> budget_;   // the caller's
  std::shared_ptr<Budget> charged_;  // this model's own count, a child of `budget_`
  std::shared_ptr<const ir::Graph> graph_;
  std::shared_ptr<PackedWeightsCache> packed_weights_;
  int64_t file_bytes_ = 0;
  int64_t graph_bytes_ = 0;
  mutable std::mutex changes_mutex_;
  mutable std::map<passes::PassNames, std::shared_ptr<const ir::ChangedNodes>> changes_;
};

/// Description of one value, with its shape in the file.
TensorInfo describe_tensor(const ir::Subgraph& subgraph, int index);

}  // namespace leadline::runtime
