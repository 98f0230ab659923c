// SPDX-License-Identifier: Apache-2.0
#include "leadline/model.h"

#include "core/boundary.h"
#include "core/charge.h"
#include "core/error.h"
#include "io/output_file.h"
#include "ir/graph.h"
#include "model/conversion_record.h"
#include "model/writer.h"
#include "ops/registry.h"
#include "runtime/loaded_model.h"
#include "runtime/missing_ops.h"

namespace leadline {

Model Model::load(const std::string& path, std::shared_ptr<Budget> budget) try {
  return Model(runtime::LoadedModel::load(path, std::move(budget)));
} catch (...) {
  rethrow_as_error();
}

Model Model::from_bytes(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                        std::shared_ptr<Budget> budget) try {
  constexpr uintptr_t kDataAlignment = 16;  // what a flatbuffer's scalars and constants may rely on
  const bool aligned = reinterpret_cast<uintptr_t>(bytes.data()) % kDataAlignment == 0;
  const auto memory = owner && aligned ? ModelBytes::borrow(bytes, std::move(owner)) : ModelBytes::copy(bytes);
  return Model(runtime::LoadedModel::read(memory, std::move(budget)));
} catch (...) {
  rethrow_as_error();
}

const std::string& Model::description() const { return loaded_->graph()->description; }

int Model::subgraph_count() const { return static_cast<int>(loaded_->graph()->subgraphs.size()); }

namespace {

NodeInfo node_info(const ir::Subgraph& subgraph, int index) {
  const ir::Node& node = subgraph.nodes[static_cast<size_t>(index)];
  NodeInfo info;
  info.index = index;
  info.op = node.op.name();
  info.version = node.version;
  info.inputs = node.inputs;
  info.outputs = node.outputs;
  info.attributes = ir::attributes_text(*node.attributes);
  const ops::OpDef* op = ops::row_of(node);
  if (op == nullptr || !op->contraction || node.outputs.empty()) return info;
  const auto shape = [&](int v) { return subgraph.value(v).shape; };
  info.activations = op->contraction.activations;
  info.weights = op->contraction.weights;
  info.macs = ops::multiply_accumulates(op->contraction, shape(node.inputs[static_cast<size_t>(info.activations)]),
                                        shape(node.inputs[static_cast<size_t>(info.weights)]), shape(node.outputs[0]));
  return info;
}

}  // namespace

SubgraphInfo Model::subgraph(int index) const try {
  require(index >= 0 && index < subgraph_count(), ErrorCode::kInvalidArgument,
          "subgraph {} does not exist: there are {}", index, subgraph_count());
  const ir::Subgraph& source = loaded_->graph()->subgraphs[static_cast<size_t>(index)];
  SubgraphInfo info;
  info.name = source.name;
  info.inputs = source.inputs;
  info.outputs = source.outputs;
  for (size_t v = 0; v < source.values.size(); ++v)
    info.tensors.push_back(runtime::describe_tensor(source, static_cast<int>(v)));
  for (size_t n = 0; n < source.nodes.size(); ++n) {
    info.nodes.push_back(node_info(source, static_cast<int>(n)));
  }
  return info;
} catch (...) {
  rethrow_as_error();
}

std::optional<SparsityInfo> Model::sparsity(int subgraph, int tensor) const try {
  require(subgraph >= 0 && subgraph < subgraph_count(), ErrorCode::kInvalidArgument,
          "subgraph {} does not exist: there are {}", subgraph, subgraph_count());
  const std::vector<ir::Value>& values = loaded_->graph()->subgraphs[static_cast<size_t>(subgraph)].values;
  require(tensor >= 0 && tensor < static_cast<int>(values.size()), ErrorCode::kInvalidArgument,
          "tensor {} does not exist: subgraph {} has {}", tensor, subgraph, values.size());
  const auto& source = values[static_cast<size_t>(tensor)].sparsity;
  if (source == nullptr) return std::nullopt;
  SparsityInfo info{source->traversal_order, source->block_map, {}};
  for (const ir::SparseDimension& d : source->dimensions) {
    info.dimensions.push_back({!d.dense, d.dense_size, d.segments, d.indices});
  }
  return info;
} catch (...) {
  rethrow_as_error();
}

std::vector<SignatureInfo> Model::signatures() const try {
  std::vector<SignatureInfo> result;
  for (const ir::Signature& s : loaded_->graph()->signatures)
    result.push_back({s.key, s.subgraph, s.inputs, s.outputs});
  return result;
} catch (...) {
  rethrow_as_error();
}

std::vector<std::pair<std::string, int64_t>> Model::metadata() const try {
  std::vector<std::pair<std::string, int64_t>> result;
  for (const ir::Metadata& m : loaded_->graph()->metadata)
    result.emplace_back(m.name, static_cast<int64_t>(m.data.size()));
  return result;
} catch (...) {
  rethrow_as_error();
}

std::optional<ConversionRecord> Model::conversion_record() const try {
  return model::conversion_record(*loaded_->graph());
} catch (...) {
  rethrow_as_error();
}

std::vector<MissingOp> Model::missing_ops() const try {
  return runtime::find_missing_ops(*loaded_->graph(), ops::user_ops_of(*loaded_->graph()));
} catch (...) {
  rethrow_as_error();
}

int64_t Model::file_bytes() const { return loaded_->file_bytes(); }

std::string Model::to_text() const try { return ir::to_text(*loaded_->graph()); } catch (...) {
  rethrow_as_error();
}

std::vector<std::byte> Model::to_tflite() const try {
  std::vector<std::byte> file = model::write(*loaded_->graph());
  loaded_->require_intact();
  return file;
} catch (...) {
  rethrow_as_error();
}

void Model::save(const std::string& path, const Progress& progress) const try {
  const model::FileWriter writer(*loaded_->graph());
  const Charge charge(loaded_->budget(), MemoryCategory::kModelFile, writer.sink_bytes());
  OutputFile file(path);
  writer.write_to([&](std::span<const std::byte> piece) { file.write(piece); }, progress);
  loaded_->require_intact();
  file.finish();
} catch (...) {
  rethrow_as_error();
}

int64_t Model::memory_bytes() const { return loaded_->memory_bytes(); }
const std::shared_ptr<Budget>& Model::budget() const { return loaded_->budget(); }

}  // namespace leadline
