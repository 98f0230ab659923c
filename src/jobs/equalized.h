// SPDX-License-Identifier: Apache-2.0
// A float model with even channels, as a job plans it and as it makes it.
#pragma once

#include <memory>
#include <optional>

#include "ir/graph.h"
#include "jobs/phase_memory.h"
#include "leadline/budget.h"
#include "leadline/model.h"
#include "leadline/progress.h"

namespace leadline::jobs {

class EqualizedForm {
 public:
  /// Reads the weights; takes memory for the graph only.
  explicit EqualizedForm(const Model& model);

  /// Whether it is another model than the given one.
  bool changed() const { return graph_ != nullptr; }
  /// What make() takes besides the given model, and what stays. changed() only.
  PhaseMemory peak() const;
  PhaseMemory result() const { return PhaseMemory::of(*outline_); }
  /// To plan with: the given model, or the outline of the changed one.
  const Model& outline() const { return outline_ ? *outline_ : model_; }
  /// The model to run, charged to `budget`; the given one when nothing changed. Once.
  Model make(const std::shared_ptr<Budget>& budget, const Progress& progress = {});

 private:
  Model model_;
  std::unique_ptr<ir::Graph> graph_;
  std::optional<Model> outline_;
};

}  // namespace leadline::jobs
