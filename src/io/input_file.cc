// SPDX-License-Identifier: Apache-2.0
#include "io/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace leadline {

InputFile::InputFile(std::string path) {
  path_ = std::move(path);
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat info{};
  if (descriptor_ < 0 || ::fstat(descriptor_, &info) != 0) {
    const int problem = errno;
    if (descriptor_ >= 0) ::close(descriptor_);
    throw Error(ErrorCode::kIo, fmt::format("cannot open {}: {}", path_, std::strerror(problem)));
  }
  if (!S_ISREG(info.st_mode)) {
    ::close(descriptor_);
    throw Error(ErrorCode::kIo, fmt::format("{} is not a regular file", path_));
  }
  size_ = info.st_size;
}

InputFile::~InputFile() { ::close(descriptor_); }

void InputFile::read_at(int64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t got = ::pread(descriptor_, out.data(), out.size(), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) bad_file(*this, "cannot be read: {}", std::strerror(errno));
    if (got == 0) bad_file(*this, "the file is cut off: {} bytes are missing at {}", out.size(), offset);
    out = out.subspan(static_cast<size_t>(got));
    offset += got;
  }
}

InputMemory::InputMemory(std::string path, std::shared_ptr<const ModelBytes> bytes) : bytes_(std::move(bytes)) {
  path_ = std::move(path);
  size_ = static_cast<int64_t>(bytes_->span().size());
}

void InputMemory::read_at(int64_t offset, std::span<std::byte> out) const {
  const std::span<const std::byte> all = bytes_->span();
  if (offset < 0 || offset > size_ || out.size() > all.size() - static_cast<size_t>(offset)) {
    bad_file(*this, "the file is cut off: {} bytes are missing at {}", out.size(), offset);
  }
  if (!out.empty()) std::memcpy(out.data(), all.data() + offset, out.size());
  bytes_->require_intact(true);
}

}  // namespace leadline
