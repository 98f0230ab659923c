// SPDX-License-Identifier: Apache-2.0
// Each element starts with a tag byte; its two low bits say literal (0) or copy with an offset of 11, 16 or 32 bits.
#include "import/saved_model/snappy.h"

#include <cstdint>

#include "core/error.h"

namespace leadline::saved_model {
namespace {

class Decoder {
 public:
  Decoder(std::span<const std::byte> data, const std::string& what) : data_(data), what_(what) {}

  uint64_t size(size_t limit) {
    uint64_t size = 0;
    for (unsigned shift = 0;; shift += 7) {
      check(shift <= 28, "its length is damaged");
      const uint64_t byte = number(1);
      size |= (byte & 0x7F) << shift;
      if (byte < 0x80) break;
    }
    // The densest element makes 64 bytes of 3.
    check(size <= limit && size / 32 <= data_.size(), "it is too large");
    return size;
  }

  std::vector<std::byte> run(size_t limit) {
    const uint64_t whole = size(limit);
    out_.reserve(whole);
    while (at_ != data_.size()) element(whole);
    check(out_.size() == whole, "it ends too early");
    return std::move(out_);
  }

 private:
  void element(uint64_t size) {
    const uint64_t tag = number(1);
    if ((tag & 3) == 0) {
      uint64_t length = tag >> 2;
      if (length >= 60) length = number(length - 59);
      ++length;
      check(length <= data_.size() - at_ && length <= size - out_.size(), "a literal is cut off");
      out_.insert(out_.end(), data_.begin() + static_cast<ptrdiff_t>(at_),
                  data_.begin() + static_cast<ptrdiff_t>(at_ + length));
      at_ += length;
      return;
    }
    uint64_t length = (tag >> 2) + 1;
    uint64_t offset = 0;
    if ((tag & 3) == 1) {
      length = ((tag >> 2) & 7) + 4;
      offset = (tag >> 5) << 8 | number(1);
    } else {
      offset = number((tag & 3) == 2 ? 2 : 4);
    }
    check(offset != 0 && offset <= out_.size() && length <= size - out_.size(), "a copy is out of range");
    // One by one: a copy may overlap what it writes.
    for (uint64_t i = 0; i < length; ++i) out_.push_back(out_[out_.size() - offset]);
  }

  uint64_t number(uint64_t bytes) {
    check(bytes <= data_.size() - at_, "it is cut off");
    uint64_t value = 0;
    for (uint64_t i = 0; i < bytes; ++i) value |= static_cast<uint64_t>(data_[at_ + i]) << (8 * i);
    at_ += bytes;
    return value;
  }

  void check(bool ok, const char* problem) const {
    require(ok, ErrorCode::kInvalidModel, "{}: the compressed block is damaged at byte {}: {}", what_, at_, problem);
  }

  std::span<const std::byte> data_;
  const std::string& what_;
  size_t at_ = 0;
  std::vector<std::byte> out_;
};

}  // namespace

size_t snappy_size(std::span<const std::byte> data, size_t limit, const std::string& what) {
  return static_cast<size_t>(Decoder(data, what).size(limit));
}

std::vector<std::byte> snappy_decode(std::span<const std::byte> data, size_t limit, const std::string& what) {
  return Decoder(data, what).run(limit);
}

}  // namespace leadline::saved_model
