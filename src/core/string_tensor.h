// SPDX-License-Identifier: Apache-2.0
// The bytes of a string tensor, as the .tflite format lays them out (little-endian):
//   int32 count, int32 offset[count + 1] from the start of the buffer, then the characters.
// Contents come from files and users: check with string_tensor_problem() before reading.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace leadline {

/// Why `bytes` does not hold exactly `count` strings; empty when it does. An empty buffer holds no strings.
std::string string_tensor_problem(std::span<const std::byte> bytes, int64_t count);

/// Bytes that `count` strings of `characters` bytes in all take; nothing when an offset would not fit.
std::optional<int64_t> string_tensor_bytes(int64_t count, int64_t characters);

/// Reads a buffer that string_tensor_problem() found to be right. Does not own it.
class StringTensorReader {
 public:
  explicit StringTensorReader(std::span<const std::byte> bytes);

  int64_t size() const noexcept { return count_; }
  /// String `i`, 0 <= i < size().
  std::string_view operator[](int64_t i) const noexcept;

 private:
  const std::byte* data_ = nullptr;
  int64_t count_ = 0;
};

/// Writes strings one after the other into a buffer of string_tensor_bytes() bytes. Strings beyond the
/// promised count or size are dropped, never written outside.
class StringTensorWriter {
 public:
  StringTensorWriter(std::span<std::byte> bytes, int64_t count);

  void add(std::string_view text) noexcept;

 private:
  void put_offset(int64_t index, int64_t offset) noexcept;

  std::span<std::byte> bytes_;
  int64_t count_ = 0;
  int64_t written_ = 0;
  int64_t position_ = 0;
};

}  // namespace leadline
