// SPDX-License-Identifier: Apache-2.0
#include "leadline/tune.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>

#include "core/boundary.h"
#include "core/charge.h"
#include "core/error.h"
#include "jobs/calibration_run.h"
#include "jobs/comparison_run.h"
#include "jobs/debug_effects.h"
#include "jobs/equalized.h"
#include "jobs/evaluator_memory.h"
#include "jobs/sample_shapes.h"
#include "jobs/tune_search.h"
#include "runtime/loaded_model.h"

namespace leadline {
namespace {

using jobs::Names;
using jobs::PhaseMemory;

/// Where a kept node meets others a conversion is added to the file and the graph: a node, and a tensor whose name is
/// that of another and a suffix.
constexpr int64_t kConversionBytes = 512;

DebugOptions ordering_options(const QuantizeOptions& options) {
  DebugOptions result;
  result.num_threads = options.num_threads;
  return result;
}

DebugOptions effect_options(const QuantizeOptions& options) {
  DebugOptions result = ordering_options(options);
  result.suggestions = false;
  return result;
}

DebugOptions agreement_options(const QuantizeOptions& options) {
  DebugOptions result = ordering_options(options);
  result.worst_channels = 0;
  result.histograms = 0;
  result.own_error = false;
  return result;
}

double agreement_of(const DebugResult& result, TuneMetric metric) {
  double least = 1.0;
  for (const DebugOutput& output : result.outputs) {
    least = std::min(least, metric == TuneMetric::kCosine ? output.accumulated.cosine : output.same_argmax);
  }
  return least;
}

/// Names (in the float model) of the layers that can be kept, those that lose most by themselves first.
Names order_of(const DebugResult& result, const ir::Graph& graph) {
  std::vector<const LayerDebug*> layers;
  for (const LayerDebug& layer : result.layers) {
    if (layer.own && layer.float_node >= 0 && layer.quantized) layers.push_back(&layer);
  }
  std::stable_sort(layers.begin(), layers.end(),
                   [](const LayerDebug* a, const LayerDebug* b) { return a->own->lost_signal > b->own->lost_signal; });
  Names names;
  for (const LayerDebug* layer : layers) {
    const ir::Subgraph& subgraph = graph.subgraphs[static_cast<size_t>(layer->subgraph)];
    const std::string& name = subgraph.value(layer->float_tensor).name;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

/// What to keep, by effect.
std::vector<jobs::TuneSearch::Region> regions_of(const debug::Effects& effects) {
  const auto names_of = [&](const debug::Region& region) {
    Names names;
    for (const int i : region.nodes) names.push_back(effects.nodes[static_cast<size_t>(i)].name);
    return names;
  };
  std::vector<jobs::TuneSearch::Region> regions;
  for (const int r : effects.guilty()) {
    const debug::Region& region = effects.regions[static_cast<size_t>(r)].region;
    jobs::TuneSearch::Region added{names_of(region), {}};
    for (const debug::Region& part : debug::split(region, effects.nodes)) added.parts.push_back(names_of(part));
    regions.push_back(std::move(added));
  }
  return regions;
}

jobs::TuneSearch::Readers readers_of(const ir::Graph& graph) {
  jobs::TuneSearch::Readers readers;
  for (const ir::Subgraph& subgraph : graph.subgraphs) {
    for (const ir::Node& node : subgraph.nodes) {
      if (node.outputs.empty() || node.outputs[0] == ir::kAbsent) continue;
      for (const int v : node.inputs) {
        if (v == ir::kAbsent || subgraph.value(v).constant) continue;
        readers[subgraph.value(v).name].push_back(subgraph.value(node.outputs[0]).name);
      }
    }
  }
  return readers;
}

/// What all sources hold.
int64_t peak_bytes_of(const TuneSamples& samples) {
  int64_t bytes = 0;
  for (const SampleSource* one : {samples.calibration, samples.debug, samples.metric}) {
    bytes += one != nullptr ? one->peak_bytes() : 0;
  }
  return bytes;
}

/// Readers of the job's sources, each begun again when it is used again.
class SampleReaders {
 public:
  SampleReaders(const Model& model, int64_t limit) : model_(model), limit_(limit) {}

  SampleReader& open(SampleSource* source, const char* what) {
    require(source != nullptr, ErrorCode::kInvalidArgument, "tune needs samples {}", what);
    const auto found = readers_.find(source);
    if (found == readers_.end()) {
      return readers_.emplace(source, SampleReader(model_, *source, {.limit = limit_})).first->second;
    }
    require(found->second.rewind(), ErrorCode::kInvalidArgument,
            "tune reads samples more than once, but these can be read only once; use a list, a function or files");
    return found->second;
  }

 private:
  const Model& model_;
  int64_t limit_;
  std::map<SampleSource*, SampleReader> readers_;
};

/// The quantized files, one at a time.
class TrialFiles {
 public:
  TrialFiles(const Model& model, const TuneOptions& options, const Calibration* calibration, jobs::JobBudget& budget,
             const QuantizeJob::Allocate& allocate)
      : model_(model),
        options_(options),
        calibration_(calibration),
        budget_(budget),
        allocate_(allocate),
        charge_(budget.own(), MemoryCategory::kModelFile) {}

  std::vector<RecipeRule> rules(const Names& kept) const {
    std::vector<RecipeRule> rules;
    for (const std::string& name : kept) rules.push_back(rule_for_tensor(name, options_.keep));
    return rules;
  }

  std::span<const std::byte> file(const Names& kept) {
    if (written_ && *written_ == kept) return file_;
    written_.reset();
    charge_.resize(0);
    QuantizeOptions options = options_.quantize;
    options.equalize = false;
    options.recipe = rules(kept);
    options.budget = budget_.own();
    const auto allocate = [this](int64_t bytes) -> std::span<std::byte> {
      if (allocate_) return file_ = allocate_(bytes);
      own_ = {};  // free the memory of the last one first
      own_.resize(static_cast<size_t>(bytes));
      return file_ = own_;
    };
    Quantizer(model_, std::move(options)).quantize_into(allocate, calibration_);
    charge_.resize(static_cast<int64_t>(file_.size()));
    written_ = kept;
    return file_;
  }

  /// Calls `use` with the file as a model, which is charged for it meanwhile.
  template <typename Use>
  auto as_model(const Names& kept, const Use& use) {
    const std::span<const std::byte> bytes = file(kept);
    const std::shared_ptr<const void> owner(std::shared_ptr<void>(), bytes.data());  // this
    charge_.resize(0);
    auto result = use(Model::from_bytes(bytes, owner, budget_.own()));
    charge_.resize(static_cast<int64_t>(bytes.size()));
    return result;
  }

  std::vector<std::byte> take(const Names& kept) {
    file(kept);
    written_.reset();
    return std::move(own_);
  }

 private:
  const Model& model_;
  const TuneOptions& options_;
  const Calibration* calibration_;
  jobs::JobBudget& budget_;
  const QuantizeJob::Allocate& allocate_;
  Charge charge_;
  std::optional<Names> written_;
  std::span<std::byte> file_;
  std::vector<std::byte> own_;
};

}  // namespace

struct TuneJob::State {
  State(const Model& given, TuneOptions chosen) : model(given), options(std::move(chosen)) {
    require(options.quantize.recipe.empty() && !options.quantize.calibration, ErrorCode::kInvalidArgument,
            "tune makes recipe and calibration itself");
    require(!options.quantize.bias_correction, ErrorCode::kInvalidArgument,
            "tune does not correct biases; quantize with its recipe and bias_correction afterwards");
    require(options.max_trials >= 1, ErrorCode::kInvalidArgument, "max_trials is {}, expected at least 1",
            options.max_trials);
    if (options.quantize.equalize) equalized.emplace(model);
    plan_with({});
  }

  /// Plans for inputs of these shapes, where the model leaves sizes open; empty: those of its file.
  void plan_with(std::vector<Shape> sizes) {
    if (planned && sizes == shapes) return;
    if (options.quantize.equalize && !equalized) equalized.emplace(model);  // a run took it
    shapes = std::move(sizes);
    planned = make_plan();
  }

  const Model& outline() const { return equalized ? equalized->outline() : model; }
  bool measures_accuracy() const { return !options.function && options.metric == TuneMetric::kAccuracy; }
  bool calibrates() const { return is_integer(options.quantize.mode) || is_integer(options.keep); }

  CalibrateOptions calibrate_options(std::shared_ptr<Budget> budget) const {
    CalibrateOptions result;
    result.num_threads = options.quantize.num_threads;
    result.budget = std::move(budget);
    result.histograms = needs_histograms(options.quantize.calibration_rule.method);
    return result;
  }

  /// The quantizer of all nodes in one mode.
  Quantizer quantizer_of(QuantizationMode mode) const {
    QuantizeOptions all = options.quantize;
    all.mode = mode;
    all.equalize = false;
    if (!is_integer(mode)) all.input_type = all.output_type = DType::kFloat32;
    return Quantizer(outline(), std::move(all));
  }

  /// Of all sources together, where they are known.
  std::vector<Shape> shapes_of(const TuneSamples& samples) const {
    std::vector<Shape> largest;
    for (const SampleSource* one : {samples.calibration, samples.debug, samples.metric}) {
      largest = jobs::largest_shapes(largest, jobs::shapes_from(model, one));
    }
    return largest;
  }

  JobPlan make_plan() const {
    const ByteUnits units = jobs::units_of(options.quantize.budget, model);
    bool complete = true;
    PhaseMemory held = PhaseMemory::of(model);
    std::vector<JobPhase> phases = {held.phase("load", "the file and its graph")};
    if (equalized && equalized->changed()) {
      const PhaseMemory result = equalized->result();
      phases.push_back(
          (held + equalized->peak())
              .phase("equalize", fmt::format("the model with even channels {}", format_bytes(result.total(), units))));
      held = held + result;
    }
    if (calibrates()) {
      const jobs::CalibrationMemory memory =
          jobs::calibration_memory(outline(), calibrate_options(nullptr), units, shapes);
      phases.push_back((held + memory.peak).phase("calibrate", memory.detail));
      held = held + memory.result;
      complete = memory.complete;
    }
    // Whatever is kept: a file has at most what the file of quantized and the file of kept nodes have together.
    const Quantizer quantizer = quantizer_of(options.quantize.mode);
    const Model quantized = quantizer.outline();
    const bool keeps_float = options.keep == QuantizationMode::kFloat;
    const Model kept = keeps_float ? outline() : quantizer_of(options.keep).outline();
    const int64_t conversions = kConversionBytes * values_of(quantized);
    PhaseMemory trial = held + PhaseMemory::of(quantized) + PhaseMemory::of(kept);
    trial.add(MemoryCategory::kModelFile, conversions).add(MemoryCategory::kGraph, conversions);
    const int64_t file_bytes = quantized.file_bytes() + kept.file_bytes() + conversions;
    PhaseMemory measuring = trial;
    if (measures_accuracy()) {
      measuring = measuring + evaluation_memory(quantized, shapes) + evaluation_memory(kept, shapes);
    } else if (!options.function) {
      const DebugOptions compares = agreement_options(options.quantize);
      measuring = measuring + jobs::comparison_memory(outline(), quantized, compares, shapes) +
                  jobs::comparison_memory(outline(), kept, compares, shapes);
    }
    trial.add(MemoryCategory::kModelFile, quantizer.plan().extra_bytes);
    phases.push_back((measuring.total() > trial.total() ? measuring : trial)
                         .phase("trial", fmt::format("a file of at most {}", format_bytes(file_bytes, units))));
    const PhaseMemory orders =
        jobs::comparison_memory(outline(), quantized, ordering_options(options.quantize), shapes);
    const jobs::DebugEffects effects(outline(), quantized, effect_options(options.quantize), shapes);
    held.add(MemoryCategory::kInputsOutputs, effects.sample_bytes());
    phases.push_back(
        (held + PhaseMemory::of(quantized) + orders)
            .phase("order", fmt::format("all layers side by side {}", format_bytes(orders.total(), units))));
    if (effects.effect_memory()) {
      phases.push_back(
          (held + PhaseMemory::of(quantized) + *effects.effect_memory())
              .phase("effects", fmt::format("samples that are kept {}", format_bytes(effects.sample_bytes(), units))));
    }
    return jobs::make_plan("tune", std::move(phases), file_bytes, complete, units);
  }

  static PhaseMemory evaluation_memory(const Model& model, const std::vector<Shape>& shapes) {
    const jobs::EvaluatorMemory memory = jobs::evaluator_memory(model, {}, shapes);
    return memory.shared + memory.own - PhaseMemory::of(model);
  }

  static double accuracy_of(const Model& quantized, SampleReader& reader, jobs::JobBudget& budget) {
    EvaluateOptions how;
    how.budget = budget.own();
    Evaluator evaluator(quantized, how);
    ScoreSum sum(how);
    for_each_sample(reader, {}, [&](const Sample& sample) {
      evaluator.set_sample(sample);
      sum.add(evaluator.run(sum.samples()));
      budget.count_models();
    });
    return sum.result().value;
  }

  static int64_t values_of(const Model& model) {
    int64_t values = 0;
    for (const ir::Subgraph& subgraph : model.loaded()->graph()->subgraphs) {
      values += static_cast<int64_t>(subgraph.values.size());
    }
    return values;
  }

  TuneResult run(const TuneSamples& samples, const JobObserver& observer, const QuantizeJob::Allocate& allocate) {
    jobs::JobBudget budget(options.quantize.budget, {model});
    const int64_t sample_bytes = peak_bytes_of(samples);
    const bool open = jobs::leaves_sizes_open(model, 0);
    plan_with(shapes_of(samples));
    budget.admit(jobs::with_samples(*planned, sample_bytes));
    Model source = model;
    if (options.quantize.equalize) {
      if (!equalized) equalized.emplace(model);  // a second run
      source = equalized->make(budget.own(), jobs::progress_of(observer, "equalize", "bytes"));
      if (!open) equalized.reset();
    }
    budget.count_shared(sample_bytes, MemoryCategory::kInputsOutputs);
    TuneResult result;
    SampleReaders readers(source, options.quantize.max_samples);
    std::optional<Calibration> calibration;
    if (calibrates()) {
      Calibrator calibrator(source, calibrate_options(budget.own()));
      SampleReader& reader = readers.open(samples.calibration, "to calibrate with");
      CalibrateResult found = jobs::run_calibration(calibrator, reader, budget, observer);
      calibration = std::move(found.calibration);
      result.findings = std::move(found.findings);
    }
    TrialFiles files(source, options, calibration ? &*calibration : nullptr, budget, allocate);
    const auto compare = [&](const Names& kept, SampleReader& reader, const DebugOptions& how) {
      return files.as_model(kept, [&](const Model& quantized) {
        return jobs::run_comparison(source, quantized, how, reader, budget, {}).result();
      });
    };
    const auto measure = [&](const Names& kept) {
      TuneTrial trial{kept, 0.0, static_cast<int64_t>(files.file(kept).size())};
      if (options.function) {
        trial.value = options.function(files.file(kept));
      } else {
        SampleReader& reader =
            readers.open(samples.metric ? samples.metric : samples.calibration, "to measure the metric on");
        trial.value = measures_accuracy()
                          ? files.as_model(kept, [&](const Model& m) { return accuracy_of(m, reader, budget); })
                          : agreement_of(compare(kept, reader, agreement_options(options.quantize)), options.metric);
      }
      ++trials_done;
      if (options.on_trial) options.on_trial(trial);
      require(!observer || observer({"trial", "trials", trials_done, options.max_trials}), ErrorCode::kCancelled,
              "stopped before it was finished");
      return trial;
    };
    trials_done = 0;
    jobs::TuneSearch search(measure, options.target, options.max_trials);
    jobs::TuneSearch::Readers edges;
    if (!search.enough({})) {
      SampleReader& reader = readers.open(samples.debug ? samples.debug : samples.calibration, "to order layers by");
      std::vector<jobs::TuneSearch::Region> regions;
      result.debug = files.as_model({}, [&](const Model& quantized) {
        std::optional<jobs::DebugEffects> effects;
        effects.emplace(source, quantized, effect_options(options.quantize), shapes);
        jobs::KeptSamples kept(budget.own(), effects->sample_bytes(), reader.size());
        const auto plan_again = [&](const Sample& sample) {
          std::vector<Shape> largest = jobs::largest_shapes(shapes, jobs::shapes_of(sample));
          if (!open || largest == shapes) return;
          plan_with(std::move(largest));
          budget.admit_again(jobs::with_samples(*planned, sample_bytes));
          effects.emplace(source, quantized, effect_options(options.quantize), shapes);
          kept.raise_capacity(effects->sample_bytes());
        };
        DebugResult found = jobs::run_comparison(source, quantized, ordering_options(options.quantize), reader, budget,
                                                 {}, &kept, plan_again)
                                .result();
        if (effects->obstacle().empty()) regions = regions_of(effects->measure(source, quantized, kept, budget, {}));
        return found;
      });
      edges = readers_of(*source.loaded()->graph());
      result.kept = search.find_in(regions);
      if (result.kept.empty()) {
        result.kept = search.find(order_of(*result.debug, *source.loaded()->graph()), edges);
      }
    }
    const TuneTrial best = search.measure(result.kept);
    result.file = files.take(result.kept);
    result.recipe = files.rules(result.kept);
    std::copy_if(result.kept.begin(), result.kept.end(), std::back_inserter(result.causes), [&](const auto& name) {
      return std::none_of(result.kept.begin(), result.kept.end(), [&](const std::string& other) {
        const auto found = edges.find(other);
        return found != edges.end() &&
               std::find(found->second.begin(), found->second.end(), name) != found->second.end();
      });
    });
    result.value = best.value;
    result.target = options.target;
    result.reached = best.value >= options.target;
    result.trials = search.trials();
    result.counted_peak_bytes = budget.peak();
    model.loaded()->require_intact();
    return result;
  }

  Model model;
  TuneOptions options;
  std::optional<jobs::EqualizedForm> equalized;
  std::optional<JobPlan> planned;
  std::vector<Shape> shapes;  // what was planned for
  int64_t trials_done = 0;
};

TuneJob::TuneJob(const Model& model, TuneOptions options) try
    : state_(std::make_unique<State>(model, std::move(options))) {
} catch (...) {
  rethrow_as_error();
}
TuneJob::~TuneJob() = default;
TuneJob::TuneJob(TuneJob&&) noexcept = default;
TuneJob& TuneJob::operator=(TuneJob&&) noexcept = default;

JobPlan TuneJob::plan(const TuneSamples& samples) const try {
  state_->plan_with(state_->shapes_of(samples));
  return jobs::with_samples(*state_->planned, peak_bytes_of(samples));
} catch (...) {
  rethrow_as_error();
}

void TuneJob::admit(const TuneSamples& samples) const try {
  jobs::JobBudget(state_->options.quantize.budget, {state_->model}).admit(plan(samples));
} catch (...) {
  rethrow_as_error();
}

TuneResult TuneJob::run(const TuneSamples& samples, const JobObserver& observer,
                        const QuantizeJob::Allocate& allocate) try {
  return state_->run(samples, observer, allocate);
} catch (...) {
  rethrow_as_error();
}

}  // namespace leadline
