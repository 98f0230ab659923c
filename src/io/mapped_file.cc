// SPDX-License-Identifier: Apache-2.0
// The sources of a model's bytes.
#include "io/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <limits>
#include <new>
#include <optional>
#include <system_error>
#include <utility>

#include "core/buffer.h"
#include "core/error.h"
#include "io/descriptor.h"
#include "io/mapping_watch.h"

namespace leadline {
namespace {

[[noreturn]] void fail_io(const std::string& path, const std::string& reason) {
  fail(ErrorCode::kIo, "Could not open '{}': {}", path, reason);  // LiteRT's words, which programs look for
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
  /// Takes the mapping over, unless it throws.
  MappedBytes(void* data, const struct stat& file, const std::string& path)
      : path_(path), file_(file), watch_(std::in_place, data, static_cast<size_t>(file.st_size)) {
    bytes_ = {static_cast<const std::byte*>(data), static_cast<size_t>(file.st_size)};
  }
  ~MappedBytes() override {
    watch_.reset();
    munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  }

  bool may_change() const noexcept override { return true; }
  void require_intact(bool cheap) const override {
    if (!watch_->damaged() && !(cheap ? seen_to_change() : changed())) return;
    fail(
        ErrorCode::kIo,
        "'{}' changed while it was in use: part of it can no longer be read. Replace files that are in use by renaming "
        "new ones over them, never by writing into them; then load the new file",
        path_);
  }

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

 private:
  /// The end of the file may have moved within a page, which raises no signal: the rest of the page is zeros then.
  /// A file that was renamed or replaced must not be changed through this path.
  bool changed() const {
    struct stat now{};
    if (stat(path_.c_str(), &now) != 0 || now.st_ino != file_.st_ino || now.st_dev != file_.st_dev) return false;
    return now.st_size != file_.st_size || now.st_mtim.tv_sec != file_.st_mtim.tv_sec ||
           now.st_mtim.tv_nsec != file_.st_mtim.tv_nsec;
  }

  /// The same for runs of microseconds: once per tick of the coarse clock, which costs no system call.
  bool seen_to_change() const {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    const int64_t tick = int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
    return looked_.exchange(tick, std::memory_order_relaxed) != tick && changed();
  }

  const std::string path_;
  const struct stat file_;
  std::optional<MappingWatch> watch_;
  mutable std::atomic<int64_t> looked_ = 0;
};

thread_local MappedFiles* current_files = nullptr;

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
      // Counted by the owner of the model, with what else it has.
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
  // O_NONBLOCK: opening a pipe without a writer would wait for ever; files ignore it.
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) fail_errno(path, errno);
  struct stat info{};
  if (fstat(file.get(), &info) != 0) fail_errno(path, errno);
  if (S_ISDIR(info.st_mode)) fail_io(path, "it is a directory, not a file");
  if (!S_ISREG(info.st_mode)) fail_io(path, "it is not a regular file");
  if (info.st_size <= 0) fail_io(path, "the file is empty");
  const auto size = static_cast<size_t>(info.st_size);
  void* const data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED) fail_errno(path, errno);
  std::shared_ptr<MappedBytes> mapped;
  try {
    mapped = std::make_shared<MappedBytes>(data, info, path);
  } catch (...) {
    munmap(data, size);
    throw;
  }
  if (current_files != nullptr) current_files->files_.push_back(mapped);
  return mapped;
}

MappedFiles::MappedFiles() : before_(current_files) { current_files = this; }
MappedFiles::~MappedFiles() { current_files = before_; }

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

void parse_file(const std::string& path, const std::function<void(std::string_view)>& parse) {
  const std::shared_ptr<ModelBytes> file = ModelBytes::map_file(path);
  const std::span<const std::byte> bytes = file->span();
  try {
    parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  } catch (const Error& error) {
    file->require_intact();
    if (error.code() == ErrorCode::kOutOfMemory) throw;
    throw Error(error.code(), fmt::format("{}: {}", path, error.what()));
  }
  file->require_intact();
}

}  // namespace leadline
