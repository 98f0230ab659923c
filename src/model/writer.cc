// SPDX-License-Identifier: Apache-2.0
#include "model/writer.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/error.h"
#include "model/options.h"
#include "ops/registry.h"
#include "tflite_generated.h"

namespace leadline::model {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;
template <typename T>
using Vector = flatbuffers::Vector<T>;

constexpr int64_t kFlatbufferLimit = (int64_t{1} << 31) - 1;
constexpr int kLastSmallCode = 127;  // the first code field is one byte; larger codes write this there

class GraphWriter {
 public:
  explicit GraphWriter(const ir::Graph& graph) : graph_(graph) {}

  std::vector<std::byte> write() {
    check_size();
    buffers_.push_back({});  // buffer 0 stands for "no data"
    std::vector<Offset<tfl::SubGraph>> subgraphs;
    for (const ir::Subgraph& subgraph : graph_.subgraphs) subgraphs.push_back(write_subgraph(subgraph));
    std::vector<Offset<tfl::Metadata>> metadata;
    for (const ir::Metadata& entry : graph_.metadata) {
      metadata.push_back(tfl::CreateMetadata(builder_, builder_.CreateString(entry.name), buffer_of(entry.data)));
    }
    const auto signatures = write_signatures();
    const auto codes = write_codes();
    const auto buffers = write_buffers();
    const auto model = tfl::CreateModel(builder_, graph_.version, codes, builder_.CreateVector(subgraphs),
                                        builder_.CreateString(graph_.description), buffers, 0,
                                        metadata.empty() ? 0 : builder_.CreateVector(metadata), signatures);
    tfl::FinishModelBuffer(builder_, model);
    const auto* begin = reinterpret_cast<const std::byte*>(builder_.GetBufferPointer());
    return {begin, begin + builder_.GetSize()};
  }

 private:
  using OpKey = std::tuple<ir::OpCode, std::string, int>;

  void check_size() const {
    int64_t bytes = 0;
    for (const ir::Subgraph& subgraph : graph_.subgraphs) {
      for (const ir::Value& value : subgraph.values) bytes += static_cast<int64_t>(value.data.size());
    }
    require(bytes < kFlatbufferLimit, ErrorCode::kUnsupported,
            "the model has {} bytes of constants; files beyond 2 GiB cannot be written yet", bytes);
  }

  uint32_t buffer_of(std::span<const std::byte> data) {
    if (data.empty()) return 0;
    const auto [it, is_new] =
        buffer_ids_.try_emplace({data.data(), data.size()}, static_cast<uint32_t>(buffers_.size()));
    if (is_new) buffers_.push_back(data);
    return it->second;
  }

  Offset<Vector<Offset<tfl::Buffer>>> write_buffers() {
    std::vector<Offset<tfl::Buffer>> buffers;
    for (std::span<const std::byte> data : buffers_) {
      Offset<Vector<uint8_t>> bytes;
      if (!data.empty()) {
        builder_.ForceVectorAlignment(data.size(), sizeof(uint8_t), 16);
        bytes = builder_.CreateVector(reinterpret_cast<const uint8_t*>(data.data()), data.size());
      }
      buffers.push_back(tfl::CreateBuffer(builder_, bytes));
    }
    return builder_.CreateVector(buffers);
  }

  Offset<Vector<Offset<tfl::OperatorCode>>> write_codes() {
    std::vector<Offset<tfl::OperatorCode>> codes;
    for (const OpKey& key : codes_) {
      const auto& [code, name, version] = key;
      const auto custom = code == ir::kCustomOp ? builder_.CreateString(name) : Offset<flatbuffers::String>();
      codes.push_back(tfl::CreateOperatorCode(builder_, static_cast<int8_t>(std::min<int>(code, kLastSmallCode)),
                                              custom, version, code));
    }
    return builder_.CreateVector(codes);
  }

  uint32_t code_of(const ir::Node& node) {
    const OpKey key{node.code, node.code == ir::kCustomOp ? node.op : std::string(), node.version};
    const auto it = std::find(codes_.begin(), codes_.end(), key);
    if (it == codes_.end()) codes_.push_back(key);
    return static_cast<uint32_t>(std::find(codes_.begin(), codes_.end(), key) - codes_.begin());
  }

  Offset<tfl::SubGraph> write_subgraph(const ir::Subgraph& subgraph) {
    std::vector<Offset<tfl::Tensor>> tensors;
    for (const ir::Value& value : subgraph.values) tensors.push_back(write_value(value));
    std::vector<Offset<tfl::Operator>> nodes;
    for (const ir::Node& node : subgraph.nodes) nodes.push_back(write_node(subgraph, node));
    return tfl::CreateSubGraph(builder_, builder_.CreateVector(tensors), builder_.CreateVector(subgraph.inputs),
                               builder_.CreateVector(subgraph.outputs), builder_.CreateVector(nodes),
                               builder_.CreateString(subgraph.name));
  }

  Offset<tfl::Tensor> write_value(const ir::Value& value) {
    std::vector<int32_t> shape;
    for (int64_t size : value.shape) {
      require(size <= INT32_MAX, ErrorCode::kUnsupported, "tensor '{}': a dimension of {} does not fit the format",
              value.name, size);
      shape.push_back(static_cast<int32_t>(size));
    }
    const auto name = builder_.CreateString(value.name);
    const auto dims = builder_.CreateVector(shape);
    const auto signature = value.signature ? builder_.CreateVector(*value.signature) : Offset<Vector<int32_t>>();
    const auto quantization = write_quantization(value.quantization);
    const auto sparsity = value.sparsity ? write_sparsity(*value.sparsity) : Offset<tfl::SparsityParameters>();
    return tfl::CreateTensor(builder_, dims, static_cast<int8_t>(value.dtype), buffer_of(value.data), name,
                             quantization, value.variable, sparsity, signature, value.has_rank);
  }

  Offset<tfl::QuantizationParameters> write_quantization(const Quantization& q) {
    if (!q.quantized() && q.min.empty() && q.max.empty()) return {};
    const auto list = [&](const auto& items) {
      using T = typename std::remove_cvref_t<decltype(items)>::value_type;
      return items.empty() ? Offset<Vector<T>>() : builder_.CreateVector(items);
    };
    const auto min = list(q.min);
    const auto max = list(q.max);
    const auto scale = list(q.scale);
    const auto zero_point = list(q.zero_point);
    Offset<void> details;
    auto kind = tfl::QuantizationDetails_NONE;
    if (q.block_size > 0) {
      kind = tfl::QuantizationDetails_BlockwiseQuantization;
      details = tfl::CreateBlockwiseQuantization(builder_, q.block_scales, q.block_zero_points, q.block_size).Union();
    }
    return tfl::CreateQuantizationParameters(builder_, min, max, scale, zero_point, kind, details, q.axis);
  }

  Offset<tfl::SparsityParameters> write_sparsity(const ir::Sparsity& sparsity) {
    std::vector<Offset<tfl::DimensionMetadata>> dimensions;
    for (const ir::SparseDimension& d : sparsity.dimensions) {
      if (d.dense) {
        dimensions.push_back(tfl::CreateDimensionMetadata(builder_, 0, d.dense_size));
        continue;
      }
      const auto segments = tfl::CreateInt32Vector(builder_, builder_.CreateVector(d.segments)).Union();
      const auto indices = tfl::CreateInt32Vector(builder_, builder_.CreateVector(d.indices)).Union();
      dimensions.push_back(tfl::CreateDimensionMetadata(builder_, 1, d.dense_size, tfl::SparseIndexVector_Int32Vector,
                                                        segments, tfl::SparseIndexVector_Int32Vector, indices));
    }
    const auto order = builder_.CreateVector(sparsity.traversal_order);
    const auto blocks =
        sparsity.block_map.empty() ? Offset<Vector<int32_t>>() : builder_.CreateVector(sparsity.block_map);
    return tfl::CreateSparsityParameters(builder_, order, blocks, builder_.CreateVector(dimensions));
  }

  Offset<tfl::Operator> write_node(const ir::Subgraph& subgraph, const ir::Node& node) {
    const ops::OpDef* op = node.code == ir::kCustomOp ? nullptr : ops::registry().find(node.code, {});
    const ops::OptionsTable kind = op == nullptr ? ops::OptionsTable{} : op->options;
    Offset<tfl::Options> options;
    if (kind.table != 0) options = Offset<tfl::Options>(write_options(*node.attributes->clone(), builder_));
    const auto inputs = builder_.CreateVector(node.inputs);
    const auto outputs = builder_.CreateVector(node.outputs);
    const auto intermediates =
        node.intermediates.empty() ? Offset<Vector<int32_t>>() : builder_.CreateVector(node.intermediates);
    Offset<Vector<uint8_t>> custom;
    if (!node.custom_options.empty()) {
      custom = builder_.CreateVector(reinterpret_cast<const uint8_t*>(node.custom_options.data()),
                                     node.custom_options.size());
    }
    const auto mutating = write_mutating(subgraph, node);
    const auto code = code_of(node);
    tfl::OperatorBuilder result(builder_);
    result.add_opcode_index(code);
    result.add_inputs(inputs);
    result.add_outputs(outputs);
    if (kind.table == 1) {
      result.add_builtin_options_type(static_cast<uint8_t>(kind.member));
      result.add_builtin_options(options);
    } else if (kind.table == 2) {
      result.add_builtin_options_2_type(static_cast<uint8_t>(kind.member));
      result.add_builtin_options_2(options);
    }
    if (!custom.IsNull()) result.add_custom_options(custom);
    if (!mutating.IsNull()) result.add_mutating_variable_inputs(mutating);
    if (!intermediates.IsNull()) result.add_intermediates(intermediates);
    return result.Finish();
  }

  /// Marks the inputs that a node changes: its variables.
  Offset<Vector<uint8_t>> write_mutating(const ir::Subgraph& subgraph, const ir::Node& node) {
    std::vector<uint8_t> flags;
    bool any = false;
    for (int v : node.inputs) {
      const bool variable = v != ir::kAbsent && subgraph.values[static_cast<size_t>(v)].variable;
      flags.push_back(variable ? 1 : 0);
      any = any || variable;
    }
    return any ? builder_.CreateVector(flags) : Offset<Vector<uint8_t>>();
  }

  Offset<Vector<Offset<tfl::SignatureDef>>> write_signatures() {
    if (graph_.signatures.empty()) return {};
    std::vector<Offset<tfl::SignatureDef>> signatures;
    for (const ir::Signature& signature : graph_.signatures) {
      const auto entries = [&](const std::vector<std::pair<std::string, int>>& items) {
        std::vector<Offset<tfl::TensorMap>> maps;
        for (const auto& [name, value] : items) {
          maps.push_back(tfl::CreateTensorMap(builder_, builder_.CreateString(name), static_cast<uint32_t>(value)));
        }
        return builder_.CreateVector(maps);
      };
      const auto inputs = entries(signature.inputs);
      const auto outputs = entries(signature.outputs);
      signatures.push_back(tfl::CreateSignatureDef(builder_, inputs, outputs, builder_.CreateString(signature.key),
                                                   static_cast<uint32_t>(signature.subgraph)));
    }
    return builder_.CreateVector(signatures);
  }

  const ir::Graph& graph_;
  FlatBufferBuilder builder_;
  std::vector<OpKey> codes_;
  std::vector<std::span<const std::byte>> buffers_;
  std::map<std::pair<const std::byte*, size_t>, uint32_t> buffer_ids_;
};

}  // namespace

std::vector<std::byte> write(const ir::Graph& graph) { return GraphWriter(graph).write(); }

}  // namespace leadline::model
