// SPDX-License-Identifier: Apache-2.0
#include "model/conversion_record.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>

#include "conversion_metadata_generated.h"

namespace leadline {
namespace model {
namespace {

constexpr std::string_view kEntry = "CONVERSION_METADATA";

ir::Metadata* find_entry(std::vector<ir::Metadata>& metadata) {
  const auto at =
      std::find_if(metadata.begin(), metadata.end(), [](const auto& entry) { return entry.name == kEntry; });
  return at == metadata.end() ? nullptr : &*at;
}

std::vector<std::byte> encode(const ConversionRecord& record) {
  flatbuffers::FlatBufferBuilder builder;
  const auto environment =
      tflmeta::CreateEnvironment(builder, builder.CreateString(record.tensorflow_version), record.api_version,
                                 static_cast<int32_t>(record.source), record.model_hash);
  std::vector<int32_t> modes;
  for (const ModelOptimization mode : record.optimizations) modes.push_back(static_cast<int32_t>(mode));
  std::vector<flatbuffers::Offset<tflmeta::SparsityBlockSize>> blocks;
  for (const std::vector<uint32_t>& sizes : record.sparsity_block_sizes) {
    blocks.push_back(tflmeta::CreateSparsityBlockSize(builder, builder.CreateVector(sizes)));
  }
  const auto options = tflmeta::CreateConversionOptions(builder, builder.CreateVector(modes), record.allow_custom_ops,
                                                        record.select_tf_ops, record.only_select_tf_ops,
                                                        blocks.empty() ? 0 : builder.CreateVector(blocks));
  builder.Finish(tflmeta::CreateConversionMetadata(builder, environment, options));
  const auto bytes = std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize()));
  return {bytes.begin(), bytes.end()};
}

}  // namespace

std::optional<ConversionRecord> conversion_record(const ir::Graph& graph) {
  const auto at = std::find_if(graph.metadata.begin(), graph.metadata.end(),
                               [](const auto& entry) { return entry.name == kEntry; });
  if (at == graph.metadata.end()) return {};
  // A file may have it anywhere; flatbuffers want numbers at addresses that fit them.
  const std::vector<std::byte> bytes(at->data.begin(), at->data.end());
  flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  if (!tflmeta::VerifyConversionMetadataBuffer(verifier)) return {};
  const tflmeta::ConversionMetadata* const metadata = tflmeta::GetConversionMetadata(bytes.data());
  ConversionRecord record;
  record.api_version = 0;
  if (const auto* environment = metadata->environment()) {
    if (environment->tensorflow_version() != nullptr)
      record.tensorflow_version = environment->tensorflow_version()->str();
    record.api_version = environment->api_version();
    record.source = static_cast<ModelSource>(environment->model_type());
    record.model_hash = environment->model_hash();
  }
  if (const auto* options = metadata->options()) {
    if (const auto* modes = options->model_optimization_modes()) {
      for (const int32_t mode : *modes) record.optimizations.push_back(static_cast<ModelOptimization>(mode));
    }
    record.allow_custom_ops = options->allow_custom_ops();
    record.select_tf_ops = options->enable_select_tf_ops();
    record.only_select_tf_ops = options->force_select_tf_ops();
    if (const auto* blocks = options->sparsity_block_sizes()) {
      for (const tflmeta::SparsityBlockSize* block : *blocks) {
        auto& sizes = record.sparsity_block_sizes.emplace_back();
        if (block->values() != nullptr) sizes.assign(block->values()->begin(), block->values()->end());
      }
    }
  }
  return record;
}

void set_conversion_record(ir::Graph& graph, const std::optional<ConversionRecord>& record) {
  ir::Metadata* entry = find_entry(graph.metadata);
  if (!record) {
    if (entry != nullptr) graph.metadata.erase(graph.metadata.begin() + (entry - graph.metadata.data()));
    return;
  }
  if (entry == nullptr) entry = &graph.metadata.emplace_back(ir::Metadata{std::string(kEntry), {}});
  graph.storage.push_back(std::make_shared<const std::vector<std::byte>>(encode(*record)));
  entry->data = *graph.storage.back();
}

void add_optimization(ir::Graph& graph, ModelOptimization optimization) {
  std::optional<ConversionRecord> record = conversion_record(graph);
  if (!record) return;
  auto& all = record->optimizations;
  if (std::find(all.begin(), all.end(), optimization) != all.end()) return;
  all.insert(std::upper_bound(all.begin(), all.end(), optimization), optimization);
  set_conversion_record(graph, record);
}

}  // namespace model

std::string source_name(ModelSource source) {
  switch (source) {
    case ModelSource::kUnknown:
      return "unknown";
    case ModelSource::kSavedModel:
      return "saved_model";
    case ModelSource::kKerasModel:
      return "keras_model";
    case ModelSource::kConcreteFunctions:
      return "concrete_functions";
    case ModelSource::kGraphDef:
      return "graph_def";
    case ModelSource::kSession:
      return "session";
    case ModelSource::kJax:
      return "jax";
    case ModelSource::kPyTorch:
      return "pytorch";
  }
  return fmt::format("{}", static_cast<int32_t>(source));
}

std::string optimization_name(ModelOptimization optimization) {
  switch (optimization) {
    case ModelOptimization::kFloat16:
      return "float16";
    case ModelOptimization::kDynamicRange:
      return "dynamic_range";
    case ModelOptimization::kFullInteger:
      return "full_integer";
    case ModelOptimization::kInt16:
      return "int16";
    case ModelOptimization::kQuantizationAwareTraining:
      return "quantization_aware_training";
    case ModelOptimization::kRandomSparsity:
      return "random_sparsity";
    case ModelOptimization::kBlockSparsity:
      return "block_sparsity";
    case ModelOptimization::kStructuredSparsity:
      return "structured_sparsity";
  }
  return fmt::format("{}", static_cast<int32_t>(optimization));
}

}  // namespace leadline
