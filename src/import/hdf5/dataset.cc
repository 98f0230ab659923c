// SPDX-License-Identifier: Apache-2.0
#include "import/hdf5/dataset.h"

#include <algorithm>
#include <cstring>

#include "core/cancel.h"
#include "import/hdf5/filters.h"

namespace leadline::hdf5 {
namespace {

constexpr const char* kLayout = "data layout";
constexpr const char* kFilters = "filter pipeline";
constexpr const char* kFill = "fill value";
constexpr const char* kChunks = "chunks of a dataset";

/// Chunks may stand out beyond the data; what that may cost in proportion to the data, and always.
constexpr uint64_t kMaxOverhang = 16;
constexpr uint64_t kFreeOverhang = 16 << 20;

void set_chunk(Dataset& dataset, std::vector<uint64_t> dims) {
  // The last number is the size of an element.
  if (dims.size() != dataset.space.dims.size() + 1 || dims.back() != dataset.type.item_bytes) damaged(kLayout);
  dims.pop_back();
  uint64_t elements = 1;
  uint64_t padded = 1;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 0) damaged(kLayout);
    elements = checked_product(elements, dims[i], kLayout);
    const uint64_t size = dataset.space.dims[i];
    padded =
        checked_product(padded, checked_product((size - (size > 0)) / dims[i] + (size > 0), dims[i], kLayout), kLayout);
  }
  dataset.chunk_bytes = checked_product(elements, dataset.type.item_bytes, kLayout);
  padded = checked_product(padded, dataset.type.item_bytes, kLayout);
  if (padded > kFreeOverhang && padded / kMaxOverhang > dataset.bytes) {
    fail(ErrorCode::kInvalidModel, "the chunks of the dataset take {} bytes, its elements {}", padded, dataset.bytes);
  }
  dataset.chunk = std::move(dims);
}

void read_chunked_v4(Cursor& cursor, Dataset& dataset) {
  const uint8_t flags = cursor.u8();
  if ((flags & 1U) != 0) fail(ErrorCode::kUnsupported, "HDF5 chunks that are filtered only inside are not read");
  const int rank = cursor.u8();
  const int size = cursor.u8();
  if (size < 1 || size > 8) damaged(kLayout);
  std::vector<uint64_t> dims;
  for (int i = 0; i < rank; ++i) dims.push_back(cursor.number(size));
  const int index = cursor.u8();
  if (index < 1 || index > 5) damaged(kLayout);
  dataset.index = static_cast<Dataset::Index>(index);
  switch (dataset.index) {
    case Dataset::Index::kSingle:
      if ((flags & 2U) != 0) {
        dataset.single_size = cursor.length();
        dataset.single_mask = cursor.u32();
      }
      break;
    case Dataset::Index::kFixedArray:
      cursor.skip(1);
      break;
    case Dataset::Index::kExtensibleArray:
      cursor.skip(5);
      break;
    case Dataset::Index::kBtreeV2:
      cursor.skip(6);
      break;
    default:
      break;
  }
  dataset.index_address = cursor.address();
  set_chunk(dataset, std::move(dims));
}

void read_layout(const FileBytes& file, std::span<const std::byte> message, Dataset& dataset) {
  Cursor cursor(file, message, kLayout);
  cursor.expect_version(3, 5);  // 5, of HDF5 2: sizes of filtered chunks take 8 bytes, as their index says
  switch (cursor.u8()) {
    case 0:
      dataset.layout = Dataset::Layout::kCompact;
      dataset.stored = cursor.take(cursor.u16());
      if (dataset.stored.size() < dataset.bytes) damaged(kLayout);
      return;
    case 1: {
      dataset.layout = Dataset::Layout::kContiguous;
      const uint64_t address = cursor.address();
      if (address == kUndefined || dataset.bytes == 0) return;
      if (cursor.length() < dataset.bytes) damaged(kLayout);
      dataset.stored = file.at(address, dataset.bytes, "a dataset reaches beyond the end of the file");
      return;
    }
    case 2: {
      dataset.layout = Dataset::Layout::kChunked;
      if (cursor.version() >= 4) return read_chunked_v4(cursor, dataset);
      const int rank = cursor.u8();
      dataset.index_address = cursor.address();
      std::vector<uint64_t> dims;
      for (int i = 0; i < rank; ++i) dims.push_back(cursor.u32());
      return set_chunk(dataset, std::move(dims));
    }
    default:
      fail(ErrorCode::kUnsupported, "virtual datasets of HDF5 are not read");
  }
}

std::vector<Filter> read_filters(const FileBytes& file, std::span<const std::byte> message) {
  Cursor cursor(file, message, kFilters);
  cursor.expect_version(1, 2);
  const bool old = cursor.version() == 1;
  const int count = cursor.u8();
  if (count > 32) damaged(kFilters);
  if (old) cursor.skip(6);
  std::vector<Filter> filters;
  for (int i = 0; i < count; ++i) {
    Filter filter;
    filter.id = cursor.u16();
    const uint64_t name_size = old || filter.id >= 256 ? cursor.u16() : 0;
    cursor.skip(2);
    const int values = cursor.u16();
    cursor.skip(old ? (name_size + 7) / 8 * 8 : name_size);
    for (int k = 0; k < values; ++k) filter.values.push_back(cursor.u32());
    if (old && values % 2 != 0) cursor.skip(4);
    filters.push_back(std::move(filter));
  }
  return filters;
}

void read_fill(const FileBytes& file, const Message& message, Dataset& dataset) {
  Cursor cursor(file, message.bytes, kFill);
  uint64_t size = 0;
  if (message.type == MessageType::kFillOld) {
    size = cursor.u32();
  } else {
    cursor.expect_version(1, 3);
    if (cursor.version() == 3) {
      if ((cursor.u8() & 0x20U) != 0) size = cursor.u32();
    } else {
      cursor.skip(2);
      const bool defined = cursor.u8() != 0;
      if (cursor.version() == 1 || defined) size = cursor.u32();
    }
  }
  if (size == 0 || size > message.bytes.size()) return;
  if (size != dataset.type.item_bytes) damaged(kFill);
  dataset.fill = cursor.take(size);
}

/// Copies the part of a chunk that lies inside the data, row by row.
class ChunkCopy {
 public:
  ChunkCopy(const Dataset& dataset, std::span<std::byte> out) : dataset_(dataset), out_(out) {}

  void copy(const std::vector<uint64_t>& place, std::span<const std::byte> chunk) {
    place_ = &place;
    chunk_ = chunk;
    copy_dims(0, 0, 0);
  }

 private:
  /// `from` and `to` count elements of the chunk and of the data, up to dimension `axis`.
  void copy_dims(size_t axis, uint64_t from, uint64_t to) {
    const uint64_t item = dataset_.type.item_bytes;
    if (axis == dataset_.chunk.size()) {
      std::memcpy(out_.data() + to * item, chunk_.data() + from * item, item);
      return;
    }
    const uint64_t size = dataset_.chunk[axis];
    const uint64_t whole = dataset_.space.dims[axis];
    const uint64_t start = (*place_)[axis] * size;
    const uint64_t count = std::min(size, whole - start);
    if (axis + 1 == dataset_.chunk.size()) {
      std::memcpy(out_.data() + (to * whole + start) * item, chunk_.data() + from * size * item, count * item);
      return;
    }
    for (uint64_t i = 0; i < count; ++i) copy_dims(axis + 1, from * size + i, to * whole + start + i);
  }

  const Dataset& dataset_;
  std::span<std::byte> out_;
  const std::vector<uint64_t>* place_ = nullptr;
  std::span<const std::byte> chunk_;
};

void fill_elements(const Dataset& dataset, std::span<std::byte> out) {
  if (dataset.fill.empty()) {
    if (!out.empty()) std::memset(out.data(), 0, out.size());
    return;
  }
  for (size_t at = 0; at < out.size(); at += dataset.fill.size()) {
    std::memcpy(out.data() + at, dataset.fill.data(), dataset.fill.size());
  }
}

void read_chunks(const FileBytes& file, const Dataset& dataset, const std::shared_ptr<Budget>& budget,
                 std::span<std::byte> out) {
  uint64_t total = 1;
  std::vector<uint64_t> counts;
  for (size_t i = 0; i < dataset.chunk.size(); ++i) {
    counts.push_back((dataset.space.dims[i] - 1) / dataset.chunk[i] + 1);
    total = checked_product(total, counts.back(), kChunks);
  }
  std::vector<bool> written(static_cast<size_t>(total));  // at most one bit per element of `out`
  fill_elements(dataset, out);
  ChunkUnpacker unpacker(dataset, budget);
  ChunkCopy copy(dataset, out);
  for_each_chunk(file, dataset, [&](const Chunk& chunk) {
    check_cancelled();
    uint64_t number = 0;
    for (size_t i = 0; i < counts.size(); ++i) {
      // What was cut off when a dataset shrank may still be listed.
      if (chunk.place[i] >= counts[i]) return;
      number = number * counts[i] + chunk.place[i];
    }
    if (written[number]) damaged(kChunks);
    written[number] = true;
    copy.copy(chunk.place, unpacker.unpack(file.at(chunk.address, chunk.size, kChunks), chunk.mask));
  });
}

}  // namespace

std::optional<Dataset> read_dataset(const FileBytes& file, const std::vector<Message>& messages) {
  const Message* type = find(messages, MessageType::kDatatype);
  const Message* space = find(messages, MessageType::kDataspace);
  const Message* layout = find(messages, MessageType::kLayout);
  if (type == nullptr || space == nullptr || layout == nullptr) return std::nullopt;
  if (find(messages, MessageType::kExternalFiles) != nullptr) {
    fail(ErrorCode::kUnsupported, "HDF5 datasets in other files are not read");
  }
  Dataset dataset;
  dataset.type = read_datatype(file, resolve_shared(file, MessageType::kDatatype, type->shared(), type->bytes));
  dataset.space = read_dataspace(file, resolve_shared(file, MessageType::kDataspace, space->shared(), space->bytes));
  dataset.bytes = checked_product(dataset.space.elements, dataset.type.item_bytes, "dataset");
  read_layout(file, resolve_shared(file, MessageType::kLayout, layout->shared(), layout->bytes), dataset);
  if (const Message* filters = find(messages, MessageType::kFilters); filters != nullptr) {
    dataset.filters =
        read_filters(file, resolve_shared(file, MessageType::kFilters, filters->shared(), filters->bytes));
  }
  const Message* fill = find(messages, MessageType::kFill);
  if (fill == nullptr) fill = find(messages, MessageType::kFillOld);
  if (fill != nullptr && !fill->shared()) read_fill(file, *fill, dataset);
  return dataset;
}

void read_elements(const FileBytes& file, const Dataset& dataset, const std::shared_ptr<Budget>& budget,
                   std::span<std::byte> out) {
  if (out.size() != dataset.bytes) {
    fail(ErrorCode::kInternal, "{} bytes of memory for {} of data", out.size(), dataset.bytes);
  }
  if (out.empty()) return;
  if (dataset.layout == Dataset::Layout::kChunked) return read_chunks(file, dataset, budget, out);
  if (dataset.stored.empty()) return fill_elements(dataset, out);
  std::memcpy(out.data(), dataset.stored.data(), out.size());
}

}  // namespace leadline::hdf5
