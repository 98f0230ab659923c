// SPDX-License-Identifier: Apache-2.0
#include "leadline/model_builder.h"

#include <algorithm>
#include <utility>

#include "api/attribute_setter.h"
#include "api/op_names.h"
#include "core/boundary.h"
#include "core/error.h"
#include "io/flexbuffer_map_builder.h"
#include "ir/graph.h"
#include "ir/verifier.h"
#include "model/writer.h"
#include "ops/flex/node_def.h"
#include "ops/graph_builder.h"
#include "ops/inference.h"
#include "ops/registry.h"
#include "ops/user_ops.h"
#include "ops/verify.h"

namespace leadline {
namespace {

std::shared_ptr<const ir::Sparsity> sparsity_of(const std::optional<SparsityInfo>& info) {
  if (!info) return nullptr;
  auto sparsity = std::make_shared<ir::Sparsity>();
  sparsity->traversal_order = info->traversal_order;
  sparsity->block_map = info->block_map;
  for (const SparsityInfo::Dimension& d : info->dimensions) {
    sparsity->dimensions.push_back({!d.compressed, d.dense_size, d.segments, d.indices});
  }
  return sparsity;
}

}  // namespace

struct ModelBuilder::Data {
  ir::Graph graph;

  ir::Subgraph& subgraph(int index) {
    require(index >= 0 && index < static_cast<int>(graph.subgraphs.size()), kBadArgument,
            "subgraph {} does not exist: there are {}", index, graph.subgraphs.size());
    return graph.subgraphs[static_cast<size_t>(index)];
  }
  std::span<const std::byte> keep(std::span<const std::byte> bytes) {
    graph.storage.push_back(std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end()));
    return *graph.storage.back();
  }
};

ModelBuilder::ModelBuilder() try : data_(std::make_unique<Data>()) {
  data_->graph.bytes = ModelBytes::copy({});
  add_subgraph("main");
} catch (...) {
  rethrow_as_error();
}
ModelBuilder::~ModelBuilder() = default;
ModelBuilder::ModelBuilder(ModelBuilder&&) noexcept = default;
ModelBuilder& ModelBuilder::operator=(ModelBuilder&&) noexcept = default;

int ModelBuilder::add_subgraph(const std::string& name) try {
  ir::Subgraph subgraph;
  subgraph.name = name;
  data_->graph.subgraphs.push_back(std::move(subgraph));
  return static_cast<int>(data_->graph.subgraphs.size()) - 1;
} catch (...) {
  rethrow_as_error();
}

int ModelBuilder::add_tensor(int subgraph, const TensorInfo& info) try {
  std::vector<ir::Value>& values = data_->subgraph(subgraph).values;
  ir::Value value;
  value.name = info.name;
  value.dtype = info.dtype;
  value.shape = info.shape;
  if (!info.shape_signature.empty()) value.signature = info.shape_signature;
  value.has_rank = true;
  value.variable = info.variable;
  value.quantization.scale = info.scales;
  value.quantization.zero_point = info.zero_points;
  value.quantization.zero_point.resize(info.scales.size());
  value.quantization.axis = info.quantized_dimension;
  values.push_back(std::move(value));
  return static_cast<int>(values.size()) - 1;
} catch (...) {
  rethrow_as_error();
}

int ModelBuilder::add_constant(int subgraph, const TensorInfo& info, std::span<const std::byte> data,
                               const std::optional<SparsityInfo>& sparsity) try {
  // What may fail comes first: a constant without data must not stay behind.
  auto stored_sparsity = sparsity_of(sparsity);
  const std::span<const std::byte> stored = data_->keep(data);
  const int index = add_tensor(subgraph, info);
  ir::Value& value = data_->subgraph(subgraph).values.back();
  value.constant = true;
  value.data = stored;
  value.sparsity = std::move(stored_sparsity);
  return index;
} catch (...) {
  rethrow_as_error();
}

void ModelBuilder::set_blockwise(int subgraph, int tensor, const BlockwiseQuantization& quantization) try {
  std::vector<ir::Value>& values = data_->subgraph(subgraph).values;
  require(tensor >= 0 && tensor < static_cast<int>(values.size()), kBadArgument,
          "tensor {} does not exist: subgraph {} has {}", tensor, subgraph, values.size());
  Quantization& target = values[static_cast<size_t>(tensor)].quantization;
  target.block_scales = quantization.scales;
  target.block_zero_points = quantization.zero_points;
  target.block_size = quantization.block_size;
} catch (...) {
  rethrow_as_error();
}

namespace {

int32_t to_int32(int64_t value, const std::string& name) {
  require(value >= INT32_MIN && value <= INT32_MAX, kBadArgument, "option '{}' is {}, expected an int32", name, value);
  return static_cast<int32_t>(value);
}

/// The caller says that the node's op is a custom one, or registered it as that.
bool is_custom(const NodeSpec& spec) {
  const std::vector<std::string> registered = ops::user_op_names();
  return spec.custom || !spec.custom_options.empty() ||
         std::find(registered.begin(), registered.end(), spec.op) != registered.end();
}

/// The attributes of a custom op, as its options: a FlexBuffers map.
std::vector<std::byte> encode_options(const NodeSpec& spec) {
  std::vector<FlexEntry> entries;  // sorted by name, as the map is
  for (const auto& [name, value] : spec.attributes) {
    require(
        !std::holds_alternative<std::vector<double>>(value), kBadArgument,
        "option '{}' of custom op '{}' is a list of floats, expected a flag, a number, a text or a list of integers",
        name, spec.op);
    if (const auto* flag = std::get_if<bool>(&value)) entries.emplace_back(name, *flag);
    if (const auto* number = std::get_if<int64_t>(&value)) entries.emplace_back(name, to_int32(*number, name));
    if (const auto* number = std::get_if<double>(&value)) entries.emplace_back(name, static_cast<float>(*number));
    if (const auto* text = std::get_if<std::string>(&value)) entries.emplace_back(name, *text);
    if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) {
      std::vector<int32_t> numbers;
      for (const int64_t number : *list) numbers.push_back(to_int32(number, name));
      entries.emplace_back(name, std::move(numbers));
    }
  }
  return build_flex_map(entries);
}

}  // namespace

void ModelBuilder::add_node(int subgraph, const NodeSpec& spec) try {
  const ops::OpDef* row =
      spec.custom ? ops::registry().find(ir::OpId::custom(spec.op)) : ops::registry().find_named(spec.op);
  if (row == nullptr && !is_custom(spec)) {
    require(!looks_like_builtin(spec.op), kBadArgument,
            "the format has no op called '{}': {} For a custom op of this name, say that the node is custom", spec.op,
            suggest_ops(spec.op));
  }
  ir::Node node;
  node.op = row == nullptr ? ir::OpId::custom(spec.op) : row->id;
  node.version = spec.version > 0 ? spec.version : ops::oldest_version(node.op);
  node.inputs = spec.inputs;
  node.outputs = spec.outputs;
  node.intermediates = spec.intermediates;
  std::unique_ptr<ir::Attributes> attributes =
      row == nullptr ? std::make_unique<ir::NoAttributes>() : ops::new_attributes(*row);
  const bool options_of_custom_op = row == nullptr && spec.custom_options.empty() && !spec.attributes.empty();
  if (!options_of_custom_op) {
    AttributeSetter setter(spec.op, spec.attributes);
    attributes->visit(setter);
    setter.require_all_used();
  }
  node.attributes = std::move(attributes);
  if (node.op.is_custom() && !spec.custom_options.empty()) {
    node.attributes = ops::custom_attributes(row, spec.custom_options);
  }
  std::vector<ir::Node>& nodes = data_->subgraph(subgraph).nodes;
  node.custom_options = data_->keep(options_of_custom_op ? encode_options(spec) : spec.custom_options);
  nodes.push_back(std::move(node));
} catch (...) {
  rethrow_as_error();
}

std::vector<int> ModelBuilder::add_node(int subgraph, const NodeSpec& spec, const NodeResults& results) try {
  constexpr int kMaxOutputs = 4096;
  ir::Subgraph& target = data_->subgraph(subgraph);
  const size_t values = target.values.size();
  const size_t nodes = target.nodes.size();
  const auto count = static_cast<size_t>(std::max(results.count, 0));
  require(results.count >= 1 && results.count <= kMaxOutputs, kBadArgument, "{}: a node with {} outputs", spec.op,
          results.count);
  require(spec.outputs.empty(), kBadArgument, "{}: its outputs are to be made, but {} are given", spec.op,
          spec.outputs.size());
  require(results.dtypes.empty() || results.dtypes.size() == count, kBadArgument, "{}: {} types for {} outputs",
          spec.op, results.dtypes.size(), count);
  require(results.shapes.empty() || results.shapes.size() == count, kBadArgument, "{}: {} shapes for {} outputs",
          spec.op, results.shapes.size(), count);
  for (const int v : spec.inputs) {
    require(v >= -1 && v < static_cast<int>(values), kBadArgument, "{}: input {} is none of the {} tensors", spec.op, v,
            values);
  }
  try {
    const ops::OpDef* row = spec.custom ? nullptr : ops::registry().find_named(spec.op);
    DType usual = DType::kFloat32;
    if (!spec.inputs.empty() && spec.inputs[0] >= 0) usual = target.value(spec.inputs[0]).dtype;
    if (row != nullptr) usual = row->result_type.value_or(usual);
    NodeSpec whole = spec;
    for (size_t i = 0; i < count; ++i) {
      TensorInfo info;
      info.name = results.name.empty() ? spec.op : results.name;
      if (count > 1) info.name += fmt::format(":{}", i);
      info.dtype = results.dtypes.empty() ? usual : results.dtypes[i];
      if (!results.shapes.empty()) info.shape = results.shapes[i];
      whole.outputs.push_back(add_tensor(subgraph, info));
    }
    add_node(subgraph, whole);
    if (results.shapes.empty()) infer_shapes(subgraph);
    return whole.outputs;
  } catch (...) {
    target.values.resize(values);
    target.nodes.resize(nodes);
    throw;
  }
} catch (...) {
  rethrow_as_error();
}

/// Of what the last node writes.
void ModelBuilder::infer_shapes(int subgraph) {
  ir::Subgraph& target = data_->subgraph(subgraph);
  const int last = static_cast<int>(target.nodes.size()) - 1;
  const ir::Node& node = target.nodes.back();
  require(ops::row_of(node) != nullptr && ops::row_of(node)->infer != nullptr, kBadArgument,
          "{}: Leadline does not know this op and cannot infer the shapes of its outputs: give them", node.op.name());
  ops::Inference inference(data_->graph, subgraph);
  for (const int v : node.inputs) {
    if (v >= 0 && !target.value(v).constant) {
      inference.set_shape(v, target.value(v).shape);
    }
  }
  require(inference.infer(last), kBadArgument, "{}: the shapes of its outputs depend on data: give them",
          node.op.name());
  for (const int v : node.outputs) target.value(v).shape = inference.fact(v).shape;
}

void ModelBuilder::set_inputs(int subgraph, std::vector<int> tensors) try {
  data_->subgraph(subgraph).inputs = std::move(tensors);
} catch (...) {
  rethrow_as_error();
}

void ModelBuilder::set_outputs(int subgraph, std::vector<int> tensors) try {
  data_->subgraph(subgraph).outputs = std::move(tensors);
} catch (...) {
  rethrow_as_error();
}

void ModelBuilder::add_signature(SignatureInfo signature) try {
  data_->graph.signatures.push_back(
      {std::move(signature.key), signature.subgraph, std::move(signature.inputs), std::move(signature.outputs)});
} catch (...) {
  rethrow_as_error();
}

std::vector<std::byte> ModelBuilder::to_tflite() const try {
  ir::verify(data_->graph);
  ops::verify_nodes(data_->graph);
  return model::write(data_->graph);
} catch (...) {
  rethrow_as_error();
}

}  // namespace leadline
