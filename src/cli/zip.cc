// SPDX-License-Identifier: Apache-2.0
#include "cli/zip.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "leadline/error.h"

namespace leadline::cli {
namespace {

static_assert(std::endian::native == std::endian::little, "zip and .npy files are read and written as they lie");

constexpr uint32_t kLocalHeader = 0x04034b50;
constexpr uint32_t kDirectoryEntry = 0x02014b50;
constexpr uint32_t kDirectoryEnd = 0x06054b50;
constexpr uint32_t kDirectoryEnd64 = 0x06064b50;
constexpr uint32_t kLocator64 = 0x07064b50;
constexpr int64_t kEndSize = 22;
constexpr int64_t kLocatorSize = 20;
constexpr int64_t kEnd64Size = 56;
constexpr int64_t kMaxComment = 65535;
constexpr int64_t kMaxDirectory = 64 << 20;  // bytes; no archive of arrays comes near
constexpr uint32_t kIn64 = 0xFFFFFFFF;       // the real value is in the zip64 extra field
constexpr size_t kChunk = 64 << 10;

template <typename... Args>
[[noreturn]] void bad_file(const InputFile& file, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(ErrorCode::kIo, fmt::format("{}: {}", file.path(), fmt::format(format, std::forward<Args>(args)...)));
}

template <typename T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

template <typename T>
void append(std::string& out, T value) {
  std::array<char, sizeof(T)> bytes;
  std::memcpy(bytes.data(), &value, sizeof(T));
  out.append(bytes.data(), bytes.size());
}

/// A number of 64 bits in the file as int64; larger ones cannot be a size.
int64_t checked(const InputFile& file, uint64_t value) {
  if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) bad_file(file, "damaged zip archive");
  return static_cast<int64_t>(value);
}

uint32_t update_crc(uint32_t crc, std::span<const std::byte> bytes) {
  return static_cast<uint32_t>(crc32_z(crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

class FileSource final : public ByteSource {
 public:
  FileSource(std::shared_ptr<const InputFile> file, int64_t offset, int64_t size)
      : file_(std::move(file)), offset_(offset), remaining_(size) {}
  void read(std::span<std::byte> out) override {
    const auto size = static_cast<int64_t>(out.size());
    if (size > remaining_) bad_file(*file_, "{} bytes expected, {} left: the file is cut off", size, remaining_);
    file_->read_at(offset_, out);
    offset_ += size;
    remaining_ -= size;
  }
  int64_t remaining() const override { return remaining_; }

 private:
  std::shared_ptr<const InputFile> file_;
  int64_t offset_;
  int64_t remaining_;
};

class InflateSource final : public ByteSource {
 public:
  InflateSource(std::shared_ptr<const InputFile> file, std::unique_ptr<ByteSource> packed, int64_t size)
      : file_(std::move(file)), packed_(std::move(packed)), remaining_(size) {
    if (inflateInit2(&stream_, -MAX_WBITS) != Z_OK) throw Error(ErrorCode::kRuntime, "zlib cannot start");
  }
  ~InflateSource() override { inflateEnd(&stream_); }
  InflateSource(const InflateSource&) = delete;
  InflateSource& operator=(const InflateSource&) = delete;

  void read(std::span<std::byte> out) override {
    if (static_cast<int64_t>(out.size()) > remaining_) bad_file(*file_, "a compressed array is cut off");
    while (!out.empty()) {
      if (stream_.avail_in == 0) refill();
      const size_t part = std::min(out.size(), kChunk);
      stream_.next_out = reinterpret_cast<Bytef*>(out.data());
      stream_.avail_out = static_cast<uInt>(part);
      const int status = inflate(&stream_, Z_NO_FLUSH);
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
    const auto part = static_cast<size_t>(std::min<int64_t>(packed_->remaining(), kChunk));
    packed_->read(std::span(buffer_).first(part));
    stream_.next_in = reinterpret_cast<Bytef*>(buffer_.data());
    stream_.avail_in = static_cast<uInt>(part);
  }

  std::shared_ptr<const InputFile> file_;
  std::unique_ptr<ByteSource> packed_;
  std::array<std::byte, kChunk> buffer_;
  z_stream stream_{};
  int64_t remaining_;
};

/// Compares the checksum when the last byte is read.
class CheckedSource final : public ByteSource {
 public:
  CheckedSource(std::shared_ptr<const InputFile> file, std::unique_ptr<ByteSource> source, ZipEntry entry)
      : file_(std::move(file)), source_(std::move(source)), entry_(std::move(entry)) {}
  void read(std::span<std::byte> out) override {
    source_->read(out);
    crc_ = update_crc(crc_, out);
    if (remaining() == 0 && crc_ != entry_.crc) {
      bad_file(*file_, "the checksum of entry '{}' does not match: the file is damaged", entry_.name);
    }
  }
  int64_t remaining() const override { return source_->remaining(); }

 private:
  std::shared_ptr<const InputFile> file_;
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
int64_t find_end(const InputFile& file, std::vector<std::byte>& tail, int64_t& tail_start) {
  const int64_t length = std::min(file.size(), kEndSize + kMaxComment);
  tail.resize(static_cast<size_t>(length));
  tail_start = file.size() - length;
  file.read_at(tail_start, tail);
  for (int64_t at = length - kEndSize; at >= 0; --at) {
    const std::byte* record = tail.data() + at;
    if (load<uint32_t>(record) == kDirectoryEnd && at + kEndSize + load<uint16_t>(record + 20) == length) return at;
  }
  bad_file(file, "not a complete .npz file: the zip directory at its end is missing");
}

Directory find_directory(const InputFile& file) {
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
void read_zip64(const InputFile& file, std::span<const std::byte> extra, ZipEntry& entry) {
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

}  // namespace

InputFile::InputFile(std::string path) : path_(std::move(path)) {
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat info{};
  if (descriptor_ < 0 || ::fstat(descriptor_, &info) != 0) {
    const int problem = errno;
    if (descriptor_ >= 0) ::close(descriptor_);
    throw Error(ErrorCode::kIo, fmt::format("cannot open {}: {}", path_, std::strerror(problem)));
  }
  if (!S_ISREG(info.st_mode)) {
    ::close(descriptor_);
    throw Error(ErrorCode::kIo, fmt::format("{} is not a regular file", path_));
  }
  size_ = info.st_size;
}

InputFile::~InputFile() { ::close(descriptor_); }

void InputFile::read_at(int64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t got = ::pread(descriptor_, out.data(), out.size(), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) bad_file(*this, "cannot be read: {}", std::strerror(errno));
    if (got == 0) bad_file(*this, "the file is cut off: {} bytes are missing at {}", out.size(), offset);
    out = out.subspan(static_cast<size_t>(got));
    offset += got;
  }
}

std::unique_ptr<ByteSource> file_source(std::shared_ptr<const InputFile> file, int64_t offset, int64_t size) {
  return std::make_unique<FileSource>(std::move(file), offset, size);
}

bool is_zip(const InputFile& file) {
  if (file.size() < 4) return false;
  std::array<std::byte, 4> magic;
  file.read_at(0, magic);
  const auto value = load<uint32_t>(magic.data());
  return value == kLocalHeader || value == kDirectoryEnd;
}

std::vector<ZipEntry> zip_entries(const InputFile& file) {
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
    if ((load<uint16_t>(at + 8) & 1U) != 0) bad_file(file, "entry '{}' is encrypted", entry.name);
    if (method != 0 && method != 8) {
      bad_file(file, "entry '{}' is compressed by method {}; only store and deflate are read", entry.name, method);
    }
    entry.deflated = method == 8;
    entry.crc = load<uint32_t>(at + 16);
    entry.compressed_bytes = load<uint32_t>(at + 20);
    entry.bytes = load<uint32_t>(at + 24);
    entry.header_offset = load<uint32_t>(at + 42);
    read_zip64(file, left.subspan(kFixed + name_size, extra_size), entry);
    entries.push_back(std::move(entry));
    left = left.subspan(whole);
  }
  return entries;
}

std::unique_ptr<ByteSource> open_entry(const std::shared_ptr<const InputFile>& file, const ZipEntry& entry) {
  constexpr int64_t kFixed = 30;
  std::array<std::byte, kFixed> header;
  if (entry.header_offset > file->size() - kFixed) bad_file(*file, "entry '{}' lies outside the file", entry.name);
  file->read_at(entry.header_offset, header);
  if (load<uint32_t>(header.data()) != kLocalHeader) bad_file(*file, "entry '{}' is damaged", entry.name);
  const int64_t start =
      entry.header_offset + kFixed + load<uint16_t>(header.data() + 26) + load<uint16_t>(header.data() + 28);
  if (start > file->size() || entry.compressed_bytes > file->size() - start) {
    bad_file(*file, "entry '{}' is cut off", entry.name);
  }
  if (!entry.deflated && entry.compressed_bytes != entry.bytes) bad_file(*file, "entry '{}' is damaged", entry.name);
  std::unique_ptr<ByteSource> source = file_source(file, start, entry.compressed_bytes);
  if (entry.deflated) source = std::make_unique<InflateSource>(file, std::move(source), entry.bytes);
  return std::make_unique<CheckedSource>(file, std::move(source), entry);
}

OutputFile::OutputFile(std::string path) : path_(std::move(path)), written_path_(path_) {
  struct stat info{};
  const bool replace = ::stat(path_.c_str(), &info) != 0 || S_ISREG(info.st_mode);
  if (replace) written_path_ += fmt::format(".{}.part", ::getpid());
  file_ = std::fopen(written_path_.c_str(), "wbe");
  if (file_ == nullptr) fail_with_errno("write");
}

OutputFile::~OutputFile() {
  if (file_ == nullptr) return;
  std::fclose(file_);
  if (written_path_ != path_) std::remove(written_path_.c_str());
}

void OutputFile::fail_with_errno(const char* what) const {
  throw Error(ErrorCode::kIo, fmt::format("cannot {} {}: {}", what, path_, std::strerror(errno)));
}

void OutputFile::write(std::span<const std::byte> bytes) {
  if (!bytes.empty() && std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) fail_with_errno("write");
  position_ += static_cast<int64_t>(bytes.size());
}

void OutputFile::write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }

void OutputFile::finish() {
  if (std::fflush(file_) != 0) fail_with_errno("write");
  const int closed = std::fclose(std::exchange(file_, nullptr));
  if (closed != 0 || (written_path_ != path_ && std::rename(written_path_.c_str(), path_.c_str()) != 0)) {
    const int problem = errno;
    if (written_path_ != path_) std::remove(written_path_.c_str());
    errno = problem;
    fail_with_errno("write");
  }
}

void ZipWriter::add(const std::string& name, std::string_view head, std::span<const std::byte> body) {
  constexpr int64_t kLimit = kIn64 - 1;
  const auto size = static_cast<int64_t>(head.size() + body.size());
  if (size > kLimit || file_.position() + size > kLimit || name.size() > 0xFFFF || count_ == 0xFFFE) {
    throw Error(ErrorCode::kIo, "the result is too large for one .npz file (4 GiB)");
  }
  uint32_t crc = update_crc(0, std::as_bytes(std::span(head.data(), head.size())));
  crc = update_crc(crc, body);

  // What local header and directory entry have in common: version, flags (names are UTF-8), method, date (1980-01-01).
  std::string common;
  append<uint16_t>(common, 20);
  append<uint16_t>(common, 1U << 11U);
  append<uint16_t>(common, 0);
  append<uint16_t>(common, 0);
  append<uint16_t>(common, (1U << 5U) | 1U);
  append<uint32_t>(common, crc);
  append<uint32_t>(common, static_cast<uint32_t>(size));
  append<uint32_t>(common, static_cast<uint32_t>(size));
  append<uint16_t>(common, static_cast<uint16_t>(name.size()));
  append<uint16_t>(common, 0);  // no extra field

  append<uint32_t>(directory_, kDirectoryEntry);
  append<uint16_t>(directory_, 20);
  directory_ += common;
  directory_.append(10, '\0');  // comment, disk, attributes
  append<uint32_t>(directory_, static_cast<uint32_t>(file_.position()));
  directory_ += name;
  ++count_;

  std::string local;
  append<uint32_t>(local, kLocalHeader);
  file_.write(local + common + name);
  file_.write(head);
  file_.write(body);
}

void ZipWriter::finish() {
  std::string end;
  append<uint32_t>(end, kDirectoryEnd);
  append<uint32_t>(end, 0);  // disks
  append<uint16_t>(end, static_cast<uint16_t>(count_));
  append<uint16_t>(end, static_cast<uint16_t>(count_));
  append<uint32_t>(end, static_cast<uint32_t>(directory_.size()));
  append<uint32_t>(end, static_cast<uint32_t>(file_.position()));
  append<uint16_t>(end, 0);
  file_.write(directory_);
  file_.write(end);
}

}  // namespace leadline::cli
