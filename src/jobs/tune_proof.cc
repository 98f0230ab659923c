// SPDX-License-Identifier: Apache-2.0
#include "jobs/tune_proof.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "leadline/names.h"

namespace leadline {
namespace jobs {
namespace {

/// The probability of `good` or more of `rows` when each is good with probability `share`.
double tail(int64_t good, int64_t rows, double share) {
  double sum = 0.0;
  const auto n = static_cast<double>(rows);
  for (int64_t k = good; k <= rows; ++k) {
    const auto x = static_cast<double>(k);
    const double ways = std::lgamma(n + 1.0) - std::lgamma(x + 1.0) - std::lgamma(n - x + 1.0);
    sum += std::exp(ways + x * std::log(share) + (n - x) * std::log1p(-share));
  }
  return sum;
}

double doubt_of(int looks) { return (1.0 - kTuneConfidence) / std::max(looks, 1); }

}  // namespace

double lowest_share(int64_t good, int64_t rows, double doubt) {
  if (good <= 0 || rows <= 0) return 0.0;
  constexpr int kSteps = 50;
  double low = 0.0;
  double high = 1.0;
  for (int step = 0; step < kSteps; ++step) {
    const double middle = 0.5 * (low + high);
    (tail(good, rows, middle) <= doubt ? low : high) = middle;
  }
  return low;
}

double share_like_the_worst(int64_t count, double doubt) {
  return count > 0 ? std::pow(doubt, 1.0 / static_cast<double>(count)) : 0.0;
}

double value_of(TuneMetric metric, const DebugMeasure& measure) {
  switch (metric) {
    case TuneMetric::kSameTop:
      return measure.same_argmax;
    case TuneMetric::kKl:
      return std::exp(-measure.divergence);
    default:
      return measure.cosine;
  }
}

TuneBound bound_of(TuneMetric metric, const std::vector<DebugMeasure>& measures, const DebugMeasure& all, int looks) {
  TuneBound bound;
  bound.samples = static_cast<int64_t>(measures.size());
  bound.value = value_of(metric, all);
  if (measures.empty()) return bound;
  bound.lowest = 1.0;
  for (const DebugMeasure& measure : measures) bound.lowest = std::min(bound.lowest, value_of(metric, measure));
  if (metric == TuneMetric::kSameTop && all.rows == bound.samples) {
    // One answer each: how many are right is known, not how right one is.
    const auto same = static_cast<int64_t>(std::lround(bound.value * static_cast<double>(all.rows)));
    bound.lowest = lowest_share(same, all.rows, doubt_of(looks));
    return bound;
  }
  bound.share = share_like_the_worst(bound.samples, doubt_of(looks));
  return bound;
}

TuneBound bound_of_accuracy(double accuracy, int64_t samples, int looks) {
  TuneBound bound;
  bound.samples = samples;
  bound.value = accuracy;
  const auto right = static_cast<int64_t>(std::lround(accuracy * static_cast<double>(samples)));
  bound.lowest = lowest_share(right, samples, doubt_of(looks));
  return bound;
}

}  // namespace jobs

std::string TuneBound::text(const std::string& metric) const {
  std::string result = fmt::format("{} {:.4f} on {} samples that were held out; with {:.0f} % confidence ", metric,
                                   value, samples, 100.0 * kTuneConfidence);
  if (share > 0.0) {
    return result +
           fmt::format("{:.0f} % or more of samples like them have {:.4f} or more", std::floor(100.0 * share), lowest);
  }
  return result + fmt::format("{:.4f} or more on samples like them", std::floor(1e4 * lowest) / 1e4);
}

}  // namespace leadline
