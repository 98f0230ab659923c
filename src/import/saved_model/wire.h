// SPDX-License-Identifier: Apache-2.0
// Reads the wire format of protocol buffers: a message is a sequence of (field number, wire type, payload).
// Own code instead of libprotobuf: nothing to load or register at start-up, nothing is copied (texts and bytes point
// into the file), nesting is limited, and damage is always an Error, where the library's checks may end the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "io/mapped_file.h"
#include "leadline/budget.h"
#include "leadline/error.h"

namespace leadline::saved_model {

/// The code of errors about a file.
inline constexpr ErrorCode kBad = ErrorCode::kInvalidModel;

using Bytes = std::span<const std::byte>;

/// A file, its name for messages, and the memory that structures read from it have taken.
class WireFile {
 public:
  /// `budget` may be null: then nothing is charged.
  WireFile(std::string name, std::shared_ptr<const ModelBytes> bytes, std::shared_ptr<Budget> budget);
  ~WireFile();
  WireFile(const WireFile&) = delete;
  WireFile& operator=(const WireFile&) = delete;

  const std::string& name() const noexcept { return name_; }
  Bytes bytes() const noexcept { return bytes_->span(); }
  const ModelBytes& storage() const noexcept { return *bytes_; }
  /// Counts memory for what was read, before it is taken. Throws BudgetError. Not thread-safe.
  void charge(size_t bytes);
  /// Throws Error(kInvalidModel) naming the file and the offset of `place`, a byte of it.
  [[noreturn]] void fail_at(const std::byte* place, std::string_view problem) const;

 private:
  std::string name_;
  std::shared_ptr<const ModelBytes> bytes_;
  std::shared_ptr<Budget> budget_;
  int64_t used_ = 0;
  int64_t charged_ = 0;
};

enum class WireType : uint8_t { kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5 };

/// Steps through the fields of one message:
///   while (reader.next()) switch (reader.field()) { case 1: name = reader.text(); break; }
/// A field whose value is not asked for is skipped. Asking for a value of another wire type is an Error.
class WireReader {
 public:
  /// The message that is the whole file; `message` names it in errors.
  WireReader(WireFile& file, const char* message) : WireReader(file, file.bytes(), message, 0) {}
  /// A message inside the file that was found before.
  WireReader(WireFile& file, Bytes bytes, const char* message) : WireReader(file, bytes, message, 0) {}

  /// Goes to the next field; false at the end of the message.
  bool next();
  uint32_t field() const noexcept { return field_; }
  WireType type() const noexcept { return type_; }

  uint64_t varint();
  int64_t int64() { return static_cast<int64_t>(varint()); }
  /// Int32 and enum fields: the low 32 bits, as the format has it.
  int32_t int32() { return static_cast<int32_t>(static_cast<uint32_t>(varint())); }
  bool boolean() { return varint() != 0; }
  uint32_t fixed32();
  uint64_t fixed64();
  float float32();
  Bytes bytes();
  std::string_view text();
  /// A message in this field, one level deeper.
  WireReader message(const char* name);

  /// Calls take(value) for each varint of a repeated field, packed or not.
  template <typename Take>
  void varints(Take take) {
    if (type_ != WireType::kLength) return take(varint());
    for (const std::byte *at = payload_.data(), *end = at + payload_.size(); at != end;) take(read_varint(at, end));
  }
  /// The bytes of a repeated fixed32 or fixed64 field, packed or one value.
  Bytes fixed_values(size_t size);

  WireFile& file() const noexcept { return *file_; }
  /// What was not stepped over yet.
  Bytes rest() const noexcept { return {at_, end_}; }
  const std::byte* place() const noexcept { return at_; }
  /// Throws Error(kInvalidModel) about the current field.
  [[noreturn]] void fail_here(std::string_view problem) const;

 private:
  WireReader(WireFile& file, Bytes bytes, const char* message, int depth);
  uint64_t read_varint(const std::byte*& at, const std::byte* end) const;
  void expect(WireType type) const;

  WireFile* file_;
  const char* message_;
  const std::byte* at_;
  const std::byte* end_;
  const std::byte* field_start_;
  int depth_;
  uint32_t field_ = 0;
  WireType type_ = WireType::kVarint;
  uint64_t value_ = 0;  // of kVarint, kFixed32, kFixed64
  Bytes payload_;       // of kLength, kFixed32, kFixed64
};

}  // namespace leadline::saved_model
