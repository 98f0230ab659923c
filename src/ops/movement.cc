// SPDX-License-Identifier: Apache-2.0
// Shared parts of the ops that only move elements.
#include "ops/movement.h"

#include <cstring>
#include <limits>

namespace leadline::ops {
namespace {

bool sub_byte(DType type) { return dtype_bits(type) > 0 && dtype_bits(type) < 8; }

}  // namespace

void require_movable(const OpContext& c, const Operand& operand, Movable allowed) {
  const DType type = operand.dtype();
  const bool ok =
      element_bytes(type) > 0 || (allowed.sub_byte && sub_byte(type)) || (allowed.strings && type == DType::kString);
  if (!ok) {
    c.fail(ErrorCode::kUnsupported, "tensor '{}' has type {}, which this op does not support", operand.value->name,
           dtype_name(type));
  }
}

void require_same_type(const OpContext& c, const Operand& a, const Operand& b) {
  c.require(a.dtype() == b.dtype(), "'{}' has type {}, but '{}' has type {}", a.value->name, dtype_name(a.dtype()),
            b.value->name, dtype_name(b.dtype()));
}

void require_same_quantization(const OpContext& c, const Operand& a, const Operand& b) {
  const Quantization& qa = a.quantization();
  const Quantization& qb = b.quantization();
  if (qa.per_channel() || qb.per_channel()) return;
  c.require(qa.scale0() == qb.scale0() && qa.zero_point0() == qb.zero_point0(),
            "'{}' has scale {} and zero point {}, but '{}' has {} and {}", a.value->name, qa.scale0(), qa.zero_point0(),
            b.value->name, qb.scale0(), qb.zero_point0());
}

void require_elements(const OpContext& c, int i, int64_t count) {
  c.require(c.input(i).shape.elements() == count, "input {} '{}' has shape {}, expected {} element(s)", i,
            c.input(i).value->name, c.input(i).shape.to_string(), count);
}

int64_t checked_multiply(const OpContext& c, int64_t a, int64_t b) {
  int64_t result = 0;
  c.require(!__builtin_mul_overflow(a, b, &result), "the size {} x {} is too large", a, b);
  return result;
}

int64_t checked_add(const OpContext& c, int64_t a, int64_t b) {
  int64_t result = 0;
  c.require(!__builtin_add_overflow(a, b, &result), "the size {} + {} is too large", a, b);
  return result;
}

Shape checked_shape(const OpContext& c, const std::vector<int64_t>& dims) {
  c.require(dims.size() <= static_cast<size_t>(kMaxRank), "the result would have rank {}, at most {} is supported",
            dims.size(), kMaxRank);
  for (const int64_t size : dims) {
    c.require(size >= 0 && size <= std::numeric_limits<int32_t>::max(), "a dimension of the result would be {}", size);
  }
  return Shape(std::span<const int64_t>(dims));
}

int64_t span_elements(const Shape& shape, int begin, int end) {
  if (shape.elements() == 0) return 0;
  int64_t product = 1;
  for (int d = begin; d < end; ++d) product *= shape[d];
  return product;
}

std::vector<int64_t> element_strides(const Shape& shape) {
  std::vector<int64_t> strides(static_cast<size_t>(shape.rank()), 0);
  if (shape.elements() == 0) return strides;
  int64_t stride = 1;
  for (int d = shape.rank() - 1; d >= 0; --d) {
    strides[static_cast<size_t>(d)] = stride;
    stride *= shape[d];
  }
  return strides;
}

StringTensorReader known_strings(const OpContext& c, int i) {
  const Operand& operand = c.input(i);
  const std::span<const std::byte> bytes(operand.data, static_cast<size_t>(operand.bytes));
  const std::string problem = string_tensor_problem(bytes, operand.shape.elements());
  c.require(problem.empty(), "input {} '{}': {}", i, operand.value->name, problem);
  return StringTensorReader(bytes);
}

StringTensorReader run_strings(const RunContext& c, const TensorView& tensor) {
  const std::span<const std::byte> bytes(tensor.data, static_cast<size_t>(tensor.bytes));
  const std::string problem = string_tensor_problem(bytes, tensor.elements());
  c.require(problem.empty(), "{}", problem);
  return StringTensorReader(bytes);
}

void set_string_bytes(InferContext& c, int i, int64_t count, int64_t characters) {
  const auto bytes = string_tensor_bytes(count, characters);
  c.require(bytes.has_value(), "{} strings of {} bytes in all do not fit into a string tensor", count, characters);
  c.set_output_bytes(i, *bytes);
}

void finish_move(InferContext& c, int i, const kernels::StridedCopy& block) {
  if (c.input(i).dtype() != DType::kString) return;
  if (!c.known(i)) return c.defer();
  const auto bytes = string_tensor_bytes(c.output(0).shape.elements(), 0);
  c.require(bytes.has_value(), "shape {} has too many strings", c.output(0).shape.to_string());
  const StringTensorReader strings = known_strings(c, i);
  int64_t characters = 0;
  for_each_source(block, 8, [&](int64_t from) { characters += static_cast<int64_t>(strings[from].size()); });
  set_string_bytes(c, 0, block.elements(), characters);
}

void move_elements(const RunContext& c, const TensorView& from, const TensorView& to,
                   const kernels::StridedCopy& block) {
  if (from.dtype == DType::kString) {
    const StringTensorReader strings = run_strings(c, from);
    StringTensorWriter writer({to.data, static_cast<size_t>(to.bytes)}, block.elements());
    for_each_source(block, 32, [&](int64_t index) { writer.add(strings[index]); });
    return;
  }
  const int bits = dtype_bits(from.dtype);
  if (bits >= 8) {
    copy_strided(block, bits / 8, from.data, to.data, c.pool());
    return;
  }
  if (to.bytes > 0) to.data[to.bytes - 1] = std::byte{0};  // the last byte may be used in part
  int64_t next = 0;
  for_each_source(block, 8,
                  [&](int64_t index) { put_packed(to.data, next++, bits, get_packed(from.data, index, bits)); });
}

std::unique_ptr<Kernel> make_move_kernel(int i, const kernels::StridedCopy& block) {
  return make_kernel([i, block](RunContext& c) { move_elements(c, c.input(i), c.output(0), block); });
}

}  // namespace leadline::ops
