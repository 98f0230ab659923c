// SPDX-License-Identifier: Apache-2.0
#include "model/reader.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "core/cancel.h"
#include "core/error.h"
#include "ir/verifier.h"
#include "model/options.h"
#include "model/read_tensor.h"
#include "model/truncation.h"
#include "ops/flex/node_def.h"
#include "ops/registry.h"
#include "ops/result_types.h"
#include "ops/verify.h"
#include "tflite_generated.h"

namespace leadline::model {
namespace {

constexpr uint32_t kFormatVersion = 3;
/// LiteRT's words, which programs look for.
constexpr std::string_view kNotAModel = "The model is not a valid Flatbuffer buffer";

std::string text_of(const flatbuffers::String* text) { return text == nullptr ? std::string() : text->str(); }

std::vector<int> indices_of(const flatbuffers::Vector<int32_t>* indices) {
  return indices == nullptr ? std::vector<int>() : std::vector<int>(indices->begin(), indices->end());
}

/// What an entry of the operator code table stands for.
struct OpIdentity {
  ir::OpCode code = 0;
  int version = 1;
  std::string custom_name;
};

OpIdentity identify(const tfl::OperatorCode& entry) {
  OpIdentity op;
  // Codes above 127 did not fit the first field; writers fill both and the larger one counts.
  op.code = std::max<int32_t>(entry.deprecated_builtin_code(), entry.builtin_code());
  require(op.code >= 0, kBadModel, "an operator code is {}, expected 0 or more", op.code);
  op.version = entry.version();
  if (op.code == ir::kCustomOp) {
    const flatbuffers::String* name = entry.custom_code();
    require(name != nullptr, kBadModel, "a custom operator code has no name");
    op.custom_name = name->str();
  }
  return op;
}

/// The file may be cut off while it is read, and zeros take the place of what is gone: every field is read once, and
/// what was read is checked, not what is read again.
class GraphReader {
 public:
  GraphReader(std::shared_ptr<ModelBytes> bytes, const tfl::Model& model, flatbuffers::Verifier& verifier)
      : model_(model), verifier_(verifier), graph_(std::make_shared<ir::Graph>()), buffers_(model, *graph_) {
    graph_->bytes = std::move(bytes);
  }

  std::shared_ptr<const ir::Graph> read() {
    require(model_.version() == kFormatVersion, kBadModel, "the model has format version {}, expected {}",
            model_.version(), kFormatVersion);
    graph_->version = model_.version();
    graph_->description = text_of(model_.description());
    const auto* subgraphs = model_.subgraphs();
    require(subgraphs != nullptr && subgraphs->size() > 0, kBadModel, "the model has no subgraph");
    for (const tfl::SubGraph* subgraph : *subgraphs) graph_->subgraphs.push_back(read_subgraph(*subgraph));
    read_signatures();
    read_metadata();
    check_cancelled();
    ir::verify(*graph_);
    check_cancelled();
    ops::verify_nodes(*graph_);
    return graph_;
  }

 private:
  /// Tables of a hostile file may all point to the same long name or list: a graph far larger than its file is refused
  /// while it grows. Honest files stay below ten times their size.
  void note_copied(int64_t bytes) {
    constexpr int64_t kLargestGrowth = 32;
    constexpr int64_t kAlwaysAllowed = int64_t{1} << 20;
    copied_ += bytes;
    const auto file_bytes = static_cast<int64_t>(graph_->bytes->span().size());
    require(copied_ <= kAlwaysAllowed || copied_ / kLargestGrowth <= file_bytes, kBadModel,
            "the file is damaged: its {} bytes describe a graph of more than {} bytes", file_bytes, copied_);
  }

  ir::Subgraph read_subgraph(const tfl::SubGraph& source) {
    ir::Subgraph subgraph;
    subgraph.name = text_of(source.name());
    subgraph.inputs = indices_of(source.inputs());
    subgraph.outputs = indices_of(source.outputs());
    if (const auto* tensors = source.tensors(); tensors != nullptr) {
      subgraph.values.reserve(tensors->size());
      for (flatbuffers::uoffset_t i = 0; i < tensors->size(); ++i) {
        check_.count(256);
        subgraph.values.push_back(read_tensor(*tensors->Get(i), i, buffers_));
        const bool copied =
            !graph_->storage.empty() && subgraph.values.back().data.data() == graph_->storage.back()->data();
        note_copied(ir::value_bytes(subgraph.values.back()) +
                    (copied ? static_cast<int64_t>(subgraph.values.back().data.size()) : 0));
      }
    }
    if (const auto* operators = source.operators(); operators != nullptr) {
      subgraph.nodes.reserve(operators->size());
      for (flatbuffers::uoffset_t i = 0; i < operators->size(); ++i) {
        check_.count(256);
        subgraph.nodes.push_back(read_node(*operators->Get(i), i));
        const ir::Node& node = subgraph.nodes.back();
        const size_t operands = node.inputs.size() + node.outputs.size() + node.intermediates.size();
        note_copied(static_cast<int64_t>(sizeof(node) + node.op.name().size() + operands * sizeof(int)));
      }
    }
    settle_constants(subgraph);
    settle_result_types(subgraph);
    return subgraph;
  }

  /// What a node writes is not a constant, though some converters leave a buffer behind; what no node writes and has no
  /// bytes is an empty constant.
  static void settle_constants(ir::Subgraph& subgraph) {
    std::vector<bool> written(subgraph.values.size());
    const auto mark = [&](const std::vector<int>& indices) {
      for (int v : indices) {
        if (v >= 0 && v < static_cast<int>(written.size())) written[static_cast<size_t>(v)] = true;
      }
    };
    for (const ir::Node& node : subgraph.nodes) mark(node.outputs);
    for (size_t v = 0; v < written.size(); ++v) {
      if (!written[v]) continue;
      subgraph.values[v].constant = false;
      subgraph.values[v].data = {};
    }
    mark(subgraph.inputs);
    for (size_t v = 0; v < written.size(); ++v) {
      ir::Value& value = subgraph.values[v];
      const bool empty = dtype_bits(value.dtype) > 0 && storage_bytes(value.dtype, value.shape) == 0;
      if (!written[v] && !value.variable && empty) value.constant = true;
    }
  }

  /// Results of a custom op have the type of its row, whatever the file says, and so have those of the builtin ops that
  /// LiteRT gives the type of an input; the others check theirs.
  static void settle_result_types(ir::Subgraph& subgraph) {
    const auto exists = [&](int v) { return v >= 0 && v < static_cast<int>(subgraph.values.size()); };
    for (const ir::Node& node : subgraph.nodes) {
      if (!node.op.is_custom()) {
        const int source = ops::result_type_source(node.op);
        if (source < 0 || source >= static_cast<int>(node.inputs.size())) continue;
        const int from = node.inputs[static_cast<size_t>(source)];
        for (int v : node.outputs) {
          if (exists(v) && exists(from)) subgraph.value(v).dtype = subgraph.value(from).dtype;
        }
        continue;
      }
      const ops::OpDef* row = ops::row_of(node);
      if (row == nullptr || !row->result_type) continue;
      for (int v : node.outputs) {
        if (!exists(v)) continue;
        subgraph.value(v).dtype = *row->result_type;
        subgraph.value(v).quantization = {};
      }
    }
  }

  ir::Node read_node(const tfl::Operator& source, flatbuffers::uoffset_t index) {
    const auto* codes = model_.operator_codes();
    const size_t count = codes == nullptr ? 0 : codes->size();
    const uint32_t code = source.opcode_index();
    require(code < count, kBadModel, "node {} uses operator code {}, but the model lists {}", index, code, count);
    const OpIdentity op = identify(*codes->Get(code));
    ir::Node node;
    node.version = op.version;
    node.inputs = indices_of(source.inputs());
    node.outputs = indices_of(source.outputs());
    node.intermediates = indices_of(source.intermediates());
    if (op.code == ir::kCustomOp) {
      node.op = ir::OpId::custom(op.custom_name);
      node.custom_options = custom_options(source, op.custom_name, index);
      node.attributes = ops::custom_attributes(ops::row_of(node), node.custom_options);
      note_copied(node.attributes->extra_bytes());
      return node;
    }
    const ops::OpDef* row = ops::registry().find_builtin(op.code);
    require(row != nullptr, ErrorCode::kUnsupported,
            "node {} has op code {} version {}, which Leadline does not know; the newest it knows is {}. Convert the "
            "model with an older converter or update Leadline",
            index, op.code, op.version, ops::registry().builtins().rbegin()->first);
    require(op.version >= 1 && op.version <= row->max_version, ErrorCode::kUnsupported,
            "{} #{} has version {}, the newest version Leadline knows is {}", row->name(), index, op.version,
            row->max_version);
    node.op = row->id;
    node.attributes = read_attributes(source, *row, index);
    return node;
  }

  std::shared_ptr<const ir::Attributes> read_attributes(const tfl::Operator& source, const ops::OpDef& row,
                                                        flatbuffers::uoffset_t index) {
    auto attributes = ops::new_attributes(row);
    const auto read_from = [&](int type, const tfl::Options* options) {
      if (type == 0) return;
      require(type == row.options.member, kBadModel, "{} #{} has options of kind {}, expected {}", row.name(), index,
              type, row.options.member);
      note_copied(read_options(reinterpret_cast<const flatbuffers::Table*>(options), verifier_, *attributes));
    };
    try {
      if (row.options.table == ops::OptionsTable::Union::kBuiltinOptions)
        read_from(source.builtin_options_type(), source.builtin_options());
      if (row.options.table == ops::OptionsTable::Union::kBuiltinOptions2)
        read_from(source.builtin_options_2_type(), source.builtin_options_2());
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("{} #{}: {}", row.name(), index, error.what()));
    }
    return attributes;
  }

  std::span<const std::byte> custom_options(const tfl::Operator& source, const std::string& name,
                                            flatbuffers::uoffset_t index) {
    const std::span<const std::byte> file = graph_->bytes->span();
    const uint64_t offset = source.large_custom_options_offset();
    const uint64_t size = source.large_custom_options_size();
    if (offset > 1) {
      require(offset <= file.size() && size <= file.size() - offset, kBadModel,
              "{} #{}: its options lie at bytes {} + {}, but the file has {}", name, index, offset, size, file.size());
      return file.subspan(offset, size);
    }
    const auto* options = source.custom_options();
    if (options == nullptr) return {};
    return std::as_bytes(std::span(options->data(), options->size()));
  }

  void read_signatures() {
    const auto* definitions = model_.signature_defs();
    if (definitions == nullptr) return;
    for (const tfl::SignatureDef* source : *definitions) {
      const flatbuffers::String* key = source->signature_key();
      require(key != nullptr, kBadModel,
              "a signature has no key: the file was written by a newer or a broken converter");
      ir::Signature signature;
      signature.key = key->str();
      const uint32_t subgraph = source->subgraph_index();
      require(subgraph < graph_->subgraphs.size(), kBadModel, "signature '{}' calls subgraph {}, but there are {}",
              signature.key, subgraph, graph_->subgraphs.size());
      signature.subgraph = static_cast<int>(subgraph);
      const auto entries = [&](const flatbuffers::Vector<flatbuffers::Offset<tfl::TensorMap>>* maps) {
        std::vector<std::pair<std::string, int>> result;
        if (maps == nullptr) return result;
        for (const tfl::TensorMap* map : *maps) {
          require(map->tensor_index() < static_cast<uint32_t>(INT32_MAX), kBadModel,
                  "signature '{}': tensor {} is out of range", signature.key, map->tensor_index());
          result.emplace_back(text_of(map->name()), static_cast<int>(map->tensor_index()));
          note_copied(static_cast<int64_t>(sizeof(result.back()) + result.back().first.size()));
        }
        return result;
      };
      signature.inputs = entries(source->inputs());
      signature.outputs = entries(source->outputs());
      graph_->signatures.push_back(std::move(signature));
    }
  }

  void read_metadata() {
    const auto* entries = model_.metadata();
    if (entries == nullptr) return;
    for (const tfl::Metadata* source : *entries) {
      const std::string name = text_of(source->name());
      note_copied(static_cast<int64_t>(sizeof(ir::Metadata) + name.size()));
      graph_->metadata.push_back({name, buffers_.bytes_of(source->buffer(), fmt::format("metadata '{}'", name))});
    }
  }

  const tfl::Model& model_;
  flatbuffers::Verifier& verifier_;
  std::shared_ptr<ir::Graph> graph_;
  BufferTable buffers_;
  int64_t copied_ = 0;
  PacedCheck check_;
};

}  // namespace

std::shared_ptr<const ir::Graph> read(std::shared_ptr<ModelBytes> bytes) {
  const std::span<const std::byte> file = bytes->span();
  const auto* data = reinterpret_cast<const uint8_t*>(file.data());
  constexpr size_t kSmallestFile = 16;  // root offset, identifier, a vtable and a table
  require(file.size() >= kSmallestFile, kBadModel, "{}: the file is truncated: it has {} bytes, a model needs more",
          kNotAModel, file.size());
  require(std::memcmp(data + 4, tfl::ModelIdentifier(), 4) == 0, kBadModel,
          "{}: not a .tflite file, bytes 4 to 7 are not '{}'", kNotAModel, tfl::ModelIdentifier());
  // A flatbuffer ends below 2 GiB; what lies behind it is reached through Buffer.offset, which is checked there.
  flatbuffers::Verifier verifier(data, std::min<size_t>(file.size(), FLATBUFFERS_MAX_BUFFER_SIZE - 1));
  if (!tfl::VerifyModelBuffer(verifier))
    throw Error(kBadModel, fmt::format("{}: {}", kNotAModel, describe_damage(file)));
  return GraphReader(std::move(bytes), *tfl::GetModel(data), verifier).read();
}

}  // namespace leadline::model
