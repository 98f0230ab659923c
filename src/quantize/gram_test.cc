// SPDX-License-Identifier: Apache-2.0
#include "quantize/gram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "api/calibration_data.h"
#include "leadline/error.h"
#include "tests/cpp/sketch.h"

namespace leadline::quantize {
namespace {

using testing::set;
using testing::Sketch;

std::vector<float> values(int64_t count, int seed) {
  std::vector<float> result;
  for (int64_t i = 0; i < count; ++i) result.push_back(static_cast<float>((i * 37 + seed * 11) % 23 - 9) / 4.0F);
  return result;
}

/// x [2, 3] through a dense layer.
Sketch dense_model() {
  Sketch s;
  const int x = s.input("x", DType::kFloat32, {2, 3});
  const int w = s.constant<float>("w", DType::kFloat32, {4, 3}, values(12, 1));
  s.outputs({s.compute("FULLY_CONNECTED", {x, w, -1}, "y", DType::kFloat32, {2, 4})});
  return s;
}

std::vector<float> expanded(const GramMatrix& gram, int64_t group = 0) {
  std::vector<float> out(static_cast<size_t>(gram.columns * gram.columns));
  EXPECT_TRUE(gram.expand(group, out));
  return out;
}

const std::vector<GramMatrix>& grams(const Calibration& calibration) { return calibration.data().statistics.grams; }

Calibration calibrated(const Model& model, const std::vector<std::vector<float>>& samples) {
  CalibrateOptions options;
  options.gram_matrices = true;
  Calibrator calibrator(model, options);
  for (const auto& sample : samples) {
    set<float>(calibrator.interpreter(), 0, sample);
    calibrator.add_sample();
  }
  return calibrator.calibration();
}

TEST(Gram, SumsProductsOfWhatADenseLayerReads) {
  const Model model = dense_model().load();
  const Calibration calibration = calibrated(model, {{1, 2, 3, 0, 1, 0}, {0, 0, 2, 1, 0, 0}});
  ASSERT_EQ(grams(calibration).size(), 1U);
  // Sums of squares 2, 5, 13; the largest is 1.
  const std::vector<float> g = expanded(grams(calibration)[0]);
  const std::vector<float> wanted = {2, 2, 3, 2, 5, 6, 3, 6, 13};
  for (size_t i = 0; i < 9; ++i) EXPECT_FLOAT_EQ(g[i], wanted[i] / 13.0F) << i;
}

TEST(Gram, PartsMergeToTheBytesOfTheWhole) {
  const Model model = dense_model().load();
  std::vector<std::vector<float>> samples;
  for (int i = 0; i < 9; ++i) {
    samples.push_back(values(6, i));
    for (float& value : samples.back()) value *= 0.1F / static_cast<float>(i * i * i + 1);
  }
  const Calibration whole = calibrated(model, samples);
  for (const int cut : {1, 4, 8}) {
    Calibration first = calibrated(model, {samples.begin(), samples.begin() + cut});
    const Calibration second = calibrated(model, {samples.begin() + cut, samples.end()});
    first.merge(Calibration::from_bytes(second.to_bytes()));
    EXPECT_EQ(first.to_bytes(), whole.to_bytes()) << cut;
    EXPECT_EQ(grams(first)[0].sums, grams(whole)[0].sums) << cut;
  }
  EXPECT_THROW(Calibration(whole).merge([&] {
    Calibrator plain(model);
    set<float>(plain.interpreter(), 0, samples[0]);
    plain.add_sample();
    return plain.calibration();
  }()),
               Error);
}

TEST(Gram, WindowsOfConvolutionsAreRowsInTheOrderOfTheFilter) {
  Sketch s;
  const int x = s.input("x", DType::kFloat32, {1, 3, 4, 2});
  const int w = s.constant<float>("w", DType::kFloat32, {3, 2, 2, 2}, values(24, 3));
  const int d = s.constant<float>("d", DType::kFloat32, {1, 2, 2, 2}, values(8, 4));
  s.outputs({s.compute("CONV_2D", {x, w, -1}, "y", DType::kFloat32, {1, 2, 2, 3},
                       {{"padding", 0}, {"stride_h", 2}, {"stride_w", 2}}),
             s.compute("DEPTHWISE_CONV_2D", {x, d, -1}, "z", DType::kFloat32, {1, 2, 3, 2},
                       {{"padding", 1}, {"stride_h", 1}, {"stride_w", 1}, {"depth_multiplier", 1}})});
  const std::vector<float> image = values(24, 5);
  const Calibration calibration = calibrated(s.load(), {image});
  ASSERT_EQ(grams(calibration).size(), 2U);
  const auto pixel = [&](int64_t y, int64_t x_at, int64_t c) {
    return y < 3 && x_at < 4 ? image[static_cast<size_t>((y * 4 + x_at) * 2 + c)] : 0.0F;
  };
  // What the convolutions compute, from the matrices: the mean square of results is w^T G w.
  const auto energy = [](const GramMatrix& gram, int64_t group, const std::vector<double>& row) {
    double sum = 0.0;
    const auto at = [&](int64_t i, int64_t j) {
      return static_cast<double>(gram.sums[static_cast<size_t>(group * gram.group_sums() + i * gram.columns -
                                                               i * (i - 1) / 2 + j - i)]) /
             0x1p64;
    };
    for (int64_t i = 0; i < gram.columns; ++i) {
      for (int64_t j = 0; j < gram.columns; ++j) {
        sum += row[static_cast<size_t>(i)] * row[static_cast<size_t>(j)] * at(std::min(i, j), std::max(i, j));
      }
    }
    return sum;
  };
  const std::vector<float> weights = values(24, 3);
  for (int64_t o = 0; o < 3; ++o) {
    double wanted = 0.0;
    for (int64_t y = 0; y < 2; ++y) {
      for (int64_t x_at = 0; x_at < 2; ++x_at) {
        double result = 0.0;
        for (int64_t k = 0; k < 8; ++k) {
          result += static_cast<double>(weights[static_cast<size_t>(o * 8 + k)] *
                                        pixel(2 * y + k / 4, 2 * x_at + k / 2 % 2, k % 2));
        }
        wanted += result * result;
      }
    }
    const std::vector<double> row(weights.begin() + o * 8, weights.begin() + o * 8 + 8);
    EXPECT_NEAR(energy(grams(calibration)[0], 0, row), wanted, 1e-4 * wanted);
  }
  const std::vector<float> filters = values(8, 4);
  for (int64_t c = 0; c < 2; ++c) {
    double wanted = 0.0;
    std::vector<double> row;
    for (int64_t k = 0; k < 4; ++k) row.push_back(static_cast<double>(filters[static_cast<size_t>(k * 2 + c)]));
    for (int64_t y = 0; y < 2; ++y) {
      for (int64_t x_at = 0; x_at < 3; ++x_at) {
        double result = 0.0;
        for (int64_t k = 0; k < 4; ++k) {
          result += row[static_cast<size_t>(k)] * static_cast<double>(pixel(y + k / 2, x_at + k % 2, c));
        }
        wanted += result * result;
      }
    }
    EXPECT_NEAR(energy(grams(calibration)[1], c, row), wanted, 1e-4 * wanted);
  }
}

TEST(Gram, PlacesThatAreNotFiniteAreLeftOut) {
  const Model model = dense_model().load();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const Calibration odd = calibrated(model, {{1, 2, 3, kNan, 1, 1}});
  const Calibration even = calibrated(model, {{1, 2, 3, 0, 0, 0}});
  EXPECT_EQ(grams(odd)[0].sums, grams(even)[0].sums);
}

TEST(Gram, MemoryIsThatOfTheStatistics) {
  const Model model = dense_model().load();
  CalibrateOptions options;
  options.gram_matrices = true;
  Calibrator with(model, options);
  Calibrator without(model);
  // Six sums of 16 bytes.
  EXPECT_EQ(with.calibration_bytes() - without.calibration_bytes(), static_cast<int64_t>(sizeof(GramMatrix)) + 6 * 16);
  EXPECT_GT(with.statistics_bytes(), without.statistics_bytes() + 6 * 24);
}

}  // namespace
}  // namespace leadline::quantize
