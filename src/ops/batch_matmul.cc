// SPDX-License-Identifier: Apache-2.0
// BATCH_MATMUL: [..., M, K] times [..., K, N], either side transposed by its attribute, outer dimensions broadcast.
// Float and 8-bit products run on the packed gemm; int16 ones are naive.
#include "ops/batch_matmul.h"

#include <algorithm>
#include <cmath>

#include "kernels/gemm/gemm_f32.h"
#include "kernels/reference/matmul.h"
#include "ops/common.h"
#include "ops/contraction.h"
#include "ops/families.h"
#include "ops/float_matmul.h"
#include "ops/half_activations.h"
#include "ops/integer_matmul.h"
#include "ops/loops/gemm.h"
#include "ops/loops/pack.h"
#include "ops/loops/reference.h"
#include "ops/quantization_rules.h"

namespace leadline::ops {
namespace {

int output_axis(const ir::Attributes& attributes, int rank) {
  return rank - (ir::attributes_as<BatchMatmulAttributes>(attributes).adj_y ? 2 : 1);
}

constexpr ContractionOperands kMatmulOperands = {
    .kind = ContractionKind::kMatmul, .bias = -1, .rank = 0, .find_output_axis = output_axis};

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

/// The right-hand side is quantized per tensor or per column. LiteRT returns zeros for columns of int8 and int16
/// products; here they have their scales.
void check_scales(const OpContext& c) {
  const Operand& lhs = c.input(0);
  const Operand& rhs = c.input(1);
  if (rhs.dtype() == DType::kFloat32 || c.output(0).dtype() == DType::kInt32) return;
  const Quantization& q = rhs.quantization();
  const int axis = output_axis(*c.node().attributes, rhs.shape.rank());
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
    c.require(kernels::finite_ratio(lhs.quantization().scale0(), scale, c.output(0).quantization().scale0()),
              "the scales of the inputs and the output give a factor that is not finite");
  }
  c.require(lhs.dtype() != DType::kInt16 ||
                (lhs.quantization().zero_point0() == 0 && c.output(0).quantization().zero_point0() == 0),
            "the zero points of an int16 product are not all 0");
}

void infer_batch_matmul(InferContext& c) {
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

/// float32 products with constant right-hand matrices, which are packed once. Left-hand ones are not transposed.
class PackedFloatMatmul final : public Kernel {
 public:
  PackedFloatMatmul(PrepareContext& c, const Products& products)
      : p_(products),
        rhs_(c.input(1).data),
        matrix_bytes_(align_up(kernels::packed_bytes_f32(p_.n, p_.k))),
        by_batch_(p_.batches >= 2 * c.threads()) {
    c.request_packed(p_.rhs_matrices * matrix_bytes_, "gemm");
    c.replaces_input(1);
  }

  void pack(std::byte* packed) override {
    for_pieces(p_.rhs_matrices, static_cast<double>(p_.n * p_.k) + 64, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const float* matrix = reinterpret_cast<const float*>(rhs_) + i * p_.n * p_.k;
        std::byte* target = packed + i * matrix_bytes_;
        p_.adj_y ? pack_matrix(matrix, p_.k, p_.n, p_.k, target) : pack_matrix_kn(matrix, p_.n, p_.n, p_.k, target);
      }
    });
  }

  /// Many products: one per thread at a time. Few: the threads share each.
  void run(RunContext& c) override {
    const double cost = static_cast<double>(p_.m * p_.n) * static_cast<double>(p_.k) / 16 + 256;
    if (!by_batch_) {
      return for_pieces(p_.batches, cost, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) gemm_f32(product(c, i), c.pool());
      });
    }
    c.pool().for_pieces(p_.batches, cost, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) multiply(product(c, i), {0, p_.m}, {0, p_.n});
    });
  }

 private:
  kernels::GemmF32 product(const RunContext& c, int64_t batch) const {
    return {.a = c.input(0).as<float>() + p_.lhs_matrix(batch) * p_.m * p_.k,
            .lda = p_.k,
            .m = p_.m,
            .b = c.packed() + p_.rhs_matrix(batch) * matrix_bytes_,
            .n = p_.n,
            .k = p_.k,
            .c = c.output(0).mutable_as<float>() + batch * p_.m * p_.n,
            .ldc = p_.n};
  }

  Products p_;
  const std::byte* rhs_;
  int64_t matrix_bytes_;
  bool by_batch_;
};

/// int16 times int16 or int8.
template <typename Rhs>
void run_int16(const Products& p, RunContext& c) {
  const Quantization& rhs = *c.input(1).quantization;
  auto* multipliers = c.scratch_as<kernels::Multiplier>();
  for_pieces(static_cast<int64_t>(rhs.scale.size()), 32, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const float scale = rhs.scale[static_cast<size_t>(i)];
      multipliers[i] = kernels::quantize_multiplier(double{c.input(0).quantization->scale0() * scale} /
                                                    double{c.output(0).quantization->scale0()});
    }
  });
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
  // Many products: one per thread at a time; inside of that the pool has one thread.
  const double cost = static_cast<double>(p.m * p.n) * static_cast<double>(p.k) + 256;
  const auto multiply_some = [&](int64_t begin, int64_t end) {
    for (int64_t batch = begin; batch < end; ++batch) {
      using kernels::reference::FixedZero;
      using kernels::reference::FinishWide;
      run_reference(
          kernels::reference::Matmul<int16_t, Rhs, FixedZero, FinishWide, int16_t>{
              shape, c.input(0).as<int16_t>() + p.lhs_matrix(batch) * p.m * p.k, FixedZero{},
              c.input(1).as<Rhs>() + p.rhs_matrix(batch) * p.k * p.n, 0, finish,
              c.output(0).mutable_as<int16_t>() + batch * p.m * p.n},
          c.pool());
    }
  };
  p.batches >= c.pool().size() ? c.pool().for_pieces(p.batches, cost, multiply_some)
                               : for_pieces(p.batches, cost, multiply_some);
}

std::unique_ptr<Kernel> prepare_batch_matmul(PrepareContext& c) {
  Products p = products_of(c);
  if (c.output(0).shape.elements() == 0) return make_kernel([](RunContext&) {});
  if (c.input(0).dtype() == DType::kInt16) {
    c.request_scratch(static_cast<int64_t>(c.input(1).quantization().scale.size() * sizeof(kernels::Multiplier)));
    if (c.input(1).dtype() == DType::kInt16) return make_kernel([p](RunContext& run) { run_int16<int16_t>(p, run); });
    return make_kernel([p](RunContext& run) { run_int16<int8_t>(p, run); });
  }
  if (!p.adj_x) merge_rows(p);
  if (c.input(1).dtype() != DType::kFloat32) return make_integer_matmul(c, p);
  // Transposing the left-hand side for packed columns would take as much scratch as it has bytes.
  if (p.adj_x || !fixed_input(c, 1, 0)) return make_float_matmul(c, p);
  return std::make_unique<PackedFloatMatmul>(c, p);
}

}  // namespace

void register_batch_matmul(Registry& registry) {
  registry.add({.id = op::kBatchMatmul,
                .max_version = 4,
                .min_inputs = 2,
                .max_inputs = 2,
                .required_inputs = 2,
                .options = builtin_options(101),
                .make_attributes = make_attributes<BatchMatmulAttributes>,
                .infer = AlsoHalf<infer_batch_matmul, prepare_batch_matmul, 0b11>::infer,
                .prepare = AlsoHalf<infer_batch_matmul, prepare_batch_matmul, 0b11>::prepare,
                .contraction = kMatmulOperands,
                .quantize = with_hybrid_weights(free_rule({.int8 = 2, .int16 = 3, .hybrid = 4}),
                                                input_set({kMatmulOperands.weights})),
                .types = "f32 f16 i8 i8-i32 i16 i16x8 hybrid",
                .fast = "f32 i8 hybrid"});
}

}  // namespace leadline::ops
