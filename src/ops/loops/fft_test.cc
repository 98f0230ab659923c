// SPDX-License-Identifier: Apache-2.0
#include "ops/loops/fft.h"

#include <gtest/gtest.h>

#include <numbers>
#include <vector>

namespace leadline::ops {
namespace {

/// The definition, term by term.
std::vector<Complex> slow_transform(const std::vector<Complex>& data) {
  const auto n = data.size();
  std::vector<Complex> result(n);
  for (size_t k = 0; k < n; ++k) {
    for (size_t j = 0; j < n; ++j) {
      result[k] +=
          data[j] * std::polar(1.0, -2.0 * std::numbers::pi * static_cast<double>(k * j % n) / static_cast<double>(n));
    }
  }
  return result;
}

std::vector<Complex> sample(size_t n) {
  std::vector<Complex> data(n);
  for (size_t k = 0; k < n; ++k) data[k] = {std::sin(1.0 + 3.7 * static_cast<double>(k)), static_cast<double>(k % 5)};
  return data;
}

constexpr int64_t kLengths[] = {1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 30, 31, 64, 97, 100, 128, 255, 256};

TEST(Fft, EveryLengthGivesTheDefinition) {
  for (const int64_t n : kLengths) {
    const Fft fft(n);
    std::vector<Complex> table(static_cast<size_t>(fft.table_size()));
    std::vector<Complex> workspace(static_cast<size_t>(fft.workspace_size()));
    fft.fill_table(table.data());
    std::vector<Complex> data = sample(static_cast<size_t>(n));
    const std::vector<Complex> expected = slow_transform(data);
    fft.forward(table.data(), data.data(), workspace.data());
    for (size_t k = 0; k < data.size(); ++k) {
      EXPECT_LT(std::abs(data[k] - expected[k]), 1e-10 * static_cast<double>(n)) << n << ": bin " << k;
    }
  }
}

TEST(Fft, RealSamplesGiveTheFirstHalfOfTheBins) {
  for (const int64_t n : kLengths) {
    const RealFft fft(n);
    std::vector<Complex> table(static_cast<size_t>(fft.table_size()));
    std::vector<Complex> workspace(static_cast<size_t>(fft.workspace_size()));
    fft.fill_table(table.data());
    std::vector<Complex> data = sample(static_cast<size_t>(n));
    std::vector<double> samples;
    for (Complex& value : data) {
      samples.push_back(value.real());
      value = value.real();
    }
    const std::vector<Complex> expected = slow_transform(data);
    std::vector<Complex> bins(static_cast<size_t>(fft.bins()));
    fft.forward(table.data(), samples.data(), bins.data(), workspace.data());
    for (size_t k = 0; k < bins.size(); ++k) {
      EXPECT_LT(std::abs(bins[k] - expected[k]), 1e-10 * static_cast<double>(n)) << n << ": bin " << k;
    }
  }
}

}  // namespace
}  // namespace leadline::ops
