// SPDX-License-Identifier: Apache-2.0
#include "quantize/statistics.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/cancel.h"
#include "core/error.h"
#include "core/half.h"

namespace leadline::quantize {
namespace {

constexpr uint32_t kInfinity = 0x7F800000U;
constexpr int64_t kFlush = (1 << 18) - (1 << 13);  // values between flushes: a table's quarter fits 16 bits
constexpr int64_t kFewValues = 1 << 10;            // not worth a flush of all tables

uint32_t magnitude_bits(float value) { return std::bit_cast<uint32_t>(value) & 0x7FFFFFFFU; }

int64_t checked_sum(int64_t a, int64_t b) {
  int64_t sum = 0;
  require(!__builtin_add_overflow(a, b, &sum), ErrorCode::kInvalidArgument,
          "calibrations that count {} and {} values cannot be merged", a, b);
  return sum;
}

void widen(DType dtype, const std::byte* data, int64_t count, float* values) {
  const auto read = [&](int64_t i, auto& element) {
    std::memcpy(&element, data + i * static_cast<int64_t>(sizeof element), sizeof element);
  };
  if (dtype == DType::kFloat32) {
    std::memcpy(values, data, static_cast<size_t>(count) * sizeof(float));
  } else if (dtype == DType::kFloat64) {
    for (int64_t i = 0; i < count; ++i) {
      double wide = 0.0;
      read(i, wide);
      // What float32 cannot hold counts as infinite.
      values[i] = std::fabs(wide) > std::numeric_limits<float>::max() ? std::numeric_limits<float>::infinity()
                                                                      : static_cast<float>(wide);
    }
  } else {
    for (int64_t i = 0; i < count; ++i) {
      uint16_t bits = 0;
      read(i, bits);
      values[i] = dtype == DType::kFloat16 ? half_to_float(bits) : bfloat16_to_float(bits);
    }
  }
}

}  // namespace

// Histogram ---------------------------------------------------------------------------------------

double Histogram::width() const { return std::ldexp(1.0, exponent_); }
float Histogram::bins_per_unit() const { return std::ldexp(1.0F, -exponent_); }

int Histogram::exponent_for(uint32_t magnitude) {
  // 2^k <= value < 2^(k+1) needs kBinsPerSide * 2^exponent >= 2^(k+1). Subnormals have k < -126, where the limit rules.
  const int k = static_cast<int>(magnitude >> 23) - 127;
  return std::max(kLowestExponent, k + 1 - std::countr_zero(static_cast<unsigned>(kBinsPerSide)));
}

void Histogram::clear() {
  exponent_ = kLowestExponent;
  counts_.assign(kBins, 0);
}

void Histogram::widen_to(int exponent) {
  if (exponent <= exponent_) return;
  const int shift = exponent - exponent_;
  exponent_ = exponent;
  for (int side = 0; side < 2; ++side) {
    int64_t* counts = counts_.data() + side * kBinsPerSide;
    if (shift >= 11) {  // all in the first bin
      for (int i = 1; i < kBinsPerSide; ++i) counts[0] += std::exchange(counts[i], 0);
      continue;
    }
    const int step = 1 << shift;
    for (int i = 0; i < kBinsPerSide / step; ++i) {
      int64_t sum = 0;
      for (int j = i * step; j < (i + 1) * step; ++j) sum += counts[j];
      counts[i] = sum;
    }
    std::fill(counts + kBinsPerSide / step, counts + kBinsPerSide, 0);
  }
}

void Histogram::merge(const Histogram& other) {
  if (other.empty()) return;
  if (empty()) clear();
  widen_to(other.exponent_);
  const int shift = exponent_ - other.exponent_;
  for (int side = 0; side < 2; ++side) {
    int64_t* counts = counts_.data() + side * kBinsPerSide;
    const int64_t* added = other.counts_.data() + side * kBinsPerSide;
    if (shift == 0) {
      for (int i = 0; i < kBinsPerSide; ++i) counts[i] += added[i];
    } else {
      for (int i = 0; i < kBinsPerSide; ++i) counts[shift < 11 ? i >> shift : 0] += added[i];
    }
  }
}

// Observations ------------------------------------------------------------------------------------

void Range::include(const Range& other) {
  min = std::min(min, other.min);
  max = std::max(max, other.max);
}

void Observation::clear() {
  elements = 0;
  not_finite = 0;
  range = {};
  if (!histogram.empty()) histogram.clear();
}

void Observation::merge(const Observation& other) {
  const int64_t sum = checked_sum(elements, other.elements);
  const int64_t not_finite_sum = checked_sum(not_finite, other.not_finite);
  elements = sum;
  not_finite = not_finite_sum;
  range.include(other.range);
  if (other.elements > 0) histogram.merge(other.histogram);
}

void TensorStatistics::make_room(const Observation& more, size_t samples) {
  if (more.elements > 0 && all.histogram.empty() && !more.histogram.empty()) all.histogram.clear();
  const size_t needed = std::min(kRecent, recent.size() + samples);
  if (needed > recent.capacity()) recent.reserve(std::min(kRecent, 2 * needed));
}

void TensorStatistics::add_sample(const Observation& sample) {
  all.merge(sample);
  if (sample.elements == 0) return;
  if (recent.size() == kRecent) recent.erase(recent.begin());
  recent.push_back(sample.range);
}

void TensorStatistics::merge(const TensorStatistics& later) {
  all.merge(later.all);
  const size_t together = recent.size() + later.recent.size();
  const auto excess = static_cast<std::ptrdiff_t>(together - std::min(together, kRecent));
  recent.erase(recent.begin(), recent.begin() + excess);
  recent.insert(recent.end(), later.recent.begin(), later.recent.end());
}

// Models ------------------------------------------------------------------------------------------

const WatchedTensor* ModelStatistics::find(int subgraph, int tensor) const {
  const auto it = std::lower_bound(
      tensors.begin(), tensors.end(), std::pair(subgraph, tensor),
      [](const WatchedTensor& a, const std::pair<int, int>& key) { return std::pair(a.subgraph, a.tensor) < key; });
  return it != tensors.end() && it->subgraph == subgraph && it->tensor == tensor ? &*it : nullptr;
}

const GramMatrix* ModelStatistics::find_gram(int subgraph, int node) const {
  const auto it = std::lower_bound(
      grams.begin(), grams.end(), std::pair(subgraph, node),
      [](const GramMatrix& a, const std::pair<int, int>& key) { return std::pair(a.subgraph, a.node) < key; });
  return it != grams.end() && it->subgraph == subgraph && it->node == node ? &*it : nullptr;
}

void ModelStatistics::merge(const ModelStatistics& later) {
  if (&later == this) return merge(ModelStatistics(later));
  const auto same = [](const WatchedTensor& a, const WatchedTensor& b) {
    return a.subgraph == b.subgraph && a.tensor == b.tensor;
  };
  require(model == later.model &&
              std::equal(tensors.begin(), tensors.end(), later.tensors.begin(), later.tensors.end(), same),
          ErrorCode::kInvalidArgument, "calibrations of different models cannot be merged");
  require(histograms == later.histograms, ErrorCode::kInvalidArgument,
          "a calibration with histograms and one without cannot be merged");
  const auto same_matrix = [](const GramMatrix& a, const GramMatrix& b) {
    return a.subgraph == b.subgraph && a.node == b.node && a.groups == b.groups && a.columns == b.columns;
  };
  require(keeps_grams == later.keeps_grams &&
              std::equal(grams.begin(), grams.end(), later.grams.begin(), later.grams.end(), same_matrix),
          ErrorCode::kInvalidArgument, "a calibration with Gram matrices and one without cannot be merged");
  const int64_t sum = checked_sum(samples, later.samples);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Observation& mine = tensors[i].statistics.all;
    const Observation& other = later.tensors[i].statistics.all;
    checked_sum(mine.elements, other.elements);
    checked_sum(mine.not_finite, other.not_finite);
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (i % 64 == 63) check_cancelled();
    const TensorStatistics& more = later.tensors[i].statistics;
    tensors[i].statistics.make_room(more.all, more.recent.size());
  }
  for (size_t i = 0; i < grams.size(); ++i) {
    if (grams[i].sums.empty()) grams[i].sums.assign(later.grams[i].sums.size(), 0);
  }
  for (size_t i = 0; i < tensors.size(); ++i) tensors[i].statistics.merge(later.tensors[i].statistics);
  for (size_t i = 0; i < grams.size(); ++i) grams[i].merge(later.grams[i]);
  samples = sum;
}

void ModelStatistics::clear() {
  samples = 0;
  for (WatchedTensor& tensor : tensors) {
    tensor.statistics.all.clear();
    tensor.statistics.recent.clear();
  }
  for (GramMatrix& gram : grams) std::fill(gram.sums.begin(), gram.sums.end(), 0);
}

int64_t ModelStatistics::bytes() const {
  const auto count = static_cast<int64_t>(tensors.size());
  int64_t total = count * static_cast<int64_t>(sizeof(WatchedTensor) + TensorStatistics::kRecent * sizeof(Range));
  if (histograms) total += count * Histogram::kBytes;
  for (const WatchedTensor& tensor : tensors) total += static_cast<int64_t>(tensor.name.size());
  for (const GramMatrix& gram : grams) total += static_cast<int64_t>(sizeof gram) + gram.bytes();
  return total;
}

// Recording ---------------------------------------------------------------------------------------

Recorder::Recorder() : values_(kBlock), bins_(kBlock), tables_(static_cast<size_t>(kernels::kTables) * kBins) {}

bool Recorder::is_recordable(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat16 || dtype == DType::kBFloat16 || dtype == DType::kFloat64;
}

void Recorder::record(DType dtype, std::span<const std::byte> data, bool histogram, Observation& target) {
  const int64_t size = dtype_bits(dtype) / 8;
  const auto count = static_cast<int64_t>(data.size()) / size;
  const bool in_place = dtype == DType::kFloat32 && reinterpret_cast<uintptr_t>(data.data()) % alignof(float) == 0;
  if (histogram && target.histogram.empty()) target.histogram.clear();
  PacedCheck check;
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    check.count(16 * kBlock);
    const int64_t length = std::min(kBlock, count - begin);
    const std::byte* block = data.data() + begin * size;
    if (in_place) {
      record_block(reinterpret_cast<const float*>(block), length, histogram, target);
    } else {
      widen(dtype, block, length, values_.data());
      record_block(values_.data(), length, histogram, target);
    }
  }
  if (pending_ > 0) flush(target.histogram);
}

void Recorder::record_block(const float* values, int64_t count, bool histogram, Observation& target) {
  kernels::Extremes seen = kernels::extremes(values, count);
  if (seen.magnitude >= kInfinity) {
    // values may be values_: what is kept moves to the front.
    int64_t finite = 0;
    for (int64_t i = 0; i < count; ++i) {
      const float value = values[i];
      if (magnitude_bits(value) < kInfinity) values_[static_cast<size_t>(finite++)] = value;
    }
    target.not_finite += count - finite;
    if (finite == 0) return;
    values = values_.data();
    count = finite;
    seen = kernels::extremes(values, count);
  }
  target.elements += count;
  target.range.include({seen.min, seen.max});
  if (!histogram) return;
  if (Histogram::exponent_for(seen.magnitude) > target.histogram.exponent()) {
    if (pending_ > 0) flush(target.histogram);
    target.histogram.widen_for(seen.magnitude);
  }
  count_bins(values, count, target.histogram);
}

void Recorder::count_bins(const float* values, int64_t count, Histogram& histogram) {
  uint16_t* bins = bins_.data();
  kernels::number_bins(values, count, histogram.bins_per_unit(), bins);
  if (count <= kFewValues && pending_ == 0) {
    for (int64_t i = 0; i < count; ++i) histogram.add(bins[i], 1);
    return;
  }
  uint16_t* tables = tables_.data();
  int64_t i = 0;
  for (; i + 4 <= count; i += 4) {
    uint64_t four = 0;
    std::memcpy(&four, bins + i, sizeof four);
    ++tables[four & 0xFFFFU];
    ++tables[kBins + (four >> 16 & 0xFFFFU)];
    ++tables[2 * kBins + (four >> 32 & 0xFFFFU)];
    ++tables[3 * kBins + (four >> 48)];
  }
  for (; i < count; ++i) ++tables[bins[i]];
  pending_ += count;
  if (pending_ + kBlock > kFlush) flush(histogram);
}

void Recorder::flush(Histogram& histogram) {
  kernels::fold_tables(reinterpret_cast<uint16_t(*)[kBins]>(tables_.data()), histogram.data());
  pending_ = 0;
}

}  // namespace leadline::quantize
