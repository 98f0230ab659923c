// SPDX-License-Identifier: Apache-2.0
// Convolution2DTransposeBias, MediaPipe's transposed convolution: input [N,H,W,C], filter [O,KH,KW,C], bias [O].
// Options: a struct of padding, stride_width, stride_height. The output's size follows from the input's, or is what the
// file says where several sizes fit.
#include <algorithm>

#include "ops/common.h"
#include "ops/conv.h"
#include "ops/custom_options.h"
#include "ops/families.h"
#include "ops/movement.h"

namespace leadline::ops {
namespace mediapipe_transpose_conv {
namespace {

constexpr int kInput = 0;
constexpr int kFilter = 1;
constexpr int kBias = 2;

TransposeConvAttributes read_options(const OpContext& c) {
  const auto [padding, stride_w, stride_h] = read_struct_options<3>(c);
  TransposeConvAttributes a;
  a.padding = padding_option(c, padding);
  c.require(stride_w > 0 && stride_h > 0, "the strides are {} and {}, expected 1 or more", stride_h, stride_w);
  a.stride_w = stride_w;
  a.stride_h = stride_h;
  return a;
}

constexpr ContractionOperands kOperands = {
    .kind = ContractionKind::kTransposed, .activations = kInput, .weights = kFilter, .bias = kBias};

/// True when a convolution of `output` pixels has `input` pixels.
bool fits(const TransposeConvAttributes& a, int64_t output, int64_t filter, int64_t stride, int64_t input) {
  if (a.padding == ir::Padding::kSame) return (output + stride - 1) / stride == input;
  return output >= filter && (output - filter) / stride + 1 == input;
}

int64_t output_size(const OpContext& c, const TransposeConvAttributes& a, int64_t input, int64_t filter,
                    int64_t stride) {
  if (input == 0) return 0;
  const int64_t reach = checked_add(c, checked_multiply(c, stride, input - 1), filter);
  if (a.padding == ir::Padding::kValid) return reach;
  return reach - std::max<int64_t>(0, filter - (input - 1) % stride - 1);
}

void infer(InferContext& c) {
  const TransposeConvAttributes a = read_options(c);
  const Shape& input = c.input(kInput).shape;
  const Shape& filter = c.input(kFilter).shape;
  check_conv_ranks(c, input, filter);
  c.require(input[3] == filter[3], "the input has {} channels, the filter expects {}", input[3], filter[3]);
  c.require_input_type(kInput, {DType::kFloat32});
  c.require_input_type(kFilter, {DType::kFloat32, DType::kFloat16});
  check_contraction(c, {c, kOperands});
  const Shape& stated = c.output(0).value->shape;
  Shape output{input[0], output_size(c, a, input[1], filter[1], a.stride_h),
               output_size(c, a, input[2], filter[2], a.stride_w), filter[0]};
  if (stated.rank() == 4 && fits(a, stated[1], filter[1], a.stride_h, input[1]) &&
      fits(a, stated[2], filter[2], a.stride_w, input[2])) {
    output.set(1, stated[1]);
    output.set(2, stated[2]);
  }
  if (output.elements() > 0) transpose_conv_shape(c, a, input, filter, output);
  c.set_output_shape(0, output);
}

std::unique_ptr<Kernel> prepare(PrepareContext& c) {
  const Shape& output = c.output(0).shape;
  if (output.elements() == 0) return make_kernel([](RunContext&) {});
  const auto shape = transpose_conv_shape(c, read_options(c), c.input(kInput).shape, c.input(kFilter).shape, output);
  return make_transpose_conv_kernel(c, make_contraction(c, {c, kOperands}, ir::Activation::kNone), shape);
}

}  // namespace
}  // namespace mediapipe_transpose_conv

void register_mediapipe_transpose_conv(Registry& registry) {
  using namespace mediapipe_transpose_conv;
  registry.add({.id = ir::OpId::custom("Convolution2DTransposeBias"),
                .min_inputs = 3,
                .max_inputs = 3,
                .required_inputs = 3,
                .infer = infer,
                .prepare = prepare,
                .half_inputs = input_set({kFilter, kBias}),
                .contraction = kOperands,
                .types = "f32 f16-weights"});
}

}  // namespace leadline::ops
