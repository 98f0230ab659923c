// SPDX-License-Identifier: Apache-2.0
#include "quantize/ranges.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/error.h"

namespace leadline::quantize {
namespace {

/// Values spread evenly from `begin` to `end`.
struct Bin {
  double begin;
  double end;
  double count;
};

/// From the smallest to the largest value without gaps; the first and the last bin end where the values do.
std::vector<Bin> ordered_bins(const Observation& seen) {
  const Histogram& histogram = seen.histogram;
  const double width = histogram.width();
  std::vector<Bin> bins;
  for (int i = -kBinsPerSide; i < kBinsPerSide; ++i) {
    const int stored = i < 0 ? kBinsPerSide - 1 - i : i;
    bins.push_back({i * width, (i + 1) * width, static_cast<double>(histogram.count(stored))});
  }
  const auto filled = [](const Bin& bin) { return bin.count > 0.0; };
  bins.erase(std::find_if(bins.rbegin(), bins.rend(), filled).base(), bins.end());
  bins.erase(bins.begin(), std::find_if(bins.begin(), bins.end(), filled));
  bins.front().begin = std::max(bins.front().begin, static_cast<double>(seen.range.min));
  bins.back().end = std::min(bins.back().end, static_cast<double>(seen.range.max));
  return bins;
}

/// The same of magnitudes, from 0.
std::vector<Bin> magnitude_bins(const Observation& seen) {
  const Histogram& histogram = seen.histogram;
  const double width = histogram.width();
  const double largest = std::max(std::fabs(seen.range.min), std::fabs(seen.range.max));
  std::vector<Bin> bins;
  for (int i = 0; i < kBinsPerSide && i * width <= largest; ++i) {
    const auto count = static_cast<double>(histogram.count(i) + histogram.count(kBinsPerSide + i));
    bins.push_back({i * width, std::min((i + 1) * width, largest), count});
  }
  return bins;
}

/// [-magnitude, magnitude] where there are values.
Range within(const Range& seen, double magnitude) {
  const auto end = static_cast<float>(magnitude);
  return {std::max(seen.min, -end), std::min(seen.max, end)};
}

// Averages and percentiles ------------------------------------------------------------------------

Range moving_average(const std::vector<Range>& recent, double momentum) {
  double min = recent.front().min;
  double max = recent.front().max;
  for (const Range& range : recent) {
    min = momentum * min + (1.0 - momentum) * range.min;
    max = momentum * max + (1.0 - momentum) * range.max;
  }
  return {static_cast<float>(min), static_cast<float>(max)};
}

/// Where `share` of the values are below.
double quantile(const std::vector<Bin>& bins, double share) {
  double total = 0.0;
  for (const Bin& bin : bins) total += bin.count;
  double left = share * total;
  for (const Bin& bin : bins) {
    if (bin.count > 0.0 && left <= bin.count) return bin.begin + (bin.end - bin.begin) * (left / bin.count);
    left -= bin.count;
  }
  return bins.back().end;
}

Range percentile(const Observation& seen, double percent, bool symmetric) {
  const double share = percent / 100.0;
  if (symmetric) return within(seen.range, quantile(magnitude_bins(seen), share));
  const std::vector<Bin> bins = ordered_bins(seen);
  const double tail = (1.0 - share) / 2.0;
  return {static_cast<float>(quantile(bins, tail)), static_cast<float>(quantile(bins, 1.0 - tail))};
}

// Mean square error -------------------------------------------------------------------------------

/// Integers: multiples of `scale` from `low` to `high`.
struct Grid {
  double scale;
  double low;
  double high;
};

Grid grid_of(double min, double max, int bits, bool symmetric) {
  if (symmetric) {
    const double end = std::max(-min, max);
    return {end / (std::ldexp(1.0, bits - 1) - 1.0), -end, end};
  }
  min = std::min(min, 0.0);
  max = std::max(max, 0.0);
  const double steps = std::ldexp(1.0, bits) - 1.0;
  const double scale = (max - min) / steps;
  const double low = -scale * std::round(-min / scale);
  return {scale, low, low + scale * steps};
}

/// Integral from 0 to x >= 0 of the square error, where integers reach up to `end`.
double error_integral(double x, double scale, double end) {
  const double inside = std::min(x, end);
  const double periods = std::floor(inside / scale);
  const double rest = inside - periods * scale;
  const double cube = scale * scale * scale;
  const double other = scale - rest;
  double sum = periods * cube / 12.0;
  sum += rest <= scale / 2.0 ? rest * rest * rest / 3.0 : cube / 12.0 - other * other * other / 3.0;
  const double outside = x - inside;
  return sum + outside * outside * outside / 3.0;
}

double square_error(const std::vector<Bin>& bins, const Grid& grid) {
  const auto integral = [&](double x) {
    return x >= 0.0 ? error_integral(x, grid.scale, grid.high) : -error_integral(-x, grid.scale, -grid.low);
  };
  double sum = 0.0;
  for (const Bin& bin : bins) {
    if (bin.count == 0.0) continue;
    if (bin.end > bin.begin) {
      sum += bin.count * (integral(bin.end) - integral(bin.begin)) / (bin.end - bin.begin);
    } else {
      const double level = std::clamp(std::round(bin.begin / grid.scale) * grid.scale, grid.low, grid.high);
      sum += bin.count * (bin.begin - level) * (bin.begin - level);
    }
  }
  return sum;
}

/// The share of [0, 1] with the least error; the largest of equals.
template <typename Error>
double best_share(const Error& error_of) {
  constexpr int kCoarse = 64;
  constexpr int kFine = 8;
  double best = 1.0;
  double least = error_of(best);
  const auto attempt = [&](double share) {
    if (share <= 0.0 || share >= 1.0) return;
    const double error = error_of(share);
    if (error < least) {
      least = error;
      best = share;
    }
  };
  for (int i = kCoarse - 1; i > 0; --i) attempt(static_cast<double>(i) / kCoarse);
  const double centre = best;
  for (int i = kFine - 1; i > -kFine; --i) attempt(centre + static_cast<double>(i) / (kCoarse * kFine));
  return best;
}

Range least_square_error(const Observation& seen, int bits, bool symmetric) {
  std::vector<Bin> bins = ordered_bins(seen);
  std::erase_if(bins, [](const Bin& bin) { return bin.count == 0.0; });
  const double min = std::min(static_cast<double>(seen.range.min), 0.0);
  const double max = std::max(static_cast<double>(seen.range.max), 0.0);
  const auto error = [&](double low, double high) { return square_error(bins, grid_of(low, high, bits, symmetric)); };
  if (symmetric) {
    const double end = std::max(-min, max);
    return within(seen.range, end * best_share([&](double share) { return error(-end * share, end * share); }));
  }
  double low = min;
  double high = max;
  for (int round = 0; round < 4; ++round) {
    const double last_low = low;
    const double last_high = high;
    if (max > 0.0) high = max * best_share([&](double share) { return error(low, max * share); });
    if (min < 0.0) low = min * best_share([&](double share) { return error(min * share, high); });
    if ((low == last_low && high == last_high) || min == 0.0 || max == 0.0) break;
  }
  return {std::clamp(static_cast<float>(low), seen.range.min, seen.range.max),
          std::clamp(static_cast<float>(high), seen.range.min, seen.range.max)};
}

// Relative entropy --------------------------------------------------------------------------------

/// KL divergence of the values, those outside [begin, end) moved to its ends, from what `levels` integers make of the
/// values inside.
double divergence(std::span<const double> counts, size_t begin, size_t end, size_t levels, std::vector<double>& p) {
  // Integers put nothing where only moved values are; a share of everything keeps the logarithm finite.
  constexpr double kSmoothing = 1e-4;
  const size_t size = end - begin;
  p.assign(counts.begin() + static_cast<std::ptrdiff_t>(begin), counts.begin() + static_cast<std::ptrdiff_t>(end));
  double inside = 0.0;
  for (const double count : p) inside += count;
  if (inside == 0.0) return std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < begin; ++i) p.front() += counts[i];
  for (size_t i = end; i < counts.size(); ++i) p.back() += counts[i];
  double total = 0.0;
  double filled = 0.0;
  for (const double count : p) {
    total += count;
    filled += count > 0.0 ? 1.0 : 0.0;
  }
  double sum = 0.0;
  for (size_t level = 0; level < levels; ++level) {
    const size_t first = level * size / levels;
    const size_t last = (level + 1) * size / levels;
    double mass = 0.0;
    double places = 0.0;
    for (size_t i = first; i < last; ++i) {
      mass += counts[begin + i];
      places += p[i] > 0.0 ? 1.0 : 0.0;
    }
    if (places == 0.0) continue;
    const double q = (1.0 - kSmoothing) * mass / places / inside + kSmoothing / filled;
    for (size_t i = first; i < last; ++i) {
      if (p[i] > 0.0) sum += p[i] / total * std::log(p[i] / total / q);
    }
  }
  return sum;
}

Range least_divergence(const Observation& seen, int bits, bool symmetric) {
  // Bins by number: 0 is the bin that begins at zero.
  const Histogram& histogram = seen.histogram;
  const std::vector<Bin> bins = symmetric ? magnitude_bins(seen) : ordered_bins(seen);
  const double width = histogram.width();
  const auto first = static_cast<int64_t>(std::floor(bins.front().begin / width));
  const auto last = first + static_cast<int64_t>(bins.size());
  std::vector<double> counts;
  counts.reserve(bins.size());
  for (const Bin& bin : bins) counts.push_back(bin.count);
  const size_t levels = size_t{1} << (symmetric ? bits - 1 : bits);

  const int64_t largest = std::max(last, -first);
  const int64_t step = std::max<int64_t>(1, largest / 256);
  double least = std::numeric_limits<double>::infinity();
  int64_t best = largest;
  std::vector<double> workspace;
  for (int64_t t = largest; t > 0; t -= step) {
    const int64_t low = std::max(first, -t);
    const int64_t high = std::min(last, t);
    if (high <= low || static_cast<size_t>(high - low) <= levels) break;
    const double found =
        divergence(counts, static_cast<size_t>(low - first), static_cast<size_t>(high - first), levels, workspace);
    if (found < least) {
      least = found;
      best = t;
    }
  }
  return best == largest ? seen.range : within(seen.range, static_cast<double>(best) * width);
}

}  // namespace

void check_rule(const CalibrationRule& rule, int bits) {
  constexpr ErrorCode kArgument = ErrorCode::kInvalidArgument;
  require(bits == 8 || bits == 16, kArgument, "bits is {}, expected 8 or 16", bits);
  require(rule.percentile > 50.0 && rule.percentile <= 100.0, kArgument,
          "percentile is {}, expected above 50 and at most 100", rule.percentile);
  require(rule.momentum >= 0.0 && rule.momentum < 1.0, kArgument, "momentum is {}, expected from 0 to below 1",
          rule.momentum);
}

Range choose_range(const TensorStatistics& statistics, const CalibrationRule& rule, int bits, bool symmetric) {
  check_rule(rule, bits);
  const Observation& seen = statistics.all;
  if (seen.range.min == seen.range.max) return seen.range;
  switch (rule.method) {
    case CalibrationMethod::kMinMax:
      break;
    case CalibrationMethod::kMovingAverage:
      return moving_average(statistics.recent, rule.momentum);
    case CalibrationMethod::kPercentile:
      return percentile(seen, rule.percentile, symmetric);
    case CalibrationMethod::kMse:
      return least_square_error(seen, bits, symmetric);
    case CalibrationMethod::kKl:
      return least_divergence(seen, bits, symmetric);
  }
  return seen.range;
}

}  // namespace leadline::quantize
