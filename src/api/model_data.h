// SPDX-License-Identifier: Apache-2.0
// What a Model handle points to.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "io/mapped_file.h"
#include "ir/graph.h"
#include "leadline/model.h"
#include "passes/passes.h"
#include "runtime/packed_weights.h"

namespace leadline {

struct Model::Data {
  ~Data();
  /// The handle of a model that was not read from a file.
  static Model make_model(std::shared_ptr<Data> data) { return Model(std::move(data)); }
  /// A model whose file is written into memory of its own; charged before. Null budget: the machine's.
  static Model write(int64_t bytes, const ModelBytes::Fill& fill, std::shared_ptr<Budget> budget);

  /// Throws Error(kIo) when the model's file was damaged while it was mapped: what was computed from it is void.
  void require_intact(bool cheap = false) const {
    if (graph->bytes) graph->bytes->require_intact(cheap);
  }

  std::shared_ptr<Budget> budget;   // the caller's
  std::shared_ptr<Budget> charged;  // this model's own count, a child of `budget`
  std::shared_ptr<const ir::Graph> graph;
  std::shared_ptr<runtime::PackedWeights> packed_weights;
  int64_t file_bytes = 0;   // as charged
  int64_t graph_bytes = 0;  // as charged

  /// What passes make of the graph for runs, made once for each set of disabled passes and charged to the model; null
  /// when they change nothing or the budget has no room. Thread-safe.
  std::shared_ptr<const ir::ChangedNodes> changes_for_runs(const passes::PassNames& disabled) const;

 private:
  mutable std::mutex changes_mutex_;
  mutable std::map<passes::PassNames, std::shared_ptr<const ir::ChangedNodes>> changes_;
};

/// Description of one value, with the shape the file gives it.
TensorInfo describe_tensor(const ir::Subgraph& subgraph, int index);

}  // namespace leadline
