// SPDX-License-Identifier: Apache-2.0
#include "model/read_tensor.h"

#include <algorithm>
#include <cstring>

#include "core/alignment.h"
#include "core/error.h"
#include "tflite_generated.h"

namespace leadline::model {
namespace {

template <typename T>
std::vector<T> list(const flatbuffers::Vector<T>* items) {
  std::vector<T> values(items == nullptr ? 0 : items->size());
  // Elements of 8 bytes may lie at any multiple of 4: there are such files, and flatbuffers' verifier lets them pass.
  if (!values.empty()) std::memcpy(values.data(), items->data(), values.size() * sizeof(T));
  return values;
}

Quantization read_quantization(const tfl::QuantizationParameters* source, const std::string& where) {
  Quantization q;
  if (source == nullptr) return q;
  q.min = list(source->min());
  q.max = list(source->max());
  q.axis = source->quantized_dimension();
  if (source->details_type() != tfl::QuantizationDetails_NONE) {
    const auto* block = source->details_as_BlockwiseQuantization();
    require(source->details_type() == tfl::QuantizationDetails_BlockwiseQuantization, ErrorCode::kUnsupported,
            "{}: quantization of kind {} is not supported (only affine and blockwise are)", where,
            static_cast<int>(source->details_type()));
    require(block != nullptr && block->block_size() > 0, kBadModel, "{}: its blockwise quantization has no block size",
            where);
    q.block_scales = block->scales();
    q.block_zero_points = block->zero_points();
    q.block_size = block->block_size();
    return q;
  }
  q.scale = list(source->scale());
  q.zero_point = list(source->zero_point());
  // Writers may leave out zero points that are all zero.
  if (q.zero_point.empty()) q.zero_point.resize(q.scale.size());
  if (q.scale.empty()) q.zero_point.clear();
  return q;
}

/// LiteRT takes a scale of 0 for none, and some converters write it on integers that nothing reads as quantized. On
/// strings and floats it means as little as any other scale.
void drop_scales_of_zero(ir::Value& value) {
  Quantization& q = value.quantization;
  const bool plain = value.dtype == DType::kString || value.dtype == DType::kFloat32 || value.dtype == DType::kFloat16;
  if (plain || !std::all_of(q.scale.begin(), q.scale.end(), [](float scale) { return scale == 0.0F; })) return;
  q.scale.clear();
  q.zero_point.clear();
}

std::vector<int32_t> sparse_indices(tfl::SparseIndexVector type, const void* vector, const std::string& where) {
  const auto widen = [](const auto* table) {
    std::vector<int32_t> result;
    if (const auto* values = table->values(); values != nullptr) result.assign(values->begin(), values->end());
    return result;
  };
  require(vector != nullptr, kBadModel, "{}: a sparse dimension has no indices", where);
  switch (type) {
    case tfl::SparseIndexVector_Int32Vector:
      return widen(static_cast<const tfl::Int32Vector*>(vector));
    case tfl::SparseIndexVector_Uint16Vector:
      return widen(static_cast<const tfl::Uint16Vector*>(vector));
    case tfl::SparseIndexVector_Uint8Vector:
      return widen(static_cast<const tfl::Uint8Vector*>(vector));
    default:
      fail(kBadModel, "{}: sparse indices of kind {} are unknown", where, static_cast<int>(type));
  }
}

std::shared_ptr<const ir::Sparsity> read_sparsity(const tfl::SparsityParameters* source, const std::string& where) {
  if (source == nullptr) return nullptr;
  auto sparsity = std::make_shared<ir::Sparsity>();
  sparsity->traversal_order = list(source->traversal_order());
  sparsity->block_map = list(source->block_map());
  const auto* dimensions = source->dim_metadata();
  if (dimensions == nullptr) return sparsity;
  for (const tfl::DimensionMetadata* entry : *dimensions) {
    ir::SparseDimension d;
    d.dense = entry->format() == 0;
    d.dense_size = entry->dense_size();
    if (!d.dense) {
      d.segments = sparse_indices(entry->array_segments_type(), entry->array_segments(), where);
      d.indices = sparse_indices(entry->array_indices_type(), entry->array_indices(), where);
    }
    sparsity->dimensions.push_back(std::move(d));
  }
  return sparsity;
}

Shape read_shape(const flatbuffers::Vector<int32_t>* dims, const std::string& where) {
  if (dims == nullptr) return {};
  require(dims->size() <= kMaxRank, ErrorCode::kUnsupported, "{} has rank {}, Leadline handles up to {}", where,
          dims->size(), kMaxRank);
  Shape shape;
  for (int32_t size : *dims) {
    require(size >= 0, kBadModel, "{}: dimension {} of its shape is {}", where, shape.rank(), size);
    shape.push_back(size);
  }
  return shape;
}

}  // namespace

std::span<const std::byte> BufferTable::bytes_of(uint32_t index, const std::string& owner) const {
  const auto* buffers = model_.buffers();
  const size_t count = buffers == nullptr ? 0 : buffers->size();
  if (index == 0 && count == 0) return {};
  require(index < count, kBadModel, "{} uses buffer {}, but the model has {}", owner, index, count);
  const tfl::Buffer& buffer = *buffers->Get(index);
  const std::span<const std::byte> file = graph_.bytes->span();
  const uint64_t offset = buffer.offset();
  const uint64_t size = buffer.size();
  if (offset > 1) {  // 0 and 1 mean "inside the flatbuffer"
    require(offset <= file.size() && size <= file.size() - offset, kBadModel,
            "{}: buffer {} lies at bytes {} + {}, but the file has {}: it is truncated or damaged", owner, index,
            offset, size, file.size());
    return file.subspan(offset, size);
  }
  const auto* data = buffer.data();
  if (data == nullptr) return {};
  return std::as_bytes(std::span(data->data(), data->size()));
}

std::span<const std::byte> BufferTable::aligned(std::span<const std::byte> bytes, DType dtype) {
  // Shapes, axes and texts are checked once and read again later, when the file may no longer have them.
  constexpr size_t kSmall = 4096;
  const bool steers =
      dtype == DType::kInt32 || dtype == DType::kInt64 || dtype == DType::kBool || dtype == DType::kString;
  const bool may_vanish = steers && bytes.size() <= kSmall && graph_.bytes->may_change();
  const bool lies_well =
      reinterpret_cast<uintptr_t>(bytes.data()) % static_cast<uintptr_t>(dtype_alignment(dtype)) == 0;
  if (lies_well && !may_vanish) return bytes;
  graph_.storage.push_back(std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end()));
  return *graph_.storage.back();
}

ir::Value read_tensor(const tfl::Tensor& source, uint32_t index, BufferTable& buffers) {
  ir::Value value;
  if (const flatbuffers::String* name = source.name(); name != nullptr) value.name = name->str();
  const std::string where = fmt::format("tensor {} '{}'", index, value.name);
  const auto type = static_cast<int>(source.type());
  require(type >= 0 && type < kDTypeCount, ErrorCode::kUnsupported, "{} has type {}, which is unknown", where, type);
  value.dtype = static_cast<DType>(type);
  value.shape = read_shape(source.shape(), where);
  if (const auto* signature = source.shape_signature(); signature != nullptr) value.signature = list(signature);
  value.has_rank = source.has_rank();
  value.variable = source.is_variable();
  value.quantization = read_quantization(source.quantization(), where);
  drop_scales_of_zero(value);
  value.sparsity = read_sparsity(source.sparsity(), where);
  require(source.external_buffer() == 0, ErrorCode::kUnsupported, "{} keeps its data outside the file", where);
  const std::span<const std::byte> data = buffers.bytes_of(source.buffer(), where);
  if (!data.empty()) {
    value.constant = true;
    value.data = buffers.aligned(data, value.dtype);
  }
  return value;
}

}  // namespace leadline::model
