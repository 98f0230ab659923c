// SPDX-License-Identifier: Apache-2.0
// Words of the HDF5 format that all its readers share. Invariant: nothing is read that was not checked to lie in the
// file, and no structure can make a reader work longer than in proportion to the file (Allowance).
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string_view>

#include "core/error.h"

namespace leadline::hdf5 {

/// An address that points nowhere (all bits set, whatever the size of addresses is in the file).
inline constexpr uint64_t kUndefined = ~uint64_t{0};

[[noreturn]] inline void damaged(const char* what) {
  fail(ErrorCode::kInvalidModel, "the HDF5 file is damaged: {}", what);
}

/// The file from its superblock on, and what that says about the sizes of numbers.
struct FileBytes {
  std::span<const std::byte> bytes;
  int offset_size = 8;
  int length_size = 8;
  bool verify_checksums = true;

  /// `size` bytes at `address`.
  std::span<const std::byte> at(uint64_t address, uint64_t size, const char* what) const {
    if (address > bytes.size() || size > bytes.size() - address) damaged(what);
    return bytes.subspan(static_cast<size_t>(address), static_cast<size_t>(size));
  }
  /// Everything from `address` on.
  std::span<const std::byte> from(uint64_t address, const char* what) const {
    if (address >= bytes.size()) damaged(what);
    return bytes.subspan(static_cast<size_t>(address));
  }
};

/// Reads numbers one after the other; `what` names the structure in messages.
class Cursor {
 public:
  Cursor(const FileBytes& file, std::span<const std::byte> bytes, const char* what)
      : file_(file), bytes_(bytes), what_(what) {}

  std::span<const std::byte> take(uint64_t size) {
    if (size > bytes_.size() - position_) damaged(what_);
    const std::span<const std::byte> part = bytes_.subspan(position_, static_cast<size_t>(size));
    position_ += static_cast<size_t>(size);
    return part;
  }
  void skip(uint64_t size) { take(size); }
  /// A little-endian number of `size` bytes, 0 to 8.
  uint64_t number(int size) {
    uint64_t value = 0;
    const std::span<const std::byte> part = take(static_cast<uint64_t>(size));
    for (size_t i = part.size(); i-- > 0;) value = value << 8U | std::to_integer<uint64_t>(part[i]);
    return value;
  }
  uint8_t u8() { return static_cast<uint8_t>(number(1)); }
  uint16_t u16() { return static_cast<uint16_t>(number(2)); }
  uint32_t u32() { return static_cast<uint32_t>(number(4)); }
  uint64_t u64() { return number(8); }
  uint64_t length() { return number(file_.length_size); }
  uint64_t address() {
    const uint64_t value = number(file_.offset_size);
    const bool undefined = file_.offset_size < 8 && value == (uint64_t{1} << (8 * file_.offset_size)) - 1;
    return undefined ? kUndefined : value;
  }
  void expect(std::string_view signature) {
    const std::span<const std::byte> part = take(signature.size());
    if (std::string_view(reinterpret_cast<const char*>(part.data()), part.size()) != signature) damaged(what_);
  }
  void expect_version(int least, int most) {
    const int version = u8();
    if (version < least || version > most) {
      fail(ErrorCode::kUnsupported, "{}: version {} is not known ({} to {} are)", what_, version, least, most);
    }
    version_ = version;
  }
  int version() const { return version_; }
  size_t position() const { return position_; }
  size_t left() const { return bytes_.size() - position_; }
  /// Moves on to a multiple of 8 bytes from the start.
  void pad_to_8() { skip((8 - position_ % 8) % 8); }
  const char* what() const { return what_; }

 private:
  const FileBytes& file_;
  std::span<const std::byte> bytes_;
  const char* what_;
  size_t position_ = 0;
  int version_ = 0;
};

/// What one request may still read. Parts of a file that point at the same bytes again and again would otherwise make
/// a small file take forever; in a file that is right every byte belongs to one structure.
class Allowance {
 public:
  explicit Allowance(uint64_t bytes) : left_(bytes) {}
  void take(uint64_t bytes, const char* what) {
    if (bytes > left_) damaged(what);
    left_ -= bytes;
  }

 private:
  uint64_t left_;
};

/// Addresses of nodes seen; a tree that reaches one twice is none.
class Visited {
 public:
  void enter(uint64_t address, const char* what) {
    if (!seen_.insert(address).second) damaged(what);
  }

 private:
  std::set<uint64_t> seen_;
};

/// Bytes needed for numbers up to `limit`.
inline int encoded_size(uint64_t limit) {
  int size = 1;
  while (limit > 0xFF) {
    limit >>= 8U;
    ++size;
  }
  return size;
}

/// Bob Jenkins' lookup3 hash, the checksum of all newer structures.
uint32_t lookup3(std::span<const std::byte> bytes);
/// Compares the checksum that follows `covered` bytes of `bytes`.
void verify_checksum(const FileBytes& file, std::span<const std::byte> bytes, size_t covered, const char* what);

}  // namespace leadline::hdf5
