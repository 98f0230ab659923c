// SPDX-License-Identifier: Apache-2.0
// CONV_2D, also grouped: input [N,H,W,C], filter [O,KH,KW,C/groups], optional bias [O].
#include "ops/conv.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "kernels/conv/conv2d.h"
#include "ops/common.h"
#include "ops/families.h"
#include "ops/gemm_kernel.h"
#include "ops/half_activations.h"
#include "ops/loops/conv.h"
#include "ops/packed_weights.h"
#include "ops/quantization_rules.h"
#include "ops/wide_contraction.h"

namespace leadline::ops {

void check_conv_ranks(const OpContext& c, const Shape& input, const Shape& filter) {
  c.require(input.rank() == 4, "the input has shape {}, expected rank 4 [batch, height, width, channels]",
            input.to_string());
  c.require(filter.rank() == 4, "the filter has shape {}, expected rank 4", filter.to_string());
  constexpr int64_t kLargest = std::numeric_limits<int32_t>::max();
  for (int axis = 0; axis < 4; ++axis) {
    c.require(input[axis] <= kLargest, "the input's shape {} is too large", input.to_string());
    c.require(filter[axis] >= 1 && filter[axis] <= kLargest, "the filter has shape {}, expected no empty dimension",
              filter.to_string());
  }
}

namespace {

constexpr ContractionOperands kConvOperands = {.kind = ContractionKind::kConvolution, .needs_bias = true};

ContractionRule conv_rule(const OpContext& c) {
  ContractionRule rule(c, kConvOperands);
  rule.bias_attribute = c.attributes<Conv2DAttributes>().quantized_bias_type;
  return rule;
}

kernels::ConvShape conv_shape(const OpContext& c) {
  const auto& a = c.attributes<Conv2DAttributes>();
  const Shape& input = c.input(0).shape;
  const Shape& filter = c.input(1).shape;
  check_conv_ranks(c, input, filter);
  c.require(input[3] >= 1 && input[3] % filter[3] == 0,
            "the input has {} channels, expected a multiple of the filter's {}", input[3], filter[3]);
  c.require(filter[0] % (input[3] / filter[3]) == 0, "{} filters do not divide into {} groups", filter[0],
            input[3] / filter[3]);
  const auto [rows, columns] = conv_windows(c, a, input, filter);
  return {.batch = input[0],
          .in_h = input[1],
          .in_w = input[2],
          .in_c = input[3],
          .out_h = rows.output,
          .out_w = columns.output,
          .out_c = filter[0],
          .filter_h = filter[1],
          .filter_w = filter[2],
          .filter_c = filter[3],
          .stride_h = a.stride_h,
          .stride_w = a.stride_w,
          .dilation_h = a.dilation_h,
          .dilation_w = a.dilation_w,
          .pad_top = rows.pad_before,
          .pad_left = columns.pad_before};
}

void infer_conv(InferContext& c) {
  const kernels::ConvShape s = conv_shape(c);
  check_contraction(c, conv_rule(c));
  activation_range(c, c.attributes<Conv2DAttributes>().activation);
  c.set_output_shape(0, {s.batch, s.out_h, s.out_w, s.out_c});
}

/// Filters for the convolution kernels.
struct ConvLayout {
  kernels::ConvShape shape;
  bool channels_last = false;
  int32_t filter_zero = 0;
  int64_t bytes_f32() const { return kernels::conv_packed_bytes_f32(shape); }
  int64_t bytes_i8() const { return kernels::conv_packed_bytes_i8(shape); }
  // One group is packed as one matrix, so its transpose may be packed from [k, n].
  void pack(const float* source, std::byte* target) const {
    channels_last ? pack_matrix_kn(source, shape.out_c, shape.out_c, shape.filter_size(), target)
                  : conv_pack(shape, source, target);
  }
  void pack(const int8_t* source, std::byte* target) const { pack_integers(source, target); }
  void pack(const CompactWeights& source, std::byte* target) const { pack_integers(source, target); }
  void pack(const uint16_t* source, std::byte* target) const { conv_pack(shape, source, target); }
  void pack(const uint8_t* source, std::byte* target) const { conv_pack(shape, source, target, filter_zero); }

 private:
  template <typename Source>
  void pack_integers(const Source& source, std::byte* target) const {
    channels_last ? pack_matrix_kn(source, shape.out_c, shape.out_c, shape.filter_size(), target)
                  : conv_pack(shape, source, target, filter_zero);
  }
};

template <typename T>
int64_t largest_sum(const T* filter, int64_t count, int64_t size, int32_t zero_point) {
  int64_t largest = 0;
  for_pieces(count, static_cast<double>(size), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t sum = 0;
      for (int64_t j = 0; j < size; ++j) sum += std::abs(filter[i * size + j] - zero_point);
      largest = std::max(largest, sum);
    }
  });
  return largest;
}

/// The method for 8-bit filters. Their values are read only if a method depends on them.
kernels::ConvMethod integer_method(const Contraction& f, const kernels::ConvShape& shape, int32_t zero_point) {
  const bool is_unsigned = f.weight_type == DType::kUInt8 && f.arithmetic == Arithmetic::kQuantized;
  const int32_t lo = is_unsigned ? 0 : -128;
  kernels::FilterBounds bounds{std::max(zero_point - lo, lo + 255 - zero_point), 0};
  const kernels::ConvMethod wanted = kernels::conv_method_i8(shape, bounds);
  if (wanted != kernels::ConvMethod::kWinograd4) return wanted;
  const int64_t size = shape.filter_size();
  if (f.compact_weights()) {
    bounds.sum = bounds.value * size;
  } else if (is_unsigned) {
    bounds.sum = largest_sum(reinterpret_cast<const uint8_t*>(f.fixed_weights), shape.out_c, size, zero_point);
  } else {
    bounds.sum = largest_sum(reinterpret_cast<const int8_t*>(f.fixed_weights), shape.out_c, size, zero_point);
  }
  return kernels::conv_method_i8(shape, bounds);
}

/// Sizes, packing and method of a convolution.
ConvLayout conv_layout(const PrepareContext& c, const Contraction& f, const kernels::ConvShape& shape,
                       bool channels_last) {
  ConvLayout layout{shape, channels_last, f.arithmetic == Arithmetic::kQuantized ? f.weight_zero : 0};
  // Filters that change would have to be transformed in each run.
  if (channels_last || !f.has_fixed_weights) return layout;
  if (f.arithmetic != Arithmetic::kFloat) {
    layout.shape.method = integer_method(f, shape, layout.filter_zero);
  } else if (c.winograd()) {
    layout.shape.method = kernels::conv_method_f32(shape);
  }
  return layout;
}

/// Identifies a packing.
const char* layout_name(kernels::ConvMethod method) {
  switch (method) {
    case kernels::ConvMethod::kWinograd2:
      return "conv.winograd2";
    case kernels::ConvMethod::kWinograd4:
      return "conv.winograd4";
    case kernels::ConvMethod::kPlain:
      break;
  }
  return "conv";
}

/// Pixels times packed filters.
class GemmConv final : public Kernel {
 public:
  GemmConv(PrepareContext& c, const Contraction& contraction, const ConvLayout& layout)
      : GemmConv(c, contraction, layout, BlockLayout(), BlockLayout()) {}

  void pack(std::byte* packed) override { weights_.pack(packed); }

  void run(RunContext& c) override {
    if (c.output(0).elements() == 0) return;
    weights_.update(c);
    const Contraction& f = weights_.contraction();
    const kernels::ConvShape& shape = weights_.layout().shape;
    std::byte* workspace = c.scratch() + workspace_at_;
    if (f.arithmetic == Arithmetic::kFloat) {
      const kernels::ConvF32 conv{.shape = shape,
                                  .input = c.input(0).as<float>(),
                                  .filter = weights_.get(c),
                                  .bias = weights_.float_bias(c),
                                  .output = c.output(0).mutable_as<float>(),
                                  .lo = f.lo,
                                  .hi = f.hi};
      convolve(conv, workspace, c.pool());
    } else if (f.arithmetic == Arithmetic::kQuantized) {
      const bool is_unsigned = f.activation_type == DType::kUInt8;
      const kernels::ConvI8 conv{.shape = shape,
                                 .input = c.input(0).data,
                                 .input_unsigned = is_unsigned,
                                 .input_zero_point = f.input_zero,
                                 .filter = weights_.get(c),
                                 .filter_zero_point = weights_.zero_point(),
                                 .bias = weights_.int_bias(c),
                                 .output = c.output(0).data,
                                 .output_unsigned = is_unsigned,
                                 .scale = weights_.scales(c),
                                 .output_zero_point = f.output_zero,
                                 .lo = f.level_lo,
                                 .hi = f.level_hi};
      convolve(conv, workspace, c.pool());
    } else {
      images_.quantize(c, c.input(0).as<float>());
      const kernels::ConvHybrid conv{.shape = shape,
                                     .input = images_.values(c),
                                     .input_scale = images_.scales(c),
                                     .input_zero_point = images_.zeros(c),
                                     .filter = weights_.get(c),
                                     .scale = weights_.scales(c),
                                     .bias = weights_.float_bias(c),
                                     .output = c.output(0).mutable_as<float>(),
                                     .lo = f.lo,
                                     .hi = f.hi};
      convolve(conv, workspace, c.pool());
    }
  }

 private:
  GemmConv(PrepareContext& c, const Contraction& contraction, const ConvLayout& layout, BlockLayout packed,
           BlockLayout scratch)
      : weights_(contraction, layout, packed, scratch) {
    const kernels::ConvShape& shape = layout.shape;
    const bool real = contraction.arithmetic == Arithmetic::kFloat;
    workspace_at_ = scratch.take(
        c.threads() * (real ? kernels::conv_workspace_bytes_f32(shape) : kernels::conv_workspace_bytes_i8(shape)));
    if (contraction.arithmetic == Arithmetic::kHybrid) {
      images_ = QuantizedRows(shape.batch, shape.in_h * shape.in_w * shape.in_c, contraction.row_rule, scratch);
    }
    weights_.request(c, layout_name(shape.method), packed, scratch);
  }

  PackedWeights<ConvLayout> weights_;
  QuantizedRows images_;      // dynamic range
  int64_t workspace_at_ = 0;  // scratch
};

std::unique_ptr<Kernel> prepare_conv(PrepareContext& c) {
  const kernels::ConvShape shape = conv_shape(c);
  Contraction contraction = make_contraction(c, conv_rule(c), c.attributes<Conv2DAttributes>().activation);
  const bool hybrid = contraction.arithmetic == Arithmetic::kHybrid;
  const bool xnnpack = contraction.weight_type == DType::kInt8 && contraction.all_fixed();
  if (hybrid && !xnnpack) {
    contraction.row_rule =
        contraction.uniform_scale() ? kernels::RowRule::kTfliteSymmetric : kernels::RowRule::kTfliteAsymmetric;
  }
  // XNNPACK runs these as FULLY_CONNECTED, so each pixel has a scale of its own.
  const bool pixel_by_pixel = hybrid && xnnpack && shape.filter_h == 1 && shape.filter_w == 1 && shape.stride_h == 1 &&
                              shape.stride_w == 1 && shape.groups() == 1;
  if (pixel_by_pixel) return make_gemm_kernel(c, contraction, shape.rows() * shape.out_w, shape.out_c, shape.in_c);
  if (packable(contraction)) return make_conv_kernel(c, contraction, shape);
  if (has_wide_kernel(contraction, shape.filter_size())) return make_wide_conv(c, contraction, shape);
  return std::make_unique<ReferenceContraction<ConvLoop>>(c, contraction,
                                                          ConvLoop{kernels::reference::conv_shape(shape)});
}

}  // namespace

std::unique_ptr<Kernel> make_conv_kernel(PrepareContext& c, const Contraction& contraction,
                                         const kernels::ConvShape& shape, bool channels_last) {
  return std::make_unique<GemmConv>(c, contraction, conv_layout(c, contraction, shape, channels_last));
}

void register_conv(Registry& registry) {
  registry.add({.id = op::kConv2D,
                .max_version = 8,
                .min_inputs = 2,
                .max_inputs = 3,
                .required_inputs = 2,
                .options = builtin_options(1),
                .make_attributes = make_attributes<Conv2DAttributes>,
                .infer = AlsoHalf<infer_conv, prepare_conv>::infer,
                .prepare = AlsoHalf<infer_conv, prepare_conv>::prepare,
                .half_inputs = input_set({1, 2}),
                .contraction = kConvOperands,
                .window = conv_window<Conv2DAttributes>,
                .fuses = kFusesRelus,
                .quantize = weights_rule({.int8 = 3, .int16 = 4, .hybrid = 2, .hybrid_per_channel = 5}),
                .types = "f32 f16 f16-weights i8 u8 i16x8 i4-weights hybrid",
                .fast = "f32 f16-weights i8 u8 i16x8 i4-weights hybrid"});
}

}  // namespace leadline::ops
