// SPDX-License-Identifier: Apache-2.0
// Winograd convolution against the plain kernel on every instruction set: integers bit for bit, floats within rounding,
// whatever the sizes, paddings, bands and threads.
#include "kernels/conv/winograd.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/kernel_testing.h"
#include "ops/loops/conv.h"

namespace leadline::kernels {
namespace {

ConvShape make(int64_t batch, int64_t in_h, int64_t in_w, int64_t in_c, int64_t out_c, int64_t pad_top,
               int64_t pad_left, int64_t pad_bottom, int64_t pad_right) {
  ConvShape s;
  s.batch = batch;
  s.in_h = in_h;
  s.in_w = in_w;
  s.in_c = in_c;
  s.filter_c = in_c;
  s.out_c = out_c;
  s.filter_h = s.filter_w = 3;
  s.pad_top = pad_top;
  s.pad_left = pad_left;
  s.out_h = in_h + pad_top + pad_bottom - 2;
  s.out_w = in_w + pad_left + pad_right - 2;
  return s;
}

/// Outputs of 1 to 11 pixels on a side, channels around the sizes of vectors and panels, all ways to pad, several
/// blocks of tiles.
std::vector<ConvShape> shapes() {
  return {
      make(1, 1, 1, 1, 1, 1, 1, 1, 1),      make(1, 3, 3, 2, 3, 0, 0, 0, 0),    make(1, 4, 5, 3, 8, 1, 1, 1, 1),
      make(2, 5, 7, 16, 17, 1, 1, 1, 1),    make(3, 8, 6, 31, 32, 0, 0, 0, 0),  make(1, 9, 11, 33, 33, 1, 1, 1, 1),
      make(2, 7, 7, 65, 9, 1, 0, 1, 2),     make(1, 12, 13, 8, 48, 2, 2, 2, 2), make(1, 2, 1, 5, 4, 2, 3, 2, 0),
      make(1, 23, 41, 130, 20, 1, 1, 1, 1), make(1, 3, 90, 12, 16, 1, 0, 0, 1), make(1, 16, 16, 64, 64, 1, 1, 1, 1),
      make(5, 4, 4, 7, 1, 1, 1, 1, 1),      make(1, 6, 6, 1000, 2, 1, 1, 1, 1),
  };
}

std::string describe(const ConvShape& s) {
  return testing::PrintToString(std::vector<int64_t>{s.batch, s.in_h, s.in_w, s.in_c, s.out_c, s.pad_top, s.pad_left});
}

int64_t input_size(const ConvShape& s) { return s.batch * s.in_h * s.in_w * s.in_c; }
size_t output_size(const ConvShape& s) { return static_cast<size_t>(s.rows() * s.out_w * s.out_c); }

ConvShape with(ConvShape s, ConvMethod method) {
  s.method = method;
  return s;
}

/// Zero points and the largest values on both sides, so that sums come close to their bounds.
template <typename T>
struct IntegerCase {
  int32_t input_zero = 0;
  int32_t filter_zero = 0;
  bool extremes = false;
};

template <typename T>
std::vector<T> values(int64_t count, bool extremes, std::mt19937& random) {
  using L = std::numeric_limits<T>;
  auto out = random_values<T>(count, L::min(), L::max(), random);
  if (extremes) {
    for (T& value : out) value = value % 2 == 0 ? L::min() : L::max();
  }
  return out;
}

/// Whether a method's sums are exact with this filter.
template <typename T>
bool exact_for(const ConvShape& s, ConvMethod method, const std::vector<T>& filter, int32_t zero_point) {
  FilterBounds bounds{255, 0};
  for (int64_t oc = 0; oc < s.out_c; ++oc) {
    int64_t sum = 0;
    for (int64_t i = 0; i < s.filter_size(); ++i) {
      sum += std::abs(filter[static_cast<size_t>(oc * s.filter_size() + i)] - zero_point);
    }
    bounds.sum = std::max(bounds.sum, sum);
  }
  return method == ConvMethod::kPlain || winograd_is_exact(s, method, bounds);
}

template <typename T>
void check_integers(const IntegerCase<T>& test) {
  for_each_target([&] {
    for (const ConvShape& plain : shapes()) {
      SCOPED_TRACE(describe(plain));
      std::mt19937 random(5);
      const auto input = values<T>(input_size(plain), test.extremes, random);
      const auto filter = values<T>(plain.out_c * plain.filter_size(), test.extremes, random);
      const auto bias = random_values<int32_t>(plain.out_c, -100000, 100000, random);
      const auto scale = random_values<float>(plain.out_c, 0.00001, 0.003, random);
      ConvI8 conv;
      conv.input = input.data();
      conv.input_unsigned = conv.output_unsigned = !std::is_signed_v<T>;
      conv.input_zero_point = test.input_zero;
      conv.filter_zero_point = test.filter_zero - (std::is_signed_v<T> ? 0 : 128);
      conv.bias = bias.data();
      conv.scale = scale.data();
      conv.output_zero_point = 7;
      conv.lo = std::numeric_limits<T>::min();
      conv.hi = std::numeric_limits<T>::max();
      ThreadPool two(2);
      std::vector<T> want(output_size(plain));
      for (const ConvMethod method : {ConvMethod::kPlain, ConvMethod::kWinograd2, ConvMethod::kWinograd4}) {
        if (!exact_for(plain, method, filter, test.filter_zero)) continue;
        const ConvShape s = with(plain, method);
        const TestBytes packed(conv_packed_bytes_i8(s));
        const TestBytes workspace(2 * conv_workspace_bytes_i8(s));
        if constexpr (std::is_signed_v<T>) {
          ops::conv_pack(s, filter.data(), packed.data(), test.filter_zero);
        } else {
          ops::conv_pack(s, filter.data(), packed.data(), test.filter_zero);
        }
        std::vector<T> got(want.size());
        conv.shape = s;
        conv.filter = packed.data();
        conv.output = got.data();
        ops::convolve(conv, workspace.data(), two);
        if (method == ConvMethod::kPlain) {
          want = got;
          continue;
        }
        ASSERT_EQ(got, want);
        for (const int64_t step : {1, 3}) {
          std::vector<T> bands(want.size());
          conv.output = bands.data();
          for (int64_t row = 0; row < s.rows(); row += step) {
            conv_band(conv, row, std::min(s.rows(), row + step), workspace.data());
          }
          ASSERT_EQ(bands, want) << step;
        }
      }
    }
  });
}

TEST(WinogradTest, SignedHasTheBitsOfThePlainKernel) { check_integers<int8_t>({-11, 0, false}); }
TEST(WinogradTest, SignedExtremesHaveTheBitsOfThePlainKernel) {
  check_integers<int8_t>({-128, 0, true});
  check_integers<int8_t>({127, 0, true});
}
TEST(WinogradTest, UnsignedWithFilterZeroPointHasTheBitsOfThePlainKernel) {
  check_integers<uint8_t>({131, 120, false});
  check_integers<uint8_t>({255, 0, true});
}

TEST(WinogradTest, IntegersAreLeftToThePlainKernelWhereMultiplesOfTheSumMayNotFit) {
  const int64_t largest = std::numeric_limits<int32_t>::max() / (int64_t{4} * 9 * 255 * 128);
  for_each_target([&] {
    ConvShape s = make(1, 64, 64, largest + 1, 64, 1, 1, 1, 1);
    EXPECT_EQ(conv_method_i8(s, {128, (largest + 1) * 9 * 128}), ConvMethod::kPlain);
    s = make(1, 64, 64, 128, 64, 1, 1, 1, 1);
    EXPECT_EQ(conv_method_i8(s, {128, (1 << 25) / 255}), ConvMethod::kWinograd4);
    EXPECT_NE(conv_method_i8(s, {128, (1 << 25) / 255 + 1}), ConvMethod::kWinograd4);
  });
}

// Every sum is the largest that the bound lets pass, of either sign.
TEST(WinogradTest, SumsAtTheBoundOfTilesOfFourAreExact) {
  constexpr int64_t kSum = (1 << 25) / 255;
  for_each_target([&] {
    ConvShape s = make(1, 10, 9, 160, 8, 1, 1, 1, 1);
    std::vector<int8_t> filter(static_cast<size_t>(s.out_c * s.filter_size()));
    for (int64_t oc = 0; oc < s.out_c; ++oc) {
      for (int64_t i = 0, left = kSum; i < s.filter_size() && left > 0; ++i) {
        const int64_t weight = std::min<int64_t>(left, 127);
        filter[static_cast<size_t>(oc * s.filter_size() + i)] = static_cast<int8_t>(oc % 2 == 0 ? weight : -weight);
        left -= weight;
      }
    }
    ASSERT_TRUE(winograd_is_exact(s, ConvMethod::kWinograd4, {127, kSum}));
    const std::vector<int8_t> input(static_cast<size_t>(input_size(s)), 127);
    const std::vector<float> scale(static_cast<size_t>(s.out_c), 0x1p-18F);
    ConvI8 conv;
    conv.input = input.data();
    conv.input_zero_point = -128;
    conv.scale = scale.data();
    ThreadPool one(1);
    std::vector<int8_t> results[2];
    for (const ConvMethod method : {ConvMethod::kPlain, ConvMethod::kWinograd4}) {
      conv.shape = with(s, method);
      const TestBytes packed(conv_packed_bytes_i8(conv.shape));
      const TestBytes workspace(conv_workspace_bytes_i8(conv.shape));
      ops::conv_pack(conv.shape, filter.data(), packed.data());
      auto& got = results[method == ConvMethod::kPlain ? 0 : 1];
      got.resize(output_size(s));
      conv.filter = packed.data();
      conv.output = got.data();
      ops::convolve(conv, workspace.data(), one);
    }
    ASSERT_EQ(results[1], results[0]);
  });
}

TEST(WinogradTest, HybridHasTheBitsOfThePlainKernel) {
  for_each_target([] {
    for (const ConvShape& plain : shapes()) {
      SCOPED_TRACE(describe(plain));
      std::mt19937 random(5);
      const auto input = random_values<int8_t>(input_size(plain), -128, 127, random);
      const auto filter = random_values<int8_t>(plain.out_c * plain.filter_size(), -127, 127, random);
      const auto scale = random_values<float>(plain.out_c, 0.001, 0.01, random);
      const auto bias = random_values<float>(plain.out_c, -1, 1, random);
      const auto input_scale = random_values<float>(plain.batch, 0.001, 0.1, random);
      const auto input_zero = random_values<int32_t>(plain.batch, -100, 100, random);
      ThreadPool two(2);
      std::vector<float> want;
      for (const ConvMethod method : {ConvMethod::kPlain, ConvMethod::kWinograd2, ConvMethod::kWinograd4}) {
        if (!exact_for(plain, method, filter, 0)) continue;
        const ConvShape s = with(plain, method);
        const TestBytes packed(conv_packed_bytes_i8(s));
        const TestBytes workspace(2 * conv_workspace_bytes_i8(s));
        ops::conv_pack(s, filter.data(), packed.data());
        std::vector<float> got(output_size(s));
        ops::convolve(ConvHybrid{s, input.data(), input_scale.data(), input_zero.data(), packed.data(), scale.data(),
                                 bias.data(), got.data(), -3.0F},
                      workspace.data(), two);
        if (method == ConvMethod::kPlain) want = got;
        ASSERT_EQ(got, want);
      }
    }
  });
}

/// Plain sums in double, clamped.
std::vector<double> exact(const ConvShape& s, const std::vector<float>& input, const std::vector<float>& filter,
                          const std::vector<float>& bias, double lo, double hi) {
  std::vector<double> out;
  out.reserve(output_size(s));
  for (int64_t b = 0; b < s.batch; ++b) {
    for (int64_t y = 0; y < s.out_h; ++y) {
      for (int64_t x = 0; x < s.out_w; ++x) {
        for (int64_t oc = 0; oc < s.out_c; ++oc) {
          double sum = bias[static_cast<size_t>(oc)];
          for (int64_t tap = 0; tap < 9; ++tap) {
            const int64_t in_y = y - s.pad_top + tap / 3;
            const int64_t in_x = x - s.pad_left + tap % 3;
            if (in_y < 0 || in_y >= s.in_h || in_x < 0 || in_x >= s.in_w) continue;
            const float* pixel = input.data() + ((b * s.in_h + in_y) * s.in_w + in_x) * s.in_c;
            const float* weights = filter.data() + (oc * 9 + tap) * s.in_c;
            for (int64_t c = 0; c < s.in_c; ++c) sum += static_cast<double>(pixel[c]) * weights[c];
          }
          out.push_back(std::isnan(sum) ? sum : std::min(hi, std::max(lo, sum)));
        }
      }
    }
  }
  return out;
}

class FloatWinogradTest : public testing::TestWithParam<ConvMethod> {
 protected:
  /// Runs it whole with two threads, and checks that bands of several heights give the same bits.
  static std::vector<float> run(const ConvShape& plain, const std::vector<float>& input,
                                const std::vector<float>& filter, const std::vector<float>& bias, float lo, float hi) {
    const ConvShape s = with(plain, GetParam());
    const TestBytes packed(conv_packed_bytes_f32(s));
    const TestBytes workspace(2 * conv_workspace_bytes_f32(s));
    ops::conv_pack(s, filter.data(), packed.data());
    std::vector<float> output(output_size(s));
    ConvF32 conv{s, input.data(), packed.data(), bias.data(), output.data(), lo, hi};
    ThreadPool two(2);
    ops::convolve(conv, workspace.data(), two);
    for (const int64_t step : {1, 3, 1000}) {
      std::vector<float> bands(output.size());
      conv.output = bands.data();
      for (int64_t row = 0; row < s.rows(); row += step) {
        conv_band(conv, row, std::min(s.rows(), row + step), workspace.data());
      }
      EXPECT_EQ(std::memcmp(bands.data(), output.data(), output.size() * sizeof(float)), 0) << step;
    }
    return output;
  }
};

TEST_P(FloatWinogradTest, IsWithinRoundingOfExactSumsInBandsAndThreads) {
  for_each_target([] {
    for (const ConvShape& s : shapes()) {
      SCOPED_TRACE(describe(s));
      std::mt19937 random(5);
      const auto input = random_values<float>(input_size(s), -1, 2, random);
      const auto filter = random_values<float>(s.out_c * s.filter_size(), -1, 1, random);
      const auto bias = random_values<float>(s.out_c, -1, 1, random);
      const auto want = exact(s, input, filter, bias, -4, 1e30);
      const auto got = run(s, input, filter, bias, -4.0F, 1e30F);
      double range = 0;
      for (const double value : want) range = std::max(range, std::abs(value));
      for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-5 * range) << i;
    }
  });
}

TEST_P(FloatWinogradTest, NonFiniteInputsReachOnlyTheOutputsThatSeeThem) {
  for_each_target([] {
    const ConvShape s = make(1, 10, 11, 19, 21, 1, 1, 1, 1);
    std::mt19937 random(5);
    auto input = random_values<float>(input_size(s), -1, 1, random);
    const auto filter = random_values<float>(s.out_c * s.filter_size(), 0.25, 1, random);
    const auto bias = random_values<float>(s.out_c, -1, 1, random);
    const auto at = [&](int64_t y, int64_t x, int64_t c) -> float& {
      return input[static_cast<size_t>((y * s.in_w + x) * s.in_c + c)];
    };
    at(0, 0, 3) = std::numeric_limits<float>::quiet_NaN();
    at(4, 5, 18) = std::numeric_limits<float>::infinity();
    at(9, 10, 0) = -std::numeric_limits<float>::infinity();
    at(9, 2, 7) = 3e38F;  // the sums still fit; their transforms may not
    at(9, 4, 7) = -3e38F;
    const float hi = std::numeric_limits<float>::max();
    const auto want = exact(s, input, filter, bias, -std::numeric_limits<double>::infinity(), hi);
    const auto got = run(s, input, filter, bias, -std::numeric_limits<float>::infinity(), hi);
    for (size_t i = 0; i < want.size(); ++i) {
      if (std::isnan(want[i])) {
        ASSERT_TRUE(std::isnan(got[i])) << i;
      } else if (std::isinf(want[i])) {
        ASSERT_EQ(got[i], static_cast<float>(want[i])) << i;
      } else {
        ASSERT_NEAR(got[i], want[i], 1e-5 * std::max(30.0, std::abs(want[i]))) << i;
      }
    }
  });
}

TEST_P(FloatWinogradTest, ErrorStaysFarBelowTheRangeForManyChannels) {
  ConvShape s = make(1, 8, 8, 2048, 16, 1, 1, 1, 1);
  std::mt19937 random(5);
  auto input = random_values<float>(input_size(s), -1, 1, random);
  for (float& value : input) value = std::max(value, 0.0F);
  const auto filter = random_values<float>(s.out_c * s.filter_size(), -0.02, 0.02, random);
  const std::vector<float> bias(static_cast<size_t>(s.out_c), 0.0F);
  const float inf = std::numeric_limits<float>::infinity();
  const auto want = exact(s, input, filter, bias, -inf, inf);
  const auto got = run(s, input, filter, bias, -inf, inf);
  const auto [low, high] = std::minmax_element(want.begin(), want.end());
  double error = 0;
  for (size_t i = 0; i < want.size(); ++i) error = std::max(error, std::abs(got[i] - want[i]));
  EXPECT_LT(error / (*high - *low), 1e-5);
  RecordProperty("error_of_range", testing::PrintToString(error / (*high - *low)));
}

TEST_P(FloatWinogradTest, HalfFiltersGiveTheBitsOfTheirFloats) {
  const ConvShape s = with(make(1, 5, 6, 7, 9, 1, 1, 1, 1), GetParam());
  std::vector<uint16_t> half(static_cast<size_t>(s.out_c * s.filter_size()));
  std::vector<float> filter(half.size());
  for (size_t i = 0; i < half.size(); ++i) {
    half[i] = static_cast<uint16_t>(0x3C00 + i % 1024);  // 1 and more in steps of 2^-10
    filter[i] = 1.0F + static_cast<float>(i % 1024) / 1024.0F;
  }
  const TestBytes from_half(conv_packed_bytes_f32(s));
  const TestBytes from_float(conv_packed_bytes_f32(s));
  std::memset(from_half.data(), 0, static_cast<size_t>(conv_packed_bytes_f32(s)));
  std::memset(from_float.data(), 0, static_cast<size_t>(conv_packed_bytes_f32(s)));
  ops::conv_pack(s, half.data(), from_half.data());
  ops::conv_pack(s, filter.data(), from_float.data());
  EXPECT_EQ(std::memcmp(from_half.data(), from_float.data(), static_cast<size_t>(conv_packed_bytes_f32(s))), 0);
}

INSTANTIATE_TEST_SUITE_P(Tiles, FloatWinogradTest, testing::Values(ConvMethod::kWinograd2, ConvMethod::kWinograd4),
                         [](const auto& tested) {
                           return tested.param == ConvMethod::kWinograd2 ? "TwoByTwo" : "FourByFour";
                         });

}  // namespace
}  // namespace leadline::kernels
