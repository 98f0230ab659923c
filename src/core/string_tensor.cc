// SPDX-License-Identifier: Apache-2.0
// Reading, checking and writing the buffers of string tensors.
#include "core/string_tensor.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "core/work.h"

namespace leadline {
namespace {

static_assert(std::endian::native == std::endian::little, "string buffers are read and written in place");

constexpr int64_t kWord = sizeof(int32_t);

int64_t load_word(const std::byte* data, int64_t index) {
  int32_t value = 0;  // buffers inside a file need not be aligned
  std::memcpy(&value, data + index * kWord, sizeof(value));
  return value;
}

/// Where the characters start; fits in int64 for every count below 2^60.
int64_t header_bytes(int64_t count) { return (count + 2) * kWord; }

}  // namespace

std::string string_tensor_problem(std::span<const std::byte> bytes, int64_t count) {
  if (bytes.empty() && count == 0) return {};
  const auto size = static_cast<int64_t>(bytes.size());
  if (size < 2 * kWord) return fmt::format("a string buffer of {} bytes is too short for its header", size);
  const int64_t stored = load_word(bytes.data(), 0);
  if (stored != count) return fmt::format("a string buffer holds {} strings, expected {}", stored, count);
  if (header_bytes(count) > size) {
    return fmt::format("a string buffer of {} bytes is too short for the offsets of {} strings", size, count);
  }
  int64_t previous = header_bytes(count);
  PacedCheck check;
  for (int64_t i = 0; i <= count; ++i) {
    check.count(1);
    const int64_t offset = load_word(bytes.data(), i + 1);
    if (offset < previous || offset > size) {
      return fmt::format("string offset {} is {}, expected {} to {}", i, offset, previous, size);
    }
    previous = offset;
  }
  return {};
}

std::optional<int64_t> string_tensor_bytes(int64_t count, int64_t characters) {
  constexpr int64_t kLargest = std::numeric_limits<int32_t>::max();
  if (count < 0 || characters < 0 || count > kLargest || characters > kLargest) return std::nullopt;
  const int64_t total = header_bytes(count) + characters;
  if (total > kLargest) return std::nullopt;
  return total;
}

StringTensorReader::StringTensorReader(std::span<const std::byte> bytes)
    : data_(bytes.data()), count_(bytes.empty() ? 0 : load_word(bytes.data(), 0)) {}

std::string_view StringTensorReader::operator[](int64_t i) const noexcept {
  const int64_t begin = load_word(data_, i + 1);
  const int64_t end = load_word(data_, i + 2);
  // The offsets were checked; only those of a file that was cut off meanwhile can be out of order, as zeros.
  return {reinterpret_cast<const char*>(data_) + begin, static_cast<size_t>(std::max<int64_t>(end - begin, 0))};
}

StringTensorWriter::StringTensorWriter(std::span<std::byte> bytes, int64_t count)
    : bytes_(bytes), count_(count), position_(header_bytes(count)) {
  if (position_ > static_cast<int64_t>(bytes_.size())) {
    count_ = 0;
    return;
  }
  const auto stored = static_cast<int32_t>(count_);
  std::memcpy(bytes_.data(), &stored, sizeof(stored));
  for_items(count_ + 1, 1, [&](int64_t i) { put_offset(i, position_); });
}

void StringTensorWriter::add(std::string_view text) noexcept {
  const auto size = static_cast<int64_t>(text.size());
  if (written_ >= count_ || size > static_cast<int64_t>(bytes_.size()) - position_) return;
  if (size > 0) std::memcpy(bytes_.data() + position_, text.data(), text.size());
  position_ += size;
  ++written_;
  // A string not written yet is empty: keep the last offset right as well.
  put_offset(written_, position_);
  if (written_ < count_) put_offset(count_, position_);
}

void StringTensorWriter::put_offset(int64_t index, int64_t offset) noexcept {
  const auto stored = static_cast<int32_t>(offset);
  std::memcpy(bytes_.data() + (index + 1) * kWord, &stored, sizeof(stored));
}

}  // namespace leadline
