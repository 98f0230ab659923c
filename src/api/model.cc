// SPDX-License-Identifier: Apache-2.0
#include "leadline/model.h"

#include <cstring>

#include "api/boundary.h"
#include "api/missing_ops.h"
#include "api/model_data.h"
#include "core/error.h"
#include "ir/graph.h"
#include "model/reader.h"
#include "model/writer.h"

namespace leadline {
namespace {

/// Names the file in front of what is wrong with it.
template <typename Body>
auto with_path(const std::string& path, const Body& body) {
  try {
    return body();
  } catch (const BudgetError&) {
    throw;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kIo) throw;
    throw Error(error.code(), fmt::format("{}: {}", path, error.what()));
  }
}

/// `get_bytes` gives them when they are charged.
template <typename GetBytes>
std::shared_ptr<Model::Data> make_data(int64_t file_bytes, std::shared_ptr<Budget> budget, const GetBytes& get_bytes) {
  auto data = std::make_shared<Model::Data>();
  data->budget = budget ? std::move(budget) : Budget::machine_default();
  data->charged = data->budget->child();
  data->charged->charge(file_bytes, MemoryCategory::kModelFile);
  data->file_bytes = file_bytes;
  const std::shared_ptr<ModelBytes> bytes = get_bytes();
  try {
    data->graph = model::read(bytes);
  } catch (const Error&) {
    bytes->require_intact();  // says more than what reading zeros led to
    throw;
  }
  bytes->require_intact();
  const int64_t graph_bytes = ir::graph_bytes(*data->graph);
  data->charged->charge(graph_bytes, MemoryCategory::kGraph);
  data->graph_bytes = graph_bytes;
  data->packed_weights = std::make_shared<runtime::PackedWeights>(data->charged);
  return data;
}

std::shared_ptr<Model::Data> make_data(std::shared_ptr<ModelBytes> bytes, std::shared_ptr<Budget> budget) {
  const auto file_bytes = static_cast<int64_t>(bytes->span().size());
  return make_data(file_bytes, std::move(budget), [&] { return std::move(bytes); });
}

}  // namespace

Model::Data::~Data() {
  if (charged == nullptr) return;
  charged->release(file_bytes, MemoryCategory::kModelFile);
  charged->release(graph_bytes, MemoryCategory::kGraph);
  for (const auto& [disabled, changes] : changes_) {
    if (changes != nullptr) charged->release(changes->bytes(), MemoryCategory::kGraph);
  }
}

std::shared_ptr<const ir::ChangedNodes> Model::Data::changes_for_runs(const passes::PassNames& disabled) const {
  if (disabled.size() == passes::passes_for_runs().size()) return nullptr;
  const std::lock_guard lock(changes_mutex_);
  const auto known = changes_.find(disabled);
  if (known != changes_.end()) return known->second;
  const auto changes = std::make_shared<const ir::ChangedNodes>(passes::changes_for_runs(*graph, disabled));
  const auto entry = changes_.emplace(disabled, nullptr).first;  // before anything is charged: it may fail
  if (changes->empty()) return nullptr;
  try {
    charged->charge(changes->bytes(), MemoryCategory::kGraph);
  } catch (const BudgetError&) {
    changes_.erase(entry);
    return nullptr;
  }
  return entry->second = changes;
}

Model Model::Data::write(int64_t bytes, const ModelBytes::Fill& fill, std::shared_ptr<Budget> budget) {
  return Model(make_data(bytes, std::move(budget), [&] { return ModelBytes::write(bytes, fill); }));
}

Model Model::load(const std::string& path, std::shared_ptr<Budget> budget) try {
  return with_path(path, [&] { return Model(make_data(ModelBytes::map_file(path), std::move(budget))); });
} catch (...) {
  rethrow_as_error();
}

Model Model::from_bytes(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                        std::shared_ptr<Budget> budget) try {
  constexpr uintptr_t kDataAlignment = 16;  // what a flatbuffer's scalars and constants may rely on
  const bool aligned = reinterpret_cast<uintptr_t>(bytes.data()) % kDataAlignment == 0;
  auto memory = owner && aligned ? ModelBytes::borrow(bytes, std::move(owner)) : ModelBytes::copy(bytes);
  return Model(make_data(std::move(memory), std::move(budget)));
} catch (...) {
  rethrow_as_error();
}

const std::string& Model::description() const { return data_->graph->description; }

int Model::subgraph_count() const { return static_cast<int>(data_->graph->subgraphs.size()); }

TensorInfo describe_tensor(const ir::Subgraph& subgraph, int index) {
  const ir::Value& value = subgraph.values[static_cast<size_t>(index)];
  TensorInfo info;
  info.index = index;
  info.name = value.name;
  info.dtype = value.dtype;
  info.shape = value.shape;
  if (value.signature) {
    info.shape_signature = *value.signature;
  } else {
    for (int64_t size : value.shape) info.shape_signature.push_back(static_cast<int32_t>(size));
  }
  info.scales = value.quantization.scale;
  info.zero_points = value.quantization.zero_point;
  info.quantized_dimension = value.quantization.axis;
  info.constant = value.constant;
  info.variable = value.variable;
  info.sparse = value.sparsity != nullptr;
  info.bytes =
      value.constant ? static_cast<int64_t>(value.data.size()) : storage_bytes(value.dtype, value.shape).value_or(0);
  return info;
}

SubgraphInfo Model::subgraph(int index) const try {
  require(index >= 0 && index < subgraph_count(), ErrorCode::kInvalidArgument,
          "subgraph {} does not exist: there are {}", index, subgraph_count());
  const ir::Subgraph& source = data_->graph->subgraphs[static_cast<size_t>(index)];
  SubgraphInfo info;
  info.name = source.name;
  info.inputs = source.inputs;
  info.outputs = source.outputs;
  for (size_t v = 0; v < source.values.size(); ++v)
    info.tensors.push_back(describe_tensor(source, static_cast<int>(v)));
  for (size_t n = 0; n < source.nodes.size(); ++n) {
    const ir::Node& node = source.nodes[n];
    info.nodes.push_back(
        {static_cast<int>(n), node.op, node.version, node.inputs, node.outputs, ir::attributes_text(*node.attributes)});
  }
  return info;
} catch (...) {
  rethrow_as_error();
}

std::optional<SparsityInfo> Model::sparsity(int subgraph, int tensor) const try {
  require(subgraph >= 0 && subgraph < subgraph_count(), ErrorCode::kInvalidArgument,
          "subgraph {} does not exist: there are {}", subgraph, subgraph_count());
  const std::vector<ir::Value>& values = data_->graph->subgraphs[static_cast<size_t>(subgraph)].values;
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
  for (const ir::Signature& s : data_->graph->signatures) result.push_back({s.key, s.subgraph, s.inputs, s.outputs});
  return result;
} catch (...) {
  rethrow_as_error();
}

std::vector<std::pair<std::string, int64_t>> Model::metadata() const try {
  std::vector<std::pair<std::string, int64_t>> result;
  for (const ir::Metadata& m : data_->graph->metadata) result.emplace_back(m.name, static_cast<int64_t>(m.data.size()));
  return result;
} catch (...) {
  rethrow_as_error();
}

std::vector<MissingOp> Model::missing_ops() const try {
  return find_missing_ops(*data_->graph, ops::user_ops_of(*data_->graph));
} catch (...) {
  rethrow_as_error();
}

int64_t Model::file_bytes() const { return data_->file_bytes; }

std::string Model::to_text() const try { return ir::to_text(*data_->graph); } catch (...) {
  rethrow_as_error();
}

std::vector<std::byte> Model::to_tflite() const try {
  std::vector<std::byte> file = model::write(*data_->graph);
  data_->require_intact();
  return file;
} catch (...) {
  rethrow_as_error();
}

int64_t Model::memory_bytes() const { return data_->charged->used(); }
const std::shared_ptr<Budget>& Model::budget() const { return data_->budget; }

}  // namespace leadline
