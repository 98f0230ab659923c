// SPDX-License-Identifier: Apache-2.0
#include "guard/growth.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace leadline::guard {
namespace {

constexpr double kShownDeviations = 1.96;    // 95 %
constexpr double kDecidedDeviations = 2.81;  // 99.5 %
constexpr double kLeastShare = 0.25;
constexpr double kSettling = 0.7;
constexpr size_t kQuarters = 4;

using Points = std::span<const SeriesPoint>;

/// The median; `values` loses its order.
double median(std::vector<double>& values) {
  const size_t middle = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(middle), values.end());
  const double upper = values[middle];
  if (values.size() % 2 == 1) return upper;
  return (upper + *std::max_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(middle))) / 2;
}

/// Slopes between all pairs of points, sorted.
std::vector<double> slopes(Points points) {
  std::vector<double> result;
  result.reserve(points.size() * (points.size() - 1) / 2);
  for (size_t i = 0; i < points.size(); ++i) {
    for (size_t j = i + 1; j < points.size(); ++j) {
      const double rise = static_cast<double>(points[j].value) - static_cast<double>(points[i].value);
      result.push_back(rise / static_cast<double>(points[j].round - points[i].round));
    }
  }
  std::ranges::sort(result);
  return result;
}

double middle_of(const std::vector<double>& sorted) {
  const size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

struct Interval {
  double low;
  double high;
};

/// Sen's interval: the ranks between which Kendall's score of a series without a trend stays.
Interval interval(const std::vector<double>& sorted, size_t points, double deviations) {
  const auto n = static_cast<double>(points);
  const auto count = static_cast<double>(sorted.size());
  const double spread = deviations * std::sqrt(n * (n - 1) * (2 * n + 5) / 18);
  const double last = count - 1;
  const auto at = [&](double rank) { return sorted[static_cast<size_t>(std::clamp(rank, 0.0, last))]; };
  return {at(std::floor((count - spread) / 2)), at(std::ceil((count + spread) / 2))};
}

/// Rises per round between the medians of the quarters, which are placed at the mean of their rounds.
std::array<double, kQuarters - 1> rises(Points points) {
  std::array<double, kQuarters> level{};
  std::array<double, kQuarters> place{};
  for (size_t quarter = 0; quarter < kQuarters; ++quarter) {
    const size_t begin = points.size() * quarter / kQuarters;
    const size_t end = points.size() * (quarter + 1) / kQuarters;
    std::vector<double> values;
    for (const SeriesPoint& point : points.subspan(begin, end - begin)) {
      values.push_back(static_cast<double>(point.value));
      place[quarter] += static_cast<double>(point.round) / static_cast<double>(end - begin);
    }
    level[quarter] = median(values);
  }
  std::array<double, kQuarters - 1> result{};
  for (size_t i = 0; i + 1 < kQuarters; ++i) result[i] = (level[i + 1] - level[i]) / (place[i + 1] - place[i]);
  return result;
}

bool is_slack(Points points, double per_round) { return middle_of(slopes(points)) < kLeastShare * per_round; }

/// Whether the growth ended before the series did.
bool has_stopped(Points points, double per_round) {
  constexpr size_t kShortest = 5;
  size_t tail = 0;
  for (size_t size = kShortest; size <= points.size() / 2; ++size) {
    if (is_slack(points.last(size), per_round)) tail = size;
  }
  if (tail == 0) return false;
  // Of a leak that comes in steps or among noise, other stretches look the same.
  const size_t half = std::max(tail / 2, kShortest - 2);
  const Points before = points.first(points.size() - tail + 1);
  for (size_t begin = 0; begin + half <= before.size(); ++begin) {
    if (is_slack(before.subspan(begin, half), per_round)) return false;
  }
  return true;
}

bool goes_on(Points points, double per_round) {
  const std::array<double, kQuarters - 1> rise = rises(points);
  const double least = kLeastShare * (rise[0] + rise[1] + rise[2]) / 3;
  if (least <= 0 || std::ranges::any_of(rise, [&](double value) { return value < least; })) return false;
  if (rise[1] < kSettling * rise[0] && rise[2] < kSettling * rise[1]) return false;
  return middle_of(slopes(points.subspan(points.size() / 2))) >= kLeastShare * per_round;
}

}  // namespace

Growth fit_growth(Points points, double floor) {
  Growth growth;
  if (points.size() < kFewestPoints) return growth;
  const int64_t warm_up = std::clamp<int64_t>(points.back().round / 4, 3, 20);
  const auto start = std::ranges::find_if(points, [&](const SeriesPoint& point) { return point.round > warm_up; });
  // Of few points over many rounds the warm-up takes none; of points that end within it, a quarter must do.
  const auto skipped = std::min<size_t>(static_cast<size_t>(start - points.begin()), points.size() / 4);
  points = points.subspan(skipped);

  const std::vector<double> sorted = slopes(points);
  growth.per_round = middle_of(sorted);
  const Interval shown = interval(sorted, points.size(), kShownDeviations);
  growth.low = shown.low;
  growth.high = shown.high;
  const bool rises = growth.per_round >= floor && interval(sorted, points.size(), kDecidedDeviations).low > 0;
  const bool lasts = rises && goes_on(points, growth.per_round) && !has_stopped(points, growth.per_round);
  growth.verdict = lasts ? GrowthVerdict::kGrows : GrowthVerdict::kFlat;
  return growth;
}

}  // namespace leadline::guard
