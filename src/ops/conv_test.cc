// SPDX-License-Identifier: Apache-2.0
#include "ops/conv.h"

#include <gtest/gtest.h>

#include "kernels/quant/dynamic.h"
#include "kernels/reference/matmul.h"
#include "ops/contraction_testing.h"
#include "ops/loops/quantize_rows.h"

namespace leadline::ops {
namespace {

namespace ref = kernels::reference;
constexpr float kInf = std::numeric_limits<float>::infinity();

Conv2DAttributes attributes(ir::Padding padding, int stride = 1, int dilation = 1,
                            ir::Activation activation = ir::Activation::kNone) {
  Conv2DAttributes a;
  a.padding = padding;
  a.stride_h = a.stride_w = stride;
  a.dilation_h = a.dilation_w = dilation;
  a.activation = activation;
  return a;
}

// [[1, 2, 3], [4, 5, 6], [7, 8, 9]] with the filter [[1, 2], [3, 4]] and bias 0.5.
TEST(Conv2D, PadsTheBottomAndRightOfAnEvenFilter) {
  OpTester t("CONV_2D");
  t.attributes(attributes(ir::Padding::kSame)).input<float>({1, 3, 3, 1}, {1, 2, 3, 4, 5, 6, 7, 8, 9}, {}, false);
  t.input<float>({1, 2, 2, 1}, {1, 2, 3, 4}).input<float>({1}, {0.5F}).output(DType::kFloat32);
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{1, 3, 3, 1}));
  EXPECT_EQ(t.result<float>(0), (std::vector<float>{37.5, 47.5, 21.5, 67.5, 77.5, 33.5, 23.5, 26.5, 9.5}));
}

TEST(Conv2D, GroupsReadTheirOwnChannels) {
  OpTester t("CONV_2D");
  t.attributes(attributes(ir::Padding::kValid)).input<float>({1, 1, 1, 4}, {1, 10, 100, 1000}, {}, false);
  t.input<float>({4, 1, 1, 2}, {1, 1, 2, 2, 3, 3, 4, 4}).absent_input().output(DType::kFloat32);
  t.run();
  EXPECT_EQ(t.result<float>(0), (std::vector<float>{11, 22, 3300, 4400}));
}

TEST(Conv2D, DilationSpreadsTheTaps) {
  OpTester t("CONV_2D");
  t.attributes(attributes(ir::Padding::kValid, 1, 2))
      .input<float>({1, 3, 3, 1}, {1, 2, 3, 4, 5, 6, 7, 8, 9}, {}, false);
  t.input<float>({1, 2, 2, 1}, {1, 10, 100, 1000}).output(DType::kFloat32);
  t.run();
  EXPECT_EQ(t.result<float>(0), (std::vector<float>{9731}));
}

struct Case {
  int64_t batch, in_h, in_w, in_c, out_c, filter, groups;
  int stride, dilation;
  ir::Padding padding;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.batch << 'x' << c.in_h << 'x' << c.in_w << 'x' << c.in_c << " to " << c.out_c << ", filter " << c.filter
       << ", groups " << c.groups << ", stride " << c.stride << ", dilation " << c.dilation << ", padding "
       << static_cast<int>(c.padding);
}

class ConvForms : public testing::TestWithParam<Case> {
 protected:
  Shape input_shape() const { return {p_.batch, p_.in_h, p_.in_w, p_.in_c}; }
  Shape filter_shape() const { return {p_.out_c, p_.filter, p_.filter, p_.in_c / p_.groups}; }
  int64_t input_count() const { return input_shape().elements(); }
  int64_t filter_count() const { return filter_shape().elements(); }
  OpTester tester(ir::Activation activation = ir::Activation::kNone) const {
    OpTester t("CONV_2D");
    t.threads(2).attributes(attributes(p_.padding, p_.stride, p_.dilation, activation));
    return t;
  }
  /// The naive convolution of what the tester just ran.
  template <typename Out, typename In, typename Weight, typename Zero, typename Finish>
  std::vector<Out> naive(const OpTester& t, const std::vector<In>& input, Zero zero, const std::vector<Weight>& filter,
                         int32_t filter_zero, const Finish& finish) const {
    const Shape out = t.shape(0);
    const int64_t reach = (p_.filter - 1) * p_.dilation + 1;
    const int64_t depth = p_.in_c / p_.groups;
    auto pad = [&](int64_t in, int64_t size) { return std::max<int64_t>(0, (size - 1) * p_.stride + reach - in) / 2; };
    const ref::ConvShape s{.batch = p_.batch,
                           .in_h = p_.in_h,
                           .in_w = p_.in_w,
                           .in_c = p_.in_c,
                           .out_h = out[1],
                           .out_w = out[2],
                           .out_c = p_.out_c,
                           .filter_h = p_.filter,
                           .filter_w = p_.filter,
                           .stride_h = p_.stride,
                           .stride_w = p_.stride,
                           .dilation_h = p_.dilation,
                           .dilation_w = p_.dilation,
                           .pad_h = pad(p_.in_h, out[1]),
                           .pad_w = pad(p_.in_w, out[2]),
                           .groups = p_.groups,
                           .step_o = p_.filter * p_.filter * depth,
                           .step_y = p_.filter * depth,
                           .step_x = depth,
                           .step_i = 1};
    std::vector<Out> result(static_cast<size_t>(out.elements()));
    reference_conv(s, input.data(), zero, filter.data(), filter_zero, finish, result.data());
    return result;
  }
  const Case& p_ = GetParam();
};

TEST_P(ConvForms, FloatMatchesTheNaiveLoop) {
  const auto input = random_values<float>(input_count(), 1);
  const auto filter = random_values<float>(filter_count(), 2);
  const auto bias = random_values<float>(p_.out_c, 3);
  std::vector<std::vector<float>> results;
  for (const bool known : {true, false}) {
    OpTester t = tester(ir::Activation::kRelu6);
    t.input<float>(input_shape(), input, {}, false).input<float>(filter_shape(), filter, {}, known);
    t.input<float>({p_.out_c}, bias).output(DType::kFloat32);
    t.run();
    const auto expected =
        naive<float>(t, input, ref::FixedZero{}, filter, 0, ref::FinishFloat{bias.data(), 0.0F, 6.0F});
    const auto result = t.result<float>(0);
    ASSERT_EQ(result.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(result[i], expected[i], 1e-4F) << i;
    results.push_back(result);
  }
  EXPECT_EQ(results[0], results[1]) << "a filter computed at run time";
}

TEST_P(ConvForms, Float16FiltersMatchTheirFloatValues) {
  const auto input = random_values<float>(input_count(), 1);
  auto filter = random_values<float>(filter_count(), 2);
  const auto bits = half_bytes(filter);
  for (float& value : filter) value = half_to_float(float_to_half(value));
  for (const bool known : {true, false}) {
    OpTester t = tester();
    t.input<float>(input_shape(), input, {}, false).raw_input(DType::kFloat16, filter_shape(), bits, {}, known);
    t.output(DType::kFloat32).run();
    const auto expected = naive<float>(t, input, ref::FixedZero{}, filter, 0, ref::FinishFloat{nullptr, -kInf, kInf});
    const auto result = t.result<float>(0);
    for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(result[i], expected[i], 1e-4F) << i;
  }
}

TEST_P(ConvForms, Int8PerChannelMatchesTheNaiveLoop) {
  const auto input = random_values<int8_t>(input_count(), 1, -128, 127);
  const auto bias = random_values<int32_t>(p_.out_c, 3, -3000, 3000);
  const Quantization q = channel_quantized(p_.out_c, 0, 0.02F);
  std::vector<float> scales;
  for (const float s : q.scale) scales.push_back(0.03F * s / 0.1F);
  for (const int bits : {8, 4}) {
    const auto filter = random_values<int8_t>(filter_count(), 2, bits == 8 ? -127 : -8, bits == 8 ? 127 : 7);
    OpTester t = tester(ir::Activation::kRelu);
    t.input<int8_t>(input_shape(), input, quantized(0.03F, 11), false);
    t.raw_input(bits == 8 ? DType::kInt8 : DType::kInt4, filter_shape(),
                bits == 8 ? bytes_of(filter) : packed_bytes(filter, 4), q);
    t.input<int32_t>({p_.out_c}, bias).output(DType::kInt8, quantized(0.1F, -20)).run();
    const ref::FinishQuantized<int8_t> finish{bias.data(), scales.data(), -20, -20, 127};
    EXPECT_EQ(t.result<int8_t>(0), naive<int8_t>(t, input, ref::FixedZero{11}, filter, 0, finish));
  }
}

TEST_P(ConvForms, Uint8WithAsymmetricFilterMatchesTheNaiveLoop) {
  const auto input = random_values<uint8_t>(input_count(), 1, 0, 255);
  const auto filter = random_values<uint8_t>(filter_count(), 2, 0, 255);
  for (const bool known : {true, false}) {
    OpTester t = tester();
    t.input<uint8_t>(input_shape(), input, quantized(0.03F, 140), false);
    t.input<uint8_t>(filter_shape(), filter, quantized(0.01F, 90), known).output(DType::kUInt8, quantized(0.2F, 128));
    t.run();
    const float scale = 0.03F * 0.01F / 0.2F;
    const ref::FinishQuantized<uint8_t> finish{nullptr, &scale, 128, 0, 255, 0};
    EXPECT_EQ(t.result<uint8_t>(0), naive<uint8_t>(t, input, ref::FixedZero{140}, filter, 90, finish));
  }
}

// A 1x1 filter that visits every pixel gives each pixel a scale; all others give one to each image.
TEST_P(ConvForms, DynamicRangeMatchesTheNaiveLoop) {
  auto input = random_values<float>(input_count(), 1);
  for (size_t i = 0; i < input.size() / 2; ++i) input[i] = 10.0F * input[i] + 3.0F;
  const auto filter = random_values<int8_t>(filter_count(), 2, -127, 127);
  const auto bias = random_values<float>(p_.out_c, 3);
  const Quantization q = channel_quantized(p_.out_c, 0, 0.01F);
  OpTester t = tester();
  t.input<float>(input_shape(), input, {}, false).input<int8_t>(filter_shape(), filter, q);
  t.input<float>({p_.out_c}, bias).output(DType::kFloat32).run();
  const bool by_pixel = p_.filter == 1 && p_.stride == 1 && p_.groups == 1;
  const int64_t rows = by_pixel ? p_.batch * p_.in_h * p_.in_w : p_.batch;
  std::vector<int8_t> levels(input.size());
  std::vector<float> scales(static_cast<size_t>(rows));
  std::vector<int32_t> zeros(static_cast<size_t>(rows));
  ThreadPool pool(1);
  quantize_rows(input.data(), rows, input_count() / rows, levels.data(), {scales.data(), zeros.data()}, pool);
  const ref::FinishHybrid finish{scales.data(), q.scale.data(), bias.data(), -kInf, kInf};
  std::vector<float> expected(static_cast<size_t>(t.shape(0).elements()));
  if (by_pixel) {
    const ref::MatmulShape s{
        .m = rows, .n = p_.out_c, .k = p_.in_c, .a_row = p_.in_c, .b_column = p_.in_c, .c_row = p_.out_c};
    reference_product(s, levels.data(), ref::RowZero{zeros.data()}, filter.data(), 0, finish, expected.data());
  } else {
    expected = naive<float>(t, levels, ref::RowZero{zeros.data()}, filter, 0, finish);
  }
  const auto result = t.result<float>(0);
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(result[i], expected[i], 1e-5F * std::max(1.0F, std::abs(expected[i]))) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, ConvForms,
                         testing::Values(Case{1, 1, 1, 1, 1, 1, 1, 1, 1, ir::Padding::kSame},
                                         Case{2, 5, 6, 3, 4, 3, 1, 1, 1, ir::Padding::kSame},
                                         Case{2, 8, 7, 8, 5, 1, 1, 1, 1, ir::Padding::kValid},
                                         Case{1, 9, 9, 4, 17, 3, 1, 2, 1, ir::Padding::kSame},
                                         Case{1, 9, 8, 3, 6, 3, 1, 1, 2, ir::Padding::kSame},
                                         Case{2, 7, 7, 6, 8, 3, 2, 2, 1, ir::Padding::kValid},
                                         Case{1, 6, 6, 16, 40, 1, 1, 2, 1, ir::Padding::kSame},
                                         Case{1, 12, 13, 12, 12, 5, 3, 1, 1, ir::Padding::kSame}));

// (10 * 5 + 20 * -3) * 0.5 * 0.25 / 0.125 = -10; bias 3 adds 3.
TEST(Conv2D, Int16ActivationsTakeBiasOfEitherWidth) {
  for (const DType type : {DType::kInt32, DType::kInt64}) {
    OpTester t("CONV_2D");
    Conv2DAttributes a = attributes(ir::Padding::kValid);
    a.quantized_bias_type = type;
    t.attributes(a).input<int16_t>({1, 1, 1, 2}, {10, 20}, quantized(0.5F), false);
    t.input<int8_t>({1, 1, 1, 2}, {5, -3}, quantized(0.25F));
    type == DType::kInt32 ? t.input<int32_t>({1}, {3}) : t.input<int64_t>({1}, {3});
    t.output(DType::kInt16, quantized(0.125F)).run();
    EXPECT_EQ(t.result<int16_t>(0), (std::vector<int16_t>{-7}));
  }
}

TEST(Conv2D, ABatchOfNothingGivesNothing) {
  OpTester t("CONV_2D");
  t.attributes(attributes(ir::Padding::kSame)).input<float>({0, 4, 4, 2}, {}, {}, false);
  t.input<float>({3, 3, 3, 2}, random_values<float>(54, 1)).output(DType::kFloat32).run();
  EXPECT_EQ(t.shape(0), (Shape{0, 4, 4, 3}));
}

TEST(Conv2D, RefusesWhatAFileCouldGetWrong) {
  auto make = [](const Shape& input, const Shape& filter, const Conv2DAttributes& a) {
    OpTester t("CONV_2D");
    t.attributes(a).input<float>(input, random_values<float>(input.elements(), 1), {}, false);
    t.input<float>(filter, random_values<float>(filter.elements(), 1)).output(DType::kFloat32);
    return t;
  };
  const Conv2DAttributes good = attributes(ir::Padding::kValid);
  OpTester rank = make({4, 4, 2}, {1, 1, 1, 2}, good);
  expect_refused(rank, "expected rank 4");
  OpTester channels = make({1, 4, 4, 3}, {1, 1, 1, 2}, good);
  expect_refused(channels, "the input has 3 channels");
  OpTester groups = make({1, 4, 4, 4}, {3, 1, 1, 2}, good);
  expect_refused(groups, "3 filters do not divide into 2 groups");
  OpTester empty = make({1, 4, 4, 4}, {3, 0, 1, 4}, good);
  expect_refused(empty, "expected no empty dimension");
  OpTester stride = make({1, 4, 4, 4}, {3, 1, 1, 4}, attributes(ir::Padding::kValid, 0));
  expect_refused(stride, "stride is 0");
  OpTester window = make({1, 1, 4, 4}, {3, 3, 1, 4}, good);
  expect_refused(window, "does not fit");
  OpTester types("CONV_2D");
  types.attributes(good).input<int8_t>({1, 1, 1, 1}, {1}, quantized(1.0F), false);
  types.input<float>({1, 1, 1, 1}, {1.0F}).output(DType::kInt8, quantized(1.0F));
  expect_refused(types, "input 1");
  OpTester unscaled("CONV_2D");
  unscaled.attributes(good).input<int8_t>({1, 1, 1, 1}, {1}, {}, false);
  unscaled.input<int8_t>({1, 1, 1, 1}, {1}, quantized(1.0F)).output(DType::kInt8, quantized(1.0F));
  expect_refused(unscaled, "expected one (quantized per tensor)");
}

}  // namespace
}  // namespace leadline::ops
