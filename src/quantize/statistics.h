// SPDX-License-Identifier: Apache-2.0
// What the values of a tensor were in all samples, in memory that does not grow with them.
//
// Statistics of parts merge to exactly those of the whole, however the samples were split: counts are integers, and the
// width of a histogram's bins is the power of two that the largest magnitude needs. When it grows, bins are added two
// by two, which puts each value where it would have been put from the start.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "kernels/statistics/values.h"
#include "leadline/types.h"
#include "quantize/gram.h"

namespace leadline::quantize {

inline constexpr int kBinsPerSide = kernels::kBinsPerSide;
inline constexpr int kBins = kernels::kBins;

/// Counts of values in bins of one width. Bin i holds [i, i + 1) * width and bin kBinsPerSide + i the same below zero.
class Histogram {
 public:
  /// No memory until something is counted.
  bool empty() const { return counts_.empty(); }
  double width() const;
  int exponent() const { return exponent_; }
  int64_t count(int bin) const { return counts_[static_cast<size_t>(bin)]; }
  std::span<const int64_t> counts() const { return counts_; }

  /// Takes the memory and sets all counts to 0.
  void clear();
  /// Makes the bins wide enough for a value with these bits (without the sign), which is finite.
  void widen_for(uint32_t magnitude) { widen_to(exponent_for(magnitude)); }
  /// What values are multiplied with to get the number of their bin.
  float bins_per_unit() const;
  int64_t* data() { return counts_.data(); }
  void add(int bin, int64_t count) { counts_[static_cast<size_t>(bin)] += count; }
  void merge(const Histogram& other);

  /// The width that a value of this magnitude needs is 2 to this.
  static int exponent_for(uint32_t magnitude);
  static constexpr int64_t kBytes = kBins * static_cast<int64_t>(sizeof(int64_t));
  static constexpr int kLowestExponent = -126;  // values below 2^-115 do not make the bins any smaller

 private:
  void widen_to(int exponent);

  int exponent_ = kLowestExponent;
  std::vector<int64_t> counts_;  // empty or kBins
};

struct Range {
  float min = std::numeric_limits<float>::infinity();
  float max = -std::numeric_limits<float>::infinity();
  bool empty() const { return !(min <= max); }
  void include(const Range& other);
  friend bool operator==(const Range&, const Range&) = default;
};

/// Values seen, in one sample or in all.
struct Observation {
  int64_t elements = 0;  // finite ones
  int64_t not_finite = 0;
  Range range;
  Histogram histogram;

  void clear();
  /// Throws Error(kInvalidArgument) when the counts do not fit; then nothing is changed.
  void merge(const Observation& other);
};

/// All samples of a tensor.
struct TensorStatistics {
  /// A moving average looks at the last samples only: what came before has lost its weight (0.9^256 < 2e-12), and
  /// keeping these makes the average the same however samples are split.
  static constexpr size_t kRecent = 256;

  Observation all;
  std::vector<Range> recent;  // of the last samples that had finite values, oldest first

  /// Takes the memory that adding `more`, of this many samples, needs: after this, add_sample() or merge() cannot fail.
  void make_room(const Observation& more, size_t samples);
  void add_sample(const Observation& sample);
  void merge(const TensorStatistics& later);
};

/// A float tensor of a model.
struct WatchedTensor {
  int subgraph = 0;
  int tensor = 0;
  std::string name;
  TensorStatistics statistics;
};

struct ModelStatistics {
  uint64_t model = 0;  // fingerprint
  bool histograms = true;
  int64_t samples = 0;
  std::vector<WatchedTensor> tensors;  // by subgraph and tensor; also those that no sample reached
  bool keeps_grams = false;
  std::vector<GramMatrix> grams;  // by subgraph and node; also those that no sample reached

  /// Null when there is none.
  const GramMatrix* find_gram(int subgraph, int node) const;
  /// Null when the tensor is not watched.
  const WatchedTensor* find(int subgraph, int tensor) const;
  /// Adds samples that come after these. Throws Error(kInvalidArgument) when they are of another model; then nothing is
  /// changed.
  void merge(const ModelStatistics& later);
  void clear();
  /// Heap memory of `tensors` and `grams`, as if every one had been reached.
  int64_t bytes() const;
};

/// Adds the values of tensors to observations. Holds workspace that all tensors share. Not thread-safe.
class Recorder {
 public:
  Recorder();
  /// Of a float type (is_recordable), any alignment.
  void record(DType dtype, std::span<const std::byte> data, bool histogram, Observation& target);
  static bool is_recordable(DType dtype);
  static constexpr int64_t kBlock = 4096;
  /// Memory of the workspace.
  static constexpr int64_t kBytes = kBlock * (4 + 2) + kernels::kTables * kBins * int64_t{2};

 private:
  void record_block(const float* values, int64_t count, bool histogram, Observation& target);
  void count_bins(const float* values, int64_t count, Histogram& histogram);
  void flush(Histogram& histogram);

  std::vector<float> values_;     // a block as float32
  std::vector<uint16_t> bins_;    // a block's bins
  std::vector<uint16_t> tables_;  // counts of values to be added, in kTables parts: neighbours are often equal, and
                                  // adding to the same place twice waits for the first
  int64_t pending_ = 0;           // values counted in tables_
};

}  // namespace leadline::quantize
