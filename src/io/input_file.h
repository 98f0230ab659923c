// SPDX-License-Identifier: Apache-2.0
// Bytes of known size that can be read at any place: files, and memory that stands for one.
#pragma once

#include <fmt/core.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "core/error.h"
#include "io/mapped_file.h"

namespace leadline {

/// Bytes of known size that can be read at any place; `path` names them in messages.
class RandomAccess {
 public:
  virtual ~RandomAccess() = default;
  const std::string& path() const { return path_; }
  int64_t size() const { return size_; }
  /// Fills `out` from `offset`. Throws Error(kIo) when the bytes end before.
  virtual void read_at(int64_t offset, std::span<std::byte> out) const = 0;
  /// The same bytes in memory, where they are; null elsewhere.
  virtual std::shared_ptr<const ModelBytes> memory() const { return nullptr; }

 protected:
  std::string path_;
  int64_t size_ = 0;
};

/// A file opened for reading at any place. Throws Error(kIo).
class InputFile final : public RandomAccess {
 public:
  explicit InputFile(std::string path);
  ~InputFile() override;
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  void read_at(int64_t offset, std::span<std::byte> out) const override;

 private:
  int descriptor_ = -1;
};

/// Bytes in memory: a mapped file, or memory that was handed over.
class InputMemory final : public RandomAccess {
 public:
  InputMemory(std::string path, std::shared_ptr<const ModelBytes> bytes);
  void read_at(int64_t offset, std::span<std::byte> out) const override;
  std::shared_ptr<const ModelBytes> memory() const override { return bytes_; }

 private:
  std::shared_ptr<const ModelBytes> bytes_;
};

/// Throws Error(kIo) that names the file.
template <typename... Args>
[[noreturn]] void bad_file(const RandomAccess& file, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(ErrorCode::kIo, fmt::format("{}: {}", file.path(), fmt::format(format, std::forward<Args>(args)...)));
}

}  // namespace leadline
