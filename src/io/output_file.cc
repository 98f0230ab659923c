// SPDX-License-Identifier: Apache-2.0
#include "io/output_file.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "leadline/error.h"

namespace leadline {

OutputFile::OutputFile(std::string path) : path_(std::move(path)), written_path_(path_) {
  struct stat info{};
  const bool replace = ::stat(path_.c_str(), &info) != 0 || S_ISREG(info.st_mode);
  if (replace) written_path_ += fmt::format(".{}.part", ::getpid());
  file_ = std::fopen(written_path_.c_str(), "wbe");
  if (file_ == nullptr) fail_with_errno("write");
}

OutputFile::~OutputFile() {
  if (file_ == nullptr) return;
  std::fclose(file_);
  if (written_path_ != path_) std::remove(written_path_.c_str());
}

void OutputFile::fail_with_errno(const char* what) const {
  throw Error(ErrorCode::kIo, fmt::format("cannot {} {}: {}", what, path_, std::strerror(errno)));
}

void OutputFile::write(std::span<const std::byte> bytes) {
  if (!bytes.empty() && std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) fail_with_errno("write");
  position_ += static_cast<int64_t>(bytes.size());
}

void OutputFile::write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }

void OutputFile::finish() {
  if (std::fflush(file_) != 0) fail_with_errno("write");
  const int closed = std::fclose(std::exchange(file_, nullptr));
  if (closed != 0 || (written_path_ != path_ && std::rename(written_path_.c_str(), path_.c_str()) != 0)) {
    const int problem = errno;
    if (written_path_ != path_) std::remove(written_path_.c_str());
    errno = problem;
    fail_with_errno("write");
  }
}

}  // namespace leadline
