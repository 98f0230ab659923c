// SPDX-License-Identifier: Apache-2.0
#include "jobs/equalized.h"

#include <utility>

#include "core/boundary.h"
#include "jobs/model_writing.h"
#include "leadline/quantize.h"
#include "passes/passes.h"
#include "quantize/equalize.h"
#include "runtime/loaded_model.h"

namespace leadline {
namespace jobs {

EqualizedForm::EqualizedForm(const Model& model) : model_(model) {
  auto graph = std::make_unique<ir::Graph>(*model.loaded()->graph());
  if (quantize::equalize(*graph) == 0) return;
  passes::remove_dead(*graph);
  outline_ = outline_of(*graph);
  graph_ = std::move(graph);
  model.loaded()->require_intact();
}

PhaseMemory EqualizedForm::peak() const { return writing_memory(*graph_); }

Model EqualizedForm::make(const std::shared_ptr<Budget>& budget, const Progress& progress) {
  if (graph_ == nullptr) return model_;
  Model result = write_model(std::move(graph_), budget, progress);
  model_.loaded()->require_intact();
  return result;
}

}  // namespace jobs

Model equalized_model(const Model& model, const std::shared_ptr<Budget>& budget) try {
  return jobs::EqualizedForm(model).make(budget ? budget : model.budget());
} catch (...) {
  rethrow_as_error();
}

}  // namespace leadline
