// SPDX-License-Identifier: Apache-2.0
#include "io/zip_writer.h"

#include <array>
#include <bit>
#include <cstring>

#include "io/zip.h"
#include "io/zip_format.h"
#include "leadline/error.h"

namespace leadline {
namespace {

using zip::kDirectoryEnd;
using zip::kDirectoryEntry;
using zip::kLocalHeader;
constexpr int64_t kLimit = 0xFFFFFFFE;  // larger numbers would need zip64

template <typename T>
void append(std::string& out, T value) {
  std::array<char, sizeof(T)> bytes;
  std::memcpy(bytes.data(), &value, sizeof(T));
  out.append(bytes.data(), bytes.size());
}

}  // namespace

void ZipWriter::add(const std::string& name, std::string_view head, std::span<const std::byte> body) {
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

}  // namespace leadline
