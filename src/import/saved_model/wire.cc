// SPDX-License-Identifier: Apache-2.0
// Every read is checked against the end of the message it is in, which lies inside the file.
#include "import/saved_model/wire.h"

#include <bit>
#include <cstring>
#include <utility>

#include "core/error.h"

namespace leadline::saved_model {
namespace {

// Protocol buffers' own parsers stop at 100.
constexpr int kMaxMessageDepth = 100;
// Memory is charged in steps, to keep the budget's lock out of the loop.
constexpr int64_t kChargeStep = 1 << 20;

uint64_t little_endian(const std::byte* data, size_t size) {
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i) value |= static_cast<uint64_t>(data[i]) << (8 * i);
  return value;
}

}  // namespace

WireFile::WireFile(std::string name, std::shared_ptr<const ModelBytes> bytes, std::shared_ptr<Budget> budget)
    : name_(std::move(name)), bytes_(std::move(bytes)), budget_(std::move(budget)) {}

WireFile::~WireFile() {
  if (budget_) budget_->release(charged_, MemoryCategory::kGraph);
}

void WireFile::charge(size_t bytes) {
  used_ += static_cast<int64_t>(bytes);
  if (budget_ == nullptr || used_ <= charged_) return;
  const int64_t step = used_ - charged_ + kChargeStep;
  budget_->charge(step, MemoryCategory::kGraph);
  charged_ += step;
}

void WireFile::fail_at(const std::byte* place, std::string_view problem) const {
  fail(ErrorCode::kInvalidModel, "{}, byte {}: {}", name_, place - bytes().data(), problem);
}

WireReader::WireReader(WireFile& file, Bytes bytes, const char* message, int depth)
    : file_(&file),
      message_(message),
      at_(bytes.data()),
      end_(bytes.data() + bytes.size()),
      field_start_(bytes.data()),
      depth_(depth) {}

bool WireReader::next() {
  if (at_ == end_) return false;
  field_start_ = at_;
  const uint64_t tag = read_varint(at_, end_);
  if (tag >> 3 == 0 || tag >> 32 != 0) fail_here("a field number out of range");
  field_ = static_cast<uint32_t>(tag >> 3);
  type_ = static_cast<WireType>(tag & 7);
  const auto left = [&] { return static_cast<size_t>(end_ - at_); };
  uint64_t size = 0;
  switch (type_) {
    case WireType::kVarint:
      value_ = read_varint(at_, end_);
      return true;
    case WireType::kFixed64:
      size = 8;
      break;
    case WireType::kFixed32:
      size = 4;
      break;
    case WireType::kLength:
      size = read_varint(at_, end_);
      break;
    default:
      fail_here(fmt::format("wire type {} is not used by this format", tag & 7));
  }
  if (size > left()) fail_here(fmt::format("{} bytes are announced, {} are left", size, left()));
  payload_ = {at_, static_cast<size_t>(size)};
  at_ += size;
  if (type_ != WireType::kLength) value_ = little_endian(payload_.data(), payload_.size());
  return true;
}

uint64_t WireReader::read_varint(const std::byte*& at, const std::byte* end) const {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (at == end) fail_here("a number is cut off");
    const auto byte = static_cast<uint64_t>(*at++);
    value |= (byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
  fail_here("a number has more than 10 bytes");
}

void WireReader::expect(WireType type) const {
  if (type_ != type)
    fail_here(fmt::format("wire type {} where {} is expected", static_cast<int>(type_), static_cast<int>(type)));
}

uint64_t WireReader::varint() {
  expect(WireType::kVarint);
  return value_;
}

uint32_t WireReader::fixed32() {
  expect(WireType::kFixed32);
  return static_cast<uint32_t>(value_);
}

uint64_t WireReader::fixed64() {
  expect(WireType::kFixed64);
  return value_;
}

float WireReader::float32() { return std::bit_cast<float>(fixed32()); }

Bytes WireReader::bytes() {
  expect(WireType::kLength);
  return payload_;
}

std::string_view WireReader::text() {
  expect(WireType::kLength);
  return {reinterpret_cast<const char*>(payload_.data()), payload_.size()};
}

WireReader WireReader::message(const char* name) {
  expect(WireType::kLength);
  if (depth_ >= kMaxMessageDepth) fail_here(fmt::format("messages are nested more than {} deep", kMaxMessageDepth));
  return {*file_, payload_, name, depth_ + 1};
}

Bytes WireReader::fixed_values(size_t size) {
  if (type_ == WireType::kVarint) expect(WireType::kLength);
  if (payload_.size() % size != 0) fail_here(fmt::format("{} bytes are not a multiple of {}", payload_.size(), size));
  return payload_;
}

void WireReader::fail_here(std::string_view problem) const {
  file_->fail_at(field_start_, fmt::format("{}, field {}: {}", message_, field_, problem));
}

}  // namespace leadline::saved_model
