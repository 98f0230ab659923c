// SPDX-License-Identifier: Apache-2.0
#include "jobs/debug_effects.h"

#include <algorithm>
#include <limits>

#include "core/error.h"
#include "debug/effects.h"
#include "debug/mixed_graph.h"
#include "debug/output_score.h"
#include "jobs/output_run.h"
#include "jobs/sample_shapes.h"
#include "jobs/suggestions.h"
#include "runtime/loaded_model.h"

namespace leadline::jobs {
namespace {

/// Effects are differences of the same samples, for which few will do: of a large model, as many as take so many
/// products over all runs, some seconds on one core. A count, not a time: results do not depend on how busy a
/// machine is.
constexpr double kMostProducts = 5e10;
constexpr double kFewest = 3.0;

std::string obstacle_of(const Model& reference, const DebugOptions& options) {
  if (options.subgraph != 0) return "the samples are for another signature than the first";
  for (const ir::Subgraph& subgraph : reference.loaded()->graph()->subgraphs) {
    for (const ir::Value& value : subgraph.values) {
      if (value.variable || value.dtype == DType::kResource) return "the model keeps state from sample to sample";
    }
  }
  return {};
}

DebugMeasure measure_of(const DebugResult& result) {
  DebugMeasure measure;
  for (const DebugOutput& output : result.outputs) {
    measure.error = std::max(measure.error, output.noise);
    measure.cosine = std::min(measure.cosine, output.accumulated.cosine);
    measure.rows += output.rows;
    measure.clearly_other = std::max(measure.clearly_other, output.clearly_other);
  }
  return measure;
}

}  // namespace

DebugEffects::DebugEffects(const Model& reference, const Model& quantized, const DebugOptions& options,
                           const std::vector<Shape>& shapes)
    : options_(options), obstacle_(obstacle_of(reference, options)) {
  if (!options.effects) obstacle_ = "effects were not asked for";
  if (!obstacle_.empty()) return;
  InterpreterOptions how;  // without a limit: the job compares its plan with the caller's
  how.budget = Budget::with_limit(std::numeric_limits<int64_t>::max());
  how.num_threads = options.num_threads;
  how.disabled_passes = {"all"};  // what they change would stay with the model
  Interpreter runs_float(reference, how);
  Interpreter runs_integers(quantized, how);
  resize_inputs(runs_float, shapes);
  if (!shapes.empty()) {
    const debug::MixedGraphs graphs(reference.loaded()->graph(), quantized.loaded()->graph(), 0);
    resize_inputs(runs_integers, shapes, graphs.match().input);
  }
  if (!plan_if_sized(runs_float)) return;  // the first sample says the sizes
  sample_bytes_ = KeptSamples::capacity(runs_float);
  PhaseMemory memory = run_memory(runs_float).bytes + run_memory(runs_integers).bytes;
  const auto values = static_cast<int64_t>(quantized.subgraph(0).tensors.size());
  memory.add(MemoryCategory::kGraph,
             reference.loaded()->graph_bytes() + quantized.loaded()->graph_bytes() + kConversionBytes * values);
  // To tell weights from values, weights are widened to float.
  memory.add(MemoryCategory::kPackedWeights, reference.file_bytes());
  effect_memory_ = memory;
  if (!options.suggestions) return;
  try {
    made_with_ = options_of(reference, quantized);
    suggestion_memory_ = jobs::suggestion_memory(reference, *made_with_, shapes);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnsupported && error.code() != ErrorCode::kInvalidArgument) throw;
    made_with_.reset();  // Leadline does not quantize this model
  }
}

OutputRunOptions DebugEffects::how_to_run(const debug::MixedGraphs& graphs, const JobBudget& budget) const {
  OutputRunOptions how;
  how.num_threads = options_.num_threads;
  how.budget = budget.own();
  how.inputs = graphs.match().input;
  how.outputs = graphs.outputs();
  return how;
}

std::vector<const KeptSamples::Kept*> DebugEffects::as_many_as_time_allows(
    const Model& quantized, const std::vector<const KeptSamples::Kept*>& samples) const {
  int64_t macs = 0;
  for (const NodeInfo& node : quantized.subgraph(0).nodes) macs += node.macs;
  const double affordable = kMostProducts / (static_cast<double>(std::max<int64_t>(macs, 1)) * options_.effect_runs);
  const auto all = static_cast<double>(samples.size());
  const auto count = static_cast<size_t>(std::clamp(affordable, std::min(kFewest, all), all));
  std::vector<const KeptSamples::Kept*> evenly;
  for (size_t i = 0; i < count; ++i) evenly.push_back(samples[i * samples.size() / count]);
  return evenly;
}

debug::Effects DebugEffects::measure(const Model& reference, const Model& quantized, const KeptSamples& samples,
                                     JobBudget& budget, const JobObserver& observer,
                                     const std::function<bool()>& out_of_time) const {
  const debug::MixedGraphs graphs(reference.loaded()->graph(), quantized.loaded()->graph(), 0);
  const OutputRunOptions how = how_to_run(graphs, budget);
  const auto chosen_by = as_many_as_time_allows(quantized, samples.part(KeptSamples::Part::kChosenBy));
  int64_t runs = 0;
  const auto measure_one = [&](const std::vector<bool>& nodes, debug::Rounded rounded) {
    require(!observer || observer({"effects", "trials", ++runs, -1}), ErrorCode::kCancelled,
            "stopped before it was finished");
    const Model mixed(runtime::LoadedModel::from_graph(graphs.with_float(nodes, rounded), budget.own()));
    const DebugMeasure measured = measure_outputs(mixed, chosen_by, how);
    budget.count_models();
    return measured;
  };
  return debug::measure_effects(graphs, reference.loaded()->graph()->subgraphs[0], measure_one, options_.effect_runs,
                                out_of_time);
}

void DebugEffects::run(const Model& reference, const Model& quantized, const KeptSamples& samples, JobBudget& budget,
                       const JobObserver& observer, int subgraph, DebugResult& result) const {
  if (!debug::lost_something(measure_of(result))) {
    // Whatever layers lose by themselves, nothing of it arrives.
    std::erase_if(result.suspects, [](const DebugSuspect& suspect) { return suspect.kind != "not_finite"; });
    return;
  }
  const std::string obstacle = subgraph == 0 ? obstacle_ : "the samples are for another signature than the first";
  if (!obstacle.empty()) {
    result.notes.push_back("Effects were not measured: " + obstacle + ". Suspects are a guess.");
    return;
  }
  const debug::Effects effects = measure(reference, quantized, samples, budget, observer);
  debug::add_effects(effects, result);
  if (!options_.suggestions) return;
  if (!made_with_) {
    result.notes.emplace_back("No suggestions were tried: Leadline does not quantize this float model.");
    return;
  }
  const debug::MixedGraphs graphs(reference.loaded()->graph(), quantized.loaded()->graph(), 0);
  const OutputRunOptions how = how_to_run(graphs, budget);
  SuggestionTask task{reference, quantized, *made_with_, options_.equalized, &samples, &effects,
                      how,       &budget,   observer};
  task.made_with.num_threads = options_.num_threads;
  find_suggestions(task, result);
}

}  // namespace leadline::jobs
