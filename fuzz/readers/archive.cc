// SPDX-License-Identifier: Apache-2.0
#include "readers/archive.h"

#include <zlib.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

namespace leadline::fuzz {
namespace {

uint32_t crc_of(std::string_view data) {
  return static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(data.data()), data.size()));
}

Bytef* zlib_bytes(std::string_view text) { return reinterpret_cast<Bytef*>(const_cast<char*>(text.data())); }

std::string deflated(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = zlib_bytes(text);
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = zlib_bytes(out);
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

/// At most this many bytes of what `packed` holds; damage ends it early.
std::string inflated(std::string_view packed, size_t most) {
  z_stream stream{};
  inflateInit2(&stream, -MAX_WBITS);
  std::string out(most, '\0');
  stream.next_in = zlib_bytes(packed);
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = zlib_bytes(out);
  stream.avail_out = static_cast<uInt>(out.size());
  inflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  inflateEnd(&stream);
  return out;
}

template <typename T>
std::optional<T> get(const std::string& bytes, size_t at) {
  if (at > bytes.size() || sizeof(T) > bytes.size() - at) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

/// `at` is where the directory describes the entry.
void repair_entry(std::string& bytes, size_t at) {
  const auto packed = get<uint32_t>(bytes, at + 20);
  const auto size = get<uint32_t>(bytes, at + 24);
  const auto local = get<uint32_t>(bytes, at + 42);
  if (!local) return;
  const auto name = get<uint16_t>(bytes, size_t{*local} + 26);
  const auto extra = get<uint16_t>(bytes, size_t{*local} + 28);
  if (!extra) return;
  const size_t start = size_t{*local} + 30 + *name + *extra;
  if (start > bytes.size() || *packed > bytes.size() - start || *size > (1U << 20)) return;
  const std::string_view data = std::string_view(bytes).substr(start, *packed);
  const uint32_t crc = crc_of(get<uint16_t>(bytes, at + 10) == 8 ? inflated(data, *size) : std::string(data));
  std::memcpy(bytes.data() + at + 16, &crc, sizeof crc);
  std::memcpy(bytes.data() + *local + 14, &crc, sizeof crc);
}

}  // namespace

std::string zip(const Entries& entries, bool deflate) {
  std::string out;
  std::string directory;
  for (const auto& [name, text] : entries) {
    const std::string data = deflate ? deflated(text) : text;
    std::string common;
    put<uint32_t>(common, 20);
    put<uint16_t>(common, deflate ? 8 : 0);
    put<uint32_t>(common, 0);
    put<uint32_t>(common, crc_of(text));
    put<uint32_t>(common, static_cast<uint32_t>(data.size()));
    put<uint32_t>(common, static_cast<uint32_t>(text.size()));
    put<uint32_t>(common, static_cast<uint32_t>(name.size()));
    directory += std::string("PK\1\2\x14\0", 6) + common + std::string(10, '\0');
    put<uint32_t>(directory, static_cast<uint32_t>(out.size()));
    directory += name;
    out += "PK\3\4" + common + name + data;
  }
  std::string end("PK\5\6\0\0\0\0", 8);
  put<uint16_t>(end, static_cast<uint16_t>(entries.size()));
  put<uint16_t>(end, static_cast<uint16_t>(entries.size()));
  put<uint32_t>(end, static_cast<uint32_t>(directory.size()));
  put<uint32_t>(end, static_cast<uint32_t>(out.size()));
  return out + directory + end + std::string(2, '\0');
}

void repair_zip(std::string& bytes) {
  constexpr std::string_view kEntry("PK\1\2", 4);
  for (size_t at = bytes.find(kEntry); at != std::string::npos; at = bytes.find(kEntry, at + 4)) {
    repair_entry(bytes, at);
  }
}

}  // namespace leadline::fuzz
