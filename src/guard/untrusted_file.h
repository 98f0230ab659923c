// SPDX-License-Identifier: Apache-2.0
// Reading files and folders that anybody may have put there: pipes, devices, endless files, folders of a million
// entries and loops of links end in "nothing" or in a bounded part, never in a hang.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace leadline::guard {

/// At most `limit` bytes from the start of a regular file; nothing for anything else.
std::optional<std::string> read_start(const std::string& path, size_t limit);

/// Names in a folder, sorted, at most `limit`; none when it cannot be read.
std::vector<std::string> list_folder(const std::string& path, size_t limit = 20000);

bool is_folder(const std::string& path);
bool is_regular_file(const std::string& path);
/// The path without links, or nothing when it leads nowhere.
std::optional<std::string> resolved(const std::string& path);

/// A regular file that is read in pieces.
class FileReader {
 public:
  explicit FileReader(const std::string& path);
  ~FileReader();
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;

  bool good() const { return file_ >= 0; }
  uint64_t size() const { return size_; }
  /// Exactly `bytes` from `offset`, or false.
  bool read(uint64_t offset, void* to, size_t bytes) const;
  /// The text at `offset` up to its zero byte; nothing when it is longer than `limit`.
  std::optional<std::string> text(uint64_t offset, size_t limit = 255) const;

 private:
  uint64_t size_ = 0;  // before file_, whose opening sets it
  int file_ = -1;
};

/// Which of `needles` occur in the first `limit` bytes of the file, one answer each.
std::vector<bool> find_in_file(const std::string& path, const std::vector<std::string_view>& needles, uint64_t limit);

/// Calls `visit` for each line without its end.
void for_each_line(std::string_view text, const std::function<void(std::string_view)>& visit);

}  // namespace leadline::guard
