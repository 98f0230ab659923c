// SPDX-License-Identifier: Apache-2.0
// Writing .npz archives of stored entries. Reading them: io/zip.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "io/output_file.h"

namespace leadline {

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

}  // namespace leadline
