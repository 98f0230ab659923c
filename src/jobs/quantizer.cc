// SPDX-License-Identifier: Apache-2.0
#include "leadline/quantizer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "api/calibration_data.h"
#include "core/boundary.h"
#include "core/charge.h"
#include "core/error.h"
#include "ir/verifier.h"
#include "jobs/model_writing.h"
#include "model/conversion_record.h"
#include "model/writer.h"
#include "passes/passes.h"
#include "quantize/bias_correction.h"
#include "quantize/equalize.h"
#include "quantize/integers.h"
#include "quantize/propagation.h"
#include "quantize/recipe.h"
#include "quantize/rounding.h"
#include "quantize/sparsify.h"
#include "quantize/trained_ranges.h"
#include "quantize/treatment.h"
#include "quantize/weights.h"
#include "runtime/loaded_model.h"

namespace leadline {
namespace {

void check_border_type(DType type, const char* what, QuantizationMode mode, bool integers) {
  require_io_type(type, what);
  if (type == DType::kFloat32) return;
  require(integers, ErrorCode::kInvalidArgument, "{} is {}, but activations stay float in this mode", what,
          dtype_name(type));
  require((type == DType::kInt16) == (mode == QuantizationMode::kInt16x8), ErrorCode::kInvalidArgument,
          "{} is {}, which does not go with {} activations", what, dtype_name(type),
          mode == QuantizationMode::kInt16x8 ? "int16" : "int8");
}

/// What the file notes of a mode; nothing where the format has no number for it.
std::optional<ModelOptimization> optimization_of(QuantizationMode mode) {
  switch (mode) {
    case QuantizationMode::kInt8:
      return ModelOptimization::kFullInteger;
    case QuantizationMode::kInt16x8:
      return ModelOptimization::kInt16;
    case QuantizationMode::kDynamicRange:
    case QuantizationMode::kDynamicInt4:
    case QuantizationMode::kDynamicInt2:
      return ModelOptimization::kDynamicRange;
    case QuantizationMode::kFloat16:
      return ModelOptimization::kFloat16;
    default:
      return {};
  }
}

bool any_mode(const quantize::Treatments& treatments, bool (*wanted)(QuantizationMode)) {
  return std::any_of(treatments.begin(), treatments.end(), [&](const auto& nodes) {
    return std::any_of(nodes.begin(), nodes.end(), [&](const auto& node) { return wanted(node.mode); });
  });
}

quantize::RangeOf ranges_of(const Calibration& calibration, const CalibrationRule& rule) {
  return [&calibration, rule](int subgraph, int tensor, int bits, bool symmetric) {
    std::optional<quantize::RealRange> result;
    if (const auto range = calibration.range(subgraph, tensor, rule, bits, symmetric)) {
      result = {static_cast<double>(range->min), static_cast<double>(range->max)};
    }
    return result;
  };
}

/// To plan with, without a calibration: sizes depend on ranges only where equal ones save a conversion, so no two are
/// equal here, nor like the fixed ranges of ops, which are within [-1, 1].
std::optional<quantize::RealRange> unequal_range(int, int tensor, int, bool) {
  const double limit = 2.0 + tensor;
  return quantize::RealRange{-limit, limit};
}

std::optional<quantize::RealRange> no_range(int, int, int, bool) { return {}; }

/// Sets the ranges that are known of float tensors that are computed.
void note_ranges(ir::Graph& graph, const quantize::RangeOf& range_of) {
  for (size_t s = 0; s < graph.subgraphs.size(); ++s) {
    std::vector<ir::Value>& values = graph.subgraphs[s].values;
    for (size_t v = 0; v < values.size(); ++v) {
      if (!quantize::is_activation(graph.subgraphs[s], static_cast<int>(v))) continue;
      const auto range = range_of(static_cast<int>(s), static_cast<int>(v), 8, false);
      if (!range) continue;
      values[v].quantization.min = {static_cast<float>(range->min)};
      values[v].quantization.max = {static_cast<float>(range->max)};
    }
  }
}

/// To plan with: any means will do that leave no bias zero.
std::vector<double> planned_means(const ir::Graph& graph, int tensor) {
  const Shape& shape = graph.subgraphs[0].value(tensor).shape;
  const int64_t channels = shape.rank() > 0 ? std::max<int64_t>(shape[shape.rank() - 1], 0) : 0;
  std::vector<double> means(static_cast<size_t>(channels));
  for (size_t i = 0; i < means.size(); ++i) means[i] = 1.0 + static_cast<double>(i % 7) / 8.0;
  return means;
}

/// The same model with equal channels, as a file in memory.
Model equalized(const Model& model, const std::shared_ptr<Budget>& budget) {
  ir::Graph graph = *model.loaded()->graph();
  if (quantize::equalize(graph) == 0) return model;  // which is checked again when it is used
  passes::remove_dead(graph);
  const model::FileWriter writer(graph);
  const Charge charge(budget, MemoryCategory::kModelFile, writer.extra_bytes());
  Model result(
      runtime::LoadedModel::write(writer.bytes(), [&](std::span<std::byte> out) { writer.write(out); }, budget));
  model.loaded()->require_intact();
  return result;
}

}  // namespace

struct Quantizer::Data {
  Data(const Model& given, QuantizeOptions chosen)
      : options(std::move(chosen)),
        budget((options.budget ? options.budget : given.budget())->child()),
        model(options.equalize ? equalized(given, budget) : given),
        recipe(options.recipe),
        trained(*model.loaded()->graph()) {
    const ir::Graph& graph = *model.loaded()->graph();
    quantize::require_float_model(graph);
    recipe.require_matches(graph);
    quantize::TreatmentOptions treatment;
    treatment.mode = options.ranges_only ? QuantizationMode::kFloat : options.mode;
    if (!options.ranges_only) {
      treatment.recipe = [&](int subgraph, int node) { return recipe.rule(graph, subgraph, node); };
    }
    treatment.weights_obstacle = [&](const ir::Subgraph& subgraph, const ir::Node& node,
                                     const quantize::NodeTreatment& wanted) {
      return quantize::weights_obstacle(subgraph, node, wanted, weight_options());
    };
    treatments = quantize::plan_treatments(graph, treatment);
    if (requires_integers()) quantize::require_integers(graph, treatments);
    integers = any_mode(treatments, [](QuantizationMode mode) { return is_integer(mode); });
    integers16 = any_mode(treatments, [](QuantizationMode mode) { return mode == QuantizationMode::kInt16x8; });
    check_border_type(options.input_type, "input_type", options.mode, integers);
    check_border_type(options.output_type, "output_type", options.mode, integers);
  }

  /// What samples said, for a result; without it sizes alone count.
  struct Samples {
    const ChannelMeans* means = nullptr;
    const Calibration* calibration = nullptr;
  };

  quantize::WeightOptions weight_options(const Samples* samples = nullptr) const {
    return {options.per_channel, options.per_channel_dense, options.min_weight_elements,
            options.rounding,    gram_of(samples),          samples == nullptr};
  }

  quantize::IntegerOptions integer_options(const Samples* samples) const {
    return {options.input_type,     options.output_type, options.per_channel, options.per_channel_dense,
            options.quantized_name, options.rounding,    gram_of(samples),    samples == nullptr};
  }

  static quantize::GramOf gram_of(const Samples* samples) {
    const Calibration* grams = samples != nullptr ? samples->calibration : nullptr;
    if (grams == nullptr || !grams->gram_matrices()) return {};
    return [grams](int subgraph, int node) { return grams->data().statistics.find_gram(subgraph, node); };
  }

  /// Some node's weights are rounded by a Gram matrix.
  bool needs_gram_matrices() const {
    if (options.ranges_only) return false;
    return std::any_of(treatments.begin(), treatments.end(), [&](const auto& nodes) {
      return std::any_of(nodes.begin(), nodes.end(), [&](const quantize::NodeTreatment& node) {
        return node.mode != QuantizationMode::kFloat && node.mode != QuantizationMode::kFloat16 && node.node >= 0 &&
               node.weights.rounding.value_or(options.rounding) == WeightRounding::kComq;
      });
    });
  }

  bool corrects_biases() const { return options.bias_correction && integers; }
  bool requires_integers() const { return !options.allow_float && !options.ranges_only && is_integer(options.mode); }
  /// Ranges that a model was trained for are those of 8 bits.
  bool needs_ranges() const { return (integers && (trained.empty() || integers16)) || options.ranges_only; }
  bool needs_calibration() const { return needs_ranges() || needs_gram_matrices(); }

  /// Without samples: something of the same sizes, to plan with.
  ir::Graph rewrite(const quantize::RangeOf& range_of, const Samples* samples) const {
    ir::Graph graph = *model.loaded()->graph();
    if (options.ranges_only) {
      note_ranges(graph, range_of);
      return graph;
    }
    quantize::Treatments settled = treatments;
    quantize::resolve_treatments(graph, settled, range_of);
    if (requires_integers()) quantize::require_integers(graph, settled);
    if (corrects_biases()) {
      const auto means_of = [&graph, samples](int, int tensor) {
        return samples != nullptr ? samples->means->means(tensor) : planned_means(graph, tensor);
      };
      quantize::correct_biases(graph, settled, means_of, integer_options(samples));
    }
    if (integers) settled = quantize::quantize_integers(graph, settled, range_of, integer_options(samples));
    quantize::quantize_weights(graph, settled, weight_options(samples));
    passes::remove_dead(graph);
    if (const auto done = optimization_of(options.mode)) model::add_optimization(graph, *done);
    if (options.sparsify) {
      for (const ModelOptimization done : quantize::sparsify(graph, budget)) model::add_optimization(graph, done);
    }
    ir::verify(graph);
    return graph;
  }

  ir::Graph checked_rewrite(const Calibration* calibration, const ChannelMeans* means) const {
    require(calibration != nullptr || !needs_ranges(), ErrorCode::kInvalidArgument,
            "integer activations need a calibration: run the model on samples first");
    require(!needs_gram_matrices() ||
                (calibration != nullptr && calibration->gram_matrices() && calibration->samples() > 0),
            ErrorCode::kInvalidArgument,
            "rounding 'comq' needs a calibration with Gram matrices (gram_matrices of the options of calibrating)");
    require(!corrects_biases() || (means != nullptr && means->samples() > 0), ErrorCode::kInvalidArgument,
            "bias correction needs the means of channels: run the model on samples first");
    const Samples samples{means, calibration};
    return rewrite(ranges(calibration), &samples);
  }

  /// What rounding takes while the graph is rewritten: less than what it takes when weights are written.
  int64_t fitting_bytes() const {
    int64_t most = 0;
    if (!needs_gram_matrices()) return most;
    for (const quantize::GramMatrix& gram : quantize::empty_grams(*model.loaded()->graph())) {
      const auto& treatment = treatments[static_cast<size_t>(gram.subgraph)][static_cast<size_t>(gram.node)];
      if (treatment.mode == QuantizationMode::kFloat) continue;
      most = std::max(most, quantize::RowRounder::bytes({.method = WeightRounding::kComq}, gram.columns));
    }
    return most;
  }

  QuantizationPlan plan(const quantize::RangeOf& range_of) const {
    const ir::Graph graph = rewrite(range_of, nullptr);
    const model::FileWriter writer(graph);
    QuantizationPlan plan{writer.bytes(), std::max(writer.extra_bytes(), fitting_bytes()), ir::graph_bytes(graph), 0};
    plan.peak_bytes = plan.result_bytes + plan.extra_bytes + plan.graph_bytes;
    return plan;
  }

  quantize::RangeOf ranges(const Calibration* calibration) const {
    if (calibration == nullptr) return trained.empty() ? quantize::RangeOf(unequal_range) : trained.before(no_range);
    require(calibration->is_of(model), ErrorCode::kInvalidArgument, "the calibration is of another model{}",
            options.equalize ? "; with equalization it has to be of the quantizer's own" : "");
    require(!needs_ranges() || calibration->samples() > 0, ErrorCode::kInvalidArgument,
            "the calibration has no samples");
    return trained.before(ranges_of(*calibration, options.calibration_rule));
  }

  QuantizeOptions options;
  std::shared_ptr<Budget> budget;
  Model model;
  quantize::Recipe recipe;
  quantize::TrainedRanges trained;
  quantize::Treatments treatments;
  bool integers = false;
  bool integers16 = false;
};

void apply(const RecipeDocument& recipe, QuantizeOptions& options) {
  options.recipe.insert(options.recipe.end(), recipe.rules.begin(), recipe.rules.end());
  const RecipeSettings& settings = recipe.settings;
  options.mode = settings.mode.value_or(options.mode);
  options.calibration_rule.method = settings.method.value_or(options.calibration_rule.method);
  options.calibration_rule.percentile = settings.percentile.value_or(options.calibration_rule.percentile);
  options.per_channel = settings.per_channel.value_or(options.per_channel);
  options.per_channel_dense = settings.per_channel.value_or(options.per_channel_dense);
  options.equalize = settings.equalize.value_or(options.equalize);
  options.bias_correction = settings.bias_correction.value_or(options.bias_correction);
  options.rounding = settings.rounding.value_or(options.rounding);
}

Quantizer::Quantizer(const Model& model, QuantizeOptions options) try
    : data_(std::make_shared<const Data>(model, std::move(options))) {
} catch (...) {
  rethrow_as_error();
}

const Model& Quantizer::model() const { return data_->model; }

bool Quantizer::needs_calibration() const { return data_->needs_calibration(); }
bool Quantizer::needs_gram_matrices() const { return data_->needs_gram_matrices(); }

std::vector<QuantizedNode> Quantizer::nodes() const try {
  std::vector<QuantizedNode> result;
  const ir::Graph& graph = *data_->model.loaded()->graph();
  for (size_t s = 0; s < graph.subgraphs.size(); ++s) {
    const ir::Subgraph& subgraph = graph.subgraphs[s];
    for (size_t n = 0; n < subgraph.nodes.size(); ++n) {
      const ir::Node& node = subgraph.nodes[n];
      const quantize::NodeTreatment& treatment = data_->treatments[s][n];
      QuantizedNode described;
      described.subgraph = static_cast<int>(s);
      described.node = static_cast<int>(n);
      described.op = node.op.name();
      for (int v : node.outputs) {
        if (v == ir::kAbsent) continue;
        described.name = subgraph.value(v).name;
        break;
      }
      described.mode = treatment.mode;
      described.reason = treatment.reason;
      result.push_back(std::move(described));
    }
  }
  return result;
} catch (...) {
  rethrow_as_error();
}

QuantizationPlan Quantizer::plan(const Calibration* calibration) const try {
  if (calibration != nullptr || data_->trained.empty()) return data_->plan(data_->ranges(calibration));
  // Samples may come, and give ranges to what the model has none for.
  const QuantizationPlan with_samples = data_->plan(data_->trained.before(unequal_range));
  if (data_->requires_integers()) return with_samples;
  const QuantizationPlan without = data_->plan(data_->ranges(nullptr));
  return with_samples.peak_bytes > without.peak_bytes ? with_samples : without;
} catch (...) {
  rethrow_as_error();
}

Model Quantizer::outline() const try {
  return jobs::outline_of(data_->rewrite(data_->trained.before(unequal_range), nullptr));
} catch (...) {
  rethrow_as_error();
}

/// The graph of the result, charged, and what writes it.
struct Quantizer::Result {
  Result(const Data& data, const Calibration* calibration, const ChannelMeans* means)
      : graph_charge(data.budget, MemoryCategory::kGraph), file_charge(data.budget, MemoryCategory::kModelFile) {
    file_charge.resize(data.fitting_bytes());
    graph = data.checked_rewrite(calibration, means);
    file_charge.resize(0);
    graph_charge.resize(ir::graph_bytes(graph));
    writer.emplace(graph);
  }

  ir::Graph graph;
  Charge graph_charge;
  Charge file_charge;
  std::optional<model::FileWriter> writer;
};

void Quantizer::quantize_into(const Allocate& allocate, const Calibration* calibration, const ChannelMeans* means,
                              const Progress& progress) const try {
  Result result(*data_, calibration, means);
  result.file_charge.resize(result.writer->bytes() + result.writer->extra_bytes());
  result.writer->write(allocate(result.writer->bytes()), progress);
  data_->model.loaded()->require_intact();
} catch (...) {
  rethrow_as_error();
}

std::vector<std::byte> Quantizer::quantize(const Calibration* calibration, const ChannelMeans* means,
                                           const Progress& progress) const try {
  std::vector<std::byte> file;
  const auto allocate = [&](int64_t bytes) {
    file.resize(static_cast<size_t>(bytes));
    return std::span(file);
  };
  quantize_into(allocate, calibration, means, progress);
  return file;
} catch (...) {
  rethrow_as_error();
}

Model Quantizer::quantize_to_model(const Calibration* calibration, const ChannelMeans* means,
                                   const Progress& progress) const try {
  Result result(*data_, calibration, means);
  result.file_charge.resize(result.writer->extra_bytes());
  const auto fill = [&](std::span<std::byte> out) { result.writer->write(out, progress); };
  Model model(runtime::LoadedModel::write(result.writer->bytes(), fill, data_->budget));
  data_->model.loaded()->require_intact();
  return model;
} catch (...) {
  rethrow_as_error();
}

}  // namespace leadline
