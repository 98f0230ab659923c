// SPDX-License-Identifier: Apache-2.0
#include "io/zip.h"

#include <fmt/core.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "core/buffer.h"
#include "core/cancel.h"
#include "core/error.h"
#include "io/zip_format.h"
#include "leadline/types.h"

namespace leadline {
namespace {

using zip::kDirectoryEnd;
using zip::kDirectoryEntry;
using zip::kLocalHeader;
constexpr uint32_t kDirectoryEnd64 = 0x06064b50;
constexpr uint32_t kLocator64 = 0x07064b50;
constexpr int64_t kEndSize = 22;
constexpr int64_t kLocatorSize = 20;
constexpr int64_t kEnd64Size = 56;
constexpr int64_t kMaxComment = 65535;
constexpr int64_t kMaxDirectory = 64 << 20;  // bytes; no archive of arrays or of a model comes near
constexpr uint32_t kIn64 = 0xFFFFFFFF;       // the real value is in the zip64 extra field
constexpr size_t kZipChunk = 64 << 10;
constexpr size_t kCheckedPiece = 1 << 20;
constexpr int64_t kMaxExpansion = 1032;  // deflate spends at least 2 bits on 258 bytes

template <typename T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

/// A number of 64 bits in the file as int64; larger ones cannot be a size.
int64_t checked(const RandomAccess& file, uint64_t value) {
  if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) bad_file(file, "damaged zip archive");
  return static_cast<int64_t>(value);
}

[[noreturn]] void bad_checksum(const RandomAccess& file, const ZipEntry& entry) {
  bad_file(file, "the checksum of entry '{}' does not match: the file is damaged", printable(entry.name));
}

class InflateSource final : public ByteSource {
 public:
  InflateSource(std::shared_ptr<const RandomAccess> file, std::unique_ptr<ByteSource> packed, int64_t size)
      : file_(std::move(file)), packed_(std::move(packed)), remaining_(size) {
    const int status = inflateInit2(&stream_, -MAX_WBITS);
    if (status == Z_MEM_ERROR) throw_out_of_memory();
    if (status != Z_OK) throw Error(ErrorCode::kRuntime, "zlib cannot start");
  }
  ~InflateSource() override { inflateEnd(&stream_); }
  InflateSource(const InflateSource&) = delete;
  InflateSource& operator=(const InflateSource&) = delete;

  void read(std::span<std::byte> out) override {
    if (static_cast<int64_t>(out.size()) > remaining_) bad_file(*file_, "a compressed entry is cut off");
    while (!out.empty()) {
      check_cancelled();
      if (stream_.avail_in == 0) refill();
      const size_t part = std::min(out.size(), kZipChunk);
      stream_.next_out = reinterpret_cast<Bytef*>(out.data());
      stream_.avail_out = static_cast<uInt>(part);
      const int status = inflate(&stream_, Z_NO_FLUSH);
      if (status == Z_MEM_ERROR) throw_out_of_memory();
      const size_t got = part - stream_.avail_out;
      const bool stuck = got == 0 && (status != Z_OK || (stream_.avail_in == 0 && packed_->remaining() == 0));
      if ((status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) || stuck) {
        bad_file(*file_, "compressed data is damaged");
      }
      remaining_ -= static_cast<int64_t>(got);
      out = out.subspan(got);
    }
  }
  int64_t remaining() const override { return remaining_; }

 private:
  void refill() {
    const auto part = static_cast<size_t>(std::min<int64_t>(packed_->remaining(), kZipChunk));
    packed_->read(std::span(buffer_).first(part));
    stream_.next_in = reinterpret_cast<Bytef*>(buffer_.data());
    stream_.avail_in = static_cast<uInt>(part);
  }

  std::shared_ptr<const RandomAccess> file_;
  std::unique_ptr<ByteSource> packed_;
  std::array<std::byte, kZipChunk> buffer_;
  z_stream stream_{};
  int64_t remaining_;
};

/// Compares the checksum when the last byte is read.
class CheckedSource final : public ByteSource {
 public:
  CheckedSource(std::shared_ptr<const RandomAccess> file, std::unique_ptr<ByteSource> source, ZipEntry entry)
      : file_(std::move(file)), source_(std::move(source)), entry_(std::move(entry)) {}
  void read(std::span<std::byte> out) override {
    source_->read(out);
    crc_ = update_crc(crc_, out);
    if (remaining() == 0 && crc_ != entry_.crc) {
      bad_checksum(*file_, entry_);
    }
  }
  int64_t remaining() const override { return source_->remaining(); }

 private:
  std::shared_ptr<const RandomAccess> file_;
  std::unique_ptr<ByteSource> source_;
  ZipEntry entry_;
  uint32_t crc_ = 0;
};

struct Directory {
  int64_t offset = 0;
  int64_t size = 0;
  int64_t entries = 0;
};

/// Position of the "end of central directory" record: the last one whose comment reaches exactly to the end.
int64_t find_end(const RandomAccess& file, std::vector<std::byte>& tail, int64_t& tail_start) {
  const int64_t length = std::min(file.size(), kEndSize + kMaxComment);
  tail.resize(static_cast<size_t>(length));
  tail_start = file.size() - length;
  file.read_at(tail_start, tail);
  for (int64_t at = length - kEndSize; at >= 0; --at) {
    const std::byte* record = tail.data() + at;
    if (load<uint32_t>(record) == kDirectoryEnd && at + kEndSize + load<uint16_t>(record + 20) == length) return at;
  }
  bad_file(file, "not a complete zip archive: the directory at its end is missing");
}

Directory find_directory(const RandomAccess& file) {
  std::vector<std::byte> tail;
  int64_t tail_start = 0;
  const int64_t at = find_end(file, tail, tail_start);
  const std::byte* end = tail.data() + at;
  Directory directory{load<uint32_t>(end + 16), load<uint32_t>(end + 12), load<uint16_t>(end + 10)};
  const int64_t end_position = tail_start + at;
  if (directory.offset == kIn64 || directory.size == kIn64 || directory.entries == 0xFFFF) {
    std::array<std::byte, kEnd64Size> record;
    if (end_position < kLocatorSize) bad_file(file, "damaged zip archive");
    file.read_at(end_position - kLocatorSize, std::span(record).first(kLocatorSize));
    if (load<uint32_t>(record.data()) == kLocator64) {
      const int64_t record_offset = checked(file, load<uint64_t>(record.data() + 8));
      if (record_offset > file.size() - kEnd64Size) bad_file(file, "damaged zip64 archive");
      file.read_at(record_offset, record);
      if (load<uint32_t>(record.data()) != kDirectoryEnd64) bad_file(file, "damaged zip64 archive");
      directory = {checked(file, load<uint64_t>(record.data() + 48)), checked(file, load<uint64_t>(record.data() + 40)),
                   checked(file, load<uint64_t>(record.data() + 32))};
    }
  }
  if (directory.size > kMaxDirectory || directory.offset > end_position ||
      directory.size > end_position - directory.offset) {
    bad_file(file, "damaged zip archive: its directory lies outside the file");
  }
  return directory;
}

/// Replaces the values that were marked as being in the zip64 field (id 1), which has them in this order.
void read_zip64(const RandomAccess& file, std::span<const std::byte> extra, ZipEntry& entry) {
  while (extra.size() >= 4) {
    const auto id = load<uint16_t>(extra.data());
    const size_t size = load<uint16_t>(extra.data() + 2);
    if (size > extra.size() - 4) return;
    if (id == 1) {
      std::span<const std::byte> field = extra.subspan(4, size);
      for (int64_t* value : {&entry.bytes, &entry.compressed_bytes, &entry.header_offset}) {
        if (*value != kIn64) continue;
        if (field.size() < 8) bad_file(file, "damaged zip64 archive");
        *value = checked(file, load<uint64_t>(field.data()));
        field = field.subspan(8);
      }
      return;
    }
    extra = extra.subspan(4 + size);
  }
}

/// Where the bytes of an entry begin; they lie inside the file.
int64_t data_start(const RandomAccess& file, const ZipEntry& entry) {
  constexpr int64_t kFixed = 30;
  std::array<std::byte, kFixed> header;
  if (entry.header_offset > file.size() - kFixed)
    bad_file(file, "entry '{}' lies outside the file", printable(entry.name));
  file.read_at(entry.header_offset, header);
  if (load<uint32_t>(header.data()) != kLocalHeader) bad_file(file, "entry '{}' is damaged", printable(entry.name));
  const int64_t start =
      entry.header_offset + kFixed + load<uint16_t>(header.data() + 26) + load<uint16_t>(header.data() + 28);
  if (start > file.size() || entry.compressed_bytes > file.size() - start) {
    bad_file(file, "entry '{}' is cut off", printable(entry.name));
  }
  return start;
}

/// A part of memory that stays alive with the whole, and releases its pages.
class PartOfBytes final : public ModelBytes {
 public:
  PartOfBytes(std::shared_ptr<const ModelBytes> whole, std::span<const std::byte> part) : whole_(std::move(whole)) {
    bytes_ = part;
  }
  void drop_pages(const std::byte* begin, int64_t bytes) const noexcept override { whole_->drop_pages(begin, bytes); }
  void require_intact(bool cheap) const override { whole_->require_intact(cheap); }

 private:
  std::shared_ptr<const ModelBytes> whole_;
};

}  // namespace

uint32_t update_crc(uint32_t crc, std::span<const std::byte> bytes) {
  if (bytes.empty()) return crc;  // zlib takes a null pointer for the wish to start over
  return static_cast<uint32_t>(crc32_z(crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

bool is_zip(const RandomAccess& file) {
  if (file.size() < 4) return false;
  std::array<std::byte, 4> magic;
  file.read_at(0, magic);
  const auto value = load<uint32_t>(magic.data());
  return value == kLocalHeader || value == kDirectoryEnd;
}

std::vector<ZipEntry> zip_entries(const RandomAccess& file) {
  constexpr size_t kFixed = 46;
  const Directory directory = find_directory(file);
  std::vector<std::byte> bytes(static_cast<size_t>(directory.size));
  file.read_at(directory.offset, bytes);
  std::vector<ZipEntry> entries;
  std::span<const std::byte> left(bytes);
  for (int64_t i = 0; i < directory.entries; ++i) {
    if (left.size() < kFixed || load<uint32_t>(left.data()) != kDirectoryEntry) bad_file(file, "damaged zip directory");
    const std::byte* at = left.data();
    const size_t name_size = load<uint16_t>(at + 28);
    const size_t extra_size = load<uint16_t>(at + 30);
    const size_t whole = kFixed + name_size + extra_size + load<uint16_t>(at + 32);
    if (whole > left.size()) bad_file(file, "damaged zip directory");
    ZipEntry entry;
    entry.name.assign(reinterpret_cast<const char*>(at + kFixed), name_size);
    const auto method = load<uint16_t>(at + 10);
    if ((load<uint16_t>(at + 8) & 1U) != 0) bad_file(file, "entry '{}' is encrypted", printable(entry.name));
    if (method != 0 && method != 8) {
      bad_file(file, "entry '{}' is compressed by method {}; only store and deflate are read", entry.name, method);
    }
    entry.deflated = method == 8;
    entry.crc = load<uint32_t>(at + 16);
    entry.compressed_bytes = load<uint32_t>(at + 20);
    entry.bytes = load<uint32_t>(at + 24);
    entry.header_offset = load<uint32_t>(at + 42);
    read_zip64(file, left.subspan(kFixed + name_size, extra_size), entry);
    if (entry.deflated ? entry.bytes / kMaxExpansion > entry.compressed_bytes : entry.bytes != entry.compressed_bytes) {
      bad_file(file, "entry '{}' claims {} bytes in {}: the archive is damaged", printable(entry.name), entry.bytes,
               entry.compressed_bytes);
    }
    entries.push_back(std::move(entry));
    left = left.subspan(whole);
  }
  return entries;
}

std::unique_ptr<ByteSource> open_entry(const std::shared_ptr<const RandomAccess>& file, const ZipEntry& entry) {
  std::unique_ptr<ByteSource> source = file_source(file, data_start(*file, entry), entry.compressed_bytes);
  if (entry.deflated) source = std::make_unique<InflateSource>(file, std::move(source), entry.bytes);
  return std::make_unique<CheckedSource>(file, std::move(source), entry);
}

const ZipEntry* find_entry(const RandomAccess& file, std::span<const ZipEntry> entries, std::string_view name) {
  const ZipEntry* found = nullptr;
  for (const ZipEntry& entry : entries) {
    if (entry.name != name) continue;
    if (found != nullptr) bad_file(file, "the archive has two entries '{}'", printable(name));
    found = &entry;
  }
  return found;
}

std::shared_ptr<const ModelBytes> entry_bytes(const std::shared_ptr<const RandomAccess>& file, const ZipEntry& entry,
                                              const std::shared_ptr<Budget>& budget) {
  if (const std::shared_ptr<const ModelBytes> memory = file->memory(); memory != nullptr && !entry.deflated) {
    const auto start = static_cast<size_t>(data_start(*file, entry));
    const std::span<const std::byte> view = memory->span().subspan(start, static_cast<size_t>(entry.bytes));
    uint32_t crc = 0;
    // In pieces whose pages are released, so that checking a large archive does not keep it in memory.
    for (size_t at = 0; at < view.size(); at += kCheckedPiece) {
      const std::span<const std::byte> piece = view.subspan(at, std::min(kCheckedPiece, view.size() - at));
      check_cancelled();
      crc = update_crc(crc, piece);
      memory->drop_pages(piece.data(), static_cast<int64_t>(piece.size()));
    }
    if (crc != entry.crc) bad_checksum(*file, entry);
    return std::make_shared<PartOfBytes>(memory, view);
  }
  const std::unique_ptr<ByteSource> source = open_entry(file, entry);
  auto buffer = std::make_shared<Buffer>(budget, std::max<int64_t>(entry.bytes, 1), MemoryCategory::kModelFile);
  const std::span<std::byte> bytes(buffer->data(), static_cast<size_t>(entry.bytes));
  source->read(bytes);
  return ModelBytes::borrow(bytes, std::move(buffer));
}

std::string entry_text(const std::shared_ptr<const RandomAccess>& file, const ZipEntry& entry, int64_t limit) {
  if (entry.bytes > limit) {
    bad_file(*file, "entry '{}' has {} bytes; at most {} are read", printable(entry.name), entry.bytes, limit);
  }
  const std::unique_ptr<ByteSource> source = open_entry(file, entry);
  std::string text(static_cast<size_t>(entry.bytes), '\0');
  source->read(std::as_writable_bytes(std::span(text)));
  return text;
}

}  // namespace leadline
