// SPDX-License-Identifier: Apache-2.0
// Entries are checked when the index is read, their place in a data file when a source is made.
#include "import/saved_model/bundle.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "core/error.h"
#include "core/string_tensor.h"
#include "import/saved_model/crc32c.h"
#include "import/saved_model/tensor_proto.h"

namespace leadline::saved_model {
namespace {

constexpr int32_t kMaxShards = 1 << 16;

void check_size(std::span<std::byte> out, int64_t bytes) {
  require(static_cast<int64_t>(out.size()) == bytes, ErrorCode::kInternal, "a variable of {} bytes read into {}", bytes,
          out.size());
}

[[noreturn]] void fail_checksum(const std::string& what) {
  fail(ErrorCode::kInvalidModel, "{}: the checksum is wrong: the file is damaged", what);
}

/// Numbers, stored as they are in memory.
class RawSource final : public ir::ConstantSource {
 public:
  RawSource(std::shared_ptr<WireFile> shard, Bytes data, uint32_t crc, std::string what)
      : shard_(std::move(shard)), data_(data), crc_(crc), what_(std::move(what)) {}

  int64_t bytes() const override { return static_cast<int64_t>(data_.size()); }
  void read(std::span<std::byte> out) const override {
    check_size(out, bytes());
    if (data_.empty()) return;
    // In pieces that stay in the cache, so that the checksum does not read memory again.
    constexpr size_t kPiece = 1 << 18;
    uint32_t crc = 0;
    for (size_t at = 0; at < data_.size(); at += kPiece) {
      const size_t size = std::min(kPiece, data_.size() - at);
      std::memcpy(out.data() + at, data_.data() + at, size);
      crc = crc32c(out.subspan(at, size), crc);
    }
    shard_->storage().drop_pages(data_.data(), bytes());
    if (masked_crc(crc) != crc_) fail_checksum(what_);
  }

 private:
  std::shared_ptr<WireFile> shard_;
  Bytes data_;
  uint32_t crc_;
  std::string what_;
};

/// Strings: lengths as varints, the masked checksum of the lengths, the characters.
class StringsSource final : public ir::ConstantSource {
 public:
  StringsSource(std::shared_ptr<WireFile> shard, Bytes data, int64_t count, uint32_t crc, std::string what)
      : shard_(std::move(shard)), data_(data), count_(count), crc_(crc), what_(std::move(what)) {
    // Each string takes at least one byte, its length.
    require(count_ <= static_cast<int64_t>(data_.size()), ErrorCode::kInvalidModel, "{}: {} strings in {} bytes", what_,
            count_, data_.size());
    size_t at = 0;
    uint64_t characters = 0;
    for (int64_t i = 0; i < count_; ++i) {
      const uint64_t length = next_length(at);
      require(length <= data_.size() - characters, ErrorCode::kInvalidModel, "{}: a string is longer than the data",
              what_);
      characters += length;
    }
    require(data_.size() - at >= 4 && characters == data_.size() - at - 4, ErrorCode::kInvalidModel,
            "{}: the strings do not fill the data", what_);
    const auto bytes = string_tensor_bytes(count_, static_cast<int64_t>(characters));
    require(bytes.has_value(), ErrorCode::kUnsupported, "{}: the strings are larger than 2 GiB", what_);
    bytes_ = *bytes;
  }

  int64_t bytes() const override { return bytes_; }
  void read(std::span<std::byte> out) const override {
    check_size(out, bytes_);
    uint32_t crc = 0;
    size_t at = 0;
    for (int64_t i = 0; i < count_; ++i) {
      // The checksum covers each length as four bytes, not as it is stored; string_tensor_bytes keeps it below 2^31.
      const auto length = static_cast<uint32_t>(next_length(at));
      crc = crc32c(std::as_bytes(std::span(&length, 1)), crc);
    }
    uint32_t lengths_crc = 0;
    std::memcpy(&lengths_crc, data_.data() + at, 4);
    if (masked_crc(crc) != lengths_crc || masked_crc(crc32c(data_.subspan(at), crc)) != crc_) fail_checksum(what_);
    StringTensorWriter writer(out, count_);
    size_t length_at = 0;
    at += 4;
    for (int64_t i = 0; i < count_; ++i) {
      const uint64_t length = next_length(length_at);
      writer.add({reinterpret_cast<const char*>(data_.data()) + at, length});
      at += length;
    }
  }

 private:
  uint64_t next_length(size_t& at) const {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && at < data_.size(); shift += 7) {
      const auto byte = static_cast<uint64_t>(data_[at++]);
      value |= (byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    fail(ErrorCode::kInvalidModel, "{}: the length of a string is cut off", what_);
  }

  std::shared_ptr<WireFile> shard_;
  Bytes data_;
  int64_t count_;
  uint32_t crc_;
  std::string what_;
  int64_t bytes_ = 0;
};

/// A tensor stored in parts. Needs memory for the largest part while reading.
class PartsSource final : public ir::ConstantSource {
 public:
  struct Part {
    std::shared_ptr<const ir::ConstantSource> source;
    Bundle::Slice slice;
  };
  PartsSource(std::vector<Part> parts, std::vector<int64_t> dims, int64_t element, int64_t bytes)
      : parts_(std::move(parts)), dims_(std::move(dims)), element_(element), bytes_(bytes) {}

  int64_t bytes() const override { return bytes_; }
  void read(std::span<std::byte> out) const override {
    check_size(out, bytes_);
    std::fill(out.begin(), out.end(), std::byte{0});  // parts that overlap leave gaps
    std::vector<std::byte> values;
    for (const Part& part : parts_) {
      values.resize(static_cast<size_t>(part.source->bytes()));
      part.source->read(values);
      place(part.slice, values, out);
    }
  }

 private:
  /// Copies row by row: `values` are the elements of `slice` in order.
  void place(const Bundle::Slice& slice, Bytes values, std::span<std::byte> out) const {
    std::vector<int64_t> at(dims_.size(), 0);
    const auto length = [&](size_t d) { return slice[d].length < 0 ? dims_[d] : slice[d].length; };
    const size_t row = static_cast<size_t>(length(dims_.size() - 1) * element_);
    for (size_t from = 0; from < values.size(); from += row) {
      int64_t to = 0;
      for (size_t d = 0; d < dims_.size(); ++d) to = to * dims_[d] + slice[d].start + at[d];
      std::memcpy(out.data() + to * element_, values.data() + from, row);
      for (size_t d = dims_.size() - 1; d-- > 0;) {
        if (++at[d] < length(d)) break;
        at[d] = 0;
      }
    }
  }

  std::vector<Part> parts_;
  std::vector<int64_t> dims_;
  int64_t element_;
  int64_t bytes_;
};

Bundle::Slice read_slice(WireReader m) {
  Bundle::Slice slice;
  while (m.next()) {
    if (m.field() != 1) continue;
    m.file().charge(sizeof(Bundle::Extent));
    auto& extent = slice.emplace_back();
    for (WireReader e = m.message("Extent"); e.next();) {
      if (e.field() == 1) extent.start = e.int64();
      if (e.field() == 2) extent.length = e.int64();
    }
  }
  return slice;
}

void put_number(std::string& key, uint64_t value) {
  char bytes[8];
  int count = 0;
  for (; value != 0; value >>= 8) bytes[count++] = static_cast<char>(value & 0xFF);
  key.push_back(static_cast<char>(count));
  while (count > 0) key.push_back(bytes[--count]);
}

/// As many leading one bits as the number has bytes, then its bits, the highest flipped by the header.
void put_signed(std::string& key, int64_t value) {
  int count = 1;
  while (count < 9 && (value < -(int64_t{1} << (7 * count - 1)) || value >= (int64_t{1} << (7 * count - 1)))) ++count;
  for (int i = count - 1; i >= 0; --i) {
    auto byte = static_cast<uint8_t>(static_cast<uint64_t>(value) >> (8 * i));
    if (i >= 8) byte = value < 0 ? 0xFF : 0;
    if (i == count - 1) byte = static_cast<uint8_t>(byte ^ (count >= 8 ? 0xFF : 0xFF00 >> count));
    if (i == count - 2 && count == 9) byte ^= 0x80;
    key.push_back(static_cast<char>(byte));
  }
}

/// The key a part is stored under: 0, name, rank, then start and length of each dimension, so written that
/// comparing bytes compares the values.
std::string slice_key(std::string_view name, const Bundle::Slice& slice) {
  std::string key;
  put_number(key, 0);
  for (const char c : name) {
    key.push_back(c);
    if (c == '\0') key.push_back('\xFF');
    if (c == '\xFF') key.push_back('\0');
  }
  key.append("\0\1", 2);
  put_number(key, slice.size());
  for (const auto& extent : slice) {
    put_signed(key, extent.start);
    put_signed(key, extent.length);
  }
  return key;
}

template <typename List>
auto find_key(List& list, std::string_view key) {
  const auto at =
      std::lower_bound(list.begin(), list.end(), key, [](auto& e, std::string_view k) { return e.key < k; });
  return at != list.end() && at->key == key ? &*at : nullptr;
}

}  // namespace

TensorShape slice_shape(const TensorShape& whole, const Bundle::Slice& slice, const std::string& what) {
  TensorShape shape = whole;
  require(slice.size() == whole.dims.size(), ErrorCode::kInvalidModel, "{}: a part of rank {} of a tensor of rank {}",
          what, slice.size(), whole.dims.size());
  for (size_t d = 0; d < slice.size(); ++d) {
    const auto [start, length] = slice[d];
    if (length == -1 && start == 0) continue;
    require(start >= 0 && length >= 0 && start <= whole.dims[d] && length <= whole.dims[d] - start,
            ErrorCode::kInvalidModel, "{}: a part is outside of the tensor", what);
    shape.dims[d] = length;
  }
  return shape;
}

std::shared_ptr<Bundle> Bundle::open(const std::string& prefix, const std::shared_ptr<Budget>& budget) {
  const std::shared_ptr<Bundle> bundle(new Bundle());
  bundle->prefix_ = prefix;
  bundle->budget_ = budget;
  const std::string path = prefix + ".index";
  const auto file = std::make_shared<WireFile>(path, ModelBytes::map_file(path), budget);
  const std::vector<TableEntry> rows = read_table(file, budget);
  // The empty key comes first and holds the header.
  require(!rows.empty() && rows.front().key.empty(), ErrorCode::kInvalidModel, "{}: the header is missing", path);
  bundle->read_header(rows.front());
  for (size_t i = 1; i < rows.size(); ++i) {
    auto& list = rows[i].key.front() == '\0' ? bundle->parts_ : bundle->entries_;
    file->charge(sizeof(Entry) + rows[i].key.size());
    list.push_back(bundle->read_entry(rows[i]));
  }
  bundle->index_ = file;
  return bundle;
}

void Bundle::read_header(const TableEntry& row) {
  for (WireReader m(*row.file, row.value, "BundleHeaderProto"); m.next();) {
    if (m.field() == 1) shard_count_ = m.int32();
    if (m.field() == 2 && m.int32() != 0) fail(ErrorCode::kUnsupported, "{}: the variables are big-endian", prefix_);
  }
  require(shard_count_ >= 0 && shard_count_ <= kMaxShards, ErrorCode::kInvalidModel, "{}.index: {} data files", prefix_,
          shard_count_);
  shards_.resize(static_cast<size_t>(shard_count_));
}

Bundle::Entry Bundle::read_entry(const TableEntry& row) const {
  Entry entry;
  entry.key = row.key;
  for (WireReader m(*row.file, row.value, "BundleEntryProto"); m.next();) {
    switch (m.field()) {
      case 1:
        entry.dtype = tf_type(m.int32());
        break;
      case 2:
        entry.shape = read_shape(m.message("TensorShapeProto"));
        break;
      case 3:
        entry.shard = m.int32();
        break;
      case 4:
        entry.offset = m.int64();
        break;
      case 5:
        entry.size = m.int64();
        break;
      case 6:
        entry.crc = m.fixed32();
        break;
      case 7:
        m.file().charge(sizeof(Slice)), entry.slices.push_back(read_slice(m.message("TensorSliceProto")));
        break;
      default:
        break;
    }
  }
  require(entry.shard >= 0 && (entry.shard < shard_count_ || !entry.slices.empty()), ErrorCode::kInvalidModel,
          "{}: it is in data file {} of {}", describe(entry), entry.shard, shard_count_);
  require(entry.offset >= 0 && entry.size >= 0, ErrorCode::kInvalidModel, "{}: offset {}, size {}", describe(entry),
          entry.offset, entry.size);
  return entry;
}

const Bundle::Entry* Bundle::find(std::string_view key) const { return find_key(entries_, key); }

std::string Bundle::describe(const Entry& entry) const {
  return fmt::format("variable '{}' of {}.index", printable(entry.key), prefix_);
}

std::shared_ptr<WireFile> Bundle::shard(int32_t number) {
  auto& shard = shards_[static_cast<size_t>(number)];
  if (shard == nullptr) {
    const std::string path = fmt::format("{}.data-{:05}-of-{:05}", prefix_, number, shard_count_);
    shard = std::make_shared<WireFile>(path, ModelBytes::map_file(path), nullptr);
  }
  return shard;
}

std::shared_ptr<const ir::ConstantSource> Bundle::source(const Entry& entry) {
  const std::string what = describe(entry);
  const int64_t bytes = tensor_bytes(entry.dtype, entry.shape, what);
  if (entry.slices.empty()) {
    const bool strings = entry.dtype == TfType::kString;
    require(strings || bytes == entry.size, ErrorCode::kInvalidModel, "{}: it has {} bytes, its shape needs {}", what,
            entry.size, bytes);
    const auto file = entry.size == 0 ? nullptr : shard(entry.shard);
    const Bytes all = file ? file->bytes() : Bytes{};
    require(entry.size == 0 || (static_cast<uint64_t>(entry.offset) <= all.size() &&
                                static_cast<uint64_t>(entry.size) <= all.size() - static_cast<uint64_t>(entry.offset)),
            ErrorCode::kInvalidModel, "{}: {} bytes at {} are outside of its data file of {} bytes", what, entry.size,
            entry.offset, all.size());
    const Bytes data =
        entry.size == 0 ? Bytes{} : all.subspan(static_cast<size_t>(entry.offset), static_cast<size_t>(entry.size));
    if (!strings) return std::make_shared<RawSource>(file, data, entry.crc, what);
    return std::make_shared<StringsSource>(file, data, element_count(entry.shape, what), entry.crc, what);
  }
  require(entry.dtype != TfType::kString && !entry.shape.dims.empty(), ErrorCode::kUnsupported,
          "{}: strings stored in parts", what);
  std::vector<PartsSource::Part> parts;
  int64_t covered = 0;
  for (const Slice& slice : entry.slices) {
    auto part = source(entry, slice);
    require(part->bytes() <= bytes - covered, ErrorCode::kInvalidModel, "{}: its parts overlap", what);
    covered += part->bytes();
    parts.push_back({std::move(part), slice});
  }
  require(covered == bytes, ErrorCode::kInvalidModel, "{}: its parts have {} bytes, its shape needs {}", what, covered,
          bytes);
  return std::make_shared<PartsSource>(std::move(parts), entry.shape.dims, tf_type_bytes(entry.dtype), bytes);
}

std::shared_ptr<const ir::ConstantSource> Bundle::source(const Entry& entry, const Slice& slice) {
  const std::string what = describe(entry);
  const TensorShape shape = slice_shape(entry.shape, slice, what);
  if (std::find(entry.slices.begin(), entry.slices.end(), slice) == entry.slices.end())
    fail(ErrorCode::kUnsupported, "{}: a part is asked for that is not stored as such", what);
  const Entry* const part = find_key(parts_, slice_key(entry.key, slice));
  require(part != nullptr && part->slices.empty() && part->dtype == entry.dtype && part->shape.dims == shape.dims,
          ErrorCode::kInvalidModel, "{}: one of its parts is missing or has another shape", what);
  return source(*part);
}

}  // namespace leadline::saved_model
