// SPDX-License-Identifier: Apache-2.0
#include "ops/gemm_kernel.h"

#include <algorithm>
#include <cmath>

#include "kernels/gemm/gemv_i8.h"
#include "ops/float_matmul.h"
#include "ops/loops/gemm.h"

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
      gemm_f32({.a = input.as<float>(),
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
      return gemm_i8(g, output, workspace, c.pool());
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
      gemm_i8(g, output, workspace, c.pool());
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

/// One 8-bit row times few weights, by dot products with the weights as they are: a gemm would read them padded to
/// whole vectors of outputs.
class DotsKernel final : public Kernel {
 public:
  DotsKernel(PrepareContext& c, const Contraction& contraction, int64_t n, int64_t k)
      : contraction_(contraction), n_(n), k_(k) {
    BlockLayout packed;
    scales_at_ = packed.take(n_ * 4);
    sums_at_ = packed.take(n_ * 4);
    c.request_packed(packed.size(), "dots");
    c.request_scratch(n_ * 4);
  }

  /// Only int8 weights without zero point.
  static bool possible(const Contraction& f) {
    return f.arithmetic == Arithmetic::kQuantized && f.weight_type == DType::kInt8 && f.weight_zero == 0 &&
           f.has_fixed_weights;
  }

  void pack(std::byte* packed) override {
    contraction_.fill_scales(reinterpret_cast<float*>(packed + scales_at_));
    const auto* weights = reinterpret_cast<const int8_t*>(contraction_.fixed_weights);
    auto* sums = reinterpret_cast<int32_t*>(packed + sums_at_);
    for (int64_t j = 0; j < n_; ++j) sums[j] = 0;
    for_boxes<2>({{{{0, n_}}, {{0, k_}}}}, 0.25, [&](const auto& box) {
      for (int64_t j = box[0].begin; j < box[0].end; ++j) {
        // Fewer than 2^24 weights fit, and what does not wraps as the products do.
        auto sum = static_cast<uint32_t>(sums[j]);
        for (int64_t i = box[1].begin; i < box[1].end; ++i) sum += static_cast<uint32_t>(int32_t{weights[j * k_ + i]});
        sums[j] = static_cast<int32_t>(sum);
      }
    });
  }

  void run(RunContext& c) override {
    const Contraction& f = contraction_;
    const auto* scales = reinterpret_cast<const float*>(c.packed() + scales_at_);
    const auto* b_sums = reinterpret_cast<const int32_t*>(c.packed() + sums_at_);
    const auto* weights = c.input(f.rule.weights).as<int8_t>();
    const auto* bias = f.has_bias ? c.input(f.rule.bias).as<int32_t>() : nullptr;
    auto* sums = reinterpret_cast<int32_t*>(c.scratch());
    constexpr double kMacCost = 0.1;
    c.pool().for_pieces(n_, kMacCost * static_cast<double>(k_), [&](int64_t begin, int64_t end) {
      const kernels::GemvI8 g{.a = c.input(f.rule.activations).data,
                              .a_unsigned = f.activation_type == DType::kUInt8,
                              .zero_point = f.input_zero,
                              .b = weights + begin * k_,
                              .ldb = k_,
                              .b_sums = b_sums + begin,
                              .n = end - begin,
                              .k = k_};
      for_pieces(k_, kMacCost * static_cast<double>(g.n),
                 [&](int64_t from, int64_t to) { kernels::gemv_dots_i8(g, from, to, sums + begin); });
    });
    const auto lo = static_cast<float>(f.level_lo - f.output_zero);
    const auto hi = static_cast<float>(f.level_hi - f.output_zero);
    auto* output = reinterpret_cast<uint8_t*>(c.output(0).data);
    for (int64_t j = 0; j < n_; ++j) {
      const uint32_t sum = static_cast<uint32_t>(sums[j]) + (bias == nullptr ? 0 : static_cast<uint32_t>(bias[j]));
      const float scaled = static_cast<float>(static_cast<int32_t>(sum)) * scales[j];
      output[j] =
          static_cast<uint8_t>(static_cast<int32_t>(std::nearbyintf(std::clamp(scaled, lo, hi))) + f.output_zero);
    }
  }

 private:
  Contraction contraction_;
  int64_t n_;
  int64_t k_;
  int64_t scales_at_ = 0;  // packed
  int64_t sums_at_ = 0;    // packed
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
  if (DotsKernel::possible(contraction) && by_dot_products(m, n, k)) {
    return std::make_unique<DotsKernel>(c, contraction, n, k);
  }
  return std::make_unique<GemmKernel>(c, contraction, m, n, k);
}

}  // namespace leadline::ops
