// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "kernels/quant/row_quantize.h"
#include "ops/contraction_testing.h"
#include "ops/conv.h"
#include "ops/loops/quantize_rows.h"

namespace leadline::ops {
namespace {

namespace ref = kernels::reference;
constexpr float kInf = std::numeric_limits<float>::infinity();

// Channel c of the input feeds outputs 2c and 2c+1.
TEST(DepthwiseConv2D, MultiplierRepeatsEveryChannel) {
  OpTester t("DEPTHWISE_CONV_2D");
  DepthwiseConv2DAttributes a;
  a.padding = ir::Padding::kValid;
  a.stride_h = a.stride_w = 1;
  t.attributes(a).input<float>({1, 1, 2, 2}, {1, 10, 2, 20}, {}, false);
  t.input<float>({1, 1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}).input<float>({4}, {0, 0, 0, 1}).output(DType::kFloat32);
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{1, 1, 1, 4}));
  EXPECT_EQ(t.result<float>(0), (std::vector<float>{1 + 10, 2 + 12, 30 + 140, 40 + 160 + 1}));
}

struct Case {
  int64_t batch, in_h, in_w, in_c, multiplier, filter_h, filter_w;
  int stride, dilation;
  ir::Padding padding;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.batch << 'x' << c.in_h << 'x' << c.in_w << 'x' << c.in_c << " times " << c.multiplier << ", filter "
       << c.filter_h << 'x' << c.filter_w << ", stride " << c.stride << ", dilation " << c.dilation << ", padding "
       << static_cast<int>(c.padding);
}

class DepthwiseForms : public testing::TestWithParam<Case> {
 protected:
  int64_t out_c() const { return p_.in_c * p_.multiplier; }
  Shape input_shape() const { return {p_.batch, p_.in_h, p_.in_w, p_.in_c}; }
  Shape filter_shape() const { return {1, p_.filter_h, p_.filter_w, out_c()}; }
  OpTester tester(ir::Activation activation = ir::Activation::kNone) const {
    DepthwiseConv2DAttributes a;
    a.padding = p_.padding;
    a.stride_h = a.stride_w = p_.stride;
    a.dilation_h = a.dilation_w = p_.dilation;
    a.activation = activation;
    OpTester t("DEPTHWISE_CONV_2D");
    t.threads(2).attributes(a);
    return t;
  }
  template <typename Out, typename In, typename Weight, typename Zero, typename Finish>
  std::vector<Out> naive(const OpTester& t, const std::vector<In>& input, Zero zero, const std::vector<Weight>& filter,
                         int32_t filter_zero, const Finish& finish) const {
    const Shape out = t.shape(0);
    auto pad = [&](int64_t in, int64_t size, int64_t filter_size) {
      return std::max<int64_t>(0, (size - 1) * p_.stride + (filter_size - 1) * p_.dilation + 1 - in) / 2;
    };
    const ref::ConvShape s{.batch = p_.batch,
                           .in_h = p_.in_h,
                           .in_w = p_.in_w,
                           .in_c = p_.in_c,
                           .out_h = out[1],
                           .out_w = out[2],
                           .out_c = out_c(),
                           .filter_h = p_.filter_h,
                           .filter_w = p_.filter_w,
                           .stride_h = p_.stride,
                           .stride_w = p_.stride,
                           .dilation_h = p_.dilation,
                           .dilation_w = p_.dilation,
                           .pad_h = pad(p_.in_h, out[1], p_.filter_h),
                           .pad_w = pad(p_.in_w, out[2], p_.filter_w),
                           .groups = p_.in_c,
                           .step_o = 1,
                           .step_y = p_.filter_w * out_c(),
                           .step_x = out_c(),
                           .step_i = 0};
    std::vector<Out> result(static_cast<size_t>(out.elements()));
    reference_conv(s, input.data(), zero, filter.data(), filter_zero, finish, result.data());
    return result;
  }
  const Case& p_ = GetParam();
};

TEST_P(DepthwiseForms, FloatMatchesTheNaiveLoop) {
  const auto input = random_values<float>(input_shape().elements(), 1);
  auto filter = random_values<float>(filter_shape().elements(), 2);
  const auto bias = random_values<float>(out_c(), 3);
  for (const bool half : {false, true}) {
    OpTester t = tester(ir::Activation::kReluN1To1);
    t.input<float>(input_shape(), input, {}, false);
    half ? t.raw_input(DType::kFloat16, filter_shape(), half_bytes(filter)) : t.input<float>(filter_shape(), filter);
    t.input<float>({out_c()}, bias).output(DType::kFloat32).run();
    if (half) {
      for (float& value : filter) value = half_to_float(float_to_half(value));
    }
    const auto expected =
        naive<float>(t, input, ref::FixedZero{}, filter, 0, ref::FinishFloat{bias.data(), -1.0F, 1.0F});
    const auto result = t.result<float>(0);
    for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(result[i], expected[i], 1e-5F) << i;
  }
}

TEST_P(DepthwiseForms, Int8PerChannelMatchesTheNaiveLoop) {
  const auto input = random_values<int8_t>(input_shape().elements(), 1, -128, 127);
  const auto bias = random_values<int32_t>(out_c(), 3, -1000, 1000);
  const Quantization q = channel_quantized(out_c(), 3, 0.02F);
  std::vector<float> scales;
  for (const float s : q.scale) scales.push_back(0.03F * s / 0.05F);
  for (const int bits : {8, 4}) {
    const auto filter = random_values<int8_t>(filter_shape().elements(), 2, bits == 8 ? -127 : -8, bits == 8 ? 127 : 7);
    for (const bool known : {true, false}) {
      OpTester t = tester(ir::Activation::kRelu6);
      t.input<int8_t>(input_shape(), input, quantized(0.03F, -5), false);
      t.raw_input(bits == 8 ? DType::kInt8 : DType::kInt4, filter_shape(),
                  bits == 8 ? bytes_of(filter) : packed_bytes(filter, 4), q, known);
      t.input<int32_t>({out_c()}, bias).output(DType::kInt8, quantized(0.05F, -128)).run();
      const ref::FinishQuantized<int8_t> finish{bias.data(), scales.data(), -128, -128, -8};
      EXPECT_EQ(t.result<int8_t>(0), naive<int8_t>(t, input, ref::FixedZero{-5}, filter, 0, finish));
    }
  }
}

TEST_P(DepthwiseForms, Uint8WithAsymmetricFilterMatchesTheNaiveLoop) {
  const auto input = random_values<uint8_t>(input_shape().elements(), 1, 0, 255);
  const auto filter = random_values<uint8_t>(filter_shape().elements(), 2, 0, 255);
  OpTester t = tester();
  t.input<uint8_t>(input_shape(), input, quantized(0.03F, 140), false);
  t.input<uint8_t>(filter_shape(), filter, quantized(0.01F, 200)).output(DType::kUInt8, quantized(0.1F, 3)).run();
  const float scale = 0.03F * 0.01F / 0.1F;
  const ref::FinishQuantized<uint8_t> finish{nullptr, &scale, 3, 0, 255, 0};
  EXPECT_EQ(t.result<uint8_t>(0), naive<uint8_t>(t, input, ref::FixedZero{140}, filter, 200, finish));
}

TEST_P(DepthwiseForms, DynamicRangeQuantizesImageByImage) {
  auto input = random_values<float>(input_shape().elements(), 1);
  for (size_t i = 0; i < input.size() / 2; ++i) input[i] *= 30.0F;
  const auto filter = random_values<int8_t>(filter_shape().elements(), 2, -127, 127);
  const Quantization q = channel_quantized(out_c(), 3, 0.01F);
  std::vector<int8_t> levels(input.size());
  std::vector<float> scales(static_cast<size_t>(p_.batch));
  std::vector<int32_t> zeros(static_cast<size_t>(p_.batch));
  const int64_t size = input_shape().elements() / p_.batch;
  for (int64_t i = 0; i < p_.batch; ++i) {
    const kernels::RowQuantization row =
        quantize_row(input.data() + i * size, size, levels.data() + i * size, kernels::RowRule::kTfliteAsymmetric);
    scales[static_cast<size_t>(i)] = row.scale;
    zeros[static_cast<size_t>(i)] = row.zero_point;
  }
  for (const bool known : {true, false}) {
    OpTester t = tester();
    t.input<float>(input_shape(), input, {}, false).input<int8_t>(filter_shape(), filter, q, known);
    t.output(DType::kFloat32).run();
    const auto expected = naive<float>(t, levels, ref::RowZero{zeros.data()}, filter, 0,
                                       ref::FinishHybrid{scales.data(), q.scale.data(), nullptr, -kInf, kInf});
    const auto result = t.result<float>(0);
    for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(result[i], expected[i], 1e-3F) << i;
  }
}

TEST_P(DepthwiseForms, Int16MatchesFixedPoint) {
  const auto input = random_values<int16_t>(input_shape().elements(), 1, -32768, 32767);
  const auto filter = random_values<int8_t>(filter_shape().elements(), 2, -127, 127);
  const auto bias = random_values<int64_t>(out_c(), 3, -100000, 100000);
  const Quantization q = channel_quantized(out_c(), 3, 0.02F);
  std::vector<kernels::Multiplier> multipliers;
  for (const float s : q.scale) multipliers.push_back(kernels::quantize_multiplier(double{0.5F} * s / double{2.0F}));
  OpTester t = tester();
  t.input<int16_t>(input_shape(), input, quantized(0.5F), false).input<int8_t>(filter_shape(), filter, q);
  t.input<int64_t>({out_c()}, bias).output(DType::kInt16, quantized(2.0F)).run();
  const ref::FinishWide finish{.bias64 = bias.data(), .multiplier = multipliers.data(), .lo = -32768, .hi = 32767};
  EXPECT_EQ(t.result<int16_t>(0), naive<int16_t>(t, input, ref::FixedZero{}, filter, 0, finish));
}

INSTANTIATE_TEST_SUITE_P(Shapes, DepthwiseForms,
                         testing::Values(Case{1, 5, 5, 1, 1, 3, 3, 1, 1, ir::Padding::kSame},
                                         Case{2, 6, 7, 4, 2, 3, 3, 2, 1, ir::Padding::kValid},
                                         Case{2, 9, 9, 3, 1, 3, 3, 1, 2, ir::Padding::kSame},
                                         Case{1, 4, 4, 16, 1, 1, 1, 1, 1, ir::Padding::kValid},
                                         Case{2, 12, 11, 33, 1, 3, 3, 2, 1, ir::Padding::kSame},
                                         Case{1, 7, 5, 1, 8, 2, 4, 2, 1, ir::Padding::kSame},
                                         Case{1, 13, 13, 24, 1, 5, 5, 1, 1, ir::Padding::kSame}));

TEST(DepthwiseConv2D, RefusesFiltersThatDoNotFit) {
  auto make = [](const Shape& filter) {
    OpTester t("DEPTHWISE_CONV_2D");
    DepthwiseConv2DAttributes a;
    a.stride_h = a.stride_w = 1;
    t.attributes(a).input<float>({1, 4, 4, 2}, random_values<float>(32, 1), {}, false);
    t.input<float>(filter, random_values<float>(filter.elements(), 1)).output(DType::kFloat32);
    return t;
  };
  OpTester first = make({2, 1, 1, 2});
  expect_refused(first, "expected [1, height, width, channels]");
  OpTester channels = make({1, 1, 1, 3});
  expect_refused(channels, "the filter has 3 channels, expected a multiple of the input's 2");
}

}  // namespace
}  // namespace leadline::ops
