// SPDX-License-Identifier: Apache-2.0
// BATCH_MATMUL: [..., M, K] times [..., K, N], either side transposed by its attribute, outer dimensions broadcast.
// Float and 8-bit products run on the packed gemm; int16 ones are naive.
#include "ops/batch_matmul.h"

#include <algorithm>
#include <cmath>

#include "kernels/gemm/gemm_i8.h"
#include "kernels/gemm/split.h"
#include "kernels/quant/dynamic.h"
#include "kernels/reference/matmul.h"
#include "ops/common.h"
#include "ops/contraction.h"
#include "ops/families.h"
#include "ops/float_matmul.h"
#include "ops/half_activations.h"
#include "ops/quantization_rules.h"

namespace leadline::ops {
namespace {

Shape outer_dims(const Shape& shape) { return Shape(shape.dims().first(static_cast<size_t>(shape.rank() - 2))); }

Products products_of(const OpContext& c) {
  const auto& a = c.attributes<BatchMatmulAttributes>();
  const Shape& lhs = c.input(0).shape;
  const Shape& rhs = c.input(1).shape;
  c.require(lhs.rank() >= 2 && rhs.rank() >= 2, "the inputs have shapes {} and {}, expected rank 2 or more",
            lhs.to_string(), rhs.to_string());
  Products p;
  p.adj_x = a.adj_x;
  p.adj_y = a.adj_y;
  p.m = lhs[lhs.rank() - (a.adj_x ? 1 : 2)];
  p.k = lhs[lhs.rank() - (a.adj_x ? 2 : 1)];
  p.n = rhs[rhs.rank() - (a.adj_y ? 2 : 1)];
  c.require(rhs[rhs.rank() - (a.adj_y ? 1 : 2)] == p.k, "shapes {} and {} do not multiply (adj_x {}, adj_y {})",
            lhs.to_string(), rhs.to_string(), a.adj_x, a.adj_y);
  p.batch = broadcast_shapes(c, outer_dims(lhs), outer_dims(rhs));
  p.lhs_matrices = outer_dims(lhs).elements();
  p.rhs_matrices = outer_dims(rhs).elements();
  p.batches = p.batch.elements();
  const auto lhs_step = broadcast_strides(outer_dims(lhs), p.batch);
  const auto rhs_step = broadcast_strides(outer_dims(rhs), p.batch);
  std::copy(lhs_step.begin(), lhs_step.end(), p.lhs_step.begin());
  std::copy(rhs_step.begin(), rhs_step.end(), p.rhs_step.begin());
  return p;
}

/// One right-hand matrix for all: the left-hand ones are the rows of a single product.
void merge_rows(Products& p) {
  if (p.rhs_matrices != 1) return;
  p.m *= p.batches;
  p.lhs_matrices = p.batches = 1;
  p.batch = Shape();
}

/// The right-hand side is quantized per tensor or per column. LiteRT gives zeros for columns of int8 and int16
/// products; here they have their scales.
void check_scales(const OpContext& c) {
  const Operand& lhs = c.input(0);
  const Operand& rhs = c.input(1);
  if (rhs.dtype() == DType::kFloat32 || c.output(0).dtype() == DType::kInt32) return;
  const Quantization& q = rhs.quantization();
  const int axis = rhs.shape.rank() - (c.attributes<BatchMatmulAttributes>().adj_y ? 2 : 1);
  c.require(!q.scale.empty() && q.scale.size() == q.zero_point.size(), "input 1 '{}' of type {} has no scale",
            rhs.value->name, dtype_name(rhs.dtype()));
  c.require(!q.per_channel() || (q.axis == axis && static_cast<int64_t>(q.scale.size()) == rhs.shape[axis]),
            "input 1 '{}' has {} scales along axis {}, expected one, or one per column (axis {})", rhs.value->name,
            q.scale.size(), q.axis, axis);
  const bool may_shift = lhs.dtype() == DType::kInt8 && !q.per_channel();
  c.require(may_shift || std::all_of(q.zero_point.begin(), q.zero_point.end(), [](int64_t z) { return z == 0; }),
            "the zero points of input 1 '{}' are not all 0", rhs.value->name);
  if (lhs.dtype() == DType::kFloat32) return;
  c.require_quantized(lhs, "input 0");
  c.require_quantized(c.output(0), "output");
  for (const float scale : q.scale) {
    c.require(std::isfinite(lhs.quantization().scale0() * scale / c.output(0).quantization().scale0()),
              "the scales of the inputs and the output give a factor that is not finite");
  }
  c.require(lhs.dtype() != DType::kInt16 ||
                (lhs.quantization().zero_point0() == 0 && c.output(0).quantization().zero_point0() == 0),
            "the zero points of an int16 product are not all 0");
}

void infer(InferContext& c) {
  c.require_input_type(0, {DType::kFloat32, DType::kInt8, DType::kInt16});
  switch (c.input(0).dtype()) {
    case DType::kFloat32:
      c.require_input_type(1, {DType::kFloat32, DType::kInt8});
      c.require_output_type(0, {DType::kFloat32});
      break;
    case DType::kInt8:
      c.require_input_type(1, {DType::kInt8});
      c.require_output_type(0, {DType::kInt8, DType::kInt32});
      break;
    default:
      c.require_input_type(1, {DType::kInt16, DType::kInt8});
      c.require_output_type(0, {DType::kInt16});
  }
  const Products p = products_of(c);
  check_scales(c);
  Shape output = p.batch;
  output.push_back(p.m);
  output.push_back(p.n);
  c.set_output_shape(0, output);
}

/// Swaps the last two dimensions: matrices [rows, columns] become [columns, rows].
template <typename T>
void transpose_matrices(const T* source, int64_t matrices, int64_t rows, int64_t columns, T* target) {
  for (int64_t matrix = 0; matrix < matrices; ++matrix) {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) target[j * rows + i] = source[i * columns + j];
    }
    source += rows * columns;
    target += rows * columns;
  }
}

/// float32, int8 and dynamic range products on the packed gemm.
class GemmBatchMatmul final : public Kernel {
 public:
  GemmBatchMatmul(PrepareContext& c, const Products& products)
      : p_(products),
        float_rhs_(c.input(1).dtype() == DType::kFloat32),
        float_lhs_(c.input(0).dtype() == DType::kFloat32),
        slots_(c.threads()),
        fixed_rhs_(fixed_input(c, 1, 0) ? c.input(1).data : nullptr) {
    matrix_bytes_ = align_up(float_rhs_ ? kernels::packed_bytes_f32(p_.n, p_.k) : kernels::packed_bytes_i8(p_.n, p_.k));
    if (fixed_rhs_ != nullptr) {
      c.request_packed(p_.rhs_matrices * matrix_bytes_, "gemm");
      c.replaces_input(1);
    }
    BlockLayout scratch;
    const int64_t lhs_count = c.input(0).shape.elements();
    if (p_.adj_x) transposed_at_ = scratch.take(lhs_count * (float_lhs_ ? 4 : 1));
    if (hybrid()) {
      quantized_at_ = scratch.take(lhs_count);
      row_scales_at_ = scratch.take(p_.lhs_matrices * p_.m * 4);
      row_zeros_at_ = scratch.take(p_.lhs_matrices * p_.m * 4);
    }
    scales_at_ = scratch.take(float_rhs_ ? 0 : p_.n * 4);
    workspace_bytes_ = float_rhs_ ? 0 : kernels::gemm_i8_workspace_bytes(p_.m, p_.k);
    workspace_at_ = scratch.take(slots_ * workspace_bytes_);
    if (fixed_rhs_ == nullptr) rhs_at_ = scratch.take((by_batch() ? slots_ : 1) * matrix_bytes_);
    c.request_scratch(scratch.size());
  }

  void pack(std::byte* packed) override {
    if (fixed_rhs_ == nullptr) return;
    for (int64_t i = 0; i < p_.rhs_matrices; ++i) pack_matrix(fixed_rhs_, i, packed + i * matrix_bytes_);
  }

  void run(RunContext& c) override {
    const std::byte* lhs = row_major_lhs(c);
    if (hybrid()) {
      kernels::quantize_rows(reinterpret_cast<const float*>(lhs), p_.lhs_matrices * p_.m, p_.k,
                             reinterpret_cast<int8_t*>(c.scratch() + quantized_at_), rows(c), c.pool());
      lhs = c.scratch() + quantized_at_;
    }
    if (!float_rhs_ && c.output(0).dtype != DType::kInt32) fill_scales(c);
    if (!by_batch()) {
      for (int64_t i = 0; i < p_.batches; ++i) multiply(c, lhs, i, rhs_matrix(c, i, 0), 0, &c.pool());
      return;
    }
    c.pool().parallel_for(slots_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t slot = begin; slot < end; ++slot) {
        const kernels::PartRange part = kernels::part_range(p_.batches, 1, slots_, slot);
        for (int64_t i = part.begin; i < part.end; ++i) multiply(c, lhs, i, rhs_matrix(c, i, slot), slot, nullptr);
      }
    });
  }

 private:
  bool hybrid() const { return float_lhs_ && !float_rhs_; }
  /// Many products: one per thread at a time. Few: the threads share each.
  bool by_batch() const { return p_.batches >= 2 * slots_; }

  kernels::RowParameters rows(const RunContext& c) const {
    return {reinterpret_cast<float*>(c.scratch() + row_scales_at_),
            reinterpret_cast<int32_t*>(c.scratch() + row_zeros_at_)};
  }

  const std::byte* row_major_lhs(const RunContext& c) const {
    if (!p_.adj_x) return c.input(0).data;
    std::byte* target = c.scratch() + transposed_at_;
    if (float_lhs_) {
      transpose_matrices(c.input(0).as<float>(), p_.lhs_matrices, p_.k, p_.m, reinterpret_cast<float*>(target));
    } else {
      transpose_matrices(c.input(0).as<int8_t>(), p_.lhs_matrices, p_.k, p_.m, reinterpret_cast<int8_t*>(target));
    }
    return target;
  }

  void pack_matrix(const std::byte* rhs, int64_t index, std::byte* target) const {
    const int64_t offset = index * p_.n * p_.k;
    if (float_rhs_) {
      const float* matrix = reinterpret_cast<const float*>(rhs) + offset;
      p_.adj_y ? kernels::pack_f32(matrix, p_.k, p_.n, p_.k, target)
               : kernels::pack_f32_kn(matrix, p_.n, p_.n, p_.k, target);
    } else {
      const int8_t* matrix = reinterpret_cast<const int8_t*>(rhs) + offset;
      p_.adj_y ? kernels::pack_i8(matrix, p_.k, p_.n, p_.k, target)
               : kernels::pack_i8_kn(matrix, p_.n, p_.n, p_.k, target);
    }
  }

  const std::byte* rhs_matrix(const RunContext& c, int64_t batch, int64_t slot) const {
    const int64_t index = p_.rhs_matrix(batch);
    if (fixed_rhs_ != nullptr) return c.packed() + index * matrix_bytes_;
    std::byte* target = c.scratch() + rhs_at_ + slot * matrix_bytes_;
    pack_matrix(c.input(1).data, index, target);
    return target;
  }

  void fill_scales(const RunContext& c) const {
    const Quantization& rhs = *c.input(1).quantization;
    auto* scales = reinterpret_cast<float*>(c.scratch() + scales_at_);
    for (int64_t i = 0; i < p_.n; ++i) {
      const float scale = rhs.scale[rhs.per_channel() ? static_cast<size_t>(i) : 0];
      scales[i] = float_lhs_ ? scale : c.input(0).quantization->scale0() * scale / c.output(0).quantization->scale0();
    }
  }

  /// Product number `batch`, on the pool or, without one, on the calling thread with workspace `slot`.
  void multiply(const RunContext& c, const std::byte* lhs, int64_t batch, const std::byte* rhs, int64_t slot,
                ThreadPool* pool) const {
    const int64_t lhs_row = p_.lhs_matrix(batch) * p_.m;
    const int64_t out = batch * p_.m * p_.n;
    if (float_rhs_) {
      const kernels::GemmF32 g{.a = reinterpret_cast<const float*>(lhs) + lhs_row * p_.k,
                               .lda = p_.k,
                               .m = p_.m,
                               .b = rhs,
                               .n = p_.n,
                               .k = p_.k,
                               .c = c.output(0).mutable_as<float>() + out,
                               .ldc = p_.n};
      pool != nullptr ? kernels::gemm_f32(g, *pool) : kernels::gemm_f32_range(g, 0, p_.m, 0, p_.n);
      return;
    }
    kernels::GemmI8 g{.a = reinterpret_cast<const int8_t*>(lhs) + lhs_row * p_.k,
                      .lda = p_.k,
                      .m = p_.m,
                      .b = rhs,
                      .n = p_.n,
                      .k = p_.k};
    auto finish = [&](const auto& output) {
      std::byte* workspace = c.scratch() + workspace_at_ + slot * workspace_bytes_;
      pool != nullptr ? kernels::gemm_i8(g, output, workspace, *pool)
                      : kernels::gemm_i8_range(g, output, 0, p_.m, 0, p_.n, workspace);
    };
    const auto* scales = reinterpret_cast<const float*>(c.scratch() + scales_at_);
    if (hybrid()) {
      g.a_row_zero_points = rows(c).zero_point + lhs_row;
      finish(kernels::DequantizedOutput{.c = c.output(0).mutable_as<float>() + out,
                                        .ldc = p_.n,
                                        .row_scale = rows(c).scale + lhs_row,
                                        .scale = scales});
    } else if (c.output(0).dtype == DType::kInt32) {
      finish(kernels::AccumulatorOutput{.c = c.output(0).mutable_as<int32_t>() + out, .ldc = p_.n});
    } else {
      g.a_zero_point = c.input(0).quantization->zero_point0();
      g.b_zero_point = c.input(1).quantization->zero_point0();
      finish(kernels::RequantizedOutput{.c = c.output(0).mutable_as<int8_t>() + out,
                                        .ldc = p_.n,
                                        .scale = scales,
                                        .zero_point = c.output(0).quantization->zero_point0()});
    }
  }

  Products p_;
  bool float_rhs_;
  bool float_lhs_;
  int64_t slots_;
  const std::byte* fixed_rhs_;  // null: packed anew in every run
  int64_t matrix_bytes_ = 0;    // of one packed right-hand matrix
  int64_t workspace_bytes_ = 0;
  int64_t transposed_at_ = 0, quantized_at_ = 0, row_scales_at_ = 0, row_zeros_at_ = 0;  // scratch
  int64_t scales_at_ = 0, workspace_at_ = 0, rhs_at_ = 0;                                // scratch
};

/// int16 times int16 or int8.
template <typename Rhs>
void run_int16(const Products& p, RunContext& c) {
  const Quantization& rhs = *c.input(1).quantization;
  auto* multipliers = c.scratch_as<kernels::Multiplier>();
  for (size_t i = 0; i < rhs.scale.size(); ++i) {
    multipliers[i] = kernels::quantize_multiplier(double{c.input(0).quantization->scale0() * rhs.scale[i]} /
                                                  double{c.output(0).quantization->scale0()});
  }
  const kernels::reference::FinishWide finish{
      .multiplier = multipliers, .lo = -32768, .hi = 32767, .step = rhs.per_channel() ? 1 : 0};
  const kernels::reference::MatmulShape shape{.m = p.m,
                                              .n = p.n,
                                              .k = p.k,
                                              .a_row = p.adj_x ? 1 : p.k,
                                              .a_depth = p.adj_x ? p.m : 1,
                                              .b_column = p.adj_y ? p.k : 1,
                                              .b_depth = p.adj_y ? 1 : p.n,
                                              .c_row = p.n};
  c.pool().parallel_for(p.batches * p.m, 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t batch = row / p.m;
      kernels::reference::matmul(shape, c.input(0).as<int16_t>() + p.lhs_matrix(batch) * p.m * p.k,
                                 kernels::reference::FixedZero{},
                                 c.input(1).as<Rhs>() + p.rhs_matrix(batch) * p.k * p.n, 0, finish,
                                 c.output(0).mutable_as<int16_t>() + batch * p.m * p.n, row % p.m, row % p.m + 1);
    }
  });
}

std::unique_ptr<Kernel> prepare(PrepareContext& c) {
  Products p = products_of(c);
  if (c.output(0).shape.elements() == 0) return make_kernel([](RunContext&) {});
  if (c.input(0).dtype() == DType::kInt16) {
    c.request_scratch(static_cast<int64_t>(c.input(1).quantization().scale.size() * sizeof(kernels::Multiplier)));
    if (c.input(1).dtype() == DType::kInt16) return make_kernel([p](RunContext& run) { run_int16<int16_t>(p, run); });
    return make_kernel([p](RunContext& run) { run_int16<int8_t>(p, run); });
  }
  if (!p.adj_x) merge_rows(p);
  // A constant is packed ahead, but transposing the left-hand side would take as much scratch as it has bytes.
  const bool packs_ahead = fixed_input(c, 1, 0) && !p.adj_x;
  if (c.input(1).dtype() == DType::kFloat32 && !packs_ahead) return make_float_matmul(c, p);
  return std::make_unique<GemmBatchMatmul>(c, p);
}

}  // namespace

void register_batch_matmul(Registry& registry) {
  registry.add({.name = "BATCH_MATMUL",
                .code = 126,
                .max_version = 4,
                .min_inputs = 2,
                .max_inputs = 2,
                .required_inputs = 2,
                .options = {1, 101},
                .make_attributes = make_attributes<BatchMatmulAttributes>,
                .infer = AlsoHalf<infer, prepare, 0b11>::infer,
                .prepare = AlsoHalf<infer, prepare, 0b11>::prepare,
                .quantize = with_hybrid_weights(free_rule(2, 3), 0b10),
                .types = "f32 f16 i8 i8-i32 i16 i16x8 hybrid",
                .fast = "f32 i8 hybrid"});
}

}  // namespace leadline::ops
