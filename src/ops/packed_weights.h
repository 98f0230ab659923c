// SPDX-License-Identifier: Apache-2.0
// The weights of a contraction in the layout of a fast kernel, with their per-channel factors.
// Fixed weights are packed once, into packed memory; weights computed while running are packed into scratch each time.
#pragma once

#include <fmt/core.h>

#include <string>

#include "kernels/gemm/gemm_f32.h"
#include "kernels/gemm/gemm_i8.h"
#include "ops/contraction.h"
#include "ops/loops/pack.h"
#include "ops/loops/quantize_rows.h"

namespace leadline::ops {

/// True for the arithmetic the fast kernels have: float, 8-bit with 8-bit outputs, dynamic range.
inline bool packable(const Contraction& f) {
  return f.arithmetic == Arithmetic::kFloat || f.arithmetic == Arithmetic::kHybrid ||
         (f.arithmetic == Arithmetic::kQuantized && f.output_type == f.activation_type);
}

/// `Layout` has bytes_f32() and bytes_i8() and pack(source, target) for pointers to float, uint16_t (float16 bits),
/// int8_t and uint8_t weights, and for CompactWeights. pack() of uint8_t stores w - 128.
template <typename Layout>
class PackedWeights {
 public:
  /// Takes its room from both blocks.
  PackedWeights(const Contraction& contraction, const Layout& layout, BlockLayout& packed, BlockLayout& scratch)
      : contraction_(contraction), layout_(layout) {
    const bool fixed = contraction_.has_fixed_weights;
    weights_at_ = (fixed ? packed : scratch).take(real() ? layout_.bytes_f32() : layout_.bytes_i8());
    if (!real()) scales_at_ = packed.take(contraction_.rule.channels * 4);
    if (contraction_.bias_type == DType::kFloat16) bias_at_ = scratch.take(contraction_.rule.channels * 4);
  }

  /// Asks for the memory of both blocks, once they are complete. `name` is the kernel's.
  void request(PrepareContext& c, const char* name, const BlockLayout& packed, const BlockLayout& scratch) const {
    const bool fixed = contraction_.has_fixed_weights;
    c.request_packed(packed.size(), fixed ? std::string(name) : fmt::format("{}.factors", name));
    c.request_scratch(scratch.size());
    if (fixed) c.replaces_input(contraction_.rule.weights);
  }

  /// Fills its part of the packed memory.
  void pack(std::byte* packed) const {
    if (!real()) contraction_.fill_scales(reinterpret_cast<float*>(packed + scales_at_));
    if (contraction_.has_fixed_weights) pack_from(contraction_.fixed_weights, packed + weights_at_);
  }

  /// Packs weights that are not fixed. Call once per run, before get().
  void update(const RunContext& c) const {
    if (contraction_.has_fixed_weights) return;
    pack_from(c.input(contraction_.rule.weights).data, c.scratch() + weights_at_);
  }

  /// The packed weights.
  const std::byte* get(const RunContext& c) const {
    return (contraction_.has_fixed_weights ? c.packed() : c.scratch()) + weights_at_;
  }
  /// The factors of Contraction::fill_scales().
  const float* scales(const RunContext& c) const { return reinterpret_cast<const float*>(c.packed() + scales_at_); }
  /// Zero point of the weights as packed.
  int32_t zero_point() const { return contraction_.weight_zero - (as_unsigned() ? 128 : 0); }
  /// float32 bias, widened into scratch where it is float16; null when there is none.
  const float* float_bias(const RunContext& c) const {
    if (!contraction_.has_bias) return nullptr;
    return widen_bias(c.input(contraction_.rule.bias), reinterpret_cast<float*>(c.scratch() + bias_at_));
  }
  /// int32 bias; null when there is none.
  const int32_t* int_bias(const RunContext& c) const {
    return contraction_.has_bias ? c.input(contraction_.rule.bias).as<int32_t>() : nullptr;
  }

  const Contraction& contraction() const { return contraction_; }
  const Layout& layout() const { return layout_; }

 private:
  bool real() const { return contraction_.arithmetic == Arithmetic::kFloat; }
  // Dynamic range reads uint8 weights as TFLite does: the bytes are int8.
  bool as_unsigned() const {
    return contraction_.weight_type == DType::kUInt8 && contraction_.arithmetic == Arithmetic::kQuantized;
  }

  void pack_from(const std::byte* source, std::byte* target) const {
    if (contraction_.weight_type == DType::kInt4 || contraction_.weight_type == DType::kInt2) {
      const int bits = contraction_.weight_type == DType::kInt4 ? 4 : 2;
      layout_.pack(CompactWeights{reinterpret_cast<const uint8_t*>(source), bits}, target);
    } else if (contraction_.weight_type == DType::kFloat32) {
      layout_.pack(reinterpret_cast<const float*>(source), target);
    } else if (contraction_.weight_type == DType::kFloat16) {
      layout_.pack(reinterpret_cast<const uint16_t*>(source), target);
    } else if (as_unsigned()) {
      layout_.pack(reinterpret_cast<const uint8_t*>(source), target);
    } else {
      layout_.pack(reinterpret_cast<const int8_t*>(source), target);
    }
  }

  Contraction contraction_;
  Layout layout_;
  int64_t weights_at_ = 0;  // packed, or scratch
  int64_t scales_at_ = 0;   // packed
  int64_t bias_at_ = 0;     // scratch
};

/// Whether weights of this kind are packed for float products.
template <typename Source>
inline constexpr bool kPacksFloats = std::is_same_v<Source, const float*> || std::is_same_v<Source, const uint16_t*>;

/// `count` matrices [n, k] for the gemm, one after the other in the weights.
struct GemmLayout {
  int64_t n = 0;
  int64_t k = 0;
  int64_t count = 1;

  int64_t matrix_bytes_f32() const { return align_up(kernels::packed_bytes_f32(n, k)); }
  int64_t matrix_bytes_i8() const { return align_up(kernels::packed_bytes_i8(n, k)); }
  int64_t bytes_f32() const { return count * matrix_bytes_f32(); }
  int64_t bytes_i8() const { return count * matrix_bytes_i8(); }
  template <typename Source>
  void pack(const Source& source, std::byte* target) const {
    for_pieces(count, static_cast<double>(n) * static_cast<double>(k) + 64, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        pack_matrix(source + i * n * k, k, n, k, target + i * matrix_bytes<Source>());
      }
    });
  }

 private:
  template <typename Source>
  int64_t matrix_bytes() const {
    return kPacksFloats<Source> ? matrix_bytes_f32() : matrix_bytes_i8();
  }
};

/// Where dynamic range keeps its quantized activations: one row of parameters per image or matrix row.
class QuantizedRows {
 public:
  QuantizedRows() = default;
  QuantizedRows(int64_t rows, int64_t size, kernels::RowRule rule, BlockLayout& scratch)
      : rows_(rows),
        size_(size),
        rule_(rule),
        values_at_(scratch.take(rows * size)),
        scales_at_(scratch.take(rows * 4)),
        zeros_at_(scratch.take(rows * 4)) {}

  void quantize(const RunContext& c, const float* values) const { quantize(c, values, rows_); }
  /// The first `rows` only.
  void quantize(const RunContext& c, const float* values, int64_t rows) const {
    quantize_rows(
        values, rows, size_, reinterpret_cast<int8_t*>(c.scratch() + values_at_),
        {reinterpret_cast<float*>(c.scratch() + scales_at_), reinterpret_cast<int32_t*>(c.scratch() + zeros_at_)},
        c.pool(), rule_);
  }
  const int8_t* values(const RunContext& c) const { return reinterpret_cast<const int8_t*>(c.scratch() + values_at_); }
  const float* scales(const RunContext& c) const { return reinterpret_cast<const float*>(c.scratch() + scales_at_); }
  const int32_t* zeros(const RunContext& c) const { return reinterpret_cast<const int32_t*>(c.scratch() + zeros_at_); }

 private:
  int64_t rows_ = 0;
  int64_t size_ = 0;
  kernels::RowRule rule_ = kernels::RowRule::kXnnpack;
  int64_t values_at_ = 0, scales_at_ = 0, zeros_at_ = 0;  // scratch
};

}  // namespace leadline::ops
