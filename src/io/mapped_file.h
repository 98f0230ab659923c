// SPDX-License-Identifier: Apache-2.0
// Bytes of a model: a file mapped read-only, or memory that was handed over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leadline {

/// Immutable bytes and whatever keeps them alive. Shared by a Graph and all that point into it.
class ModelBytes {
 public:
  virtual ~ModelBytes() = default;
  std::span<const std::byte> span() const noexcept { return bytes_; }
  /// Advises the system that [begin, begin+bytes) will not be read soon; resident pages of a mapped file
  /// may be dropped and come back from the file on the next access. Does nothing for other memory.
  virtual void drop_pages(const std::byte* /*begin*/, int64_t /*bytes*/) const noexcept {}

  /// Throws Error(kIo) when the bytes are not what they were: the mapped file was cut off, or its disk failed, and
  /// zeros stand for the rest; or its size or time of change is another. To be called before a result that depends on
  /// the bytes leaves. `cheap`: looks at size and time only once in a while.
  virtual void require_intact(bool /*cheap*/ = false) const {}
  /// Whether the bytes could change: those of a mapped file.
  virtual bool may_change() const noexcept { return false; }

  /// Maps a file read-only. Throws Error(kIo) with the path and the system's reason. A program that changes the file
  /// must replace it (rename) and not write into it: the mapping shows the file, not a copy.
  static std::shared_ptr<ModelBytes> map_file(const std::string& path);
  /// Borrows memory that `owner` keeps alive and unchanged.
  static std::shared_ptr<ModelBytes> borrow(std::span<const std::byte> bytes, std::shared_ptr<const void> owner);
  /// Memory of its own that `fill` writes, aligned to kAlignment. Large blocks come straight from the system and go
  /// straight back. Throws BudgetError when the system refuses.
  using Fill = std::function<void(std::span<std::byte>)>;
  static std::shared_ptr<ModelBytes> write(int64_t bytes, const Fill& fill);
  static std::shared_ptr<ModelBytes> copy(std::span<const std::byte> bytes);

 protected:
  std::span<const std::byte> bytes_;
};

/// Calls parse(text) with the contents of a file that somebody wrote; its errors begin with the path. Throws Error(kIo)
/// when the file cannot be read, or changed meanwhile.
void parse_file(const std::string& path, const std::function<void(std::string_view)>& parse);

/// Keeps the files that this thread maps while it lives.
class MappedFiles {
 public:
  MappedFiles();
  ~MappedFiles();
  MappedFiles(const MappedFiles&) = delete;
  MappedFiles& operator=(const MappedFiles&) = delete;
  std::vector<std::shared_ptr<const ModelBytes>> take() { return std::move(files_); }

 private:
  friend class ModelBytes;
  MappedFiles* const before_;
  std::vector<std::shared_ptr<const ModelBytes>> files_;
};

}  // namespace leadline
