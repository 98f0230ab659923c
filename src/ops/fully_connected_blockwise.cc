// SPDX-License-Identifier: Apache-2.0
// Input rows are quantized to int8 while running, as for other int8 weights. Sums within a block are exact integers;
// the blocks' sums are scaled and added as floats. Zero points of blocks are not read: weights are symmetric.
#include "ops/fully_connected_blockwise.h"

#include <algorithm>
#include <cmath>

#include "core/half.h"
#include "kernels/quant/dynamic.h"
#include "kernels/quant/unpack.h"
#include "ops/common.h"
#include "ops/contraction.h"

namespace leadline::ops {
namespace {

using kernels::reference::MatmulShape;

class BlockKernel final : public Kernel {
 public:
  BlockKernel(PrepareContext& c, const MatmulShape& shape, ir::Activation activation)
      : shape_(shape),
        block_(c.input(1).quantization().block_size),
        source_(c.input(1).data),
        source_scales_(c.value(c.input(1).quantization().block_scales).data.data()),
        has_bias_(c.has_input(2)) {
    std::tie(lo_, hi_) = activation_range(c, activation);
    BlockLayout packed;
    weights_at_ = packed.take(shape.n * shape.k);
    scales_at_ = packed.take(shape.n * blocks() * 4);
    sums_at_ = packed.take(shape.n * blocks() * 4);
    c.request_packed(packed.size(), "blocks");
    c.replaces_input(1);
    BlockLayout scratch;
    quantized_at_ = scratch.take(shape.m * shape.k);
    row_scales_at_ = scratch.take(shape.m * 4);
    row_zeros_at_ = scratch.take(shape.m * 4);
    bias_at_ = scratch.take(shape.n * 4);
    c.request_scratch(scratch.size());
  }

  void pack(std::byte* packed) override {
    auto* weights = reinterpret_cast<int8_t*>(packed + weights_at_);
    auto* scales = reinterpret_cast<float*>(packed + scales_at_);
    auto* sums = reinterpret_cast<int32_t*>(packed + sums_at_);
    const auto* levels = reinterpret_cast<const uint8_t*>(source_);
    const auto* halves = reinterpret_cast<const uint16_t*>(source_scales_);
    // TFLite computes blocks of a multiple of 32 with XNNPACK, which keeps their scales as bfloat16.
    const bool short_scales = block_ % 32 == 0;
    for_pieces(shape_.n * blocks(), 2.0 * static_cast<double>(block_), [&](int64_t begin, int64_t end) {
      kernels::unpack_signed<4>(levels, begin * block_, (end - begin) * block_, weights + begin * block_);
      kernels::unpack_half(halves + begin, end - begin, scales + begin);
      for (int64_t b = begin; b < end; ++b) {
        if (short_scales) scales[b] = bfloat16_to_float(float_to_bfloat16(scales[b]));
        sums[b] = 0;
        for (int64_t i = 0; i < block_; ++i) sums[b] += weights[b * block_ + i];
      }
    });
  }

  void run(RunContext& c) override {
    if (c.output(0).elements() == 0) return;
    auto* quantized = reinterpret_cast<int8_t*>(c.scratch() + quantized_at_);
    auto* row_scales = reinterpret_cast<float*>(c.scratch() + row_scales_at_);
    auto* row_zeros = reinterpret_cast<int32_t*>(c.scratch() + row_zeros_at_);
    quantize_rows(c.input(0).as<float>(), shape_.m, shape_.k, quantized, {row_scales, row_zeros}, c.pool());
    const float* bias = has_bias_ ? widen_bias(c.input(2), reinterpret_cast<float*>(c.scratch() + bias_at_)) : nullptr;
    float* out = c.output(0).mutable_as<float>();
    c.pool().for_pieces(shape_.m * shape_.n, static_cast<double>(shape_.k), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = i / shape_.n;
        const int64_t unit = i % shape_.n;
        const float sum = dot(c.packed(), quantized + row * shape_.k, row_zeros[row], unit);
        const float value = sum * row_scales[row] + (bias == nullptr ? 0.0F : bias[unit]);
        out[i] = std::clamp(value, lo_, hi_);
      }
    });
  }

 private:
  int64_t blocks() const { return shape_.k / block_; }

  float dot(const std::byte* packed, const int8_t* row, int32_t zero, int64_t unit) const {
    const auto* weights = reinterpret_cast<const int8_t*>(packed + weights_at_) + unit * shape_.k;
    const auto* scales = reinterpret_cast<const float*>(packed + scales_at_) + unit * blocks();
    const auto* sums = reinterpret_cast<const int32_t*>(packed + sums_at_) + unit * blocks();
    float total = 0.0F;
    for_pieces(blocks(), static_cast<double>(block_), [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        // Levels are at most 2^7 and 2^3, so that 2^20 products, and the correction, fit in 32 bits.
        int32_t sum = 0;
        for (int64_t i = b * block_; i < (b + 1) * block_; ++i) sum += int32_t{row[i]} * weights[i];
        total += scales[b] * static_cast<float>(sum - zero * sums[b]);
      }
    });
    return total;
  }

  MatmulShape shape_;
  int64_t block_;
  const std::byte* source_;
  const std::byte* source_scales_;
  bool has_bias_;
  float lo_ = 0.0F;
  float hi_ = 0.0F;
  int64_t weights_at_ = 0;     // packed
  int64_t scales_at_ = 0;      // packed
  int64_t sums_at_ = 0;        // packed: of a block's weights
  int64_t quantized_at_ = 0;   // scratch
  int64_t row_scales_at_ = 0;  // scratch
  int64_t row_zeros_at_ = 0;   // scratch
  int64_t bias_at_ = 0;        // scratch
};

}  // namespace

bool has_block_weights(const OpContext& c) { return c.input(1).quantization().block_size > 0; }

void check_block_weights(const OpContext& c, const MatmulShape& shape) {
  const Operand& weights = c.input(1);
  const Quantization& q = weights.quantization();
  constexpr int64_t kMaxBlock = int64_t{1} << 20;
  c.require_input_type(0, {DType::kFloat32});
  c.require_output_type(0, {DType::kFloat32});
  if (weights.dtype() != DType::kInt4 || !weights.value->constant) {
    c.fail(ErrorCode::kUnsupported, "the weights '{}' are quantized in blocks, which is supported for int4 constants",
           weights.value->name);
  }
  c.require(q.block_size <= kMaxBlock && shape.k > 0 && shape.k % q.block_size == 0,
            "the weights '{}' have blocks of {}, which do not divide their depth {}", weights.value->name, q.block_size,
            shape.k);
  const ir::Value& scales = c.value(q.block_scales);
  const int64_t count = shape.n * (shape.k / q.block_size);
  c.require(scales.constant && scales.sparsity == nullptr && scales.dtype == DType::kFloat16 &&
                static_cast<int64_t>(scales.data.size()) == count * 2,
            "the block scales '{}' are {} of shape {}, expected a float16 constant with {} values", scales.name,
            dtype_name(scales.dtype), scales.shape.to_string(), count);
  for (int64_t i = 0; i < count; ++i) {
    const float scale = half_to_float(reinterpret_cast<const uint16_t*>(scales.data.data())[i]);
    c.require(std::isfinite(scale) && scale > 0.0F, "block scale {} of '{}' is {}, expected a finite number above 0", i,
              weights.value->name, scale);
  }
  if (!c.has_input(2)) return;
  c.require_input_type(2, {DType::kFloat32, DType::kFloat16});
  c.require(c.input(2).shape.elements() == shape.n, "the bias '{}' of shape {} has {} values, expected {}",
            c.input(2).value->name, c.input(2).shape.to_string(), c.input(2).shape.elements(), shape.n);
}

std::unique_ptr<Kernel> make_block_kernel(PrepareContext& c, const MatmulShape& shape, ir::Activation activation) {
  return std::make_unique<BlockKernel>(c, shape, activation);
}

}  // namespace leadline::ops
