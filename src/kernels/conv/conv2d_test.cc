// SPDX-License-Identifier: Apache-2.0
// Convolution against plain loops on every instruction set: strides, dilations, paddings, groups, bands, threads.
#include "kernels/conv/conv2d.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/kernel_testing.h"
#include "ops/loops/conv.h"

namespace leadline::kernels {
namespace {

ConvShape make(int64_t batch, int64_t in_h, int64_t in_w, int64_t in_c, int64_t out_c, int64_t filter_h,
               int64_t filter_w, int64_t groups, int64_t stride, int64_t dilation, int64_t pad) {
  ConvShape s;
  s.batch = batch;
  s.in_h = in_h;
  s.in_w = in_w;
  s.in_c = in_c;
  s.out_c = out_c;
  s.filter_h = filter_h;
  s.filter_w = filter_w;
  s.filter_c = in_c / groups;
  s.stride_h = stride;
  s.stride_w = stride == 3 ? 1 : stride;
  s.dilation_h = dilation;
  s.dilation_w = dilation;
  s.pad_top = pad;
  s.pad_left = pad == 2 ? 1 : pad;
  s.out_h = (in_h + 2 * s.pad_top - (filter_h - 1) * s.dilation_h - 1) / s.stride_h + 1;
  s.out_w = (in_w + 2 * s.pad_left - (filter_w - 1) * s.dilation_w - 1) / s.stride_w + 1;
  return s;
}

std::vector<ConvShape> shapes() {
  return {
      make(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0),     make(2, 5, 7, 3, 8, 3, 3, 1, 1, 1, 1),
      make(1, 9, 9, 16, 5, 3, 3, 1, 2, 1, 0),    make(1, 11, 8, 4, 17, 3, 2, 1, 1, 2, 2),
      make(3, 4, 5, 13, 21, 1, 1, 1, 1, 1, 0),   make(1, 6, 6, 12, 6, 3, 3, 3, 1, 1, 1),
      make(1, 7, 7, 8, 40, 1, 1, 2, 1, 1, 0),    make(1, 8, 8, 5, 7, 1, 1, 1, 2, 1, 0),
      make(1, 13, 17, 67, 33, 3, 3, 1, 1, 1, 1), make(2, 10, 3, 1, 2, 7, 3, 1, 3, 1, 2),
      make(1, 3, 3, 2, 3, 5, 5, 1, 1, 1, 2),     make(1, 2, 200, 2, 4, 1, 3, 1, 1, 1, 1),
      make(2, 21, 23, 3, 35, 3, 3, 1, 2, 1, 1),  make(1, 15, 16, 3, 9, 7, 7, 1, 2, 1, 3),
      make(1, 9, 12, 4, 6, 3, 4, 1, 1, 1, 0),
  };
}

/// Calls visit(output index, channel, batch) and passes it each tap as tap(input index or -1, filter index).
template <typename Visit>
void for_each_output(const ConvShape& s, const Visit& visit) {
  size_t index = 0;
  for (int64_t b = 0; b < s.batch; ++b) {
    for (int64_t y = 0; y < s.out_h; ++y) {
      for (int64_t x = 0; x < s.out_w; ++x) {
        for (int64_t oc = 0; oc < s.out_c; ++oc, ++index) {
          visit(index, static_cast<size_t>(oc), static_cast<size_t>(b), [&](const auto& tap) {
            const int64_t group = oc / s.group_out_c();
            for (int64_t ky = 0; ky < s.filter_h; ++ky) {
              for (int64_t kx = 0; kx < s.filter_w; ++kx) {
                const int64_t in_y = y * s.stride_h - s.pad_top + ky * s.dilation_h;
                const int64_t in_x = x * s.stride_w - s.pad_left + kx * s.dilation_w;
                if (in_y < 0 || in_y >= s.in_h || in_x < 0 || in_x >= s.in_w) continue;
                for (int64_t c = 0; c < s.filter_c; ++c) {
                  tap(static_cast<size_t>(((b * s.in_h + in_y) * s.in_w + in_x) * s.in_c + group * s.filter_c + c),
                      static_cast<size_t>(((oc * s.filter_h + ky) * s.filter_w + kx) * s.filter_c + c));
                }
              }
            }
          });
        }
      }
    }
  }
}

int64_t input_size(const ConvShape& s) { return s.batch * s.in_h * s.in_w * s.in_c; }
int64_t output_size(const ConvShape& s) { return s.batch * s.out_h * s.out_w * s.out_c; }

TEST(ConvTest, FloatMatchesPlainLoopsAndBandsMatchTheWhole) {
  for_each_target([] {
    for (const ConvShape& s : shapes()) {
      SCOPED_TRACE(testing::Message() << s.in_h << "x" << s.in_w << "x" << s.in_c << " " << s.filter_h << "x"
                                      << s.filter_w);
      std::mt19937 random(3);
      const auto input = random_values<float>(input_size(s), -1, 1, random);
      const auto filter = random_values<float>(s.out_c * s.filter_size(), -1, 1, random);
      const auto bias = random_values<float>(s.out_c, -1, 1, random);
      std::vector<float> output(static_cast<size_t>(output_size(s)));
      const TestBytes packed(conv_packed_bytes_f32(s));
      ops::conv_pack(s, filter.data(), packed.data());
      const TestBytes workspace(conv_workspace_bytes_f32(s));
      ConvF32 conv{s, input.data(), packed.data(), bias.data(), output.data(), -1.0F, 3.0F};
      ThreadPool one(1);
      ops::convolve(conv, workspace.data(), one);
      for_each_output(s, [&](size_t index, size_t oc, size_t, const auto& taps) {
        double sum = bias[oc];
        taps([&](size_t in, size_t f) { sum += static_cast<double>(input[in]) * filter[f]; });
        ASSERT_NEAR(output[index], std::min(3.0, std::max(-1.0, sum)), 1e-4) << index;
      });
      std::vector<float> bands(output.size());
      conv.output = bands.data();
      for (int64_t row = 0; row < s.rows(); row += 2) {
        conv_band(conv, row, std::min(s.rows(), row + 2), workspace.data());
      }
      EXPECT_EQ(bands, output);
    }
  });
}

template <typename TI, typename TF, typename TO>
void check_quantized(int32_t input_zero, int32_t filter_zero, int32_t output_zero, int32_t lo, int32_t hi) {
  for_each_target([&] {
    for (const ConvShape& s : shapes()) {
      SCOPED_TRACE(testing::Message() << s.in_h << "x" << s.in_w << "x" << s.in_c << " " << s.filter_h << "x"
                                      << s.filter_w);
      std::mt19937 random(3);
      using LI = std::numeric_limits<TI>;
      using LF = std::numeric_limits<TF>;
      const auto input = random_values<TI>(input_size(s), LI::min(), LI::max(), random);
      const auto filter = random_values<TF>(s.out_c * s.filter_size(), LF::min(), LF::max(), random);
      const auto bias = random_values<int32_t>(s.out_c, -1000, 1000, random);
      const auto scale = random_values<float>(s.out_c, 0.0001, 0.003, random);
      std::vector<TO> output(static_cast<size_t>(output_size(s)));
      const TestBytes packed(conv_packed_bytes_i8(s));
      if constexpr (std::is_signed_v<TF>) {
        ops::conv_pack(s, filter.data(), packed.data());
      } else {
        ops::conv_pack(s, filter.data(), packed.data());
      }
      ThreadPool two(2);
      const TestBytes workspace(2 * conv_workspace_bytes_i8(s));
      ConvI8 conv;
      conv.shape = s;
      conv.input = input.data();
      conv.input_unsigned = !std::is_signed_v<TI>;
      conv.input_zero_point = input_zero;
      conv.filter = packed.data();
      conv.filter_zero_point = filter_zero - (std::is_signed_v<TF> ? 0 : 128);
      conv.bias = bias.data();
      conv.output = output.data();
      conv.output_unsigned = !std::is_signed_v<TO>;
      conv.scale = scale.data();
      conv.output_zero_point = output_zero;
      conv.lo = lo;
      conv.hi = hi;
      ops::convolve(conv, workspace.data(), two);
      for_each_output(s, [&](size_t index, size_t oc, size_t, const auto& taps) {
        int32_t sum = bias[oc];
        taps([&](size_t in, size_t f) { sum += (input[in] - input_zero) * (filter[f] - filter_zero); });
        ASSERT_EQ(output[index], requantize(sum, scale[oc], output_zero, lo, hi)) << index;
      });
      std::vector<TO> bands(output.size());
      conv.output = bands.data();
      for (int64_t row = 0; row < s.rows(); ++row) conv_band(conv, row, row + 1, workspace.data());
      EXPECT_EQ(bands, output);
    }
  });
}

TEST(ConvTest, SignedMatchesPlainLoopsExactly) { check_quantized<int8_t, int8_t, int8_t>(-11, 0, 4, -128, 127); }
TEST(ConvTest, UnsignedMatchesPlainLoopsExactly) { check_quantized<uint8_t, uint8_t, uint8_t>(120, 131, 3, 0, 255); }
TEST(ConvTest, FusedActivationClampsIntegers) { check_quantized<int8_t, int8_t, int8_t>(127, 0, -128, -128, -20); }

TEST(ConvTest, HybridUsesTheScaleAndZeroPointOfEachBatchItem) {
  for_each_target([] {
    for (const ConvShape& s : shapes()) {
      std::mt19937 random(3);
      const auto input = random_values<int8_t>(input_size(s), -128, 127, random);
      const auto filter = random_values<int8_t>(s.out_c * s.filter_size(), -127, 127, random);
      const auto scale = random_values<float>(s.out_c, 0.001, 0.01, random);
      const auto bias = random_values<float>(s.out_c, -1, 1, random);
      const auto input_scale = random_values<float>(s.batch, 0.001, 0.1, random);
      const auto input_zero = random_values<int32_t>(s.batch, -100, 100, random);
      std::vector<float> output(static_cast<size_t>(output_size(s)));
      const TestBytes packed(conv_packed_bytes_i8(s));
      ops::conv_pack(s, filter.data(), packed.data());
      ThreadPool one(1);
      const TestBytes workspace(conv_workspace_bytes_i8(s));
      ops::convolve(ConvHybrid{s, input.data(), input_scale.data(), input_zero.data(), packed.data(), scale.data(),
                               bias.data(), output.data()},
                    workspace.data(), one);
      for_each_output(s, [&](size_t index, size_t oc, size_t batch, const auto& taps) {
        int32_t sum = 0;
        taps([&](size_t in, size_t f) { sum += (input[in] - input_zero[batch]) * filter[f]; });
        const double want = static_cast<double>(sum) * input_scale[batch] * scale[oc] + bias[oc];
        ASSERT_NEAR(output[index], want, 1e-5 * std::abs(want) + 1e-5) << index;
      });
    }
  });
}

TEST(ConvTest, ThreadsDoNotChangeTheResult) {
  for (const ConvShape& s : {make(1, 31, 29, 16, 24, 3, 3, 1, 1, 1, 1), make(1, 3, 3, 128, 256, 3, 3, 1, 1, 1, 1)}) {
    std::mt19937 random(3);
    const auto input = random_values<float>(input_size(s), -1, 1, random);
    const auto filter = random_values<float>(s.out_c * s.filter_size(), -1, 1, random);
    std::vector<float> single(static_cast<size_t>(output_size(s)));
    std::vector<float> threaded(single.size());
    const TestBytes packed(conv_packed_bytes_f32(s));
    ops::conv_pack(s, filter.data(), packed.data());
    const TestBytes workspace(3 * conv_workspace_bytes_f32(s));
    ThreadPool one(1);
    ThreadPool three(3);
    ops::convolve(ConvF32{s, input.data(), packed.data(), nullptr, single.data()}, workspace.data(), one);
    ops::convolve(ConvF32{s, input.data(), packed.data(), nullptr, threaded.data()}, workspace.data(), three);
    EXPECT_EQ(threaded, single);

    const auto input8 = random_values<int8_t>(input_size(s), -128, 127, random);
    const auto filter8 = random_values<int8_t>(s.out_c * s.filter_size(), -127, 127, random);
    const std::vector<float> scale(static_cast<size_t>(s.out_c), 0.0005F);
    std::vector<int8_t> single8(single.size());
    std::vector<int8_t> threaded8(single.size());
    const TestBytes packed8(conv_packed_bytes_i8(s));
    ops::conv_pack(s, filter8.data(), packed8.data());
    const TestBytes workspace8(3 * conv_workspace_bytes_i8(s));
    ConvI8 conv;
    conv.shape = s;
    conv.input = input8.data();
    conv.input_zero_point = 17;
    conv.filter = packed8.data();
    conv.scale = scale.data();
    conv.output = single8.data();
    ops::convolve(conv, workspace8.data(), one);
    conv.output = threaded8.data();
    ops::convolve(conv, workspace8.data(), three);
    EXPECT_EQ(threaded8, single8);
  }
}

}  // namespace
}  // namespace leadline::kernels
