// SPDX-License-Identifier: Apache-2.0
// For tests: messages, table files and SavedModel directories made by code.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "import/saved_model/crc32c.h"
#include "import/saved_model/wire.h"

namespace leadline::saved_model::testing {

inline std::string varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
  return out;
}

inline std::string little_endian(uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
  return out;
}

inline Bytes as_bytes(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

inline uint32_t masked(std::string_view text) { return masked_crc(crc32c(as_bytes(text))); }

/// A message under construction.
struct Proto {
  std::string bytes;

  Proto& number(uint32_t field, uint64_t value) {
    bytes += varint(field << 3) + varint(value);
    return *this;
  }
  Proto& text(uint32_t field, std::string_view value) {
    bytes += varint(field << 3 | 2) + varint(value.size()) + std::string(value);
    return *this;
  }
  Proto& add(uint32_t field, const Proto& value) { return text(field, value.bytes); }
  Proto& fixed32(uint32_t field, uint32_t value) {
    bytes += varint(field << 3 | 5) + little_endian(value, 4);
    return *this;
  }
  /// A map entry with a message or text as its value.
  Proto& entry(uint32_t field, std::string_view key, const Proto& value) {
    return add(field, Proto().text(1, key).add(2, value));
  }
};

inline Proto shape(std::initializer_list<int64_t> dims) {
  Proto result;
  for (const int64_t dim : dims) result.add(2, Proto().number(1, static_cast<uint64_t>(dim)));
  return result;
}

inline std::shared_ptr<WireFile> wire_file(const std::string& bytes, std::shared_ptr<Budget> budget = nullptr) {
  return std::make_shared<WireFile>("test.pb", ModelBytes::copy(as_bytes(bytes)), std::move(budget));
}

/// A table file; `compress` wraps the bytes of each data block and returns the compression byte.
class TableWriter {
 public:
  void add(const std::string& key, const std::string& value) { rows_[key] = value; }

  std::string bytes(size_t rows_per_block = 3) const {
    std::string file;
    std::vector<std::pair<std::string, std::string>> block;
    std::vector<std::pair<std::string, std::string>> index;
    const auto flush = [&] {
      if (block.empty()) return;
      index.emplace_back(block.back().first, append(file, entries(block)));
      block.clear();
    };
    for (const auto& row : rows_) {
      block.push_back(row);
      if (block.size() == rows_per_block) flush();
    }
    flush();
    std::string footer = append(file, entries({}));
    footer += append(file, entries(index));
    footer.resize(40);
    return file + footer + little_endian(0xDB4775248B80FB57ULL, 8);
  }

  /// Adds a block with its trailer; returns its handle.
  static std::string append(std::string& file, const std::string& block, char compression = 0) {
    const std::string handle = varint(file.size()) + varint(block.size());
    const std::string checked = block + compression;
    file += checked + little_endian(masked(checked), 4);
    return handle;
  }

  static std::string entries(const std::vector<std::pair<std::string, std::string>>& rows) {
    std::string block;
    std::string last;
    for (const auto& [key, value] : rows) {
      size_t shared = 0;
      while (shared < last.size() && shared < key.size() && last[shared] == key[shared]) ++shared;
      block += varint(shared) + varint(key.size() - shared) + varint(value.size()) + key.substr(shared) + value;
      last = key;
    }
    return block + little_endian(0, 4) + little_endian(1, 4);
  }

 private:
  std::map<std::string, std::string> rows_;
};

/// A directory that is removed with the object.
class TempDirectory {
 public:
  TempDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "leadline_saved_model_XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~TempDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;

  const std::string& path() const { return path_; }
  void write(const std::string& name, const std::string& bytes) const {
    const std::filesystem::path file = std::filesystem::path(path_) / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

 private:
  std::string path_;
};

/// Variables for a bundle in one data file.
class BundleWriter {
 public:
  BundleWriter() { table_.add("", Proto().number(1, 1).bytes); }

  void add(const std::string& key, uint64_t dtype, const Proto& shape_proto, const std::string& data) {
    add_raw(key, entry(dtype, shape_proto, data.size(), masked(data)), data);
  }
  /// Strings with the checksum of TensorFlow's layout.
  void add_strings(const std::string& key, const std::vector<std::string>& strings) {
    std::string lengths;
    std::string covered;
    std::string characters;
    for (const std::string& text : strings) {
      lengths += varint(text.size());
      covered += little_endian(text.size(), 4);
      characters += text;
    }
    const std::string sum = little_endian(masked(covered), 4);
    const std::string data = lengths + sum + characters;
    add_raw(key,
            entry(7, shape({static_cast<int64_t>(strings.size())}), data.size(), masked(covered + sum + characters)),
            data);
  }
  void add_raw(const std::string& key, const Proto& entry_proto, const std::string& data) {
    table_.add(key, entry_proto.bytes);
    data_ += data;
  }
  Proto entry(uint64_t dtype, const Proto& shape_proto, size_t size, uint32_t crc) const {
    return Proto().number(1, dtype).add(2, shape_proto).number(4, data_.size()).number(5, size).fixed32(6, crc);
  }

  std::string index() const { return table_.bytes(); }
  const std::string& data() const { return data_; }
  void write(const TempDirectory& directory) const {
    directory.write("variables/variables.index", index());
    directory.write("variables/variables.data-00000-of-00001", data_);
  }

 private:
  TableWriter table_;
  std::string data_;
};

}  // namespace leadline::saved_model::testing
