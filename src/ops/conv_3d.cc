// SPDX-License-Identifier: Apache-2.0
// CONV_3D: input [N,D,H,W,C], filter [KD,KH,KW,C,O], optional bias [O], all float32.
#include "ops/conv_3d.h"

#include <limits>

#include "kernels/gemm/gemm_f32.h"
#include "ops/common.h"
#include "ops/contraction.h"
#include "ops/families.h"
#include "ops/loops/conv.h"
#include "ops/loops/pack.h"
#include "ops/quantization_rules.h"

namespace leadline::ops {

void check_conv_3d(const OpContext& c, int input, int filter, int bias, int64_t channels) {
  for (const int i : {input, filter}) c.require_input_type(i, {DType::kFloat32});
  c.require_output_type(0, {DType::kFloat32});
  const Shape& from = c.input(input).shape;
  const Shape& taps = c.input(filter).shape;
  constexpr int64_t kLargest = std::numeric_limits<int32_t>::max();
  for (int axis = 0; axis < 5; ++axis) {
    c.require(from[axis] <= kLargest, "the input's shape {} is too large", from.to_string());
    c.require(taps[axis] >= 1 && taps[axis] <= kLargest, "the filter has shape {}, expected no empty dimension",
              taps.to_string());
  }
  // So that sizes of the packed form, at most 32 times as large, can be computed.
  c.require(taps.elements() <= int64_t{1} << 48, "the filter's shape {} is too large", taps.to_string());
  activation_range(c, c.attributes<Conv3DAttributes>().activation);
  if (!c.has_input(bias)) return;
  c.require_input_type(bias, {DType::kFloat32});
  c.require(c.input(bias).shape.elements() == channels, "the bias has shape {}, expected {} values",
            c.input(bias).shape.to_string(), channels);
}

kernels::Conv3DShape conv_3d_shape(const OpContext& c, const Shape& from, const Shape& filter) {
  const auto& a = c.attributes<Conv3DAttributes>();
  auto axis_of = [&](int axis, int64_t stride, int64_t dilation) {
    const Window w = window(c, a.padding, from[axis], filter[axis - 1], stride, dilation);
    return kernels::ConvAxis{from[axis], w.output, filter[axis - 1], stride, dilation, w.pad_before};
  };
  return {.batch = from[0],
          .in_c = filter[3],
          .out_c = filter[4],
          .d = axis_of(1, a.stride_d, a.dilation_d),
          .h = axis_of(2, a.stride_h, a.dilation_h),
          .w = axis_of(3, a.stride_w, a.dilation_w)};
}

namespace conv_3d {
namespace {

enum Input { kInput = 0, kFilter = 1, kBias = 2 };

void infer(InferContext& c) {
  const Shape& input = c.input(kInput).shape;
  const Shape& filter = c.input(kFilter).shape;
  c.require(input.rank() == 5 && filter.rank() == 5, "the input has shape {} and the filter {}, expected rank 5",
            input.to_string(), filter.to_string());
  check_conv_3d(c, kInput, kFilter, kBias, filter[4]);
  c.require(input[4] == filter[3], "the input has {} channels, the filter expects {}", input[4], filter[3]);
  const kernels::Conv3DShape s = conv_3d_shape(c, input, filter);
  c.set_output_shape(0, {s.batch, s.d.output, s.h.output, s.w.output, s.out_c});
}

class Conv3DKernel final : public Kernel {
 public:
  explicit Conv3DKernel(PrepareContext& c)
      : shape_(conv_3d_shape(c, c.input(kInput).shape, c.input(kFilter).shape)),
        range_(activation_range(c, c.attributes<Conv3DAttributes>().activation)),
        fixed_(fixed_input(c, kFilter, kInput)),
        filter_(fixed_ ? c.input(kFilter).data : nullptr) {
    BlockLayout packed;
    BlockLayout scratch;
    filter_at_ = (fixed_ ? packed : scratch).take(kernels::packed_bytes_f32(shape_.out_c, shape_.filter_size()));
    workspace_at_ = scratch.take(c.threads() * kernels::conv3d_workspace_bytes(shape_));
    c.request_scratch(scratch.size());
    if (!fixed_) return;
    c.request_packed(packed.size(), "conv_3d");
    c.replaces_input(kFilter);
  }

  void pack(std::byte* packed) override {
    if (fixed_) pack_filter(filter_, packed + filter_at_);
  }

  void run(RunContext& c) override {
    if (c.output(0).elements() == 0) return;
    if (!fixed_) pack_filter(c.input(kFilter).data, c.scratch() + filter_at_);
    const kernels::Conv3DF32 conv{.shape = shape_,
                                  .input = c.input(kInput).as<float>(),
                                  .filter = (fixed_ ? c.packed() : c.scratch()) + filter_at_,
                                  .bias = c.has_input(kBias) ? c.input(kBias).as<float>() : nullptr,
                                  .output = c.output(0).mutable_as<float>(),
                                  .lo = range_.first,
                                  .hi = range_.second};
    convolve(conv, c.scratch() + workspace_at_, c.pool());
  }

 private:
  void pack_filter(const std::byte* filter, std::byte* target) const {
    pack_matrix_kn(reinterpret_cast<const float*>(filter), shape_.out_c, shape_.out_c, shape_.filter_size(), target);
  }

  kernels::Conv3DShape shape_;
  std::pair<float, float> range_;
  bool fixed_;
  const std::byte* filter_;
  int64_t filter_at_ = 0;     // packed, or scratch when the filter is computed while running
  int64_t workspace_at_ = 0;  // scratch
};

std::unique_ptr<Kernel> prepare(PrepareContext& c) { return std::make_unique<Conv3DKernel>(c); }

}  // namespace
}  // namespace conv_3d

void register_conv_3d(Registry& registry) {
  using namespace conv_3d;
  registry.add({.id = op::kConv3D,
                .min_inputs = 2,
                .max_inputs = 3,
                .required_inputs = 2,
                .options = builtin_options(106),
                .make_attributes = make_attributes<Conv3DAttributes>,
                .infer = infer,
                .prepare = prepare,
                .contraction = {.kind = ContractionKind::kConvolution,
                                .activations = kInput,
                                .weights = kFilter,
                                .bias = kBias,
                                .rank = 5,
                                .output_axis = 4,
                                .input_axis = 3},
                .fuses = kFusesRelus,
                .quantize = weight_only_rule(),
                .types = "f32"});
}

}  // namespace leadline::ops
