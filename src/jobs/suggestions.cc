// SPDX-License-Identifier: Apache-2.0
#include "jobs/suggestions.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "core/error.h"
#include "core/join.h"
#include "debug/index.h"
#include "debug/output_score.h"
#include "jobs/calibration_run.h"
#include "jobs/equalized.h"
#include "jobs/phase_memory.h"
#include "jobs/sample_shapes.h"
#include "leadline/recipe.h"

namespace leadline::jobs {
namespace {

using Part = KeptSamples::Part;

constexpr double kHelps = 0.1;         // of the gap
constexpr double kCloses = 0.9;        // of the gap: then the size of the file decides
constexpr double kSameSize = 1.02;     // files that differ by less are equally large
constexpr double kCombinesWell = 0.8;  // of the error that the first leaves
constexpr size_t kMostUnions = 4;
constexpr size_t kMostShown = 5;
constexpr size_t kMostToSearch = 1500;    // tensors: some ten milliseconds each
constexpr double kSimplerIsAsGood = 3.0;  // times the error, where nine tenths of the gap are closed
constexpr const char* kRecalibrate = "recalibrate";

/// One change, or several together.
struct Change {
  std::vector<std::string> kinds;
  std::vector<std::string> words;
  RecipeDocument recipe;
  DebugMeasure chosen_by;  // on the samples to choose by

  Change with(const Change& other) const {
    Change both = *this;
    for (size_t i = 0; i < other.kinds.size(); ++i) {
      if (std::find(kinds.begin(), kinds.end(), other.kinds[i]) != kinds.end()) continue;
      both.kinds.push_back(other.kinds[i]);
      both.words.push_back(other.words[i]);
    }
    both.recipe.rules.insert(both.recipe.rules.end(), other.recipe.rules.begin(), other.recipe.rules.end());
    const RecipeSettings& more = other.recipe.settings;
    RecipeSettings& settings = both.recipe.settings;
    if (more.method) settings.method = more.method;
    if (more.percentile) settings.percentile = more.percentile;
    if (more.per_channel) settings.per_channel = more.per_channel;
    if (more.equalize) settings.equalize = more.equalize;
    if (more.bias_correction) settings.bias_correction = more.bias_correction;
    if (more.mode) settings.mode = more.mode;
    return both;
  }
  /// Calibrating again goes with everything.
  bool shares_kind(const Change& other) const {
    return std::any_of(kinds.begin(), kinds.end(), [&](const std::string& kind) {
      return kind != kRecalibrate && std::find(other.kinds.begin(), other.kinds.end(), kind) != other.kinds.end();
    });
  }
};

class Search {
 public:
  explicit Search(const SuggestionTask& task) : task_(task), samples_(*task.samples) {}

  std::vector<DebugSuggestion> run() {
    before_ = measure_outputs(task_.quantized, samples_.part(Part::kChosenBy), task_.given_run);
    // The same once more: what the samples alone change.
    Change again;
    again.recipe.settings.method = task_.made_with.calibration_rule.method;
    std::vector<Change> helpful;
    if (is_integer(task_.made_with.mode)) {
      if (!attempt(again)) return {};
      if (closed(again.chosen_by) >= kHelps) {
        again.kinds = {kRecalibrate};
        again.words = {"calibrate with these samples, or others like them"};
        helpful.push_back(again);
        recalibrated_ = again;
      }
    }
    std::vector<Change> kept = keep_changes();
    for (Change& change : single_changes()) {
      if (attempt(change) && helps(change)) helpful.push_back(as_told(std::move(change)));
    }
    // What gives up most of what quantization saves is no advice, unless nothing else mends the model.
    const int64_t largest = (task_.quantized.file_bytes() + task_.source.file_bytes()) / 2;
    std::vector<Change> too_large;
    for (Change& change : kept) {
      if (!attempt(change) || !helps(change)) continue;
      (change.chosen_by.file_bytes > largest ? too_large : helpful).push_back(as_told(std::move(change)));
    }
    // A search in the histogram of each tensor, which takes longer than all others together.
    const bool mended =
        std::any_of(helpful.begin(), helpful.end(), [this](const Change& c) { return closed(c.chosen_by) >= kCloses; });
    const size_t tensors = task_.source.subgraph(0).tensors.size();
    if (!mended && task_.made_with.mode == QuantizationMode::kInt8 && tensors > kMostToSearch) {
      notes_.push_back(fmt::format("Ranges by mse were not tried: for {} tensors that takes long.", tensors));
    } else if (!mended && task_.made_with.mode == QuantizationMode::kInt8) {
      Change change = with_method(CalibrationMethod::kMse);
      if (attempt(change) && helps(change)) helpful.push_back(as_told(std::move(change)));
    }
    combine(helpful);
    if (std::none_of(helpful.begin(), helpful.end(),
                     [this](const Change& c) { return closed(c.chosen_by) >= kCloses; })) {
      for (Change& change : too_large) {
        const bool saves = change.chosen_by.file_bytes < task_.source.file_bytes();
        if (saves && closed(change.chosen_by) >= kCloses) helpful.push_back(std::move(change));
      }
    }
    return shown(helpful);
  }
  int64_t trials() const { return trials_; }
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  /// The share of the given model's error that is gone.
  double closed(const DebugMeasure& after) const { return debug::share_gone(after, before_); }

  /// Everything that is tried is calibrated with these samples; what they do alone is no merit of a change.
  bool helps(const Change& change) const {
    if (closed(change.chosen_by) < kHelps) return false;
    return !recalibrated_ || change.chosen_by.error <= (1.0 - kHelps) * recalibrated_->chosen_by.error;
  }

  Change as_told(Change change) const {
    if (!recalibrated_) return change;
    change.kinds.insert(change.kinds.begin(), recalibrated_->kinds.front());
    change.words.insert(change.words.begin(), recalibrated_->words.front());
    return change;
  }

  static Change with_method(CalibrationMethod method) {
    Change change;
    change.kinds = {"method"};
    change.words = {fmt::format("choose ranges by {}", calibration_method_name(method))};
    change.recipe.settings.method = method;
    return change;
  }

  std::vector<Change> single_changes() const {
    std::vector<Change> changes;
    const QuantizeOptions& made = task_.made_with;
    const auto add = [&](const char* kind, std::string words, const auto& set) {
      Change change;
      change.kinds = {kind};
      change.words = {std::move(words)};
      set(change.recipe.settings);
      changes.push_back(std::move(change));
    };
    if (!made.per_channel || !made.per_channel_dense) {
      add("per_channel", "quantize weights with a scale for each channel", [](auto& s) { s.per_channel = true; });
    }
    if (made.mode == QuantizationMode::kInt8) {
      changes.push_back(with_method(CalibrationMethod::kPercentile));
    }
    if (is_integer(made.mode) && !task_.equalized) {
      add("equalize", "equalize neighbouring layers", [](auto& s) { s.equalize = true; });
    }
    if (is_integer(made.mode)) {
      add("bias_correction", "correct biases", [](auto& s) { s.bias_correction = true; });
    }
    const bool widened = made.mode == QuantizationMode::kWeightOnlyInt4;
    if (widened || made.mode == QuantizationMode::kDynamicInt4 || made.mode == QuantizationMode::kDynamicInt2) {
      const QuantizationMode wider = widened ? QuantizationMode::kWeightOnlyInt8 : QuantizationMode::kDynamicRange;
      add("wider_weights", "use weights of 8 bits", [&](auto& s) { s.mode = wider; });
    }
    return changes;
  }

  /// Guilty regions in float: the worst, the two worst and so on, and what is around the worst.
  std::vector<Change> keep_changes() const {
    std::vector<Change> changes;
    const debug::Effects& effects = *task_.effects;
    const std::vector<int> guilty = effects.guilty();
    std::vector<int> together;
    for (const int region : guilty) {
      together.push_back(region);
      changes.push_back(keep(together, QuantizationMode::kFloat));
      if (together.size() == kMostUnions) break;
    }
    if (guilty.empty()) return changes;
    for (size_t i = 1; i < std::min(guilty.size(), kMostUnions); ++i) {
      changes.push_back(keep({guilty[i]}, QuantizationMode::kFloat));
    }
    const debug::MeasuredRegion& worst = effects.regions[debug::at(guilty[0])];
    for (int around = worst.parent; around >= 0; around = effects.regions[debug::at(around)].parent) {
      if (effects.regions[debug::at(around)].effect > worst.effect + kHelps / 2) {
        changes.push_back(keep({around}, QuantizationMode::kFloat));
      }
    }
    if (task_.made_with.mode == QuantizationMode::kInt8) {
      changes.push_back(keep({guilty[0]}, QuantizationMode::kInt16x8));
    }
    return changes;
  }

  Change keep(const std::vector<int>& regions, QuantizationMode mode) const {
    Change change;
    std::vector<std::string> names;
    for (const int r : regions) {
      const debug::Region& region = task_.effects->regions[debug::at(r)].region;
      names.push_back(region.name);
      for (const std::string& pattern : debug::patterns_of(region, task_.effects->nodes)) {
        RecipeRule rule;
        rule.name = pattern;
        rule.mode = mode;
        change.recipe.rules.push_back(std::move(rule));
      }
    }
    change.kinds = {mode == QuantizationMode::kFloat ? "keep_float" : "int16"};
    change.words = {
        fmt::format("keep {} in {}", join(names, " and "), mode == QuantizationMode::kFloat ? "float" : "int16")};
    return change;
  }

  /// Adds the best change together with those that make it better still.
  void combine(std::vector<Change>& helpful) {
    if (helpful.size() < 2) return;
    const auto better = [](const Change& a, const Change& b) { return a.chosen_by.error < b.chosen_by.error; };
    std::vector<Change> singles = helpful;
    std::stable_sort(singles.begin(), singles.end(), better);
    Change best = singles.front();
    bool grew = false;
    for (size_t i = 1; i < singles.size() && i <= 4; ++i) {
      if (best.shares_kind(singles[i])) continue;
      Change both = best.with(singles[i]);
      if (!attempt(both) || both.chosen_by.error > kCombinesWell * best.chosen_by.error) continue;
      best = std::move(both);
      grew = true;
    }
    if (grew) helpful.push_back(std::move(best));
  }

  QuantizeOptions options_for(const Change& change) const {
    QuantizeOptions options = task_.made_with;
    options.budget = task_.budget->own();
    apply(change.recipe, options);
    return options;
  }

  /// Quantizes with a change and measures; false: it cannot be had for this model.
  bool attempt(Change& change) {
    ++trials_;
    require(!task_.observer || task_.observer({"try", "trials", trials_, -1}), ErrorCode::kCancelled,
            "stopped before it was finished");
    try {
      const Model model = quantized_with(options_for(change));
      OutputRunOptions how = own_run();
      change.chosen_by = measure_outputs(model, samples_.part(Part::kChosenBy), how);
      return true;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kInvalidArgument && error.code() != ErrorCode::kUnsupported) throw;
      return false;
    }
  }

  OutputRunOptions own_run() const {
    OutputRunOptions how;
    how.num_threads = task_.given_run.num_threads;
    how.budget = task_.budget->own();
    return how;
  }

  Model quantized_with(const QuantizeOptions& options) {
    const Quantizer quantizer(task_.source, options);
    const Calibration* calibration = quantizer.needs_calibration() ? &calibration_of(quantizer, options) : nullptr;
    std::optional<ChannelMeans> means;
    if (options.bias_correction) {
      means.emplace(quantizer.model(), options.num_threads, task_.budget->own());
      const auto source = samples_.source(Part::kChosenBy);
      SampleReader reader(quantizer.model(), *source, {.lint = false});
      for_each_sample(reader, {}, [&](const Sample& sample) {
        set_inputs(means->interpreter(), sample);
        means->add_sample();
      });
    }
    Model model = quantizer.quantize_to_model(calibration, means ? &*means : nullptr);
    task_.budget->count_models();
    return model;
  }

  const Calibration& calibration_of(const Quantizer& quantizer, const QuantizeOptions& options) {
    if (!options.equalize && calibration_) return *calibration_;
    CalibrateOptions how;
    how.num_threads = options.num_threads;
    how.budget = task_.budget->own();
    how.histograms = true;
    equalized_.reset();  // of another model than before
    Calibrator calibrator(quantizer.model(), how);
    const auto source = samples_.source(Part::kChosenBy);
    SampleReader reader(quantizer.model(), *source, {.lint = false});
    std::optional<Calibration>& place = options.equalize ? equalized_ : calibration_;
    place = run_calibration(calibrator, reader, *task_.budget, {}).calibration;
    return *place;
  }

  /// Ordered, measured on the samples that were held out.
  std::vector<DebugSuggestion> shown(std::vector<Change>& helpful) {
    std::stable_sort(helpful.begin(), helpful.end(), [this](const Change& a, const Change& b) {
      const bool a_closes = closed(a.chosen_by) >= kCloses;
      const bool b_closes = closed(b.chosen_by) >= kCloses;
      if (a_closes != b_closes) return a_closes;
      const auto a_bytes = static_cast<double>(a.chosen_by.file_bytes);
      const auto b_bytes = static_cast<double>(b.chosen_by.file_bytes);
      if (a_closes && (a_bytes > kSameSize * b_bytes || b_bytes > kSameSize * a_bytes)) return a_bytes < b_bytes;
      return a.chosen_by.error < b.chosen_by.error;
    });
    prefer_simple(helpful);
    const auto held_out = samples_.part(Part::kHeldOut);
    OutputRunOptions given_run = task_.given_run;
    given_run.timed = true;
    const DebugMeasure before = measure_outputs(task_.quantized, held_out, given_run);
    OutputRunOptions timed_run = own_run();
    timed_run.timed = true;
    std::vector<DebugSuggestion> result;
    for (const Change& change : helpful) {
      if (result.size() == kMostShown) break;
      DebugSuggestion suggestion;
      const Model model = quantized_with(options_for(change));
      suggestion.after = measure_outputs(model, held_out, timed_run);
      if (suggestion.after.error > (1.0 - kHelps) * before.error) continue;
      suggestion.before = before;
      suggestion.kind = join(change.kinds, "+");
      suggestion.what = join(change.words, ", and ");
      suggestion.recalibrate = recalibrated_.has_value();
      suggestion.recipe = recipe_of(change);
      suggestion.samples = static_cast<int64_t>(held_out.size());
      suggestion.held_out = samples_.count(Part::kAll) > 1;
      result.push_back(std::move(suggestion));
    }
    return result;
  }

  /// The change of the fewest kinds first, where it does as well for a file of the same size.
  void prefer_simple(std::vector<Change>& helpful) const {
    if (helpful.empty() || closed(helpful.front().chosen_by) < kCloses) return;
    size_t simplest = 0;
    for (size_t i = 1; i < helpful.size(); ++i) {
      const DebugMeasure& first = helpful.front().chosen_by;
      const DebugMeasure& other = helpful[i].chosen_by;
      if (helpful[i].kinds.size() >= helpful[simplest].kinds.size() || closed(other) < kCloses) continue;
      if (static_cast<double>(other.file_bytes) > kSameSize * static_cast<double>(first.file_bytes)) continue;
      if (other.error <= kSimplerIsAsGood * first.error || !debug::lost_something(other)) simplest = i;
    }
    const auto place = helpful.begin() + static_cast<std::ptrdiff_t>(simplest);
    std::rotate(helpful.begin(), place, place + 1);
  }

  /// With all that was not the default, so that nothing else has to be said.
  std::string recipe_of(const Change& change) const {
    const QuantizeOptions options = options_for(change);
    RecipeSettings settings = change.recipe.settings;
    settings.mode = options.mode;
    if (is_integer(options.mode)) settings.method = options.calibration_rule.method;
    if (options.calibration_rule.method == CalibrationMethod::kPercentile) {
      settings.percentile = options.calibration_rule.percentile;
    }
    if (options.per_channel == options.per_channel_dense) settings.per_channel = options.per_channel;
    if (task_.equalized) settings.equalize = true;
    std::vector<RecipeRule> rules = task_.made_with.recipe;
    rules.insert(rules.end(), change.recipe.rules.begin(), change.recipe.rules.end());
    return recipe_to_json(rules, settings);
  }

  const SuggestionTask& task_;
  const KeptSamples& samples_;
  DebugMeasure before_;                 // of the given model, on the samples to choose by
  std::optional<Change> recalibrated_;  // where the samples alone make it better
  std::optional<Calibration> calibration_;
  std::optional<Calibration> equalized_;
  int64_t trials_ = 0;
  std::vector<std::string> notes_;
};

}  // namespace

void find_suggestions(const SuggestionTask& task, DebugResult& result) {
  Search search(task);
  result.suggestions = search.run();
  result.changes_tried = search.trials();
  result.notes.insert(result.notes.end(), search.notes().begin(), search.notes().end());
}

PhaseMemory suggestion_memory(const Model& source, const QuantizeOptions& made_with, const std::vector<Shape>& shapes) {
  // Plans are those of jobs that have what they need.
  InterpreterOptions how;
  how.budget = Budget::with_limit(std::numeric_limits<int64_t>::max());
  how.disabled_passes = {"all"};  // what they change would stay with the model
  QuantizeOptions options = made_with;
  options.budget = how.budget;
  options.recipe.clear();
  const Quantizer quantizer(source, options);
  const Model outline = quantizer.outline();
  PhaseMemory memory = PhaseMemory::of(outline) + PhaseMemory::of(source);
  const auto values = static_cast<int64_t>(outline.subgraph(0).tensors.size());
  memory.add(MemoryCategory::kModelFile, kConversionBytes * values + quantizer.plan().extra_bytes);
  memory.add(MemoryCategory::kGraph, kConversionBytes * values + quantizer.plan().graph_bytes);
  for (const Model& model : {outline, source}) {
    Interpreter interpreter(model, how);
    resize_inputs(interpreter, shapes);
    memory = memory + run_memory(interpreter).bytes;
  }
  if (is_integer(options.mode)) {
    CalibrateOptions calibrate;
    calibrate.histograms = true;
    calibrate.budget = how.budget;
    const CalibrationMemory calibration = calibration_memory(source, calibrate, ByteUnits::kDecimal, shapes);
    ChannelMeans means(source, 1, how.budget);
    resize_inputs(means.interpreter(), shapes);
    // Even channels are a model of their own, with its calibration.
    memory = memory + PhaseMemory::of(source) + calibration.peak + calibration.result + calibration.result +
             run_memory(means.interpreter()).bytes;
  }
  return memory;
}

}  // namespace leadline::jobs
