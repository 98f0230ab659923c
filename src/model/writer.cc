// SPDX-License-Identifier: Apache-2.0
#include "model/writer.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <tuple>

#include "core/cancel.h"
#include "core/error.h"
#include "core/progress.h"
#include "core/work.h"
#include "ir/sources.h"
#include "model/options.h"
#include "ops/registry.h"
#include "tflite_generated.h"

namespace leadline::model {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;
template <typename T>
using Vector = flatbuffers::Vector<T>;

constexpr int64_t kConstantAlignment = 16;  // what the format asks for
constexpr int kLastSmallCode = 127;         // the first code field is one byte; larger codes write this there

/// Bytes of a constant: in memory or made by a source.
struct Contents {
  std::span<const std::byte> data;
  const ir::ConstantSource* source = nullptr;
  bool inside = false;  // stays in the flatbuffer also when other constants do not
  int64_t bytes() const { return source != nullptr ? source->bytes() : static_cast<int64_t>(data.size()); }
};

constexpr uint64_t kLater = 2;  // a place that is filled in when the structure's size is known; must not be a default

/// Writes the structure of the file: everything but the constants, whose places are left open.
class GraphWriter {
 public:
  GraphWriter(const ir::Graph& graph, bool outside) : graph_(graph), outside_(outside) {}

  void write() {
    buffers_.push_back({});  // buffer 0 stands for "no data"
    std::vector<Offset<tfl::SubGraph>> subgraphs;
    for (const ir::Subgraph& subgraph : graph_.subgraphs) subgraphs.push_back(write_subgraph(subgraph));
    std::vector<Offset<tfl::Metadata>> metadata;
    for (const ir::Metadata& entry : graph_.metadata) {
      const uint32_t buffer = buffer_of({entry.data, nullptr, true});
      metadata.push_back(tfl::CreateMetadata(builder_, builder_.CreateString(entry.name), buffer));
    }
    const auto signatures = write_signatures();
    const auto codes = write_codes();
    const auto buffers = write_buffers();
    const auto model = tfl::CreateModel(builder_, graph_.version, codes, builder_.CreateVector(subgraphs),
                                        builder_.CreateString(graph_.description), buffers, 0,
                                        metadata.empty() ? 0 : builder_.CreateVector(metadata), signatures);
    tfl::FinishModelBuffer(builder_, model);
  }

  std::span<std::byte> structure() const {
    return {reinterpret_cast<std::byte*>(builder_.GetBufferPointer()), builder_.GetSize()};
  }
  /// What each buffer holds; the first has nothing.
  const std::vector<Contents>& buffers() const { return buffers_; }
  bool outside(const Contents& contents) const { return outside_ && !contents.inside; }

 private:
  using OpKey = std::tuple<ir::OpCode, std::string, int>;

  uint32_t buffer_of(const Contents& contents) {
    if (contents.bytes() == 0) return 0;
    const void* where = contents.source != nullptr ? static_cast<const void*>(contents.source) : contents.data.data();
    const auto next = static_cast<uint32_t>(buffers_.size());
    const auto [it, is_new] = buffer_ids_.try_emplace({where, contents.bytes()}, next);
    if (is_new) buffers_.push_back(contents);
    buffers_[it->second].inside = buffers_[it->second].inside || contents.inside;
    return it->second;
  }

  Offset<Vector<Offset<tfl::Buffer>>> write_buffers() {
    std::vector<Offset<tfl::Buffer>> buffers;
    for (const Contents& contents : buffers_) {
      const auto start = builder_.StartTable();
      if (contents.bytes() > 0 && outside(contents)) {
        builder_.AddElement<uint64_t>(tfl::Buffer::VT_SIZE, kLater, 0);
        builder_.AddElement<uint64_t>(tfl::Buffer::VT_OFFSET, kLater, 0);
      } else if (contents.bytes() > 0) {
        builder_.AddElement<flatbuffers::uoffset_t>(tfl::Buffer::VT_DATA, kLater, 0);
      }
      buffers.emplace_back(builder_.EndTable(start));
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
    const OpKey key{node.op.code(), node.op.is_custom() ? node.op.name() : std::string(), node.version};
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
    const auto dims = shared(shape);
    const auto signature = value.signature ? shared(*value.signature) : Offset<Vector<int32_t>>();
    const auto quantization = write_quantization(value.quantization);
    const auto sparsity = value.sparsity ? write_sparsity(*value.sparsity) : Offset<tfl::SparsityParameters>();
    const uint32_t buffer = value.constant ? buffer_of({value.data, value.source.get(), false}) : 0;
    return tfl::CreateTensor(builder_, dims, static_cast<int8_t>(value.dtype), buffer, name, quantization,
                             value.variable, sparsity, signature, value.has_rank);
  }

  /// A vector that several tensors have together: shapes, and the zero points of channels, which take twice the bytes
  /// of their scales and are zeros. What depends on samples is not shared, for a plan without them is an upper bound.
  template <typename T>
  Offset<Vector<T>> shared(const std::vector<T>& items) {
    std::string key(sizeof(T) == 4 ? "i" : "l");
    key.append(reinterpret_cast<const char*>(items.data()), items.size() * sizeof(T));
    const auto [place, added] = vectors_.try_emplace(std::move(key), 0);
    if (added) place->second = builder_.CreateVector(items).o;
    return Offset<Vector<T>>(place->second);
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
    const auto zero_point = q.per_channel() ? shared(q.zero_point) : list(q.zero_point);
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
    const ops::OpDef* op = node.op.is_custom() ? nullptr : ops::row_of(node);
    using Union = ops::OptionsTable::Union;
    const ops::OptionsTable kind = op == nullptr ? ops::OptionsTable{} : op->options;
    Offset<tfl::Options> options;
    if (kind.any()) options = Offset<tfl::Options>(write_options(*node.attributes->clone(), builder_));
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
    if (kind.table == Union::kBuiltinOptions) {
      result.add_builtin_options_type(static_cast<uint8_t>(kind.member));
      result.add_builtin_options(options);
    } else if (kind.table == Union::kBuiltinOptions2) {
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
      const bool variable = v != ir::kAbsent && subgraph.value(v).variable;
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
  const bool outside_;
  FlatBufferBuilder builder_;
  std::map<std::string, uint32_t> vectors_;  // offsets, by type and contents
  std::vector<OpKey> codes_;
  std::vector<Contents> buffers_;
  std::map<std::pair<const void*, int64_t>, uint32_t> buffer_ids_;
};

constexpr int64_t align(int64_t position) {
  return (position + kConstantAlignment - 1) / kConstantAlignment * kConstantAlignment;
}

int64_t add(int64_t a, int64_t b) {
  require(b <= INT64_MAX - kConstantAlignment - a, ErrorCode::kUnsupported,
          "the model's constants do not fit into 64 bits");
  return a + b;
}

}  // namespace

struct FileWriter::Layout {
  explicit Layout(const ir::Graph& graph, bool outside) : writer(graph, outside) { writer.write(); }

  GraphWriter writer;
  std::vector<int64_t> places;  // of each buffer's first byte
  int64_t bytes = 0;

  /// Constants follow the structure: first those that belong to the flatbuffer, each behind its length, then the
  /// others. Returns the size of the flatbuffer.
  int64_t place() {
    places.assign(writer.buffers().size(), 0);
    bytes = static_cast<int64_t>(writer.structure().size());
    int64_t flatbuffer = bytes;
    for (const bool outside : {false, true}) {
      for (size_t b = 0; b < places.size(); ++b) {
        const Contents& contents = writer.buffers()[b];
        if (contents.bytes() == 0 || writer.outside(contents) != outside) continue;
        places[b] = align(bytes + (outside ? 0 : static_cast<int64_t>(sizeof(flatbuffers::uoffset_t))));
        bytes = add(places[b], contents.bytes());
      }
      if (!outside) flatbuffer = bytes;
    }
    return flatbuffer;
  }

  /// The structure with the places of the constants.
  std::vector<std::byte> structure() const {
    const std::span<const std::byte> open = writer.structure();
    std::vector<std::byte> result(open.begin(), open.end());
    const auto* model = flatbuffers::GetMutableRoot<tfl::Model>(result.data());
    for (size_t b = 0; b < places.size(); ++b) {
      const Contents& contents = writer.buffers()[b];
      if (contents.bytes() == 0) continue;
      const auto* entry = model->buffers()->Get(static_cast<flatbuffers::uoffset_t>(b));
      auto* table = const_cast<flatbuffers::Table*>(reinterpret_cast<const flatbuffers::Table*>(entry));
      if (writer.outside(contents)) {
        flatbuffers::WriteScalar(table->GetAddressOf(tfl::Buffer::VT_OFFSET), static_cast<uint64_t>(places[b]));
        flatbuffers::WriteScalar(table->GetAddressOf(tfl::Buffer::VT_SIZE), static_cast<uint64_t>(contents.bytes()));
        continue;
      }
      using flatbuffers::uoffset_t;
      uint8_t* field = table->GetAddressOf(tfl::Buffer::VT_DATA);
      const int64_t position = reinterpret_cast<const std::byte*>(field) - result.data();
      const int64_t length = places[b] - static_cast<int64_t>(sizeof(uoffset_t));
      flatbuffers::WriteScalar(field, static_cast<uoffset_t>(length - position));
    }
    return result;
  }
};

namespace {

/// The file in memory, its constants of at most `largest` bytes.
class MemoryTarget {
 public:
  explicit MemoryTarget(std::span<std::byte> out, int64_t largest = std::numeric_limits<int64_t>::max())
      : rest_(out), largest_(largest) {}
  void copy(std::span<const std::byte> bytes) {
    const std::span<std::byte> place = take(bytes.size());
    copy_bytes(place.data(), bytes.data(), static_cast<int64_t>(bytes.size()));
  }
  void constant(const Contents& contents) {
    if (contents.bytes() > largest_) {
      take(static_cast<size_t>(contents.bytes()));
    } else if (contents.source != nullptr) {
      contents.source->read(take(static_cast<size_t>(contents.bytes())));
    } else {
      copy(contents.data);
    }
  }

 private:
  std::span<std::byte> take(size_t bytes) {
    const std::span<std::byte> place = rest_.first(bytes);
    rest_ = rest_.subspan(bytes);
    return place;
  }
  std::span<std::byte> rest_;
  int64_t largest_;
};

/// The file in pieces, made in memory that one constant after another uses.
class PieceTarget {
 public:
  explicit PieceTarget(const FileWriter::Sink& sink) : sink_(sink) {}
  void copy(std::span<const std::byte> bytes) { sink_(bytes); }
  void constant(const Contents& contents) {
    if (contents.source == nullptr) return copy(contents.data);
    const ir::ConstantSource& source = *contents.source;
    const std::span<const std::byte> view = ir::view_of(source);
    const auto bytes = static_cast<size_t>(source.bytes());
    for (size_t begin = 0; begin < view.size(); begin += ir::kViewPiece) {
      const auto piece = view.subspan(begin, std::min<size_t>(ir::kViewPiece, view.size() - begin));
      sink_(piece);
      ir::drop_view(source, piece);
    }
    if (!view.empty()) return;
    const auto memory = std::make_unique_for_overwrite<std::byte[]>(bytes);
    source.read({memory.get(), bytes});
    sink_({memory.get(), bytes});
  }

 private:
  const FileWriter::Sink& sink_;
};

}  // namespace

FileWriter::FileWriter(const ir::Graph& graph, int64_t flatbuffer_limit)
    : layout_(std::make_unique<Layout>(graph, false)) {
  if (layout_->place() <= flatbuffer_limit) return;
  layout_ = std::make_unique<Layout>(graph, true);
  const int64_t flatbuffer = layout_->place();
  require(flatbuffer <= kFlatbufferLimit, ErrorCode::kUnsupported,
          "the model's structure takes {} bytes without its constants, more than the format allows", flatbuffer);
}

FileWriter::~FileWriter() = default;

int64_t FileWriter::bytes() const { return layout_->bytes; }

int64_t FileWriter::extra_bytes() const {
  int64_t largest = 0;
  for (const Contents& contents : layout_->writer.buffers()) {
    if (contents.source != nullptr) largest = std::max(largest, ir::extra_bytes(*contents.source));
  }
  return largest;
}

int64_t FileWriter::sink_bytes() const {
  int64_t largest = 0;
  for (const Contents& contents : layout_->writer.buffers()) {
    if (contents.source == nullptr) continue;
    const int64_t needed = ir::view_of(*contents.source).empty() ? contents.bytes() + ir::extra_bytes(*contents.source)
                                                                 : std::min(contents.bytes(), ir::kViewPiece);
    largest = std::max(largest, needed);
  }
  return static_cast<int64_t>(layout_->writer.structure().size()) + largest;
}

template <typename Target>
void FileWriter::emit(Target& target, const Progress& progress) const {
  ProgressCounter counter(progress, layout_->bytes);
  counter.add(0);
  const std::vector<std::byte> structure = layout_->structure();
  target.copy(structure);
  auto written = static_cast<int64_t>(structure.size());
  counter.add(written);
  const auto& buffers = layout_->writer.buffers();
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return layout_->places[a] < layout_->places[b]; });
  for (size_t b : order) {
    const Contents& contents = buffers[b];
    if (contents.bytes() == 0) continue;
    check_cancelled();
    const int64_t start = written;
    // Zeros up to the constant, the last of them its length where it is a part of the flatbuffer.
    std::array<std::byte, kConstantAlignment + sizeof(flatbuffers::uoffset_t)> gap{};
    const auto gap_bytes = static_cast<size_t>(layout_->places[b] - written);
    if (!layout_->writer.outside(contents)) {
      flatbuffers::WriteScalar(gap.data() + gap_bytes - sizeof(flatbuffers::uoffset_t),
                               static_cast<flatbuffers::uoffset_t>(contents.bytes()));
    }
    target.copy(std::span(gap).first(gap_bytes));
    target.constant(contents);
    written = layout_->places[b] + contents.bytes();
    counter.add(written - start);
  }
}

void FileWriter::write(std::span<std::byte> out, const Progress& progress) const {
  require(static_cast<int64_t>(out.size()) == layout_->bytes, ErrorCode::kInternal,
          "a file of {} bytes cannot be written to {}", layout_->bytes, out.size());
  MemoryTarget target(out);
  emit(target, progress);
}

void FileWriter::write_outline(std::span<std::byte> out, int64_t largest) const {
  require(static_cast<int64_t>(out.size()) == layout_->bytes, ErrorCode::kInternal,
          "a file of {} bytes cannot be outlined in {}", layout_->bytes, out.size());
  MemoryTarget target(out, largest);
  emit(target, {});
}

void FileWriter::write_to(const Sink& sink, const Progress& progress) const {
  PieceTarget target(sink);
  emit(target, progress);
}

std::vector<std::byte> write(const ir::Graph& graph) {
  const FileWriter writer(graph);
  std::vector<std::byte> file(static_cast<size_t>(writer.bytes()));
  writer.write(file);
  return file;
}

}  // namespace leadline::model
