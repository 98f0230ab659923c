// SPDX-License-Identifier: Apache-2.0
// What the ops that only move elements share: they work on element bytes, packed sub-byte integers and strings
// alike, described by one StridedCopy.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "core/string_tensor.h"
#include "kernels/movement/strided_copy.h"
#include "ops/loops/copy.h"
#include "ops/op.h"

namespace leadline::ops {

/// Bytes of one element; 0 for strings, sub-byte types and types without data.
inline int64_t element_bytes(DType type) { return dtype_bits(type) / 8; }

/// Throws Error(kUnsupported) unless the operand's elements are whole bytes, sub-byte integers (if allowed) or
/// strings (if allowed).
struct Movable {
  bool strings = false;
  bool sub_byte = false;
};
void require_movable(const OpContext& c, const Operand& operand, Movable allowed);

/// Throws unless both have the same type.
void require_same_type(const OpContext& c, const Operand& a, const Operand& b);
/// Throws unless both stand for the same real numbers: equal per-tensor scale and zero point, or none.
void require_same_quantization(const OpContext& c, const Operand& a, const Operand& b);

/// Throws unless input `i` has this many elements.
void require_elements(const OpContext& c, int i, int64_t count);

/// a * b for sizes, a and b not negative; throws when it does not fit.
int64_t checked_multiply(const OpContext& c, int64_t a, int64_t b);
/// a + b for sizes; throws when it does not fit.
int64_t checked_add(const OpContext& c, int64_t a, int64_t b);
/// The shape of these dimensions; throws, naming the node, when one is negative or there are too many.
Shape checked_shape(const OpContext& c, const std::vector<int64_t>& dims);

/// Product of dimensions [begin, end) of a shape that has elements; 0 when it has none.
int64_t span_elements(const Shape& shape, int begin, int end);

/// Row-major strides; all 0 for a shape without elements.
std::vector<int64_t> element_strides(const Shape& shape);

/// The strings of a known input, checked.
StringTensorReader known_strings(const OpContext& c, int i);
/// The strings of a tensor while running, checked.
StringTensorReader run_strings(const RunContext& c, const TensorView& tensor);
/// Sets output `i`'s bytes for these strings.
void set_string_bytes(InferContext& c, int i, int64_t count, int64_t characters);

/// Completes inference of output 0 = `block` of input `i`. The output's shape is set already and has
/// block.elements() elements. Strings need their data for it: may defer.
void finish_move(InferContext& c, int i, const kernels::StridedCopy& block);

/// Output `to` = `block` of `from`; the block's destination is dense.
void move_elements(const RunContext& c, const TensorView& from, const TensorView& to,
                   const kernels::StridedCopy& block);

/// A kernel that moves input `i` to output 0.
std::unique_ptr<Kernel> make_move_kernel(int i, const kernels::StridedCopy& block);

/// Element `index` of packed sub-byte integers, low bits first, and writing one.
inline unsigned get_packed(const std::byte* data, int64_t index, int bits) {
  const int64_t bit = index * bits;
  return (std::to_integer<unsigned>(data[bit / 8]) >> (bit % 8)) & ((1U << bits) - 1U);
}
inline void put_packed(std::byte* data, int64_t index, int bits, unsigned value) {
  const int64_t bit = index * bits;
  const unsigned mask = ((1U << bits) - 1U) << (bit % 8);
  const unsigned old = std::to_integer<unsigned>(data[bit / 8]);
  data[bit / 8] = static_cast<std::byte>((old & ~mask) | ((value << (bit % 8)) & mask));
}

/// Integer `i` of int16, int32 or int64 data.
inline int64_t load_index(const std::byte* data, DType type, int64_t i) {
  if (type == DType::kInt64) return reinterpret_cast<const int64_t*>(data)[i];
  if (type == DType::kInt16) return reinterpret_cast<const int16_t*>(data)[i];
  return reinterpret_cast<const int32_t*>(data)[i];
}

}  // namespace leadline::ops
