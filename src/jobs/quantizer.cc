// SPDX-License-Identifier: Apache-2.0
#include "leadline/quantizer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/boundary.h"
#include "core/charge.h"
#include "core/error.h"
#include "ir/verifier.h"
#include "jobs/model_writing.h"
#include "model/writer.h"
#include "passes/passes.h"
#include "quantize/bias_correction.h"
#include "quantize/equalize.h"
#include "quantize/integers.h"
#include "quantize/recipe.h"
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

bool any_integers(const quantize::Treatments& treatments) {
  return std::any_of(treatments.begin(), treatments.end(), [](const auto& nodes) {
    return std::any_of(nodes.begin(), nodes.end(), [](const auto& node) { return is_integer(node.mode); });
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

/// To plan with: any means will do that leave no bias zero.
std::vector<double> planned_means(const ir::Graph& graph, int tensor) {
  const Shape& shape = graph.subgraphs[0].values[static_cast<size_t>(tensor)].shape;
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
        recipe(options.recipe) {
    const ir::Graph& graph = *model.loaded()->graph();
    quantize::require_float_model(graph);
    quantize::TreatmentOptions treatment;
    treatment.mode = options.mode;
    treatment.recipe = [&](int subgraph, int node) { return recipe.mode(graph, subgraph, node); };
    treatment.weights_obstacle = [&](const ir::Subgraph& subgraph, const ir::Node& node, QuantizationMode wanted) {
      return quantize::weights_obstacle(subgraph, node, wanted, weight_options());
    };
    treatments = quantize::plan_treatments(graph, treatment);
    const bool integer_mode = is_integer(options.mode);
    if (!options.allow_float && integer_mode) quantize::require_integers(graph, treatments);
    integers = any_integers(treatments);
    check_border_type(options.input_type, "input_type", options.mode, integers);
    check_border_type(options.output_type, "output_type", options.mode, integers);
  }

  quantize::WeightOptions weight_options() const {
    return {options.per_channel, options.per_channel_dense, options.min_weight_elements};
  }

  quantize::IntegerOptions integer_options() const {
    return {options.input_type, options.output_type, options.per_channel, options.per_channel_dense};
  }

  bool corrects_biases() const { return options.bias_correction && integers; }

  /// `means` are for bias correction; null: plans with any.
  ir::Graph rewrite(const quantize::RangeOf& range_of, const ChannelMeans* means) const {
    ir::Graph graph = *model.loaded()->graph();
    quantize::Treatments settled = treatments;
    quantize::resolve_treatments(graph, settled, range_of);
    if (!options.allow_float && is_integer(options.mode)) quantize::require_integers(graph, settled);
    if (corrects_biases()) {
      const auto means_of = [&graph, means](int, int tensor) {
        return means != nullptr ? means->means(tensor) : planned_means(graph, tensor);
      };
      quantize::correct_biases(graph, settled, means_of, integer_options());
    }
    if (integers) settled = quantize::quantize_integers(graph, settled, range_of, integer_options());
    quantize::quantize_weights(graph, settled, weight_options());
    passes::remove_dead(graph);
    ir::verify(graph);
    return graph;
  }

  ir::Graph checked_rewrite(const Calibration* calibration, const ChannelMeans* means) const {
    require(calibration != nullptr || !integers, ErrorCode::kInvalidArgument,
            "integer activations need a calibration: run the model on samples first");
    require(!corrects_biases() || (means != nullptr && means->samples() > 0), ErrorCode::kInvalidArgument,
            "bias correction needs the means of channels: run the model on samples first");
    return rewrite(ranges(calibration), means);
  }

  quantize::RangeOf ranges(const Calibration* calibration) const {
    if (calibration == nullptr) return unequal_range;
    require(calibration->is_of(model), ErrorCode::kInvalidArgument, "the calibration is of another model{}",
            options.equalize ? "; with equalization it has to be of the quantizer's own" : "");
    require(!integers || calibration->samples() > 0, ErrorCode::kInvalidArgument, "the calibration has no samples");
    return ranges_of(*calibration, options.calibration_rule);
  }

  QuantizeOptions options;
  std::shared_ptr<Budget> budget;
  Model model;
  quantize::Recipe recipe;
  quantize::Treatments treatments;
  bool integers = false;
};

Quantizer::Quantizer(const Model& model, QuantizeOptions options) try
    : data_(std::make_shared<const Data>(model, std::move(options))) {
} catch (...) {
  rethrow_as_error();
}

const Model& Quantizer::model() const { return data_->model; }

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
        described.name = subgraph.values[static_cast<size_t>(v)].name;
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
  const ir::Graph graph = data_->rewrite(data_->ranges(calibration), nullptr);
  const model::FileWriter writer(graph);
  QuantizationPlan plan{writer.bytes(), writer.extra_bytes(), ir::graph_bytes(graph), 0};
  plan.peak_bytes = plan.result_bytes + plan.extra_bytes + plan.graph_bytes;
  return plan;
} catch (...) {
  rethrow_as_error();
}

Model Quantizer::outline() const try { return jobs::outline_of(data_->rewrite(unequal_range, nullptr)); } catch (...) {
  rethrow_as_error();
}

/// The graph of the result, charged, and what writes it.
struct Quantizer::Result {
  Result(const Data& data, const Calibration* calibration, const ChannelMeans* means)
      : graph(data.checked_rewrite(calibration, means)),
        graph_charge(data.budget, MemoryCategory::kGraph),
        file_charge(data.budget, MemoryCategory::kModelFile) {
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
