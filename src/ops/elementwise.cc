// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise.h"

#include <array>

namespace leadline::ops {
namespace {

void require_binary_types(const InferContext& c, std::initializer_list<DType> types) {
  c.require_input_type(0, types);
  c.require(c.input(0).dtype() == c.input(1).dtype(), "inputs '{}' and '{}' have types {} and {}, expected the same",
            c.input(0).value->name, c.input(1).value->name, dtype_name(c.input(0).dtype()),
            dtype_name(c.input(1).dtype()));
}

/// Runs a float row function over 16-bit floats, a block at a time.
template <typename T>
void run_converted(kernels::UnaryRowF32 row, const T* in, T* out, int64_t count, float p0, float p1) {
  constexpr int64_t kBlock = 256;
  std::array<float, kBlock> block;
  for (int64_t i = 0; i < count; i += kBlock) {
    const int64_t size = std::min(kBlock, count - i);
    for (int64_t j = 0; j < size; ++j) block[static_cast<size_t>(j)] = static_cast<float>(in[i + j]);
    row(block.data(), block.data(), size, p0, p1);
    for (int64_t j = 0; j < size; ++j) out[i + j] = T(block[static_cast<size_t>(j)]);
  }
}

template <typename T>
std::unique_ptr<Kernel> float_unary_kernel(kernels::UnaryRowF32 row, float p0, float p1, double cost) {
  return make_kernel([=](RunContext& c) {
    const T* in = c.input(0).as<T>();
    T* out = c.output(0).mutable_as<T>();
    c.pool().for_pieces(c.output(0).elements(), cost, [&](int64_t begin, int64_t end) {
      if constexpr (std::is_same_v<T, float>) {
        row(in + begin, out + begin, end - begin, p0, p1);
      } else {
        run_converted(row, in + begin, out + begin, end - begin, p0, p1);
      }
    });
  });
}

}  // namespace

void add_ops(Registry& registry, int inputs, Sharing sharing, std::initializer_list<OpDef> rows,
             std::string_view fast) {
  for (OpDef row : rows) {
    row.min_inputs = row.max_inputs = row.required_inputs = inputs;
    row.sharing = sharing;
    row.fast = fast;
    registry.add(row);
  }
}

void UnaryKernel::run(RunContext& c) {
  const std::byte* in = c.input(0).as<std::byte>();
  auto* out = c.output(0).mutable_as<std::byte>();
  c.pool().for_pieces(c.output(0).elements(), cost_, [&](int64_t begin, int64_t end) {
    piece_(in + begin * in_bytes_, out + begin * out_bytes_, end - begin);
  });
}

BinaryKernel::BinaryKernel(const OpContext& c, const BinaryLayout& layout, Row row)
    : plan_(kernels::plan_broadcast<2>(c.output(0).shape,
                                       {c.input(layout.swapped ? 1 : 0).shape, c.input(layout.swapped ? 0 : 1).shape})),
      layout_(layout),
      row_(std::move(row)) {}

void BinaryKernel::run(RunContext& c) {
  const std::byte* a = c.input(layout_.swapped ? 1 : 0).as<std::byte>();
  const std::byte* b = c.input(layout_.swapped ? 0 : 1).as<std::byte>();
  auto* out = c.output(0).mutable_as<std::byte>();
  const int64_t a_step = plan_.step(0);
  const int64_t b_step = plan_.step(1);
  c.pool().for_pieces(plan_.elements, layout_.cost, [&](int64_t begin, int64_t end) {
    kernels::for_each_row(plan_, begin, end, [&](int64_t at, const std::array<int64_t, 2>& from, int64_t count) {
      row_(a + from[0] * layout_.a_bytes, a_step, b + from[1] * layout_.b_bytes, b_step, out + at * layout_.out_bytes,
           count);
    });
  });
}

void infer_unary(InferContext& c, std::initializer_list<DType> types) {
  c.require_input_type(0, types);
  c.require_output_type(0, {c.input(0).dtype()});
  c.set_output_shape(0, c.input(0).shape);
}

void infer_binary(InferContext& c, std::initializer_list<DType> types) {
  require_binary_types(c, types);
  c.require_output_type(0, {c.input(0).dtype()});
  c.set_output_shape(0, broadcast_shapes(c, c.input(0).shape, c.input(1).shape));
}

void infer_binary(InferContext& c, std::initializer_list<DType> types, DType result) {
  require_binary_types(c, types);
  c.require_output_type(0, {result});
  c.set_output_shape(0, broadcast_shapes(c, c.input(0).shape, c.input(1).shape));
}

void infer_binary_stablehlo(InferContext& c) {
  infer_binary(
      c, {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kFloat64, DType::kInt8, DType::kUInt8,
          DType::kInt16, DType::kUInt16, DType::kInt32, DType::kUInt32, DType::kInt64, DType::kUInt64, DType::kBool});
  c.require(c.input(0).shape == c.input(1).shape, "shapes {} and {} differ", c.input(0).shape.to_string(),
            c.input(1).shape.to_string());
}

kernels::Affine affine(const Operand& operand) {
  return {operand.quantization().scale0(), operand.quantization().zero_point0()};
}

void require_symmetric(const OpContext& c, const Operand& operand, const char* what) {
  c.require_quantized(operand, what);
  c.require(operand.quantization().zero_point0() == 0, "{} '{}' has zero point {}, expected 0", what,
            operand.value->name, operand.quantization().zero_point0());
}

void require_quantized_pair(const OpContext& c, bool symmetric_int16) {
  if (!is_small_integer(c.input(0).dtype())) return;
  if (symmetric_int16 && c.input(0).dtype() == DType::kInt16) {
    require_symmetric(c, c.input(0), "input");
    require_symmetric(c, c.output(0), "output");
  } else {
    c.require_quantized(c.input(0), "input");
    c.require_quantized(c.output(0), "output");
  }
}

std::unique_ptr<Kernel> unary_float_kernel(const OpContext& c, kernels::UnaryF32 op, float p0, float p1, double cost) {
  const kernels::UnaryRowF32 row = kernels::unary_row_f32(op);
  switch (c.input(0).dtype()) {
    case DType::kFloat32:
      return float_unary_kernel<float>(row, p0, p1, cost);
    case DType::kFloat16:
      return float_unary_kernel<kernels::Half>(row, p0, p1, cost);
    case DType::kBFloat16:
      return float_unary_kernel<kernels::BFloat16>(row, p0, p1, cost);
    default:
      c.fail(ErrorCode::kUnsupported, "type {} is not supported", dtype_name(c.input(0).dtype()));
  }
}

}  // namespace leadline::ops
