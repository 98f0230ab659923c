// SPDX-License-Identifier: Apache-2.0
#include "debug/error_sums.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace leadline::debug {
namespace {

constexpr int64_t kVector = 16;
constexpr int64_t kBlock = 16384;
constexpr int64_t kLaneSums = 8;

/// The float32 sums of one block, an array of `lanes` for each kind.
struct Lanes {
  float *error, *squared, *reference, *value, *product, *max_error, *min, *max;
  Lanes(float* base, int64_t lanes)
      : error(base),
        squared(base + lanes),
        reference(base + 2 * lanes),
        value(base + 3 * lanes),
        product(base + 4 * lanes),
        max_error(base + 5 * lanes),
        min(base + 6 * lanes),
        max(base + 7 * lanes) {}
};

/// Lanes [first, first + kVector) of all rows, with the sums in registers as far as there are any.
template <int64_t kWidth>
void add_column(const float* values, const float* references, int64_t rows, int64_t stride, const Lanes& lanes,
                int64_t first) {
  float error[kWidth] = {}, squared[kWidth] = {}, reference[kWidth] = {}, value[kWidth] = {}, product[kWidth] = {};
  float max_error[kWidth] = {}, lowest[kWidth], highest[kWidth];
  for (int64_t k = 0; k < kWidth; ++k) lowest[k] = highest[k] = references[first + k];
  for (int64_t row = 0; row < rows; ++row) {
    const float* a = values + row * stride + first;
    const float* r = references + row * stride + first;
    for (int64_t k = 0; k < kWidth; ++k) {
      const float e = a[k] - r[k];
      const float size = std::fabs(e);
      error[k] += e;
      squared[k] += e * e;
      reference[k] += r[k] * r[k];
      value[k] += a[k] * a[k];
      product[k] += a[k] * r[k];
      max_error[k] = size > max_error[k] ? size : max_error[k];
      lowest[k] = r[k] < lowest[k] ? r[k] : lowest[k];
      highest[k] = r[k] > highest[k] ? r[k] : highest[k];
    }
  }
  for (int64_t k = 0; k < kWidth; ++k) {
    lanes.error[first + k] = error[k];
    lanes.squared[first + k] = squared[k];
    lanes.reference[first + k] = reference[k];
    lanes.value[first + k] = value[k];
    lanes.product[first + k] = product[k];
    lanes.max_error[first + k] = max_error[k];
    lanes.min[first + k] = lowest[k];
    lanes.max[first + k] = highest[k];
  }
}

void add_rows(const float* values, const float* references, int64_t rows, int64_t width, int64_t stride,
              const Lanes& lanes) {
  int64_t lane = 0;
  for (; lane + 4 <= width; lane += 4) add_column<4>(values, references, rows, stride, lanes, lane);
  for (; lane < width; ++lane) add_column<1>(values, references, rows, stride, lanes, lane);
}

}  // namespace

ErrorSums::ErrorSums(int64_t channels) {
  if (channels < 1 || channels > kMaxChannels) channels = 1;
  lanes_ = channels * std::max<int64_t>(1, (kVector + channels - 1) / channels);
  block_ = lanes_ * std::max<int64_t>(1, kBlock / lanes_);
  sums_.resize(static_cast<size_t>(channels));
  lane_sums_.resize(static_cast<size_t>(lanes_ * kLaneSums));
}

int64_t ErrorSums::bytes_for(int64_t channels) {
  if (channels < 1 || channels > kMaxChannels) channels = 1;
  const int64_t lanes = channels * std::max<int64_t>(1, (kVector + channels - 1) / channels);
  return channels * static_cast<int64_t>(sizeof(Sums)) + lanes * kLaneSums * static_cast<int64_t>(sizeof(float));
}

void ErrorSums::add(const float* values, const float* references, int64_t count) {
  const int64_t rows = count / lanes_;
  const int64_t tail = count % lanes_;
  const Lanes lanes(lane_sums_.data(), lanes_);
  if (rows > 0) {
    add_rows(values, references, rows, lanes_, lanes_, lanes);
    // Infinity or NaN anywhere, and squares that overflow, show in the sums.
    float check = 0.0F;
    for (int64_t k = 0; k < lanes_; ++k) check += (lanes.reference[k] + lanes.value[k]) * 0.0F;
    if (check == 0.0F) {
      flush(rows);
    } else {
      add_carefully(values, references, rows * lanes_);
    }
  }
  if (tail > 0) add_carefully(values + rows * lanes_, references + rows * lanes_, tail);
}

void ErrorSums::flush(int64_t rows) {
  const Lanes lanes(lane_sums_.data(), lanes_);
  const auto channels = static_cast<int64_t>(sums_.size());
  if (elements_ == 0) min_ = max_ = lanes.min[0];
  for (int64_t lane = 0, channel = 0; lane < lanes_; ++lane) {
    Sums& s = sums_[static_cast<size_t>(channel)];
    if (s.count == 0) {
      s.min = lanes.min[lane];
      s.max = lanes.max[lane];
    }
    s.error += static_cast<double>(lanes.error[lane]);
    s.squared += static_cast<double>(lanes.squared[lane]);
    s.reference += static_cast<double>(lanes.reference[lane]);
    s.value += static_cast<double>(lanes.value[lane]);
    s.product += static_cast<double>(lanes.product[lane]);
    s.max_error = std::max(s.max_error, static_cast<double>(lanes.max_error[lane]));
    s.min = std::min(s.min, lanes.min[lane]);
    s.max = std::max(s.max, lanes.max[lane]);
    min_ = std::min(min_, s.min);
    max_ = std::max(max_, s.max);
    s.count += rows;
    if (++channel == channels) channel = 0;
  }
  elements_ += rows * lanes_;
}

void ErrorSums::add_carefully(const float* values, const float* references, int64_t count) {
  const size_t channels = sums_.size();
  for (int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(values[i]) || !std::isfinite(references[i])) {
      ++not_finite_;
      broken_ += std::isfinite(references[i]) ? 1 : 0;
      continue;
    }
    Sums& s = sums_[static_cast<size_t>(i) % channels];
    const double a = static_cast<double>(values[i]);
    const double r = static_cast<double>(references[i]);
    const double e = a - r;
    if (s.count == 0) s.min = s.max = references[i];
    if (elements_ == 0) min_ = max_ = references[i];
    s.error += e;
    s.squared += e * e;
    s.reference += r * r;
    s.value += a * a;
    s.product += a * r;
    s.max_error = std::max(s.max_error, std::fabs(e));
    s.min = std::min(s.min, references[i]);
    s.max = std::max(s.max, references[i]);
    min_ = std::min(min_, references[i]);
    max_ = std::max(max_, references[i]);
    ++s.count;
    ++elements_;
  }
}

double ErrorSums::lost_signal(const Sums& s) {
  if (s.squared == 0.0) return 0.0;
  return s.reference > s.squared ? s.squared / s.reference : 1.0;
}

ErrorStatistics ErrorSums::statistics(double scale) const {
  ErrorStatistics result;
  result.elements = elements_;
  result.not_finite = not_finite_;
  result.broken = broken_;
  if (elements_ == 0) return result;
  Sums total;
  double lost = 0.0;
  int64_t alive = 0;  // channels with a signal, or with an error where there should be none
  for (const Sums& s : sums_) {
    total.error += s.error;
    total.squared += s.squared;
    total.reference += s.reference;
    total.value += s.value;
    total.product += s.product;
    total.max_error = std::max(total.max_error, s.max_error);
    if (s.reference == 0.0 && s.squared == 0.0) continue;
    lost += lost_signal(s);
    ++alive;
  }
  const auto n = static_cast<double>(elements_);
  result.mean_error = total.error / n;
  result.mean_squared_error = total.squared / n;
  result.stddev = std::sqrt(std::max(0.0, result.mean_squared_error - result.mean_error * result.mean_error));
  result.max_abs_error = total.max_error;
  result.rmse = std::sqrt(result.mean_squared_error);
  result.rmse_over_scale = scale > 0.0 ? result.rmse / scale : 0.0;
  const double lengths = std::sqrt(total.reference) * std::sqrt(total.value);
  if (lengths > 0.0 && total.squared > 0.0) {
    result.cosine = std::clamp(total.product / lengths, -1.0, 1.0);
  } else {
    result.cosine = total.reference == total.value ? 1.0 : 0.0;
  }
  result.snr_db = kBestSnrDb;
  if (total.squared > 0.0) {
    result.snr_db = total.reference > 0.0 ? 10.0 * std::log10(total.reference / total.squared) : -kBestSnrDb;
    result.snr_db = std::clamp(result.snr_db, -kBestSnrDb, kBestSnrDb);
  }
  result.lost_signal = alive > 0 ? lost / static_cast<double>(alive) : 0.0;
  return result;
}

std::vector<ChannelError> ErrorSums::worst_channels(int count) const {
  std::vector<int> order;
  for (size_t c = 0; c < sums_.size(); ++c) {
    if (sums_[c].count > 0) order.push_back(static_cast<int>(c));
  }
  const auto kept = std::min(order.size(), static_cast<size_t>(std::max(0, count)));
  const auto worse = [&](int a, int b) {
    const Sums& x = sums_[static_cast<size_t>(a)];
    const Sums& y = sums_[static_cast<size_t>(b)];
    const double lost_x = lost_signal(x);
    const double lost_y = lost_signal(y);
    if (lost_x != lost_y) return lost_x > lost_y;
    return x.squared != y.squared ? x.squared > y.squared : a < b;
  };
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(), worse);
  std::vector<ChannelError> result;
  for (size_t i = 0; i < kept; ++i) {
    const Sums& s = sums_[static_cast<size_t>(order[i])];
    const auto n = static_cast<double>(s.count);
    result.push_back({order[i], s.error / n, std::sqrt(s.squared / n), s.max_error, lost_signal(s), s.min, s.max});
  }
  return result;
}

std::vector<std::pair<float, float>> ErrorSums::channel_ranges() const {
  std::vector<std::pair<float, float>> result;
  for (const Sums& s : sums_) {
    if (s.count > 0) result.emplace_back(s.min, s.max);
  }
  return result;
}

}  // namespace leadline::debug
