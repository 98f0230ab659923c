// SPDX-License-Identifier: Apache-2.0
#include "jobs/tune_run.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "core/charge.h"
#include "core/error.h"
#include "jobs/calibration_run.h"
#include "jobs/comparison_run.h"
#include "jobs/debug_effects.h"
#include "jobs/evaluator_memory.h"
#include "jobs/output_run.h"
#include "jobs/sample_parts.h"
#include "jobs/sample_shapes.h"
#include "jobs/tune_proof.h"
#include "jobs/tune_search.h"
#include "runtime/loaded_model.h"

namespace leadline {

std::vector<RecipeRule> TuneTrial::recipe() const {
  std::vector<RecipeRule> rules;
  for (const std::string& name : kept) rules.push_back(rule_for_tensor(name, keep));
  return rules;
}

namespace jobs {

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

bool measures_accuracy(const TuneOptions& options) {
  return !options.function && options.metric == TuneMetric::kAccuracy;
}

bool calibrates(const TuneOptions& options) { return is_integer(options.quantize.mode) || is_integer(options.keep); }

CalibrateOptions calibrate_options(const TuneOptions& options, std::shared_ptr<Budget> budget) {
  CalibrateOptions result;
  result.num_threads = options.quantize.num_threads;
  result.budget = std::move(budget);
  result.histograms = needs_histograms(options.quantize.calibration_rule.method);
  return result;
}

namespace {

/// Fewer samples are all needed to search with.
constexpr int64_t kFewestToSplit = 8;
/// Models that are measured on samples that were held out. Each of them makes what is proven weaker.
constexpr int kMostLooks = 3;
constexpr const char* kReadOnce =
    "tune reads samples more than once, but these can be read only once; use a list, a function or files";
/// Times of one model differ by less, as a rule.
constexpr double kSlower = 1.05;

double agreement_of(const DebugResult& result, TuneMetric metric) {
  DebugMeasure measure;
  for (const DebugOutput& output : result.outputs) {
    measure.cosine = std::min(measure.cosine, output.accumulated.cosine);
    measure.rows += output.rows;
    if (output.rows > 0) measure.same_argmax = std::min(measure.same_argmax, output.same_argmax);
    measure.divergence = std::max(measure.divergence, output.divergence);
  }
  require(!result.outputs.empty(), ErrorCode::kInvalidArgument,
          "no output of the model can be compared with the float model's; give a function as metric");
  require(measure.rows > 0 || metric == TuneMetric::kCosine, ErrorCode::kInvalidArgument,
          "metric {}: no output of the model has rows of several values; use cosine", tune_metric_name(metric));
  return value_of(metric, measure);
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
std::vector<TuneSearch::Region> regions_of(const debug::Effects& effects) {
  const auto names_of = [&](const debug::Region& region) {
    Names names;
    for (const int i : region.nodes) names.push_back(effects.nodes[static_cast<size_t>(i)].name);
    return names;
  };
  std::vector<TuneSearch::Region> regions;
  for (const int r : effects.guilty()) {
    const debug::Region& region = effects.regions[static_cast<size_t>(r)].region;
    TuneSearch::Region added{names_of(region), {}};
    for (const debug::Region& part : debug::split(region, effects.nodes)) added.parts.push_back(names_of(part));
    regions.push_back(std::move(added));
  }
  return regions;
}

TuneSearch::Readers readers_of(const ir::Graph& graph) {
  TuneSearch::Readers readers;
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

struct Accuracy {
  double value = 0.0;
  int64_t samples = 0;
};

Accuracy accuracy_of(const Model& quantized, SampleReader& reader, JobBudget& budget) {
  EvaluateOptions how;
  how.budget = budget.own();
  Evaluator evaluator(quantized, how);
  ScoreSum sum(how);
  for_each_sample(reader, {}, [&](const Sample& sample) {
    evaluator.set_sample(sample);
    sum.add(evaluator.run(sum.samples()));
    budget.count_models();
  });
  return {sum.result().value, sum.samples()};
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
    require(found->second.rewind(), ErrorCode::kInvalidArgument, kReadOnce);
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
  TrialFiles(const Model& model, const TuneOptions& options, const Calibration* calibration, JobBudget& budget,
             const QuantizeJob::Allocate& allocate)
      : model_(model),
        options_(options),
        calibration_(calibration),
        budget_(budget),
        allocate_(allocate),
        charge_(budget.own(), MemoryCategory::kModelFile) {}

  /// Nodes and what becomes of them.
  struct Kept {
    Names names;
    QuantizationMode mode = QuantizationMode::kFloat;
    bool operator==(const Kept&) const = default;
  };

  std::span<const std::byte> file(const Kept& kept) {
    if (written_ && *written_ == kept) return file_;
    written_.reset();
    charge_.resize(0);
    QuantizeOptions options = options_.quantize;
    options.equalize = false;
    options.recipe = TuneTrial{.kept = kept.names, .keep = kept.mode}.recipe();
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
  auto as_model(const Kept& kept, const Use& use) {
    const std::span<const std::byte> bytes = file(kept);
    const std::shared_ptr<const void> owner(std::shared_ptr<void>(), bytes.data());  // this
    charge_.resize(0);
    auto result = use(Model::from_bytes(bytes, owner, budget_.own()));
    charge_.resize(static_cast<int64_t>(bytes.size()));
    return result;
  }

  std::vector<std::byte> take(const Kept& kept) {
    file(kept);
    written_.reset();
    return std::move(own_);
  }

 private:
  const Model& model_;
  const TuneOptions& options_;
  const Calibration* calibration_;
  JobBudget& budget_;
  const QuantizeJob::Allocate& allocate_;
  Charge charge_;
  std::optional<Kept> written_;
  std::span<std::byte> file_;
  std::vector<std::byte> own_;
};

}  // namespace

class TuneRun::Work {
 public:
  explicit Work(TuneTask task) : task_(std::move(task)), options_(task_.options), started_(Clock::now()) {}

  TuneResult run() {
    split();
    SampleReaders readers(task_.source, options_.quantize.max_samples);
    readers_ = &readers;
    std::optional<Calibration> calibration;
    if (calibrates(options_)) {
      Calibrator calibrator(task_.source, calibrate_options(options_, task_.budget.own()));
      SampleReader& reader = readers.open(task_.samples.calibration, "to calibrate with");
      CalibrateResult found = run_calibration(calibrator, reader, task_.budget, task_.observer);
      calibration = std::move(found.calibration);
      result_.findings = std::move(found.findings);
    }
    hold_out();
    TrialFiles files(task_.source, options_, calibration ? &*calibration : nullptr, task_.budget, task_.allocate);
    files_ = &files;
    TuneSearch search([this](const Names& kept) { return measure({kept, options_.keep}); }, options_.target,
                      options_.max_trials, [this] { return out_of_time(); });
    const Names kept = find_proven(search);
    measure_more(search, kept);
    finish(search, kept);
    return std::move(result_);
  }

 private:
  using Clock = std::chrono::steady_clock;
  using Kept = TrialFiles::Kept;

  bool out_of_time() const {
    const std::chrono::duration<double> took = Clock::now() - started_;
    return options_.max_seconds > 0.0 && took.count() >= options_.max_seconds;
  }

  /// Where no samples were given to prove the result on, every so-manieth of those that the metric is measured on.
  void split() {
    if (options_.function || task_.samples.held_out != nullptr || options_.held_out <= 0.0) return;
    SampleSource*& measured = task_.samples.metric != nullptr ? task_.samples.metric : task_.samples.calibration;
    if (measured == nullptr) return;
    const std::optional<int64_t> count = count_samples(*measured);
    require(count.has_value(), ErrorCode::kInvalidArgument, kReadOnce);
    if (*count < kFewestToSplit) {
      result_.notes.push_back(
          fmt::format("{} samples are too few to hold some out: the value is of samples that the "
                      "model was made and chosen with, and proves nothing about others.",
                      *count));
      return;
    }
    parts_.emplace(*measured, std::lround(1.0 / options_.held_out));
    SampleSource* whole = measured;
    for (SampleSource** one : {&task_.samples.calibration, &task_.samples.debug, &task_.samples.metric}) {
      if (*one == whole) *one = &parts_->searched();
    }
    task_.samples.held_out = &parts_->held_out();
  }

  /// Keeps samples to prove the result on, with what the float model makes of them.
  void hold_out() {
    if (options_.function || task_.samples.held_out == nullptr) return;
    SampleReader& reader = readers_->open(task_.samples.held_out, "to prove the result on");
    const auto capacity = [&] {
      const Model outline = Quantizer(task_.source, quantize_all()).outline();
      return DebugEffects(task_.source, outline, effect_options(options_.quantize), task_.shapes).sample_bytes();
    };
    held_out_.emplace(task_.budget.own(), capacity(), reader.size());
    InterpreterOptions how;
    how.num_threads = options_.quantize.num_threads;
    how.budget = task_.budget.own();
    Interpreter interpreter(task_.source, how);
    for_each_sample(reader, {}, [&](const Sample& sample) {
      require(sample.subgraph == 0, ErrorCode::kInvalidArgument,
              "it is for another signature than the first; tune measures the first alone");
      if (task_.plan_again(sample)) held_out_->raise_capacity(capacity());
      set_inputs(interpreter, sample);
      interpreter.invoke();
      held_out_->add(sample, interpreter, interpreter.outputs().size());
      task_.budget.count_models();
    });
    if (held_out_->count(KeptSamples::Part::kAll) == 0) held_out_.reset();  // a model that keeps state
    if (!held_out_) result_.notes.emplace_back("Nothing was proven: the model keeps state from sample to sample.");
  }

  QuantizeOptions quantize_all() const {
    QuantizeOptions all = options_.quantize;
    all.equalize = false;
    all.budget = task_.budget.own();
    return all;
  }

  DebugResult compare(const Kept& kept, SampleReader& reader, const DebugOptions& how) {
    return files_->as_model(kept, [&](const Model& quantized) {
      return run_comparison(task_.source, quantized, how, reader, task_.budget, {}).result();
    });
  }

  TuneTrial measure(const Kept& kept) {
    TuneTrial trial{.kept = kept.names, .keep = kept.mode};
    trial.file_bytes = static_cast<int64_t>(files_->file(kept).size());
    if (options_.function) {
      trial.value = options_.function(files_->file(kept));
    } else {
      SampleReader& reader = readers_->open(task_.samples.metric ? task_.samples.metric : task_.samples.calibration,
                                            "to measure the metric on");
      trial.value =
          measures_accuracy(options_)
              ? files_->as_model(kept, [&](const Model& m) { return accuracy_of(m, reader, task_.budget).value; })
              : agreement_of(compare(kept, reader, agreement_options(options_.quantize)), options_.metric);
      trial.seconds = seconds_of(kept);
    }
    ++trials_done_;
    if (options_.on_trial) options_.on_trial(trial);
    require(!task_.observer || task_.observer({"trial", "trials", trials_done_, options_.max_trials}),
            ErrorCode::kCancelled, "stopped before it was finished");
    return trial;
  }

  OutputRunOptions own_run() const {
    OutputRunOptions how;
    how.num_threads = options_.quantize.num_threads;
    how.budget = task_.budget.own();
    return how;
  }

  /// CPU time of a run; 0 where no sample was kept to run.
  double seconds_of(const Kept& kept) {
    if (!held_out_) return 0.0;
    return files_->as_model(kept, [&](const Model& model) { return seconds_of(model); });
  }

  double seconds_of(const Model& model) {
    OutputRunOptions how = own_run();
    how.timed = true;
    const std::vector<const KeptSamples::Kept*> one = {held_out_->part(KeptSamples::Part::kAll).front()};
    const double seconds = measure_outputs(model, one, how).seconds;
    task_.budget.count_models();
    return seconds;
  }

  /// On samples that were held out. `looks`: for how many models they were, so far.
  TuneBound prove(const Kept& kept, int looks) {
    if (measures_accuracy(options_)) {
      SampleReader& reader = readers_->open(task_.samples.held_out, "to prove the result on");
      const Accuracy accuracy =
          files_->as_model(kept, [&](const Model& m) { return accuracy_of(m, reader, task_.budget); });
      return bound_of_accuracy(accuracy.value, accuracy.samples, looks);
    }
    return files_->as_model(kept, [&](const Model& model) {
      std::vector<DebugMeasure> each;
      OutputRunOptions how = own_run();
      how.each = &each;
      const DebugMeasure all = measure_outputs(model, held_out_->part(KeptSamples::Part::kAll), how);
      task_.budget.count_models();
      return bound_of(options_.metric, each, all, looks);
    });
  }

  /// What is enough on the samples to search with and, if there are any, on those that were held out.
  Names find_proven(TuneSearch& search) {
    Names best;
    double wanted = options_.target;
    for (int look = 1; look <= kMostLooks; ++look) {
      const Names kept = search.enough({}) ? Names() : find(search);
      const double value = search.measure(kept).value;
      if (!held_out_) return kept;
      const TuneBound bound = prove({kept, options_.keep}, look);
      if (!result_.bound || bound.value > result_.bound->value) {
        best = kept;
        result_.bound = bound;
      }
      if (bound.value >= options_.target || value < wanted || search.exhausted()) break;
      // It has to hold with more to spare.
      wanted = std::max(wanted, value) + 0.5 * std::max(0.0, 1.0 - std::max(wanted, value));
      search.raise_target(wanted);
    }
    return best;
  }

  Names find(TuneSearch& search) {
    if (!result_.debug) order();
    Names kept = search.find_in(regions_);
    return kept.empty() ? search.find(order_of(*result_.debug, *task_.source.loaded()->graph()), edges_) : kept;
  }

  /// What parts and layers cost, with everything quantized.
  void order() {
    SampleReader& reader =
        readers_->open(task_.samples.debug ? task_.samples.debug : task_.samples.calibration, "to order layers by");
    result_.debug = files_->as_model({{}, options_.keep}, [&](const Model& quantized) {
      std::optional<DebugEffects> effects;
      const DebugOptions effect_how = effect_options(options_.quantize);
      effects.emplace(task_.source, quantized, effect_how, task_.shapes);
      KeptSamples kept(task_.budget.own(), effects->sample_bytes(), reader.size());
      const auto before = [&](const Sample& sample) {
        if (!task_.plan_again(sample)) return;
        effects.emplace(task_.source, quantized, effect_how, task_.shapes);
        kept.raise_capacity(effects->sample_bytes());
      };
      DebugResult found = run_comparison(task_.source, quantized, ordering_options(options_.quantize), reader,
                                         task_.budget, {}, &kept, before)
                              .result();
      if (effects->obstacle().empty()) {
        regions_ = regions_of(
            effects->measure(task_.source, quantized, kept, task_.budget, {}, [this] { return out_of_time(); }));
      }
      return found;
    });
    edges_ = readers_of(*task_.source.loaded()->graph());
  }

  /// Trials beside those of the search: the same nodes in 16 bits, and more parts than the target needs.
  void measure_more(TuneSearch& search, const Names& found) {
    if (options_.function || found.empty()) return;
    int left = options_.front_trials;
    if (left > 0 && !search.exhausted() && options_.keep == QuantizationMode::kFloat &&
        options_.quantize.mode == QuantizationMode::kInt8) {
      search.add(measure({found, QuantizationMode::kInt16x8}));
      --left;
    }
    Names kept = found;
    for (const TuneSearch::Region& region : regions_) {
      if (left <= 0 || search.exhausted()) return;
      const size_t before = kept.size();
      for (const std::string& name : region.names) {
        if (std::find(kept.begin(), kept.end(), name) == kept.end()) kept.push_back(name);
      }
      if (kept.size() == before) continue;
      search.measure(kept);
      --left;
    }
  }

  void finish(TuneSearch& search, const Names& kept) {
    const TuneTrial best = search.measure(kept);
    result_.kept = kept;
    if (held_out_) result_.float_seconds = seconds_of(task_.source);
    result_.float_bytes = task_.source.file_bytes();
    result_.file = files_->take({kept, options_.keep});
    result_.recipe = best.recipe();
    std::copy_if(kept.begin(), kept.end(), std::back_inserter(result_.causes), [&](const auto& name) {
      return std::none_of(kept.begin(), kept.end(), [&](const std::string& other) {
        const auto found = edges_.find(other);
        return found != edges_.end() &&
               std::find(found->second.begin(), found->second.end(), name) != found->second.end();
      });
    });
    result_.value = best.value;
    result_.target = options_.target;
    result_.reached = best.value >= options_.target && (!result_.bound || result_.bound->value >= options_.target);
    result_.trials = search.trials();
    result_.front = front_of(search.trials());
    add_notes(best, search);
    result_.counted_peak_bytes = task_.budget.peak();
  }

  void add_notes(const TuneTrial& best, const TuneSearch& search) {
    const ByteUnits units = units_of(options_.quantize.budget, task_.source);
    if (best.file_bytes >= result_.float_bytes) {
      result_.notes.push_back(fmt::format("The float model is not larger: {} against {}.",
                                          format_bytes(result_.float_bytes, units),
                                          format_bytes(best.file_bytes, units)));
    }
    if (best.seconds > kSlower * result_.float_seconds && result_.float_seconds > 0.0) {
      result_.notes.push_back(fmt::format("The float model is faster here: {:.3g} ms of CPU time a run against {:.3g}.",
                                          1e3 * result_.float_seconds, 1e3 * best.seconds));
    }
    if (best.value >= options_.target && !result_.reached) {
      result_.notes.push_back(
          fmt::format("The target is reached on the samples that were searched with ({:.6g}), and "
                      "missed on those that were held out ({:.6g}).",
                      best.value, result_.bound->value));
    }
    if (!result_.reached && out_of_time()) {
      result_.notes.push_back(
          fmt::format("The time of {:.3g} s was over before the search was.", options_.max_seconds));
    } else if (!result_.reached && search.exhausted()) {
      result_.notes.push_back(fmt::format("All {} trials were used before the search was over.", options_.max_trials));
    }
  }

  TuneTask task_;
  const TuneOptions& options_;
  Clock::time_point started_;
  TuneResult result_;
  std::optional<SampleParts> parts_;
  std::optional<KeptSamples> held_out_;
  SampleReaders* readers_ = nullptr;
  TrialFiles* files_ = nullptr;
  std::vector<TuneSearch::Region> regions_;
  TuneSearch::Readers edges_;
  int64_t trials_done_ = 0;
};

TuneRun::TuneRun(TuneTask task) : work_(std::make_unique<Work>(std::move(task))) {}
TuneRun::~TuneRun() = default;
TuneResult TuneRun::run() { return work_->run(); }

}  // namespace jobs
}  // namespace leadline
