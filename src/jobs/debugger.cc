// SPDX-License-Identifier: Apache-2.0
#include "leadline/debugger.h"

#include <algorithm>
#include <utility>

#include "core/boundary.h"
#include "core/error.h"
#include "debug/belonging.h"
#include "debug/comparison.h"
#include "debug/comparison_graph.h"
#include "debug/result.h"
#include "jobs/phase_memory.h"
#include "runtime/loaded_model.h"

namespace leadline {
namespace {

InterpreterOptions interpreter_options(const DebugOptions& options, const std::shared_ptr<Budget>& budget) {
  InterpreterOptions result;
  result.num_threads = options.num_threads;
  result.budget = budget;
  result.subgraph = options.subgraph;
  result.disabled_passes = {"all"};  // for observers
  result.keep_plans = false;         // what is planned is for one size
  return result;
}

}  // namespace

struct QuantizationDebugger::State {
  State(const Model& float_model, const Model& quantized_model, DebugOptions chosen)
      : reference(float_model),
        quantized(quantized_model),
        options(std::move(chosen)),
        budget((options.budget ? options.budget : float_model.budget())->child()),
        graph(debug::make_comparison(reference.loaded()->graph(), quantized.loaded()->graph(), options.subgraph,
                                     options.own_error)),
        comparison(graph),
        model(runtime::LoadedModel::from_graph(graph.graph, budget)),
        interpreter(model, interpreter_options(options, budget)) {
    interpreter.add_observer(&comparison);
  }

  ~State() { budget->release(charged, MemoryCategory::kStatistics); }

  int64_t statistics_bytes() const {
    int64_t bytes = 0;
    for (const debug::Probe& probe : graph.probes) {
      const ir::Subgraph& subgraph = graph.graph->subgraphs[static_cast<size_t>(probe.subgraph)];
      const Shape shape = probe.subgraph == options.subgraph ? interpreter.tensor_info(probe.tensor).shape
                                                             : subgraph.value(probe.tensor).shape;
      bytes += debug::Comparison::bytes_for(shape);
    }
    return bytes;
  }

  /// Statistics are charged before they are filled.
  void charge_statistics() {
    const int64_t needed = statistics_bytes();
    if (needed > charged) {
      budget->charge(needed - charged, MemoryCategory::kStatistics);
      charged = needed;
    }
  }

  JobPlan plan() const {
    using jobs::PhaseMemory;
    const PhaseMemory models = PhaseMemory::of(reference) + PhaseMemory::of(quantized);
    const jobs::RunMemory run = jobs::run_memory(interpreter);
    PhaseMemory compares = models + PhaseMemory::of(model) + run.bytes;
    const int64_t statistics = statistics_bytes();
    compares.add(MemoryCategory::kStatistics, statistics);
    const auto layers = std::count_if(graph.probes.begin(), graph.probes.end(), [](const debug::Probe& probe) {
      return probe.kind == debug::Probe::Kind::kLayer;
    });
    return jobs::make_plan(
        "debug",
        {models.phase("load", "both files and their graphs"),
         compares.phase("compare", fmt::format("{} layers, statistics {}", layers, budget->format(statistics)))},
        0, run.complete, budget->units());
  }

  Model reference;
  Model quantized;
  DebugOptions options;
  std::shared_ptr<Budget> budget;
  debug::ComparisonGraph graph;
  debug::Comparison comparison;
  Model model;
  Interpreter interpreter;
  int64_t samples = 0;
  int64_t charged = 0;
};

QuantizationDebugger::QuantizationDebugger(const Model& float_model, const Model& quantized_model,
                                           DebugOptions options) try
    : state_(std::make_unique<State>(float_model, quantized_model, std::move(options))) {
} catch (...) {
  rethrow_as_error();
}
QuantizationDebugger::~QuantizationDebugger() = default;
QuantizationDebugger::QuantizationDebugger(QuantizationDebugger&&) noexcept = default;
QuantizationDebugger& QuantizationDebugger::operator=(QuantizationDebugger&&) noexcept = default;

Interpreter& QuantizationDebugger::interpreter() try { return state_->interpreter; } catch (...) {
  rethrow_as_error();
}

void QuantizationDebugger::add_sample() try {
  state_->charge_statistics();
  state_->interpreter.invoke();
  ++state_->samples;
} catch (...) {
  rethrow_as_error();
}

JobPlan QuantizationDebugger::plan() const try { return state_->plan(); } catch (...) {
  rethrow_as_error();
}

DebugResult QuantizationDebugger::result() const try {
  const State& s = *state_;
  DebugResult result = debug::make_result(*s.reference.loaded()->graph(), *s.quantized.loaded()->graph(), s.graph,
                                          s.comparison, {s.options.worst_channels, s.options.histograms});
  s.model.loaded()->require_intact();  // weights were compared
  debug::require_compared(result, s.samples > 0);
  result.samples = s.samples;
  result.float_bytes = s.reference.file_bytes();
  result.quantized_bytes = s.quantized.file_bytes();
  result.plan = s.plan();
  return result;
} catch (...) {
  rethrow_as_error();
}

void QuantizationDebugger::clear() try {
  state_->comparison.clear();
  state_->samples = 0;
} catch (...) {
  rethrow_as_error();
}

}  // namespace leadline
