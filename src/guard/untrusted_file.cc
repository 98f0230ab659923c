// SPDX-License-Identifier: Apache-2.0
#include "guard/untrusted_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "io/descriptor.h"

namespace leadline::guard {
namespace {

/// -1 unless it is a regular file. O_NONBLOCK: opening a pipe must not wait for a writer.
int open_regular(const std::string& path, uint64_t* size) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file < 0) return -1;
  struct stat status{};
  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(file);
    return -1;
  }
  if (size != nullptr) *size = status.st_size < 0 ? 0 : static_cast<uint64_t>(status.st_size);
  return file;
}

ssize_t read_at(int file, void* to, size_t bytes, off_t offset) {
  ssize_t got = 0;
  do {
    got = pread(file, to, bytes, offset);
  } while (got < 0 && errno == EINTR);
  return got;
}

}  // namespace

std::optional<std::string> read_start(const std::string& path, size_t limit) {
  const Descriptor file(open_regular(path, nullptr));
  if (!file) return std::nullopt;
  std::string text;
  while (text.size() < limit) {
    char piece[16384];
    const ssize_t got =
        read_at(file.get(), piece, std::min(sizeof piece, limit - text.size()), static_cast<off_t>(text.size()));
    if (got <= 0) break;
    text.append(piece, static_cast<size_t>(got));
  }
  return text;
}

std::vector<std::string> list_folder(const std::string& path, size_t limit) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(path.c_str()), &closedir);
  if (folder == nullptr) return names;
  while (names.size() < limit) {
    const dirent* const entry = readdir(folder.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool is_folder(const std::string& path) {
  struct stat status{};
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

bool is_regular_file(const std::string& path) {
  struct stat status{};
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

std::optional<std::string> resolved(const std::string& path) {
  char buffer[PATH_MAX];
  if (realpath(path.c_str(), buffer) == nullptr) return std::nullopt;
  return std::string(buffer);
}

FileReader::FileReader(const std::string& path) : file_(open_regular(path, &size_)) {}

FileReader::~FileReader() {
  if (file_ >= 0) close(file_);
}

bool FileReader::read(uint64_t offset, void* to, size_t bytes) const {
  if (file_ < 0 || offset > size_ || bytes > size_ - offset) return false;
  size_t done = 0;
  while (done < bytes) {
    const ssize_t got = read_at(file_, static_cast<char*>(to) + done, bytes - done, static_cast<off_t>(offset + done));
    if (got <= 0) return false;
    done += static_cast<size_t>(got);
  }
  return true;
}

std::optional<std::string> FileReader::text(uint64_t offset, size_t limit) const {
  if (file_ < 0 || offset >= size_) return std::nullopt;
  std::string text(static_cast<size_t>(std::min<uint64_t>(limit + 1, size_ - offset)), '\0');
  if (!read(offset, text.data(), text.size())) return std::nullopt;
  const size_t end = text.find('\0');
  if (end == std::string::npos) return std::nullopt;
  text.resize(end);
  return text;
}

std::vector<bool> find_in_file(const std::string& path, const std::vector<std::string_view>& needles, uint64_t limit) {
  std::vector<bool> found(needles.size(), false);
  const FileReader file(path);
  if (!file.good()) return found;
  size_t longest = 1;
  for (const std::string_view needle : needles) longest = std::max(longest, needle.size());
  constexpr size_t kPiece = size_t{1} << 20;
  const uint64_t end = std::min(limit, file.size());
  std::string piece;
  for (uint64_t offset = 0; offset < end; offset += kPiece) {
    // Pieces overlap by what a needle can hang over.
    piece.resize(static_cast<size_t>(std::min<uint64_t>(kPiece + longest - 1, end - offset)));
    if (!file.read(offset, piece.data(), piece.size())) break;
    for (size_t i = 0; i < needles.size(); ++i) {
      if (!found[i]) found[i] = piece.find(needles[i]) != std::string::npos;
    }
    if (std::all_of(found.begin(), found.end(), [](bool yes) { return yes; })) break;
  }
  return found;
}

void for_each_line(std::string_view text, const std::function<void(std::string_view)>& visit) {
  while (!text.empty()) {
    const size_t size = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, size);
    if (line.ends_with('\r')) line.remove_suffix(1);
    visit(line);
    text.remove_prefix(std::min(size + 1, text.size()));
  }
}

}  // namespace leadline::guard
