// SPDX-License-Identifier: Apache-2.0
// The sources of a model's bytes.
#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <new>
#include <system_error>
#include <utility>

#include "base/buffer.h"
#include "base/error.h"

namespace leadline {
namespace {

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() {
    if (fd_ >= 0) close(fd_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const noexcept { return fd_; }

 private:
  int fd_;
};

[[noreturn]] void fail_io(const std::string& path, const std::string& reason) {
  fail(ErrorCode::kIo, "cannot read '{}': {}", path, reason);
}

[[noreturn]] void fail_errno(const std::string& path, int error) {
  fail_io(path, std::generic_category().message(error));
}

size_t page_size() noexcept {
  static const auto size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

class MappedBytes final : public ModelBytes {
 public:
  MappedBytes(void* data, size_t size) { bytes_ = {static_cast<const std::byte*>(data), size}; }
  ~MappedBytes() override { munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size()); }

  void drop_pages(const std::byte* begin, int64_t bytes) const noexcept override {
    if (bytes <= 0) return;
    // As numbers: `begin` may be any pointer, and comparing pointers into different objects is undefined.
    const auto first = reinterpret_cast<uintptr_t>(bytes_.data());
    const auto from = reinterpret_cast<uintptr_t>(begin);
    if (from < first || from - first >= bytes_.size()) return;
    size_t offset = from - first;
    size_t end =
        static_cast<uint64_t>(bytes) < bytes_.size() - offset ? offset + static_cast<size_t>(bytes) : bytes_.size();
    // The mapping starts on a page. Nothing follows the file's end in its last page, so that page is whole.
    const size_t page = page_size();
    offset = (offset + page - 1) / page * page;
    if (end != bytes_.size()) end = end / page * page;
    // The pages are clean (the mapping cannot be written), so nothing is lost.
    if (offset < end) madvise(const_cast<std::byte*>(bytes_.data()) + offset, end - offset, MADV_DONTNEED);
  }
};

class BorrowedBytes final : public ModelBytes {
 public:
  BorrowedBytes(std::span<const std::byte> bytes, std::shared_ptr<const void> owner) : owner_(std::move(owner)) {
    bytes_ = bytes;
  }

 private:
  std::shared_ptr<const void> owner_;
};

class OwnBytes final : public ModelBytes {
 public:
  explicit OwnBytes(int64_t bytes) {
    try {
      // Counted by whoever has the model, with what it has besides.
      memory_ = Buffer(Budget::with_limit(std::numeric_limits<int64_t>::max()), bytes, MemoryCategory::kModelFile);
    } catch (const BudgetError&) {
      throw BudgetError(fmt::format("the system refused {} for the bytes of a model", format_bytes(bytes)), bytes,
                        read_memory_limits().available());
    }
    bytes_ = {memory_.data(), static_cast<size_t>(bytes)};
  }
  std::span<std::byte> writable() { return {memory_.data(), bytes_.size()}; }

 private:
  Buffer memory_;
};

}  // namespace

std::shared_ptr<ModelBytes> ModelBytes::map_file(const std::string& path) {
  if (path.find('\0') != std::string::npos) fail_io(path.c_str(), "the path contains a zero byte");
  // O_NONBLOCK: opening a pipe nobody writes to would wait for ever; files do not heed it.
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) fail_errno(path, errno);
  struct stat info{};
  if (fstat(file.get(), &info) != 0) fail_errno(path, errno);
  if (S_ISDIR(info.st_mode)) fail_io(path, "it is a directory, not a file");
  if (!S_ISREG(info.st_mode)) fail_io(path, "it is not a regular file");
  if (info.st_size <= 0) fail_io(path, "the file is empty");
  const auto size = static_cast<size_t>(info.st_size);
  void* const data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED) fail_errno(path, errno);
  try {
    return std::make_shared<MappedBytes>(data, size);
  } catch (...) {
    munmap(data, size);
    throw;
  }
}

std::shared_ptr<ModelBytes> ModelBytes::borrow(std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  return std::make_shared<BorrowedBytes>(bytes, std::move(owner));
}

std::shared_ptr<ModelBytes> ModelBytes::write(int64_t bytes, const Fill& fill) {
  auto result = std::make_shared<OwnBytes>(bytes);
  fill(result->writable());
  return result;
}

std::shared_ptr<ModelBytes> ModelBytes::copy(std::span<const std::byte> bytes) {
  return write(static_cast<int64_t>(bytes.size()), [&](std::span<std::byte> out) {
    if (!bytes.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
  });
}

}  // namespace leadline
