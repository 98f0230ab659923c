// SPDX-License-Identifier: Apache-2.0
// a + b counts the bits of both twice, and those of one of them once, like a ^ b: a & b is (a + b - (a ^ b)) / 2, and
// a | b is (a + b + (a ^ b)) / 2. Halves of 16 bits keep sums of int32 from overflowing.
#include "import/bits.h"

#include <cstring>

#include "core/error.h"

namespace leadline::importing {
namespace {

constexpr double kHalf = 1 << 16;
constexpr double kSignBit = -2147483648.0;

void require_bits(DType type) {
  require(type == DType::kInt8 || type == DType::kUInt8 || type == DType::kInt16 || type == DType::kInt32,
          ErrorCode::kUnsupported, "bits of {} are not converted; cast it to int32", dtype_name(type));
}

int shift_right(Emitter& e, int x, int32_t by) { return e.binary("RIGHT_SHIFT", x, e.integer(by)); }

/// Of int32 that fit into 17 bits.
int combine(Emitter& e, const char* op, int a, int b) {
  return shift_right(e, e.binary(op, e.add(a, b), e.binary("BITWISE_XOR", a, b)), 1);
}

/// `op` is what is done with a ^ b.
int by_bits(Emitter& e, const char* op, int a, int b) {
  const DType type = e.dtype(a);
  require_bits(type);
  if (type != DType::kInt32) {
    return e.cast(combine(e, op, e.cast(a, DType::kInt32), e.cast(b, DType::kInt32)), type);
  }
  const int high_a = shift_right(e, a, 16);
  const int high_b = shift_right(e, b, 16);
  const int low_a = e.sub(a, e.mul(high_a, kHalf));
  const int low_b = e.sub(b, e.mul(high_b, kHalf));
  return e.add(e.mul(combine(e, op, high_a, high_b), kHalf), combine(e, op, low_a, low_b));
}

/// Whether `x` is the constant number whose only bit is the sign of int32.
bool is_sign_bit(Emitter& e, int x) {
  const auto bytes = e.dtype(x) == DType::kInt32 ? e.builder().known(x) : std::nullopt;
  int32_t value = 0;
  if (!bytes || bytes->size() != sizeof(value) || e.rank(x) != 0) return false;
  std::memcpy(&value, bytes->data(), sizeof(value));
  return value == kSignBit;
}

/// How TensorFlow asks for the sign of -0.0, in every tf.argmax of Keras.
int sign_bit_of(Emitter& e, int x) {
  const int negative = e.compare("LESS", x, e.integer(0));
  return e.mul(e.cast(negative, DType::kInt32), kSignBit);
}

}  // namespace

int bitwise_and(Emitter& e, int a, int b) {
  if (e.dtype(a) == DType::kBool) return e.binary("LOGICAL_AND", a, b);
  if (is_sign_bit(e, b)) return sign_bit_of(e, a);
  if (is_sign_bit(e, a)) return sign_bit_of(e, b);
  return by_bits(e, "SUB", a, b);
}

int bitwise_or(Emitter& e, int a, int b) {
  return e.dtype(a) == DType::kBool ? e.binary("LOGICAL_OR", a, b) : by_bits(e, "ADD", a, b);
}

int bitwise_not(Emitter& e, int x) {
  const DType type = e.dtype(x);
  if (type == DType::kBool) return e.unary("LOGICAL_NOT", x);
  if (type == DType::kInt32 || type == DType::kInt64) return e.sub(e.scalar_like(x, -1.0), x);
  require_bits(type);
  const int all = e.integer(type == DType::kUInt8 ? 255 : -1);
  return e.cast(e.sub(all, e.cast(x, DType::kInt32)), type);
}

int left_shift(Emitter& e, int x, int by) {
  require(e.dtype(x) == DType::kInt32, ErrorCode::kUnsupported, "shifts of {} are not converted; cast it to int32",
          dtype_name(e.dtype(x)));
  // Powers of two by squaring: 2^by is the product of 2^(2^k) for the bits k of `by`.
  int factor = e.integer(1);
  int left = by;
  for (int32_t power : {2, 4, 16, 256, 65536}) {
    const int half = shift_right(e, left, 1);
    const int bit = e.sub(left, e.mul(half, 2.0));
    factor = e.mul(factor, e.add(e.mul(bit, static_cast<double>(power - 1)), 1.0));
    left = half;
  }
  return e.mul(x, factor);
}

}  // namespace leadline::importing
