// SPDX-License-Identifier: Apache-2.0
// CONV_3D_TRANSPOSE: output shape [5] (int32), filter [KD,KH,KW,O,C], input [N,D,H,W,C], optional bias [O], all
// float32.
#include <algorithm>

#include "kernels/gemm/gemm_f32.h"
#include "ops/common.h"
#include "ops/contraction.h"
#include "ops/conv_3d.h"
#include "ops/families.h"
#include "ops/loops/gemm.h"
#include "ops/loops/pack.h"
#include "ops/loops/split.h"

namespace leadline::ops {
namespace conv_3d_transpose {
namespace {

enum Input { kOutputShape = 0, kFilter = 1, kInput = 2, kBias = 3 };

// Pixels of the input that are multiplied at a time; bounds the products kept beside the output.
constexpr int64_t kChunkPixels = 96;

using kernels::Conv3DShape;
using kernels::ConvAxis;

/// The sizes for an output of this shape: a convolution from `output` to the input, seen backwards.
Conv3DShape transposed_shape(const OpContext& c, const Shape& output) {
  const Shape& input = c.input(kInput).shape;
  const Shape& filter = c.input(kFilter).shape;
  c.require(output[0] == input[0] && output[4] == filter[3],
            "the output shape is {}, expected {} images with {} channels", output.to_string(), input[0], filter[3]);
  const Conv3DShape s = conv_3d_shape(c, output, filter);
  c.require(s.d.output == input[1] && s.h.output == input[2] && s.w.output == input[3],
            "an output of shape {} comes from {}x{}x{} pixels, but the input has shape {}", output.to_string(),
            s.d.output, s.h.output, s.w.output, input.to_string());
  return s;
}

void infer(InferContext& c) {
  const Shape& input = c.input(kInput).shape;
  const Shape& filter = c.input(kFilter).shape;
  c.require(input.rank() == 5 && filter.rank() == 5, "the input has shape {} and the filter {}, expected rank 5",
            input.to_string(), filter.to_string());
  check_conv_3d(c, kInput, kFilter, kBias, filter[3]);
  c.require(input[4] == filter[4], "the input has {} channels, the filter expects {}", input[4], filter[4]);
  c.require_input_type(kOutputShape, {DType::kInt32});
  c.require(c.input(kOutputShape).shape == Shape{5}, "the output shape operand has shape {}, expected [5]",
            c.input(kOutputShape).shape.to_string());
  if (!c.known(kOutputShape)) return c.defer();
  Shape output;
  for (const int32_t size : c.input(kOutputShape).values<int32_t>()) {
    c.require(size >= 0, "the output shape has a negative size {}", size);
    output.push_back(size);
  }
  transposed_shape(c, output);
  c.set_output_shape(0, output);
}

/// The place of the input that tap `k` carries to `at` of the output; -1 when there is none.
int64_t carried_from(const ConvAxis& axis, int64_t at, int64_t k) {
  const int64_t up = at + axis.pad - k * axis.dilation;
  if (up < 0 || up % axis.stride != 0 || up / axis.stride >= axis.output) return -1;
  return up / axis.stride;
}

/// Row by row of the output: every tap that reaches it is a product of an input row with that tap's matrix [O, C],
/// added to the row where the stride puts it. `shape_` names the sizes as a convolution from output to input does:
/// its axes' `input` is this op's output.
class TransposeKernel final : public Kernel {
 public:
  explicit TransposeKernel(PrepareContext& c)
      : shape_(transposed_shape(c, c.output(0).shape)),
        range_(activation_range(c, c.attributes<Conv3DAttributes>().activation)),
        fixed_(fixed_input(c, kFilter, kInput)),
        filter_(fixed_ ? c.input(kFilter).data : nullptr),
        channels_(c.input(kFilter).shape[3]),
        depth_(c.input(kFilter).shape[4]),
        slots_(c.threads()) {
    BlockLayout packed;
    BlockLayout scratch;
    tap_bytes_ = align_up(kernels::packed_bytes_f32(channels_, depth_));
    filter_at_ = (fixed_ ? packed : scratch).take(taps() * tap_bytes_);
    slot_bytes_ = align_up(std::min(kChunkPixels, shape_.w.output) * channels_ * static_cast<int64_t>(sizeof(float)));
    slots_at_ = scratch.take(slots_ * slot_bytes_);
    c.request_scratch(scratch.size());
    if (!fixed_) return;
    c.request_packed(packed.size(), "conv_3d_transpose");
    c.replaces_input(kFilter);
  }

  void pack(std::byte* packed) override {
    if (fixed_) pack_filter(filter_, packed + filter_at_);
  }

  void run(RunContext& c) override {
    if (c.output(0).elements() == 0) return;
    if (!fixed_) pack_filter(c.input(kFilter).data, c.scratch() + filter_at_);
    const std::byte* filter = (fixed_ ? c.packed() : c.scratch()) + filter_at_;
    const auto* input = c.input(kInput).as<float>();
    const float* bias = c.has_input(kBias) ? c.input(kBias).as<float>() : nullptr;
    const int64_t row_size = shape_.w.input * channels_;
    const int64_t rows = shape_.batch * shape_.d.input * shape_.h.input;
    const double row_cost = tap_cost() * static_cast<double>(taps());
    for_slots(c.pool(), slots_, rows, row_cost, [&](int64_t slot, int64_t begin, int64_t end) {
      auto* products = reinterpret_cast<float*>(c.scratch() + slots_at_ + slot * slot_bytes_);
      for (int64_t row = begin; row < end; ++row) {
        float* target = c.output(0).mutable_as<float>() + row * row_size;
        fill_bytes(reinterpret_cast<std::byte*>(target), std::byte{0}, row_size * int64_t{sizeof(float)});
        sum_row(input, filter, row, products, target);
        finish_row(bias, target);
      }
    });
  }

 private:
  int64_t taps() const { return shape_.d.filter * shape_.h.filter * shape_.w.filter; }
  /// Of one tap on one row of the output.
  double tap_cost() const {
    return static_cast<double>(shape_.w.output * channels_) * (static_cast<double>(depth_) / 16 + 1) + 64;
  }

  void pack_filter(const std::byte* filter, std::byte* target) const {
    const auto* weights = reinterpret_cast<const float*>(filter);
    for_items(taps(), static_cast<double>(channels_ * depth_) + 64, [&](int64_t tap) {
      pack_matrix(weights + tap * channels_ * depth_, depth_, channels_, depth_, target + tap * tap_bytes_);
    });
  }

  /// All products that fall on one row of the output.
  void sum_row(const float* input, const std::byte* filter, int64_t row, float* products, float* target) const {
    const int64_t y = row % shape_.h.input;
    const int64_t z = row / shape_.h.input % shape_.d.input;
    const int64_t batch = row / shape_.h.input / shape_.d.input;
    for_items(taps(), tap_cost(), [&](int64_t tap) {
      const int64_t filter_row = tap / shape_.w.filter;
      const int64_t in_z = carried_from(shape_.d, z, filter_row / shape_.h.filter);
      const int64_t in_y = carried_from(shape_.h, y, filter_row % shape_.h.filter);
      if (in_z < 0 || in_y < 0) return;
      const int64_t in_row = (batch * shape_.d.output + in_z) * shape_.h.output + in_y;
      add_tap(input + in_row * shape_.w.output * depth_, filter + tap * tap_bytes_, tap % shape_.w.filter, products,
              target);
    });
  }

  void add_tap(const float* in_row, const std::byte* tap, int64_t kx, float* products, float* target) const {
    const ConvAxis& w = shape_.w;
    // Input pixels whose column x * stride + shift of the output exists.
    const int64_t shift = kx * w.dilation - w.pad;
    if (w.input - 1 < shift) return;
    const int64_t first = shift >= 0 ? 0 : (-shift + w.stride - 1) / w.stride;
    const int64_t last = std::min(w.output - 1, (w.input - 1 - shift) / w.stride);
    const double pixel_cost = tap_cost() / static_cast<double>(w.output);
    for_items((last - first) / kChunkPixels + 1, pixel_cost * kChunkPixels, [&](int64_t i) {
      const int64_t x = first + i * kChunkPixels;
      add_pixels(in_row, tap, {x, std::min(x + kChunkPixels, last + 1)}, shift, products, target);
    });
  }

  /// Those of the input pixels `pixels`, at most kChunkPixels.
  void add_pixels(const float* in_row, const std::byte* tap, IndexRange pixels, int64_t shift, float* products,
                  float* target) const {
    const ConvAxis& w = shape_.w;
    const kernels::GemmF32 g{.a = in_row + pixels.begin * depth_,
                             .lda = depth_,
                             .m = pixels.size(),
                             .b = tap,
                             .n = channels_,
                             .k = depth_,
                             .c = products,
                             .ldc = channels_};
    multiply(g, {0, g.m}, {0, channels_});
    for_items(g.m, static_cast<double>(channels_), [&](int64_t i) {
      float* to = target + ((pixels.begin + i) * w.stride + shift) * channels_;
      const float* from = products + i * channels_;
      for (int64_t o = 0; o < channels_; ++o) to[o] += from[o];
    });
  }

  void finish_row(const float* bias, float* row) const {
    const auto [lo, hi] = range_;
    for_items(shape_.w.input, static_cast<double>(channels_), [&, lo = lo, hi = hi](int64_t x) {
      float* pixel = row + x * channels_;
      for (int64_t o = 0; o < channels_; ++o) {
        const float sum = bias == nullptr ? pixel[o] : pixel[o] + bias[o];
        pixel[o] = std::min(std::max(sum, lo), hi);  // NaN stays
      }
    });
  }

  Conv3DShape shape_;
  std::pair<float, float> range_;
  bool fixed_;
  const std::byte* filter_;
  int64_t channels_;                       // of the output
  int64_t depth_;                          // channels of the input
  int64_t slots_;                          // parts that run at the same time, each with scratch of its own
  int64_t filter_at_ = 0, tap_bytes_ = 0;  // packed, or scratch when the filter is computed while running
  int64_t slots_at_ = 0, slot_bytes_ = 0;  // scratch
};

std::unique_ptr<Kernel> prepare(PrepareContext& c) { return std::make_unique<TransposeKernel>(c); }

}  // namespace
}  // namespace conv_3d_transpose

void register_conv_3d_transpose(Registry& registry) {
  using namespace conv_3d_transpose;
  registry.add({.id = op::kConv3DTranspose,
                .min_inputs = 3,
                .max_inputs = 4,
                .required_inputs = 3,
                .options = builtin_options(106),
                .make_attributes = make_attributes<Conv3DAttributes>,
                .infer = infer,
                .prepare = prepare,
                .contraction = {.kind = ContractionKind::kTransposed,
                                .activations = kInput,
                                .weights = kFilter,
                                .bias = kBias,
                                .rank = 5,
                                .output_axis = 3,
                                .input_axis = 4},
                .types = "f32"});
}

}  // namespace leadline::ops
