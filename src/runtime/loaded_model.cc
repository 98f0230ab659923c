// SPDX-License-Identifier: Apache-2.0
#include "runtime/loaded_model.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "model/reader.h"

namespace leadline::runtime {
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

}  // namespace

LoadedModel::LoadedModel(std::shared_ptr<Budget> budget)
    : budget_(budget ? std::move(budget) : Budget::machine_default()),
      charged_(budget_->child()),
      packed_weights_(std::make_shared<PackedWeightsCache>(charged_)) {}

LoadedModel::~LoadedModel() {
  charged_->release(file_bytes_, MemoryCategory::kModelFile);
  charged_->release(graph_bytes_, MemoryCategory::kGraph);
  for (const auto& [disabled, changes] : changes_) {
    if (changes != nullptr) charged_->release(changes->bytes(), MemoryCategory::kGraph);
  }
}

void LoadedModel::charge_file(int64_t bytes) {
  charged_->charge(bytes, MemoryCategory::kModelFile);
  file_bytes_ = bytes;
}

void LoadedModel::use_graph(std::shared_ptr<const ir::Graph> graph) {
  const int64_t bytes = ir::graph_bytes(*graph);
  charged_->charge(bytes, MemoryCategory::kGraph);
  graph_bytes_ = bytes;
  graph_ = std::move(graph);
}

void LoadedModel::read_graph(const std::shared_ptr<ModelBytes>& bytes) {
  std::shared_ptr<const ir::Graph> graph;
  try {
    graph = model::read(bytes);
  } catch (const Error&) {
    bytes->require_intact();  // says more than what reading zeros led to
    throw;
  }
  bytes->require_intact();
  use_graph(std::move(graph));
}

std::shared_ptr<const LoadedModel> LoadedModel::load(const std::string& path, std::shared_ptr<Budget> budget) {
  return with_path(path, [&] { return read(ModelBytes::map_file(path), std::move(budget)); });
}

std::shared_ptr<const LoadedModel> LoadedModel::read(const std::shared_ptr<ModelBytes>& bytes,
                                                     std::shared_ptr<Budget> budget) {
  const std::shared_ptr<LoadedModel> model(new LoadedModel(std::move(budget)));
  model->charge_file(static_cast<int64_t>(bytes->span().size()));
  model->read_graph(bytes);
  return model;
}

std::shared_ptr<const LoadedModel> LoadedModel::write(int64_t bytes, const ModelBytes::Fill& fill,
                                                      std::shared_ptr<Budget> budget) {
  const std::shared_ptr<LoadedModel> model(new LoadedModel(std::move(budget)));
  model->charge_file(bytes);
  model->read_graph(ModelBytes::write(bytes, fill));
  return model;
}

std::shared_ptr<const LoadedModel> LoadedModel::from_graph(std::shared_ptr<const ir::Graph> graph,
                                                           std::shared_ptr<Budget> budget) {
  const std::shared_ptr<LoadedModel> model(new LoadedModel(std::move(budget)));
  model->use_graph(std::move(graph));
  return model;
}

std::shared_ptr<const ir::ChangedNodes> LoadedModel::changes_for_runs(const passes::PassNames& disabled) const {
  const auto passes = passes::passes_for_runs();
  if (std::all_of(passes.begin(), passes.end(), [&](const auto& p) { return disabled.contains(p.name); }))
    return nullptr;
  const std::lock_guard lock(changes_mutex_);
  const auto known = changes_.find(disabled);
  if (known != changes_.end()) return known->second;
  const auto changes = std::make_shared<const ir::ChangedNodes>(passes::changes_for_runs(*graph_, disabled));
  const auto entry = changes_.emplace(disabled, nullptr).first;  // before anything is charged: it may fail
  if (changes->empty()) return nullptr;
  try {
    charged_->charge(changes->bytes(), MemoryCategory::kGraph);
  } catch (const BudgetError&) {
    changes_.erase(entry);
    return nullptr;
  }
  return entry->second = changes;
}

TensorInfo describe_tensor(const ir::Subgraph& subgraph, int index) {
  const ir::Value& value = subgraph.value(index);
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

}  // namespace leadline::runtime
