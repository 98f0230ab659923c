// SPDX-License-Identifier: Apache-2.0
#include "io/byte_source.h"

#include <utility>

namespace leadline {
namespace {

class FileSource final : public ByteSource {
 public:
  FileSource(std::shared_ptr<const RandomAccess> file, int64_t offset, int64_t size)
      : file_(std::move(file)), offset_(offset), remaining_(size) {}
  void read(std::span<std::byte> out) override {
    const auto size = static_cast<int64_t>(out.size());
    if (size > remaining_) bad_file(*file_, "{} bytes expected, {} left: the file is cut off", size, remaining_);
    file_->read_at(offset_, out);
    offset_ += size;
    remaining_ -= size;
  }
  int64_t remaining() const override { return remaining_; }

 private:
  std::shared_ptr<const RandomAccess> file_;
  int64_t offset_;
  int64_t remaining_;
};

}  // namespace

std::unique_ptr<ByteSource> file_source(std::shared_ptr<const RandomAccess> file, int64_t offset, int64_t size) {
  return std::make_unique<FileSource>(std::move(file), offset, size);
}

}  // namespace leadline
