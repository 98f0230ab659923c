// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "kernels/quant/dynamic.h"
#include "ops/contraction_testing.h"
#include "ops/conv.h"
#include "ops/loops/quantize_rows.h"

namespace leadline::ops {
namespace {

namespace ref = kernels::reference;
constexpr float kInf = std::numeric_limits<float>::infinity();

TransposeConvAttributes attributes(ir::Padding padding, int stride_h, int stride_w) {
  TransposeConvAttributes a;
  a.padding = padding;
  a.stride_h = stride_h;
  a.stride_w = stride_w;
  return a;
}

// [[1, 2], [3, 4]] with the 3x3 filter 1..9: windows two pixels apart, so neighbours overlap in one row or column.
TEST(TransposeConv, SpreadsEveryPixelOverItsWindow) {
  OpTester t("TRANSPOSE_CONV");
  t.attributes(attributes(ir::Padding::kValid, 2, 2)).input<int32_t>({4}, {1, 5, 5, 1});
  t.input<float>({1, 3, 3, 1}, {1, 2, 3, 4, 5, 6, 7, 8, 9}).input<float>({1, 2, 2, 1}, {1, 2, 3, 4}, {}, false);
  t.output(DType::kFloat32).run();
  EXPECT_EQ(t.shape(0), (Shape{1, 5, 5, 1}));
  EXPECT_EQ(t.result<float>(0), (std::vector<float>{1,  2,  5,  4,  6,  4,  5,  14, 10, 12, 10, 14, 36,
                                                    24, 30, 12, 15, 34, 20, 24, 21, 24, 55, 32, 36}));
}

TEST(TransposeConv, OutputShapeMayBeKnownOnlyAtRunTime) {
  OpTester t("TRANSPOSE_CONV");
  t.attributes(attributes(ir::Padding::kSame, 1, 1)).input<int32_t>({4}, {1, 1, 2, 1}, {}, false);
  t.input<float>({1, 1, 1, 1}, {2}).input<float>({1, 1, 2, 1}, {3, 4}, {}, false).input<float>({1}, {0.5F});
  t.output(DType::kFloat32);
  EXPECT_FALSE(t.infer(false));
  t.run();
  EXPECT_EQ(t.result<float>(0), (std::vector<float>{6.5F, 8.5F}));
}

struct Case {
  int64_t batch, out_h, out_w, in_c, out_c, filter_h, filter_w;
  int stride_h, stride_w;
  ir::Padding padding;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.batch << 'x' << c.out_h << 'x' << c.out_w << 'x' << c.out_c << " from " << c.in_c << ", filter "
       << c.filter_h << 'x' << c.filter_w << ", stride " << c.stride_h << 'x' << c.stride_w << ", padding "
       << static_cast<int>(c.padding);
}

class TransposeConvForms : public testing::TestWithParam<Case> {
 protected:
  static int64_t in_size(const Case& p, int64_t out, int64_t filter, int64_t stride) {
    return p.padding == ir::Padding::kSame ? (out + stride - 1) / stride : (out - filter + stride) / stride;
  }
  Shape input_shape() const {
    return {p_.batch, in_size(p_, p_.out_h, p_.filter_h, p_.stride_h), in_size(p_, p_.out_w, p_.filter_w, p_.stride_w),
            p_.in_c};
  }
  Shape filter_shape() const { return {p_.out_c, p_.filter_h, p_.filter_w, p_.in_c}; }
  OpTester tester() const {
    OpTester t("TRANSPOSE_CONV");
    t.threads(2).attributes(attributes(p_.padding, p_.stride_h, p_.stride_w));
    auto size = [](int64_t value) { return static_cast<int32_t>(value); };
    t.input<int32_t>({4}, {size(p_.batch), size(p_.out_h), size(p_.out_w), size(p_.out_c)});
    return t;
  }
  template <typename Out, typename In, typename Weight, typename Zero, typename Finish>
  std::vector<Out> naive(const std::vector<In>& input, Zero zero, const std::vector<Weight>& filter,
                         int32_t filter_zero, const Finish& finish) const {
    const Shape in = input_shape();
    auto pad = [](int64_t out, int64_t size, int64_t filter_size, int64_t stride) {
      return std::max<int64_t>(0, (size - 1) * stride + filter_size - out) / 2;
    };
    const ref::ConvShape s{.batch = p_.batch,
                           .in_h = in[1],
                           .in_w = in[2],
                           .in_c = p_.in_c,
                           .out_h = p_.out_h,
                           .out_w = p_.out_w,
                           .out_c = p_.out_c,
                           .filter_h = p_.filter_h,
                           .filter_w = p_.filter_w,
                           .stride_h = p_.stride_h,
                           .stride_w = p_.stride_w,
                           .pad_h = pad(p_.out_h, in[1], p_.filter_h, p_.stride_h),
                           .pad_w = pad(p_.out_w, in[2], p_.filter_w, p_.stride_w),
                           .step_o = p_.filter_h * p_.filter_w * p_.in_c,
                           .step_y = p_.filter_w * p_.in_c,
                           .step_x = p_.in_c,
                           .step_i = 1};
    std::vector<Out> result(static_cast<size_t>(p_.batch * p_.out_h * p_.out_w * p_.out_c));
    reference_transpose_conv(s, input.data(), zero, filter.data(), filter_zero, finish, result.data());
    return result;
  }
  const Case& p_ = GetParam();
};

TEST_P(TransposeConvForms, FloatMatchesTheNaiveLoop) {
  const auto input = random_values<float>(input_shape().elements(), 1);
  const auto filter = random_values<float>(filter_shape().elements(), 2);
  const auto bias = random_values<float>(p_.out_c, 3);
  const auto expected = naive<float>(input, ref::FixedZero{}, filter, 0, ref::FinishFloat{bias.data(), -kInf, kInf});
  for (const bool known : {true, false}) {
    OpTester t = tester();
    t.input<float>(filter_shape(), filter, {}, known).input<float>(input_shape(), input, {}, false);
    t.input<float>({p_.out_c}, bias).output(DType::kFloat32).run();
    const auto result = t.result<float>(0);
    for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(result[i], expected[i], 1e-4F) << i;
  }
}

TEST_P(TransposeConvForms, Int8MatchesTheNaiveLoop) {
  const auto input = random_values<int8_t>(input_shape().elements(), 1, -128, 127);
  const auto filter = random_values<int8_t>(filter_shape().elements(), 2, -127, 127);
  const auto bias = random_values<int32_t>(p_.out_c, 3, -1000, 1000);
  const Quantization q = channel_quantized(p_.out_c, 0, 0.02F);
  std::vector<float> scales;
  for (const float s : q.scale) scales.push_back(0.03F * s / 0.1F);
  OpTester t = tester();
  t.input<int8_t>(filter_shape(), filter, q).input<int8_t>(input_shape(), input, quantized(0.03F, 9), false);
  t.input<int32_t>({p_.out_c}, bias).output(DType::kInt8, quantized(0.1F, 4)).run();
  const ref::FinishQuantized<int8_t> finish{bias.data(), scales.data(), 4, -128, 127};
  EXPECT_EQ(t.result<int8_t>(0), naive<int8_t>(input, ref::FixedZero{9}, filter, 0, finish));
}

TEST_P(TransposeConvForms, Uint8MatchesTheNaiveLoop) {
  const auto input = random_values<uint8_t>(input_shape().elements(), 1, 0, 255);
  const auto filter = random_values<uint8_t>(filter_shape().elements(), 2, 0, 255);
  OpTester t = tester();
  t.input<uint8_t>(filter_shape(), filter, quantized(0.02F, 100));
  t.input<uint8_t>(input_shape(), input, quantized(0.03F, 131), false).output(DType::kUInt8, quantized(0.2F, 70)).run();
  const float scale = 0.03F * 0.02F / 0.2F;
  const ref::FinishQuantized<uint8_t> finish{nullptr, &scale, 70, 0, 255, 0};
  EXPECT_EQ(t.result<uint8_t>(0), naive<uint8_t>(input, ref::FixedZero{131}, filter, 100, finish));
}

TEST_P(TransposeConvForms, DynamicRangeQuantizesImageByImage) {
  auto input = random_values<float>(input_shape().elements(), 1);
  for (size_t i = 0; i < input.size() / 2; ++i) input[i] *= 30.0F;
  const auto filter = random_values<int8_t>(filter_shape().elements(), 2, -127, 127);
  const Quantization q = channel_quantized(p_.out_c, 0, 0.01F);
  OpTester t = tester();
  t.input<int8_t>(filter_shape(), filter, q).input<float>(input_shape(), input, {}, false);
  t.output(DType::kFloat32).run();
  std::vector<int8_t> levels(input.size());
  std::vector<float> scales(static_cast<size_t>(p_.batch));
  std::vector<int32_t> zeros(static_cast<size_t>(p_.batch));
  ThreadPool pool(1);
  quantize_rows(input.data(), p_.batch, input_shape().elements() / p_.batch, levels.data(),
                {scales.data(), zeros.data()}, pool);
  const auto expected = naive<float>(levels, ref::RowZero{zeros.data()}, filter, 0,
                                     ref::FinishHybrid{scales.data(), q.scale.data(), nullptr, -kInf, kInf});
  EXPECT_EQ(t.result<float>(0), expected);
}

TEST_P(TransposeConvForms, Int16MatchesFixedPoint) {
  const auto input = random_values<int16_t>(input_shape().elements(), 1, -32768, 32767);
  const auto filter = random_values<int8_t>(filter_shape().elements(), 2, -127, 127);
  const kernels::Multiplier multiplier = kernels::quantize_multiplier(double{0.5F} * double{0.02F} / double{4.0F});
  OpTester t = tester();
  t.input<int8_t>(filter_shape(), filter, quantized(0.02F))
      .input<int16_t>(input_shape(), input, quantized(0.5F), false);
  t.output(DType::kInt16, quantized(4.0F)).run();
  const ref::FinishWide finish{.multiplier = &multiplier, .lo = -32768, .hi = 32767, .step = 0};
  EXPECT_EQ(t.result<int16_t>(0), naive<int16_t>(input, ref::FixedZero{}, filter, 0, finish));
}

INSTANTIATE_TEST_SUITE_P(Shapes, TransposeConvForms,
                         testing::Values(Case{1, 1, 1, 1, 1, 1, 1, 1, 1, ir::Padding::kSame},
                                         Case{2, 5, 5, 3, 4, 3, 3, 1, 1, ir::Padding::kSame},
                                         Case{1, 12, 11, 5, 7, 3, 3, 2, 2, ir::Padding::kSame},
                                         Case{2, 9, 13, 8, 2, 3, 3, 2, 2, ir::Padding::kValid},
                                         Case{1, 8, 8, 4, 18, 2, 2, 2, 2, ir::Padding::kValid},
                                         Case{1, 7, 10, 3, 3, 2, 4, 2, 3, ir::Padding::kSame},
                                         Case{1, 9, 9, 2, 3, 1, 1, 3, 3, ir::Padding::kSame},
                                         Case{1, 6, 10, 2, 3, 5, 4, 1, 2, ir::Padding::kSame}));

TEST(TransposeConv, RefusesShapesThatDisagree) {
  auto make = [](const std::vector<int32_t>& output) {
    OpTester t("TRANSPOSE_CONV");
    t.attributes(attributes(ir::Padding::kSame, 2, 2));
    t.input<int32_t>({static_cast<int64_t>(output.size())}, output);
    t.input<float>({3, 3, 3, 2}, random_values<float>(54, 1)).input<float>({1, 2, 2, 2}, random_values<float>(8, 1));
    t.output(DType::kFloat32);
    return t;
  };
  OpTester good = make({1, 4, 3, 3});
  good.run();
  OpTester spatial = make({1, 5, 4, 3});
  expect_refused(spatial, "comes from 3x2 pixels");
  OpTester channels = make({1, 4, 4, 4});
  expect_refused(channels, "expected 1 images with 3 channels");
  OpTester negative = make({1, -4, 4, 3});
  expect_refused(negative, "negative size -4");
  OpTester count = make({1, 4, 4});
  expect_refused(count, "expected [4]");
}

}  // namespace
}  // namespace leadline::ops
