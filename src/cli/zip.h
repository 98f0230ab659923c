// SPDX-License-Identifier: Apache-2.0
// Writing files that appear whole or not at all, and .npz archives of stored entries. Reading them: base/zip.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>

namespace leadline::cli {

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
