// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution against plain loops on every instruction set.
#include "kernels/depthwise/depthwise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "kernels/depthwise/taps.h"
#include "kernels/kernel_testing.h"
#include "ops/loops/depthwise.h"

namespace leadline::kernels {
namespace {

DepthwiseShape make(int64_t batch, int64_t in_h, int64_t in_w, int64_t in_c, int64_t multiplier, int64_t filter_h,
                    int64_t filter_w, int64_t stride, int64_t dilation, int64_t pad) {
  DepthwiseShape s;
  s.batch = batch;
  s.in_h = in_h;
  s.in_w = in_w;
  s.in_c = in_c;
  s.multiplier = multiplier;
  s.filter_h = filter_h;
  s.filter_w = filter_w;
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

/// Channel counts below, at and above every vector and chunk size; taps above the fast path's limit; multipliers;
/// rows longer than what is computed at once; dilation beyond what the fast path takes.
std::vector<DepthwiseShape> shapes() {
  return {make(1, 1, 1, 1, 1, 1, 1, 1, 1, 0),      make(1, 5, 5, 3, 1, 3, 3, 1, 1, 1),
          make(2, 7, 9, 4, 1, 3, 3, 1, 1, 1),      make(1, 8, 11, 7, 1, 3, 3, 2, 1, 0),
          make(1, 6, 7, 8, 1, 3, 3, 1, 1, 1),      make(1, 9, 5, 13, 1, 5, 5, 1, 1, 2),
          make(2, 6, 13, 16, 1, 3, 3, 2, 1, 1),    make(1, 10, 10, 24, 1, 3, 3, 1, 2, 2),
          make(1, 4, 4, 37, 1, 2, 4, 3, 1, 1),     make(1, 3, 6, 256, 1, 3, 3, 1, 1, 1),
          make(1, 3, 5, 263, 1, 3, 3, 1, 1, 1),    make(1, 2, 2, 521, 1, 3, 3, 1, 1, 1),
          make(1, 14, 13, 8, 1, 13, 11, 1, 1, 2),  make(1, 6, 6, 1, 8, 3, 3, 1, 1, 1),
          make(1, 5, 6, 3, 2, 3, 3, 2, 1, 1),      make(1, 1, 40, 17, 1, 1, 3, 1, 1, 0),
          make(2, 5, 131, 70, 1, 3, 3, 1, 1, 1),   make(1, 7, 8, 40, 1, 5, 5, 2, 1, 2),
          make(1, 9, 9, 48, 1, 7, 7, 1, 1, 2),     make(2, 5, 30, 20, 1, 4, 2, 1, 1, 1),
          make(1, 2, 600, 16, 1, 1, 3, 1, 290, 0), make(1, 2, 140, 64, 1, 1, 128, 1, 1, 0),
          make(1, 6, 61, 36, 1, 3, 3, 2, 1, 1),    make(1, 3, 25, 32, 1, 1, 2, 11, 1, 0)};
}

/// Calls visit(output index, output channel, taps), where taps(f) calls f(input index, filter index).
template <typename Visit>
void for_each_output(const DepthwiseShape& s, const Visit& visit) {
  size_t index = 0;
  for (int64_t b = 0; b < s.batch; ++b) {
    for (int64_t y = 0; y < s.out_h; ++y) {
      for (int64_t x = 0; x < s.out_w; ++x) {
        for (int64_t oc = 0; oc < s.out_c(); ++oc, ++index) {
          visit(index, static_cast<size_t>(oc), [&](const auto& tap) {
            for (int64_t ky = 0; ky < s.filter_h; ++ky) {
              for (int64_t kx = 0; kx < s.filter_w; ++kx) {
                const int64_t in_y = y * s.stride_h - s.pad_top + ky * s.dilation_h;
                const int64_t in_x = x * s.stride_w - s.pad_left + kx * s.dilation_w;
                if (in_y < 0 || in_y >= s.in_h || in_x < 0 || in_x >= s.in_w) continue;
                tap(static_cast<size_t>(((b * s.in_h + in_y) * s.in_w + in_x) * s.in_c + oc / s.multiplier),
                    static_cast<size_t>((ky * s.filter_w + kx) * s.out_c() + oc));
              }
            }
          });
        }
      }
    }
  }
}

int64_t input_size(const DepthwiseShape& s) { return s.batch * s.in_h * s.in_w * s.in_c; }
int64_t output_size(const DepthwiseShape& s) { return s.rows() * s.out_w * s.out_c(); }
testing::Message name(const DepthwiseShape& s) {
  return testing::Message() << s.in_h << "x" << s.in_w << "x" << s.in_c << " * " << s.multiplier << ", " << s.filter_h
                            << "x" << s.filter_w;
}

TEST(DepthwiseTest, FloatMatchesPlainLoopsAndBandsMatchTheWhole) {
  for_each_target([] {
    for (const DepthwiseShape& s : shapes()) {
      SCOPED_TRACE(name(s));
      std::mt19937 random(5);
      const auto input = random_values<float>(input_size(s), -1, 1, random);
      const auto filter = random_values<float>(s.taps() * s.out_c(), -1, 1, random);
      const auto bias = random_values<float>(s.out_c(), -1, 1, random);
      std::vector<float> output(static_cast<size_t>(output_size(s)));
      DepthwiseF32 conv{s, input.data(), filter.data(), bias.data(), output.data(), -0.9F, 1.5F};
      ThreadPool one(1);
      ops::convolve(conv, one);
      for_each_output(s, [&](size_t index, size_t oc, const auto& taps) {
        double sum = bias[oc];
        taps([&](size_t in, size_t f) { sum += static_cast<double>(input[in]) * filter[f]; });
        ASSERT_NEAR(output[index], std::min(1.5, std::max(-0.9, sum)), 1e-4) << index;
      });
      std::vector<float> bands(output.size());
      conv.output = bands.data();
      for (int64_t row = 0; row < s.rows(); ++row) depthwise_part(conv, {{row, row + 1}, {0, s.out_w}, {0, s.out_c()}});
      EXPECT_EQ(bands, output);
      bands.assign(bands.size(), 0);
      for (int64_t x = 0; x < s.out_w; x += 3) {
        depthwise_part(conv, {{0, s.rows()}, {x, std::min(s.out_w, x + 3)}, {0, s.out_c()}});
      }
      EXPECT_EQ(bands, output) << "in columns";
      bands.assign(bands.size(), 0);
      for (int64_t i = 0; i < output_size(s); ++i) {
        float sum = 99;
        for (int64_t tap = 0; tap < s.taps(); tap += 4)
          depthwise_taps(conv, i, {tap, std::min(s.taps(), tap + 4)}, sum);
        ASSERT_NEAR(bands[static_cast<size_t>(i)], output[static_cast<size_t>(i)], 1e-5);
      }
    }
  });
}

template <typename T>
void check_quantized(int32_t input_zero, int32_t filter_zero, int32_t output_zero, int32_t lo, int32_t hi) {
  for_each_target([&] {
    for (const DepthwiseShape& s : shapes()) {
      SCOPED_TRACE(name(s));
      std::mt19937 random(5);
      using Limits = std::numeric_limits<T>;
      const auto input = random_values<T>(input_size(s), Limits::min(), Limits::max(), random);
      const auto filter = random_values<T>(s.taps() * s.out_c(), Limits::min(), Limits::max(), random);
      const auto bias = random_values<int32_t>(s.out_c(), -3000, 3000, random);
      auto scale = random_values<float>(s.out_c(), 0.0005, 0.01, random);
      scale[0] = 0x1p-8F;  // exact ties
      std::vector<T> output(static_cast<size_t>(output_size(s)));
      DepthwiseI8 conv;
      conv.shape = s;
      conv.is_unsigned = !std::is_signed_v<T>;
      conv.input = input.data();
      conv.input_zero_point = input_zero;
      conv.filter = filter.data();
      conv.filter_zero_point = filter_zero;
      conv.bias = bias.data();
      conv.output = output.data();
      conv.scale = scale.data();
      conv.output_zero_point = output_zero;
      conv.lo = lo;
      conv.hi = hi;
      ThreadPool three(3);
      ops::convolve(conv, three);
      for_each_output(s, [&](size_t index, size_t oc, const auto& taps) {
        int32_t sum = bias[oc];
        taps([&](size_t in, size_t f) { sum += (input[in] - input_zero) * (filter[f] - filter_zero); });
        ASSERT_EQ(output[index], requantize(sum, scale[oc], output_zero, lo, hi)) << index;
      });
      std::vector<T> parts(output.size());
      conv.output = parts.data();
      for (int64_t x = 0; x < s.out_w; x += 3) {
        depthwise_part(conv, {{0, s.rows()}, {x, std::min(s.out_w, x + 3)}, {0, s.out_c()}});
      }
      EXPECT_EQ(parts, output) << "in columns";
      parts.assign(parts.size(), T{0});
      for (int64_t i = 0; i < output_size(s); ++i) {
        int32_t sum = 99;
        for (int64_t tap = 0; tap < s.taps(); tap += 4)
          depthwise_taps(conv, i, {tap, std::min(s.taps(), tap + 4)}, sum);
      }
      EXPECT_EQ(parts, output) << "in ranges of taps";
    }
  });
}

TEST(DepthwiseTest, SignedMatchesPlainLoopsExactly) { check_quantized<int8_t>(-128, 0, 5, -128, 127); }
TEST(DepthwiseTest, UnsignedMatchesPlainLoopsExactly) { check_quantized<uint8_t>(255, 129, 100, 0, 255); }
TEST(DepthwiseTest, FusedActivationClampsIntegers) { check_quantized<int8_t>(9, 0, -128, -128, -30); }

TEST(DepthwiseTest, HybridMatchesPlainLoopsExactly) {
  for_each_target([] {
    for (const DepthwiseShape& s : shapes()) {
      SCOPED_TRACE(name(s));
      std::mt19937 random(5);
      const auto input = random_values<int8_t>(input_size(s), -128, 127, random);
      const auto filter = random_values<int8_t>(s.taps() * s.out_c(), -128, 127, random);
      const auto bias = random_values<float>(s.out_c(), -1, 1, random);
      const auto scale = random_values<float>(s.out_c(), 0.0005, 0.01, random);
      const bool has_bias = s.in_c % 2 == 0;
      std::vector<float> output(static_cast<size_t>(output_size(s)));
      DepthwiseHybrid conv{.shape = s,
                           .input = input.data(),
                           .input_zero_point = -37,
                           .input_scale = 0.037F,
                           .filter = filter.data(),
                           .scale = scale.data(),
                           .bias = has_bias ? bias.data() : nullptr,
                           .output = output.data(),
                           .lo = -0.5F,
                           .hi = 6.0F};
      ThreadPool three(3);
      ops::convolve(conv, three);
      for_each_output(s, [&](size_t index, size_t oc, const auto& taps) {
        int32_t sum = 0;
        taps([&](size_t in, size_t f) { sum += (input[in] + 37) * filter[f]; });
        const float scaled = static_cast<float>(sum) * scale[oc] * 0.037F;
        ASSERT_EQ(output[index], std::clamp(scaled + (has_bias ? bias[oc] : 0.0F), -0.5F, 6.0F)) << index;
      });
      conv.scale = bias.data();
      conv.bias = nullptr;
      conv.input_scale = std::numeric_limits<float>::quiet_NaN();
      ops::convolve(conv, three);
      EXPECT_TRUE(std::all_of(output.begin(), output.end(), [](float value) { return std::isnan(value); }));
    }
  });
}

TEST(DepthwiseTest, ThreadsDoNotChangeTheResult) {
  // Many rows are cut into bands; few rows with many channels into ranges of channels, the last with a rest.
  for_each_target([] {
    for (const DepthwiseShape& s : {make(1, 31, 30, 40, 1, 3, 3, 1, 1, 1), make(1, 7, 7, 203, 1, 5, 5, 1, 1, 2),
                                    make(1, 5, 9, 141, 1, 3, 3, 2, 1, 1), make(1, 3, 5, 521, 1, 13, 11, 1, 1, 2)}) {
      SCOPED_TRACE(name(s));
      std::mt19937 random(5);
      const auto input = random_values<float>(input_size(s), -1, 1, random);
      const auto filter = random_values<float>(s.taps() * s.out_c(), -1, 1, random);
      const auto levels = random_values<int8_t>(input_size(s), -128, 127, random);
      const auto weights = random_values<int8_t>(s.taps() * s.out_c(), -128, 127, random);
      const auto scale = random_values<float>(s.out_c(), 0.0005, 0.01, random);
      std::vector<float> single(static_cast<size_t>(output_size(s)));
      std::vector<int8_t> single8(single.size());
      DepthwiseI8 conv;
      conv.shape = s;
      conv.input = levels.data();
      conv.filter = weights.data();
      conv.scale = scale.data();
      conv.output = single8.data();
      ThreadPool one(1);
      ops::convolve(DepthwiseF32{s, input.data(), filter.data(), nullptr, single.data()}, one);
      ops::convolve(conv, one);
      for (const int threads : {2, 3, 4, 9}) {
        std::vector<float> threaded(single.size());
        std::vector<int8_t> threaded8(single.size());
        conv.output = threaded8.data();
        ThreadPool pool(threads);
        ops::convolve(DepthwiseF32{s, input.data(), filter.data(), nullptr, threaded.data()}, pool);
        ops::convolve(conv, pool);
        EXPECT_EQ(threaded, single) << threads;
        EXPECT_EQ(threaded8, single8) << threads;
      }
    }
  });
}

TEST(DepthwiseTest, PartsCoverTheOutputOnce) {
  for (const DepthwiseShape& s : shapes()) {
    for (const int threads : {1, 2, 3, 4, 9}) {
      ThreadPool pool(threads);
      std::vector<std::atomic<int>> touched(static_cast<size_t>(s.rows() * s.out_c()));
      ops::split_depthwise(s, pool, [&](const DepthwisePart& part) {
        const bool whole = part.channels.begin == 0 && part.channels.end == s.out_c();
        EXPECT_TRUE(whole || part.channels.end - part.channels.begin >= kChannelUnit);
        EXPECT_EQ(part.channels.begin % kChannelUnit, 0);
        for (int64_t row = part.rows.begin; row < part.rows.end; ++row) {
          for (int64_t c = part.channels.begin; c < part.channels.end; ++c) {
            ++touched[static_cast<size_t>(row * s.out_c() + c)];
          }
        }
      });
      EXPECT_TRUE(std::all_of(touched.begin(), touched.end(), [](const auto& n) { return n == 1; })) << name(s);
    }
  }
}

}  // namespace
}  // namespace leadline::kernels
