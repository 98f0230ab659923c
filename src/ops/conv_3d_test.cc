// SPDX-License-Identifier: Apache-2.0
// CONV_3D and CONV_3D_TRANSPOSE against plain loops.
#include "ops/conv_3d.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

#include "ops/op_testing.h"

namespace leadline::ops {
namespace {

using Floats = std::vector<float>;

struct Case {
  Shape input;   // of the convolution: [N,D,H,W,C]
  Shape filter;  // [KD,KH,KW,C,O]
  bool same = true;
  std::array<int32_t, 3> stride = {1, 1, 1};
  std::array<int32_t, 3> dilation = {1, 1, 1};
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {{1, 1, 1, 1, 1}, {1, 1, 1, 1, 1}},
      {{2, 3, 4, 5, 6}, {1, 1, 1, 6, 7}},
      {{2, 4, 5, 6, 3}, {2, 3, 3, 3, 5}},
      {{1, 5, 6, 7, 2}, {3, 2, 3, 2, 4}, false},
      {{1, 5, 6, 7, 2}, {3, 3, 3, 2, 4}, true, {2, 1, 3}},
      {{1, 7, 8, 9, 2}, {2, 3, 2, 2, 3}, false, {2, 3, 1}},
      {{2, 7, 7, 7, 3}, {2, 2, 3, 3, 2}, true, {1, 1, 1}, {2, 1, 3}},
      {{1, 6, 7, 9, 3}, {2, 2, 2, 3, 2}, false, {2, 1, 2}, {3, 2, 2}},
      {{1, 4, 9, 11, 40}, {3, 3, 3, 40, 33}},
      {{1, 2, 2, 130, 1}, {1, 1, 5, 1, 2}, true, {1, 1, 2}},
      {{1, 2, 2, 2, 1}, {5, 5, 5, 1, 1}},
      {{0, 2, 2, 2, 1}, {1, 1, 1, 1, 1}},
  };
  return all;
}

Conv3DAttributes attributes_of(const Case& k, ir::Activation activation = ir::Activation::kNone) {
  Conv3DAttributes a;
  a.padding = k.same ? ir::Padding::kSame : ir::Padding::kValid;
  a.stride_d = k.stride[0];
  a.stride_h = k.stride[1];
  a.stride_w = k.stride[2];
  a.dilation_d = k.dilation[0];
  a.dilation_h = k.dilation[1];
  a.dilation_w = k.dilation[2];
  a.activation = activation;
  return a;
}

Floats random_values(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  Floats values(static_cast<size_t>(count));
  for (float& value : values) value = static_cast<float>(static_cast<int>(random() % 17) - 8) / 8;
  return values;
}

/// Output size and leading padding of one axis.
std::pair<int64_t, int64_t> window_of(const Case& k, int axis) {
  const auto i = static_cast<size_t>(axis);
  const int64_t reach = (k.filter[axis] - 1) * k.dilation[i] + 1;
  const int64_t size = k.input[axis + 1];
  const int64_t out = k.same ? (size + k.stride[i] - 1) / k.stride[i] : (size - reach) / k.stride[i] + 1;
  return {out, std::max<int64_t>(0, (out - 1) * k.stride[i] + reach - size) / 2};
}

Shape output_shape(const Case& k) {
  return {k.input[0], window_of(k, 0).first, window_of(k, 1).first, window_of(k, 2).first, k.filter[4]};
}

/// Calls visit(pixel of the input, pixel of the output, tap) for all that belong together.
template <typename Visit>
void for_each_tap(const Case& k, const Visit& visit) {
  const Shape out = output_shape(k);
  int64_t to = 0;
  for (int64_t n = 0; n < out[0]; ++n) {
    for (int64_t z = 0; z < out[1]; ++z) {
      for (int64_t y = 0; y < out[2]; ++y) {
        for (int64_t x = 0; x < out[3]; ++x, ++to) {
          for (int64_t tap = 0; tap < k.filter[0] * k.filter[1] * k.filter[2]; ++tap) {
            const int64_t iz =
                z * k.stride[0] - window_of(k, 0).second + tap / k.filter[2] / k.filter[1] * k.dilation[0];
            const int64_t iy =
                y * k.stride[1] - window_of(k, 1).second + tap / k.filter[2] % k.filter[1] * k.dilation[1];
            const int64_t ix = x * k.stride[2] - window_of(k, 2).second + tap % k.filter[2] * k.dilation[2];
            if (iz < 0 || iy < 0 || ix < 0 || iz >= k.input[1] || iy >= k.input[2] || ix >= k.input[3]) continue;
            visit(((n * k.input[1] + iz) * k.input[2] + iy) * k.input[3] + ix, to, tap);
          }
        }
      }
    }
  }
}

void expect_near(const Floats& got, const Floats& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], wanted[i], 1e-3) << i;
}

TEST(Conv3D, AgreesWithPlainLoops) {
  for (size_t i = 0; i < cases().size(); ++i) {
    const Case& k = cases()[i];
    SCOPED_TRACE(i);
    const Floats input = random_values(k.input.elements(), 1);
    const Floats filter = random_values(k.filter.elements(), 2);
    const Floats bias = random_values(k.filter[4], 3);
    const int64_t in_c = k.filter[3];
    const int64_t out_c = k.filter[4];
    const Shape out = output_shape(k);
    Floats wanted(static_cast<size_t>(out.elements()));
    for (size_t j = 0; j < wanted.size(); ++j) wanted[j] = bias[j % static_cast<size_t>(out_c)];
    for_each_tap(k, [&](int64_t from, int64_t to, int64_t tap) {
      for (int64_t c = 0; c < in_c; ++c) {
        for (int64_t o = 0; o < out_c; ++o) {
          wanted[static_cast<size_t>(to * out_c + o)] +=
              input[static_cast<size_t>(from * in_c + c)] * filter[static_cast<size_t>((tap * in_c + c) * out_c + o)];
        }
      }
    });
    for (float& value : wanted) value = std::max(value, 0.0F);
    for (const bool fixed : {true, false}) {
      OpTester t("CONV_3D");
      t.attributes(attributes_of(k, ir::Activation::kRelu)).input<float>(k.input, input, {}, false);
      t.input<float>(k.filter, filter, {}, fixed).input<float>({out_c}, bias).output(DType::kFloat32);
      t.threads(fixed ? 2 : 1).run();
      EXPECT_EQ(t.shape(0), out);
      expect_near(t.result<float>(0), wanted);
    }
  }
}

TEST(Conv3DTranspose, AgreesWithPlainLoops) {
  for (size_t i = 0; i < cases().size(); ++i) {
    const Case& k = cases()[i];
    SCOPED_TRACE(i);
    const Shape small = output_shape(k);  // the input, with the filter's last axis as channels
    const int64_t in_c = k.filter[4];
    const int64_t out_c = k.filter[3];
    const Floats input = random_values(small.elements(), 1);
    const Floats filter = random_values(k.filter.elements(), 2);
    Floats wanted(static_cast<size_t>(k.input.elements()));
    for_each_tap(k, [&](int64_t to, int64_t from, int64_t tap) {
      for (int64_t c = 0; c < in_c; ++c) {
        for (int64_t o = 0; o < out_c; ++o) {
          wanted[static_cast<size_t>(to * out_c + o)] +=
              input[static_cast<size_t>(from * in_c + c)] * filter[static_cast<size_t>((tap * out_c + o) * in_c + c)];
        }
      }
    });
    for (const bool fixed : {true, false}) {
      std::vector<int32_t> shape(k.input.begin(), k.input.end());
      OpTester t("CONV_3D_TRANSPOSE");
      t.attributes(attributes_of(k)).input<int32_t>({5}, shape, {}, fixed);
      t.input<float>(k.filter, filter, {}, fixed).input<float>(small, input, {}, false).output(DType::kFloat32);
      t.threads(fixed ? 2 : 1);
      EXPECT_EQ(t.infer(false), fixed);
      t.run();
      EXPECT_EQ(t.shape(0), k.input);
      expect_near(t.result<float>(0), wanted);
    }
  }
}

TEST(Conv3DTranspose, BiasAndActivation) {
  OpTester t("CONV_3D_TRANSPOSE");
  t.attributes(attributes_of({{}, {}}, ir::Activation::kRelu6)).input<int32_t>({5}, {1, 1, 1, 3, 2});
  t.input<float>({1, 1, 1, 2, 1}, {1, 10}).input<float>({1, 1, 1, 3, 1}, {-5, 1, 2}).input<float>({2}, {1, -4.5});
  t.output(DType::kFloat32).run();
  EXPECT_EQ(t.result<float>(0), (Floats{0, 0, 2, 5.5, 3, 6}));
}

TEST(Conv3D, RefusesWhatDoesNotFit) {
  auto run = [](const Case& k, const Shape& bias) {
    OpTester t("CONV_3D");
    t.attributes(attributes_of(k)).input<float>(k.input, Floats(static_cast<size_t>(k.input.elements())));
    t.input<float>(k.filter, Floats(static_cast<size_t>(k.filter.elements())));
    t.input<float>(bias, Floats(static_cast<size_t>(bias.elements()))).output(DType::kFloat32);
    t.run();
  };
  EXPECT_NO_THROW(run({{1, 2, 2, 2, 3}, {1, 1, 1, 3, 4}}, {4}));
  EXPECT_THROW(run({{1, 2, 2, 2, 3}, {1, 1, 1, 2, 4}}, {4}), Error);                   // channels
  EXPECT_THROW(run({{1, 2, 2, 2, 3}, {1, 1, 1, 3, 4}}, {3}), Error);                   // bias
  EXPECT_THROW(run({{1, 2, 2, 3}, {1, 1, 1, 3, 4}}, {4}), Error);                      // rank
  EXPECT_THROW(run({{1, 2, 2, 2, 3}, {1, 0, 1, 3, 4}}, {4}), Error);                   // empty filter
  EXPECT_THROW(run({{1, 2, 2, 2, 3}, {1, 1, 1, 3, 4}, true, {1, 0, 1}}, {4}), Error);  // stride
  EXPECT_THROW(run({{1, 2, 2, 2, 3}, {1, 1, 1, 3, 4}, true, {1, 1, 1}, {1, 1, -1}}, {4}), Error);
}

TEST(Conv3DTranspose, RefusesOutputShapesThatDoNotFit) {
  for (const std::vector<int32_t>& shape :
       {std::vector<int32_t>{2, 2, 2, 2, 1}, {1, 2, 2, 2, 2}, {1, 3, 2, 2, 1}, {1, 2, 2, -2, 1}}) {
    OpTester t("CONV_3D_TRANSPOSE");
    t.attributes(attributes_of({{}, {}})).input<int32_t>({5}, shape).input<float>({1, 1, 1, 1, 1}, {1});
    t.input<float>({1, 2, 2, 2, 1}, Floats(8)).output(DType::kFloat32);
    EXPECT_THROW(t.run(), Error);
  }
}

}  // namespace
}  // namespace leadline::ops
