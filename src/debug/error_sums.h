// SPDX-License-Identifier: Apache-2.0
// Sums from which all error statistics follow: nothing of the values is kept but these, one set per channel.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "leadline/debug_result.h"

namespace leadline::debug {

/// More channels than this are summed as one: they are positions rather than channels.
inline constexpr int64_t kMaxChannels = 65536;

/// Sums of pairs (value, reference) by channel. Element i belongs to channel i % channels. Values are added in blocks
/// that begin at channel 0; within a block sums are float32, between blocks float64.
class ErrorSums {
 public:
  explicit ErrorSums(int64_t channels = 1);
  int64_t channels() const { return static_cast<int64_t>(sums_.size()); }
  /// Elements a block should have: a multiple of channels().
  int64_t block() const { return block_; }
  static int64_t bytes_for(int64_t channels);

  void add(const float* values, const float* references, int64_t count);

  bool empty() const { return elements_ == 0 && not_finite_ == 0; }
  /// `scale` 0: none.
  ErrorStatistics statistics(double scale) const;
  /// By lost_signal, the worst first.
  std::vector<ChannelError> worst_channels(int count) const;
  /// Smallest and largest reference of each channel that has values.
  std::vector<std::pair<float, float>> channel_ranges() const;
  float min() const { return min_; }
  float max() const { return max_; }

 private:
  struct Sums {
    double error = 0.0;
    double squared = 0.0;
    double reference = 0.0;  // squares
    double value = 0.0;      // squares
    double product = 0.0;
    double max_error = 0.0;
    int64_t count = 0;
    float min = 0.0F;
    float max = 0.0F;
  };
  void flush(int64_t rows);
  void add_carefully(const float* values, const float* references, int64_t count);
  static double lost_signal(const Sums& s);

  int64_t lanes_;  // a multiple of channels, wide enough for vectors
  int64_t block_;
  std::vector<Sums> sums_;
  std::vector<float> lane_sums_;  // kLaneSums arrays of lanes_
  int64_t elements_ = 0;
  int64_t not_finite_ = 0;
  int64_t broken_ = 0;
  float min_ = 0.0F;
  float max_ = 0.0F;
};

}  // namespace leadline::debug
