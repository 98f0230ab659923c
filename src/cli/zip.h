// SPDX-License-Identifier: Apache-2.0
// Just enough of the zip format for .npz files: stored and deflated entries are read, stored ones written.
// Archives are untrusted: every offset and size is checked against the file before it is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace leadline::cli {

/// A file opened for reading at any place. Throws Error(kIo).
class InputFile {
 public:
  explicit InputFile(std::string path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }
  int64_t size() const { return size_; }
  /// Fills `out` from `offset`. Throws Error(kIo) when the file ends before.
  void read_at(int64_t offset, std::span<std::byte> out) const;

 private:
  std::string path_;
  int descriptor_ = -1;
  int64_t size_ = 0;
};

/// A stream of bytes of known length, read from front to end.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// Fills `out`. Throws Error(kIo) when the stream ends before or is damaged.
  virtual void read(std::span<std::byte> out) = 0;
  /// Bytes not read yet.
  virtual int64_t remaining() const = 0;
};

/// `size` bytes of the file from `offset`; the range must lie inside the file.
std::unique_ptr<ByteSource> file_source(std::shared_ptr<const InputFile> file, int64_t offset, int64_t size);

struct ZipEntry {
  std::string name;
  bool deflated = false;
  uint32_t crc = 0;
  int64_t compressed_bytes = 0;
  int64_t bytes = 0;
  int64_t header_offset = 0;
};

/// Whether the file starts like a zip archive.
bool is_zip(const InputFile& file);

/// The directory of an archive. Throws Error(kIo) when it is damaged or uses something else than store and deflate.
std::vector<ZipEntry> zip_entries(const InputFile& file);

/// The contents of an entry; their checksum is compared when the last byte is read.
std::unique_ptr<ByteSource> open_entry(const std::shared_ptr<const InputFile>& file, const ZipEntry& entry);

/// A file being written; it replaces `path` when finish() is called, and leaves it alone otherwise. Throws Error(kIo).
class OutputFile {
 public:
  explicit OutputFile(std::string path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  int64_t position() const { return position_; }
  void finish();

 private:
  [[noreturn]] void fail_with_errno(const char* what) const;

  std::string path_;
  std::string written_path_;  // beside `path_` until finish(); `path_` itself where that is no regular file
  std::FILE* file_ = nullptr;
  int64_t position_ = 0;
};

/// Writes an archive of stored entries.
class ZipWriter {
 public:
  explicit ZipWriter(OutputFile& file) : file_(file) {}
  /// An entry made of two parts. Entries and archive are limited to 4 GiB.
  void add(const std::string& name, std::string_view head, std::span<const std::byte> body);
  /// Writes the directory; nothing may be added afterwards.
  void finish();

 private:
  OutputFile& file_;
  std::string directory_;
  int64_t count_ = 0;
};

}  // namespace leadline::cli
