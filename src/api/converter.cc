// SPDX-License-Identifier: Apache-2.0
#include "leadline/converter.h"

#include <array>
#include <exception>

#include "api/keras_weight.h"
#include "core/boundary.h"
#include "core/charge.h"
#include "core/error.h"
#include "import/keras/file_weights.h"
#include "import/keras/keras.h"
#include "import/keras/weights.h"
#include "import/saved_model/import.h"
#include "io/mapped_file.h"
#include "io/output_file.h"
#include "ir/graph.h"
#include "ir/sources.h"
#include "model/conversion_record.h"
#include "model/writer.h"
#include "ops/flex/tensorflow_forms.h"
#include "passes/passes.h"
#include "passes/unfold_constants.h"
#include "runtime/loaded_model.h"

namespace leadline {
namespace {

/// Weights that the caller has.
class GivenWeights final : public keras::WeightSource {
 public:
  explicit GivenWeights(const Converter::KerasWeights& weights) : weights_(weights) {}
  std::vector<keras::Weight> weights(const keras::LayerAddress& layer) const override {
    std::vector<keras::Weight> result;
    for (const KerasWeight& weight : weights_(layer.path)) {
      const KerasWeight::Data& data = weight.data();
      result.push_back({data.dtype, data.shape, data.source, data.name});
    }
    return result;
  }

 private:
  const Converter::KerasWeights& weights_;
};

/// Writes how the graph was made into it.
void note_origin(ir::Graph& graph, const ConversionOptions& options, ModelSource source, std::string_view version) {
  ConversionRecord record;
  record.tensorflow_version = version.empty() ? options.tensorflow_version : std::string(version);
  record.source = options.source == ModelSource::kUnknown ? source : options.source;
  record.allow_custom_ops = options.allow_custom_ops;
  record.select_tf_ops = options.select_tf_ops;
  model::set_conversion_record(graph, record);
}

passes::PassNames disabled_passes(const ConversionOptions& options) {
  return passes::pass_names(options.disabled_passes, passes::names_for_converters());
}

}  // namespace

struct Converter::Data {
  using Files = std::vector<std::shared_ptr<const ModelBytes>>;
  Data(std::shared_ptr<Budget> given, std::shared_ptr<ir::Graph> imported, Files mapped = {})
      : budget(std::move(given)),
        files(std::move(mapped)),
        graph(std::move(imported)),
        charge(budget, MemoryCategory::kGraph, ir::graph_bytes(*graph)),
        writer(*graph) {
    require_intact();
  }

  /// Throws Error(kIo) when a file was damaged while it was mapped: what was read from it is void.
  void require_intact() const { check(files); }
  static void check(const Files& files) {
    for (const auto& file : files) file->require_intact();
  }

  /// Besides what was read.
  int64_t added_bytes(ConvertTarget target) const {
    return target == ConvertTarget::kFile ? writer.sink_bytes() : writer.bytes() + writer.extra_bytes();
  }

  std::shared_ptr<Budget> budget;
  Files files;  // that the model and its weights are in
  std::shared_ptr<const ir::Graph> graph;
  Charge charge;
  model::FileWriter writer;
  int64_t held_bytes = budget->used();  // by the graph, and by what had to be unpacked
  std::array<int64_t, kMemoryCategoryCount> held = by_category(*budget);

  static std::array<int64_t, kMemoryCategoryCount> by_category(const Budget& budget) {
    std::array<int64_t, kMemoryCategoryCount> bytes{};
    for (size_t c = 0; c < bytes.size(); ++c) bytes[c] = budget.used(static_cast<MemoryCategory>(c));
    return bytes;
  }
};

Converter Converter::from_keras(const std::string& path, std::shared_ptr<Budget> budget,
                                const ConversionOptions& conversion) try {
  const passes::PassNames disabled = disabled_passes(conversion);
  auto counted = (budget ? std::move(budget) : Budget::machine_default())->child();
  MappedFiles files;
  const keras::KerasFile file = keras::KerasFile::open(path, counted);
  require(!file.config().empty(), ErrorCode::kInvalidModel,
          "{}: the file has weights but no description of the model; save the whole model with model.save()", path);
  try {
    std::shared_ptr<ir::Graph> graph = keras::import_keras(file.config(), keras::FileWeights(file));
    passes::run_passes(*graph, disabled);
    if (conversion.select_tf_ops) ops::use_tensorflow_forms(*graph);
    note_origin(*graph, conversion, ModelSource::kKerasModel, {});
    return Converter(std::make_shared<const Data>(std::move(counted), std::move(graph), files.take()));
  } catch (const BudgetError&) {
    throw;
  } catch (const Error& error) {
    Data::check(files.take());
    std::throw_with_nested(Error(error.code(), fmt::format("{}: {}", path, error.what())));
  }
} catch (...) {
  rethrow_as_error();
}

Converter Converter::from_keras_config(const std::string& config, const KerasWeights& weights,
                                       std::shared_ptr<Budget> budget, const ConversionOptions& conversion) try {
  const passes::PassNames disabled = disabled_passes(conversion);
  auto counted = (budget ? std::move(budget) : Budget::machine_default())->child();
  require(weights != nullptr, ErrorCode::kInvalidArgument,
          "a model in memory needs a function that returns its weights");
  std::shared_ptr<ir::Graph> graph = keras::import_keras(config, GivenWeights(weights));
  passes::run_passes(*graph, disabled);
  note_origin(*graph, conversion, ModelSource::kKerasModel, {});
  return Converter(std::make_shared<const Data>(std::move(counted), std::move(graph)));
} catch (...) {
  rethrow_as_error();
}

Converter Converter::from_saved_model(const std::string& path, const std::vector<std::string>& signature_keys,
                                      const std::vector<std::string>& tags, std::shared_ptr<Budget> budget,
                                      const ConversionOptions& conversion) try {
  const passes::PassNames disabled = disabled_passes(conversion);
  auto counted = (budget ? std::move(budget) : Budget::machine_default())->child();
  saved_model::ReadOptions options;
  if (!tags.empty()) options.tags = tags;
  options.signature_keys = signature_keys;
  options.budget = counted;
  options.allow_custom_ops = conversion.allow_custom_ops;
  MappedFiles files;
  try {
    std::string version;
    std::shared_ptr<ir::Graph> graph;
    {
      const saved_model::FlatModel flat = saved_model::read_saved_model(path, options);
      version = flat.meta->tensorflow_version;
      const saved_model::ForeignOps foreign{conversion.select_tf_ops, conversion.allow_custom_ops};
      graph = saved_model::import_flat_model(flat, foreign, {conversion.plain_inputs, conversion.plain_outputs});
    }
    passes::run_passes(*graph, disabled);
    if (conversion.select_tf_ops) ops::use_tensorflow_forms(*graph);
    note_origin(*graph, conversion, ModelSource::kSavedModel, version);
    return Converter(std::make_shared<const Data>(std::move(counted), std::move(graph), files.take()));
  } catch (const BudgetError&) {
    throw;
  } catch (const Error& error) {
    Data::check(files.take());
    std::throw_with_nested(Error(error.code(), fmt::format("{}: {}", path, error.what())));
  }
} catch (...) {
  rethrow_as_error();
}

std::optional<ConversionRecord> Converter::record() const { return model::conversion_record(*data_->graph); }

Converter Converter::with_record(const std::optional<ConversionRecord>& record) const try {
  if (record == this->record()) return *this;
  auto graph = std::make_shared<ir::Graph>(*data_->graph);
  model::set_conversion_record(*graph, record);
  return Converter(std::make_shared<const Data>(data_->budget, std::move(graph), data_->files));
} catch (...) {
  rethrow_as_error();
}

Converter Converter::with_unfolded_constants() const try {
  auto graph = std::make_shared<ir::Graph>(*data_->graph);
  if (passes::unfold_constants(*graph, data_->budget) == 0) return *this;
  return Converter(std::make_shared<const Data>(data_->budget, std::move(graph), data_->files));
} catch (...) {
  rethrow_as_error();
}

Converter Converter::with_select_tf_ops() const try {
  auto graph = std::make_shared<ir::Graph>(*data_->graph);
  if (ops::use_tensorflow_forms(*graph) == 0) return *this;
  return Converter(std::make_shared<const Data>(data_->budget, std::move(graph), data_->files));
} catch (...) {
  rethrow_as_error();
}

Converter Converter::without_signatures() const try {
  auto graph = std::make_shared<ir::Graph>(*data_->graph);
  graph->signatures.clear();
  return Converter(std::make_shared<const Data>(data_->budget, std::move(graph), data_->files));
} catch (...) {
  rethrow_as_error();
}

Converter Converter::with_finite_constants() const try {
  auto graph = std::make_shared<ir::Graph>(*data_->graph);
  bool changed = false;
  for (ir::Subgraph& subgraph : graph->subgraphs) {
    for (ir::Value& value : subgraph.values) {
      const bool is_float = value.dtype == DType::kFloat32 || value.dtype == DType::kFloat16 ||
                            value.dtype == DType::kBFloat16 || value.dtype == DType::kFloat64;
      if (!value.constant || !is_float || value.sparsity) continue;
      if (value.source == nullptr && !ir::has_infinities(value.data, value.dtype)) continue;
      value.source = ir::finite_source(ir::source_of(*graph, value), value.dtype);
      value.data = {};
      changed = true;
    }
  }
  if (!changed) return *this;
  return Converter(std::make_shared<const Data>(data_->budget, std::move(graph), data_->files));
} catch (...) {
  rethrow_as_error();
}

ConversionPlan Converter::plan() const try {
  ConversionPlan plan;
  plan.result_bytes = data_->writer.bytes();
  plan.peak_bytes = data_->held_bytes + data_->added_bytes(ConvertTarget::kMemory);
  plan.file_peak_bytes = data_->held_bytes + data_->added_bytes(ConvertTarget::kFile);
  for (const ir::Subgraph& subgraph : data_->graph->subgraphs) {
    plan.nodes += static_cast<int>(subgraph.nodes.size());
    plan.tensors += static_cast<int>(subgraph.values.size());
  }
  return plan;
} catch (...) {
  rethrow_as_error();
}

JobPlan Converter::job_plan(ConvertTarget target) const try {
  JobPlan plan;
  plan.job = "convert";
  plan.units = data_->budget->units();
  plan.result_bytes = data_->writer.bytes();
  JobPhase phase;
  phase.name = "read";
  phase.detail = "the graph, and what had to be unpacked";
  for (int c = 0; c < kMemoryCategoryCount; ++c) {
    const auto category = static_cast<MemoryCategory>(c);
    // What is written to the file is a model file, and always there.
    const int64_t bytes = data_->held[static_cast<size_t>(c)];
    if (bytes > 0 || category == MemoryCategory::kModelFile) phase.categories.push_back({category, bytes});
  }
  phase.peak_bytes = data_->held_bytes;
  plan.phases.push_back(phase);
  phase.name = "convert";
  phase.detail = fmt::format("result {}", data_->budget->format(plan.result_bytes));
  phase.categories[0].bytes += data_->added_bytes(target);
  phase.peak_bytes += data_->added_bytes(target);
  plan.phases.push_back(phase);
  plan.peak_bytes = phase.peak_bytes;
  return plan;
} catch (...) {
  rethrow_as_error();
}

void Converter::refuse_beyond(const Budget& budget, int64_t bytes, ConvertTarget target) const {
  const int64_t available = budget.available();
  if (bytes <= available) return;
  const JobPlan plan = job_plan(target);
  throw BudgetError(fmt::format("convert needs {} ({} bytes), the budget is {}; {} of it are left.\n{}",
                                budget.format(plan.peak_bytes), plan.peak_bytes, budget.format(budget.limit()),
                                budget.format(available), plan.to_text()),
                    plan.peak_bytes, budget.limit());
}

void Converter::admit(ConvertTarget target) const try {
  refuse_beyond(*data_->budget, data_->added_bytes(target), target);
} catch (...) {
  rethrow_as_error();
}

int64_t Converter::counted_peak_bytes() const { return data_->budget->peak(); }

void Converter::convert_into(std::span<std::byte> out, const Progress& progress) const try {
  require(static_cast<int64_t>(out.size()) == data_->writer.bytes(), ErrorCode::kInvalidArgument,
          "the model takes {} bytes, the memory for it has {}", data_->writer.bytes(), out.size());
  admit(ConvertTarget::kMemory);
  const Charge charge(data_->budget, MemoryCategory::kModelFile, data_->added_bytes(ConvertTarget::kMemory));
  data_->writer.write(out, progress);
  data_->require_intact();
} catch (...) {
  rethrow_as_error();
}

std::vector<std::byte> Converter::convert(const Progress& progress) const try {
  admit(ConvertTarget::kMemory);
  std::vector<std::byte> file(static_cast<size_t>(data_->writer.bytes()));
  convert_into(file, progress);
  return file;
} catch (...) {
  rethrow_as_error();
}

Model Converter::convert_to_model(const Progress& progress, std::shared_ptr<Budget> budget) const try {
  if (budget == nullptr) {
    admit(ConvertTarget::kMemory);
  } else {
    refuse_beyond(*budget, data_->writer.bytes(), ConvertTarget::kMemory);
  }
  const Charge charge(data_->budget, MemoryCategory::kModelFile, data_->writer.extra_bytes());
  const auto fill = [&](std::span<std::byte> out) { data_->writer.write(out, progress); };
  Model model(runtime::LoadedModel::write(data_->writer.bytes(), fill, budget ? std::move(budget) : data_->budget));
  data_->require_intact();
  return model;
} catch (...) {
  rethrow_as_error();
}

void Converter::convert_to(const std::string& path, const Progress& progress) const try {
  admit(ConvertTarget::kFile);
  const Charge charge(data_->budget, MemoryCategory::kModelFile, data_->added_bytes(ConvertTarget::kFile));
  OutputFile file(path);
  data_->writer.write_to([&](std::span<const std::byte> piece) { file.write(piece); }, progress);
  data_->require_intact();
  file.finish();
} catch (...) {
  rethrow_as_error();
}

std::string Converter::to_text() const try { return ir::to_text(*data_->graph); } catch (...) {
  rethrow_as_error();
}

}  // namespace leadline
