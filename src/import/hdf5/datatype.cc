// SPDX-License-Identifier: Apache-2.0
#include "import/hdf5/datatype.h"

#include <algorithm>
#include <limits>

namespace leadline::hdf5 {
namespace {

constexpr const char* kType = "datatype";
constexpr const char* kSpace = "dataspace";
constexpr int kMaxDims = 32;

enum Class : uint8_t { kFixedPoint = 0, kFloat = 1, kString = 3, kOpaque = 5, kEnum = 8, kVariableLength = 9 };

std::optional<DType> integer_type(uint64_t bytes, bool is_signed) {
  switch (bytes) {
    case 1:
      return is_signed ? DType::kInt8 : DType::kUInt8;
    case 2:
      return is_signed ? DType::kInt16 : DType::kUInt16;
    case 4:
      return is_signed ? DType::kInt32 : DType::kUInt32;
    case 8:
      return is_signed ? DType::kInt64 : DType::kUInt64;
    default:
      return std::nullopt;
  }
}

std::optional<DType> float_type(uint64_t bytes, int exponent_bits, int mantissa_bits) {
  if (bytes == 8 && exponent_bits == 11 && mantissa_bits == 52) return DType::kFloat64;
  if (bytes == 4 && exponent_bits == 8 && mantissa_bits == 23) return DType::kFloat32;
  if (bytes == 2 && exponent_bits == 5 && mantissa_bits == 10) return DType::kFloat16;
  if (bytes == 2 && exponent_bits == 8 && mantissa_bits == 7) return DType::kBFloat16;
  if (bytes == 1 && exponent_bits == 4 && mantissa_bits == 3) return DType::kFloat8E4M3FN;
  if (bytes == 1 && exponent_bits == 5 && mantissa_bits == 2) return DType::kFloat8E5M2;
  return std::nullopt;
}

void read_float(Cursor& cursor, uint32_t bits, Datatype& type) {
  const uint16_t offset = cursor.u16();
  const uint16_t precision = cursor.u16();
  cursor.skip(1);
  const int exponent_bits = cursor.u8();
  cursor.skip(1);
  const int mantissa_bits = cursor.u8();
  type.kind = Datatype::Kind::kNumber;
  type.big_endian = (bits & 1U) != 0;
  // The implied leading one (2 in bits 4 and 5) is what IEEE formats have; VAX order is bit 6.
  const bool ieee = (bits & 0x40U) == 0 && (bits >> 4U & 3U) == 2;
  if (ieee && offset == 0 && precision == type.item_bytes * 8) {
    type.dtype = float_type(type.item_bytes, exponent_bits, mantissa_bits);
  }
}

}  // namespace

std::string Datatype::text() const {
  switch (kind) {
    case Kind::kNumber:
      return dtype ? dtype_name(*dtype) : fmt::format("number of {} bytes", item_bytes);
    case Kind::kFixedString:
      return fmt::format("string of {} bytes", item_bytes);
    case Kind::kVariableString:
      return "string";
    case Kind::kOpaque:
      return fmt::format("opaque of {} bytes", item_bytes);
    case Kind::kOther:
      break;
  }
  return fmt::format("structure of {} bytes", item_bytes);
}

Datatype read_datatype(const FileBytes& file, std::span<const std::byte> bytes) {
  Cursor cursor(file, bytes, kType);
  const uint8_t head = cursor.u8();
  const auto bits = static_cast<uint32_t>(cursor.number(3));
  Datatype type;
  type.item_bytes = cursor.u32();
  if (type.item_bytes == 0 || type.item_bytes > std::numeric_limits<int32_t>::max()) damaged(kType);
  switch (head & 0xFU) {
    case kFixedPoint: {
      const uint16_t offset = cursor.u16();
      const uint16_t precision = cursor.u16();
      type.kind = Datatype::Kind::kNumber;
      type.big_endian = (bits & 1U) != 0;
      if (offset == 0 && precision == type.item_bytes * 8) type.dtype = integer_type(type.item_bytes, (bits & 8U) != 0);
      break;
    }
    case kFloat:
      read_float(cursor, bits, type);
      break;
    case kString:
      type.kind = Datatype::Kind::kFixedString;
      type.padding = bits & 0xFU;
      break;
    case kOpaque:
      type.kind = Datatype::Kind::kOpaque;
      break;
    case kEnum:
      // How h5py writes booleans: two names for numbers of one byte.
      if ((bits & 0xFFFFU) == 2 && type.item_bytes == 1) {
        type.kind = Datatype::Kind::kNumber;
        type.dtype = DType::kBool;
      }
      break;
    case kVariableLength:
      if ((bits & 0xFU) == 1) type.kind = Datatype::Kind::kVariableString;
      break;
    default:
      break;
  }
  return type;
}

Dataspace read_dataspace(const FileBytes& file, std::span<const std::byte> bytes) {
  Cursor cursor(file, bytes, kSpace);
  cursor.expect_version(1, 2);
  const int rank = cursor.u8();
  const uint8_t flags = cursor.u8();
  if (rank > kMaxDims) damaged(kSpace);
  Dataspace space;
  if (cursor.version() == 1) {
    cursor.skip(5);
  } else {
    space.null = cursor.u8() == 2;
  }
  for (int i = 0; i < rank; ++i) space.dims.push_back(cursor.length());
  space.max_dims = space.dims;
  if ((flags & 1U) != 0) {
    for (uint64_t& size : space.max_dims) size = cursor.length();
  }
  // A product with a zero in it is zero, however large the rest; but each dimension has to be a size.
  const bool empty = space.null || std::find(space.dims.begin(), space.dims.end(), 0U) != space.dims.end();
  for (const uint64_t size : space.dims) {
    if (size > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) damaged(kSpace);
    space.elements = empty ? 0 : checked_product(space.elements, size, kSpace);
  }
  if (empty) space.elements = 0;
  return space;
}

uint64_t checked_product(uint64_t a, uint64_t b, const char* what) {
  uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product) || product > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    damaged(what);
  }
  return product;
}

}  // namespace leadline::hdf5
