// SPDX-License-Identifier: Apache-2.0
#include "ops/gemm_kernel.h"

#include <algorithm>

#include "kernels/gemm/split.h"
#include "ops/float_matmul.h"

namespace leadline::ops {
namespace {

/// Quantized rows of dynamic range that exist at the same time.
constexpr int64_t kRowBytes = 4 << 20;

/// One row times few weights: the gemm has a sum for each output, too few to keep the multipliers busy. Dot products
/// with the weights as they are split k over the lanes of several vectors instead, in an order that depends on k alone.
/// The choice depends on the op's sizes only, never on threads.
bool by_dot_products(int64_t m, int64_t n, int64_t k) { return m == 1 && n <= 64 && k >= 128; }

/// Rows times packed weights.
class GemmKernel final : public Kernel {
 public:
  GemmKernel(PrepareContext& c, const Contraction& contraction, int64_t m, int64_t n, int64_t k)
      : GemmKernel(c, contraction, m, n, k, BlockLayout(), BlockLayout()) {}

  void pack(std::byte* packed) override { weights_.pack(packed); }

  void run(RunContext& c) override {
    if (c.output(0).elements() == 0) return;
    weights_.update(c);
    const Contraction& f = weights_.contraction();
    const TensorView& input = c.input(f.rule.activations);
    const auto [n, k, count] = weights_.layout();
    if (f.arithmetic == Arithmetic::kFloat) {
      kernels::gemm_f32({.a = input.as<float>(),
                         .lda = k,
                         .m = m_,
                         .b = weights_.get(c),
                         .n = n,
                         .k = k,
                         .bias = weights_.float_bias(c),
                         .c = c.output(0).mutable_as<float>(),
                         .ldc = n,
                         .lo = f.lo,
                         .hi = f.hi},
                        c.pool());
      return;
    }
    kernels::GemmI8 g{.a = input.data,
                      .a_unsigned = f.activation_type == DType::kUInt8,
                      .lda = k,
                      .m = m_,
                      .a_zero_point = f.input_zero,
                      .b = weights_.get(c),
                      .b_zero_point = weights_.zero_point(),
                      .n = n,
                      .k = k};
    std::byte* workspace = c.scratch() + workspace_at_;
    if (f.arithmetic == Arithmetic::kQuantized) {
      g.bias = weights_.int_bias(c);
      const kernels::RequantizedOutput output{.c = c.output(0).data,
                                              .c_unsigned = g.a_unsigned,
                                              .ldc = n,
                                              .scale = weights_.scales(c),
                                              .zero_point = f.output_zero,
                                              .lo = f.level_lo,
                                              .hi = f.level_hi};
      return kernels::gemm_i8(g, output, workspace, c.pool());
    }
    g.a = rows_.values(c);
    g.a_row_zero_points = rows_.zeros(c);
    kernels::DequantizedOutput output{.ldc = n,
                                      .row_scale = rows_.scales(c),
                                      .scale = weights_.scales(c),
                                      .bias = weights_.float_bias(c),
                                      .lo = f.lo,
                                      .hi = f.hi};
    for (int64_t row = 0; row < m_; row += band_) {
      g.m = std::min(band_, m_ - row);
      rows_.quantize(c, input.as<float>() + row * k, g.m);
      output.c = c.output(0).mutable_as<float>() + row * n;
      kernels::gemm_i8(g, output, workspace, c.pool());
    }
  }

 private:
  GemmKernel(PrepareContext& c, const Contraction& contraction, int64_t m, int64_t n, int64_t k, BlockLayout packed,
             BlockLayout scratch)
      : m_(m), weights_(contraction, {n, k}, packed, scratch) {
    if (contraction.arithmetic != Arithmetic::kFloat) {
      workspace_at_ = scratch.take(c.threads() * kernels::gemm_i8_workspace_bytes(m_, k));
    }
    if (contraction.arithmetic == Arithmetic::kHybrid) {
      const int64_t fitting = kRowBytes / std::max<int64_t>(k, 1) / kernels::kGemmTileRows * kernels::kGemmTileRows;
      band_ = std::min(m_, std::max(fitting, kernels::kGemmTileRows * c.threads()));
      rows_ = QuantizedRows(band_, k, contraction.row_rule, scratch);
    }
    weights_.request(c, "gemm", packed, scratch);
  }

  int64_t m_;
  int64_t band_ = 0;  // rows that dynamic range quantizes at a time
  PackedWeights<GemmLayout> weights_;
  QuantizedRows rows_;        // dynamic range
  int64_t workspace_at_ = 0;  // scratch
};

}  // namespace

std::unique_ptr<Kernel> make_gemm_kernel(PrepareContext& c, const Contraction& contraction, int64_t m, int64_t n,
                                         int64_t k) {
  const bool float_bias = !contraction.has_bias || contraction.bias_type == DType::kFloat32;
  const bool plain = contraction.weight_type == DType::kFloat32 && contraction.arithmetic == Arithmetic::kFloat &&
                     float_bias && contraction.rule.activations == 0 && contraction.rule.weights == 1;
  if (plain && (!contraction.has_fixed_weights || by_dot_products(m, n, k))) {
    Products products;
    products.m = m;
    products.n = n;
    products.k = k;
    products.adj_y = true;
    return make_float_matmul(
        c, products,
        {.bias = contraction.has_bias ? contraction.rule.bias : -1, .lo = contraction.lo, .hi = contraction.hi});
  }
  return std::make_unique<GemmKernel>(c, contraction, m, n, k);
}

}  // namespace leadline::ops
