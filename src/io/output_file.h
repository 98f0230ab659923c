// SPDX-License-Identifier: Apache-2.0
// Files that appear whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>

namespace leadline {

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
  std::string written_path_;  // beside `path_` until finish(); `path_` itself where that is not a regular file
  std::FILE* file_ = nullptr;
  int64_t position_ = 0;
};

}  // namespace leadline
