// SPDX-License-Identifier: Apache-2.0
// What CONV_2D, DEPTHWISE_CONV_2D, TRANSPOSE_CONV and FULLY_CONNECTED share: the number formats of activations,
// weights, bias and output, the parameters that follow from them, and a kernel that runs their naive loops.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "core/buffer.h"
#include "kernels/quant/dynamic.h"
#include "kernels/reference/contraction.h"
#include "ops/loops/quantize_rows.h"
#include "ops/loops/reference.h"
#include "ops/op.h"

namespace leadline::ops {

/// How products are computed.
enum class Arithmetic : uint8_t {
  kFloat,      ///< float32 activations, float32 or float16 weights
  kQuantized,  ///< 8-bit activations and weights, 32-bit sums
  kWide,       ///< int16 activations, 8- or 16-bit weights, 64-bit sums
  kHybrid,     ///< float32 activations quantized per row while running, integer weights
};

/// What the op says about its operands, those of its row included.
struct ContractionRule : ContractionOperands {
  ContractionRule() = default;
  ContractionRule(const OpContext& c, const ContractionOperands& operands)
      : ContractionOperands(operands), channels(c.input(operands.weights).shape[operands.output_axis]) {}

  int64_t channels = 0;
  DType bias_attribute = DType::kFloat32;  // quantized_bias_type; float32 means that it is not set
  bool int16_weights = false;              // FULLY_CONNECTED
  bool int16_output = false;               // FULLY_CONNECTED: uint8 activations may give int16
  bool symmetric_weights = false;  // TFLite takes the zero point of signed weights for 0, whatever the file says
};

/// Checks types, quantization and bias of the node's operands. Throws what is wrong.
Arithmetic check_contraction(const OpContext& c, const ContractionRule& rule);

/// Hands out aligned parts of one block of memory.
class BlockLayout {
 public:
  /// Offset of a new part. Sizes are those of memory that exists, so their sum fits.
  int64_t take(int64_t bytes) { return std::exchange(size_, size_ + align_up(bytes)); }
  int64_t size() const { return size_; }

 private:
  int64_t size_ = 0;
};

/// Everything a kernel must know about formats, by value; the quantizations and constants belong to the graph.
struct Contraction {
  Arithmetic arithmetic = Arithmetic::kFloat;
  ContractionRule rule;
  DType activation_type = DType::kFloat32;
  DType weight_type = DType::kFloat32;
  DType bias_type = DType::kFloat32;
  DType output_type = DType::kFloat32;
  bool has_bias = false;
  kernels::reference::WideRounding wide_rounding = {};     // kWide
  kernels::RowRule row_rule = kernels::RowRule::kXnnpack;  // kHybrid
  float lo = 0;                                            // fused activation: real numbers, and levels of the output
  float hi = 0;
  int32_t level_lo = 0;
  int32_t level_hi = 0;
  int32_t input_zero = 0;
  int32_t weight_zero = 0;
  int32_t output_zero = 0;
  float input_scale = 0;
  float output_scale = 0;
  const Quantization* weight_quantization = nullptr;
  int64_t weight_count = 0;
  const std::byte* fixed_weights = nullptr;  // contents that never change; null when they are computed while running
  bool has_fixed_weights = false;
  const std::byte* fixed_bias = nullptr;
  bool has_fixed_bias = false;

  /// Weights that kernels cannot read as they are (float16, less than 8 bits).
  bool compact_weights() const;
  /// Bytes of the weights once widened.
  int64_t widened_bytes() const;
  /// The weights have one scale, or many that are all the same.
  bool uniform_scale() const;
  /// Neither weights nor bias are computed while running.
  bool all_fixed() const { return has_fixed_weights && (!has_bias || has_fixed_bias); }
  /// Widens compact weights.
  void widen_weights(const std::byte* source, std::byte* target) const;
  /// input_scale * weight scale / output_scale (kQuantized), or the weight's scale alone (kHybrid).
  void fill_scales(float* scales) const;
  /// The factors of kWide.
  void fill_multipliers(kernels::Multiplier* multipliers) const;
  /// The same as real numbers.
  void fill_real_scales(double* scales) const;
};

/// For prepare(), after infer() accepted the operands.
Contraction make_contraction(const OpContext& c, const ContractionRule& rule, ir::Activation activation);

/// True when input `i` has contents that stay the same in every run: constants, and what planning folded. While a
/// deferred node is inferred all inputs are known; then only constants count.
bool fixed_input(const OpContext& c, int i, int activations);

/// Runs a naive loop. `Loop` has
///   int64_t images() const, image_size() const:  the rows that dynamic range quantizes one by one
///   void operator()(ThreadPool&, const In*, Zero, const Weight*, int32_t weight_zero, const Finish&, Out*) const
template <typename Loop>
class ReferenceContraction final : public Kernel {
 public:
  ReferenceContraction(PrepareContext& c, const Contraction& contraction, const Loop& loop)
      : contraction_(contraction), loop_(loop) {
    BlockLayout packed;
    scales_at_ = packed.take(contraction_.rule.channels * static_cast<int64_t>(sizeof(kernels::Multiplier)));
    BlockLayout scratch;
    if (contraction_.compact_weights()) {
      BlockLayout& home = contraction_.has_fixed_weights ? packed : scratch;
      weights_at_ = home.take(contraction_.widened_bytes());
    }
    if (contraction_.bias_type == DType::kFloat16) bias_at_ = scratch.take(contraction_.rule.channels * 4);
    if (contraction_.arithmetic == Arithmetic::kHybrid) {
      quantized_at_ = scratch.take(loop_.images() * loop_.image_size());
      row_scales_at_ = scratch.take(loop_.images() * 4);
      row_zeros_at_ = scratch.take(loop_.images() * 4);
    }
    const bool widened = contraction_.compact_weights() && contraction_.has_fixed_weights;
    c.request_packed(packed.size(), widened ? "reference.widened" : "reference");
    c.request_scratch(scratch.size());
    if (widened) c.replaces_input(contraction_.rule.weights);
  }

  void pack(std::byte* packed) override {
    if (contraction_.arithmetic == Arithmetic::kWide && real_scales()) {
      contraction_.fill_real_scales(reinterpret_cast<double*>(packed + scales_at_));
    } else if (contraction_.arithmetic == Arithmetic::kWide) {
      contraction_.fill_multipliers(reinterpret_cast<kernels::Multiplier*>(packed + scales_at_));
    } else if (contraction_.arithmetic != Arithmetic::kFloat) {
      contraction_.fill_scales(reinterpret_cast<float*>(packed + scales_at_));
    }
    if (contraction_.compact_weights() && contraction_.has_fixed_weights) {
      contraction_.widen_weights(contraction_.fixed_weights, packed + weights_at_);
    }
  }

  void run(RunContext& c) override;

 private:
  const std::byte* weights(RunContext& c) const {
    if (!contraction_.compact_weights()) return c.input(contraction_.rule.weights).data;
    if (contraction_.has_fixed_weights) return c.packed() + weights_at_;
    contraction_.widen_weights(c.input(contraction_.rule.weights).data, c.scratch() + weights_at_);
    return c.scratch() + weights_at_;
  }
  bool real_scales() const { return contraction_.wide_rounding == kernels::reference::WideRounding::kReal; }
  const float* float_bias(RunContext& c) const;
  template <typename T>
  const T* bias(RunContext& c) const {
    return contraction_.has_bias ? c.input(contraction_.rule.bias).as<T>() : nullptr;
  }
  void run_quantized(RunContext& c);
  void run_wide(RunContext& c);
  void run_hybrid(RunContext& c);

  Contraction contraction_;
  Loop loop_;
  int64_t scales_at_ = 0;      // packed
  int64_t weights_at_ = 0;     // packed, or scratch when the weights are computed while running
  int64_t bias_at_ = 0;        // scratch
  int64_t quantized_at_ = 0;   // scratch
  int64_t row_scales_at_ = 0;  // scratch
  int64_t row_zeros_at_ = 0;   // scratch
};

/// float32 bias from float32 or float16 bits.
const float* widen_bias(const TensorView& bias, float* target);

template <typename Loop>
const float* ReferenceContraction<Loop>::float_bias(RunContext& c) const {
  if (!contraction_.has_bias) return nullptr;
  return widen_bias(c.input(contraction_.rule.bias), reinterpret_cast<float*>(c.scratch() + bias_at_));
}

template <typename Loop>
void ReferenceContraction<Loop>::run(RunContext& c) {
  if (c.output(0).elements() == 0) return;
  switch (contraction_.arithmetic) {
    case Arithmetic::kFloat: {
      const kernels::reference::FinishFloat finish{float_bias(c), contraction_.lo, contraction_.hi};
      loop_(c.pool(), c.input(contraction_.rule.activations).as<float>(), kernels::reference::FixedZero{},
            reinterpret_cast<const float*>(weights(c)), 0, finish, c.output(0).mutable_as<float>());
      return;
    }
    case Arithmetic::kQuantized:
      return run_quantized(c);
    case Arithmetic::kWide:
      return run_wide(c);
    case Arithmetic::kHybrid:
      return run_hybrid(c);
  }
}

template <typename Loop>
void ReferenceContraction<Loop>::run_quantized(RunContext& c) {
  const auto* scales = reinterpret_cast<const float*>(c.packed() + scales_at_);
  const TensorView& input = c.input(contraction_.rule.activations);
  const kernels::reference::FixedZero zero{contraction_.input_zero};
  auto run_as = [&](const auto* activations, const auto* filter, auto* output) {
    const kernels::reference::FinishQuantized<std::remove_pointer_t<decltype(output)>> finish{
        bias<int32_t>(c), scales, contraction_.output_zero, contraction_.level_lo, contraction_.level_hi};
    loop_(c.pool(), activations, zero, filter, contraction_.weight_zero, finish, output);
  };
  const std::byte* filter = weights(c);
  if (contraction_.activation_type == DType::kInt8) {
    run_as(input.as<int8_t>(), reinterpret_cast<const int8_t*>(filter), c.output(0).mutable_as<int8_t>());
  } else if (contraction_.output_type == DType::kInt16) {
    run_as(input.as<uint8_t>(), reinterpret_cast<const uint8_t*>(filter), c.output(0).mutable_as<int16_t>());
  } else {
    run_as(input.as<uint8_t>(), reinterpret_cast<const uint8_t*>(filter), c.output(0).mutable_as<uint8_t>());
  }
}

template <typename Loop>
void ReferenceContraction<Loop>::run_wide(RunContext& c) {
  const bool wide_bias = contraction_.bias_type == DType::kInt64;
  static_assert(sizeof(double) == sizeof(kernels::Multiplier));
  const std::byte* scales = c.packed() + scales_at_;
  const kernels::reference::FinishWide finish{
      .bias32 = wide_bias ? nullptr : bias<int32_t>(c),
      .bias64 = wide_bias ? bias<int64_t>(c) : nullptr,
      .multiplier = real_scales() ? nullptr : reinterpret_cast<const kernels::Multiplier*>(scales),
      .rounding = contraction_.wide_rounding,
      .zero_point = contraction_.output_zero,
      .lo = contraction_.level_lo,
      .hi = contraction_.level_hi,
      .real = real_scales() ? reinterpret_cast<const double*>(scales) : nullptr};
  const auto* input = c.input(contraction_.rule.activations).as<int16_t>();
  auto* output = c.output(0).mutable_as<int16_t>();
  const std::byte* filter = weights(c);
  const kernels::reference::FixedZero zero{contraction_.input_zero};
  if (contraction_.weight_type == DType::kInt16) {
    loop_(c.pool(), input, zero, reinterpret_cast<const int16_t*>(filter), contraction_.weight_zero, finish, output);
  } else {
    loop_(c.pool(), input, zero, reinterpret_cast<const int8_t*>(filter), contraction_.weight_zero, finish, output);
  }
}

template <typename Loop>
void ReferenceContraction<Loop>::run_hybrid(RunContext& c) {
  auto* quantized = reinterpret_cast<int8_t*>(c.scratch() + quantized_at_);
  const kernels::RowParameters rows{reinterpret_cast<float*>(c.scratch() + row_scales_at_),
                                    reinterpret_cast<int32_t*>(c.scratch() + row_zeros_at_)};
  quantize_rows(c.input(contraction_.rule.activations).as<float>(), loop_.images(), loop_.image_size(), quantized, rows,
                c.pool(), contraction_.row_rule);
  const kernels::reference::FinishHybrid finish{rows.scale, reinterpret_cast<const float*>(c.packed() + scales_at_),
                                                float_bias(c), contraction_.lo, contraction_.hi};
  loop_(c.pool(), quantized, kernels::reference::RowZero{rows.zero_point}, reinterpret_cast<const int8_t*>(weights(c)),
        contraction_.weight_zero, finish, c.output(0).mutable_as<float>());
}

}  // namespace leadline::ops
