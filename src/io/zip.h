// SPDX-License-Identifier: Apache-2.0
// Reading zip archives (.npz, .keras): stored and deflated entries, zip64. Archives are untrusted: every offset and
// size is checked against the file before it is used, a size that deflate cannot reach is refused, and what an entry is
// unpacked into is charged to a Budget.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/byte_source.h"
#include "io/input_file.h"
#include "leadline/budget.h"

namespace leadline {

/// The checksum of zip entries: that of what came before and `bytes`; 0 to begin with.
uint32_t update_crc(uint32_t crc, std::span<const std::byte> bytes);

struct ZipEntry {
  std::string name;
  bool deflated = false;
  uint32_t crc = 0;
  int64_t compressed_bytes = 0;
  int64_t bytes = 0;
  int64_t header_offset = 0;
};

/// Whether the file starts like a zip archive.
bool is_zip(const RandomAccess& file);

/// The directory of an archive. Throws Error(kIo) when it is damaged or uses something else than store and deflate.
std::vector<ZipEntry> zip_entries(const RandomAccess& file);

/// The entry called `name`, or null. Throws Error(kIo) when there are two: readers would disagree which one counts.
const ZipEntry* find_entry(const RandomAccess& file, std::span<const ZipEntry> entries, std::string_view name);

/// The contents of an entry; their checksum is compared when the last byte is read.
std::unique_ptr<ByteSource> open_entry(const std::shared_ptr<const RandomAccess>& file, const ZipEntry& entry);

/// The contents of an entry at once, checksum compared: a view of the archive where the entry is stored and the archive
/// is in memory, else memory charged to `budget`. Throws Error(kIo) or BudgetError.
std::shared_ptr<const ModelBytes> entry_bytes(const std::shared_ptr<const RandomAccess>& file, const ZipEntry& entry,
                                              const std::shared_ptr<Budget>& budget);

/// The contents of a small entry (a JSON text). Throws Error(kIo) when it has more than `limit` bytes.
std::string entry_text(const std::shared_ptr<const RandomAccess>& file, const ZipEntry& entry, int64_t limit);

}  // namespace leadline
