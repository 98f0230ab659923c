// SPDX-License-Identifier: Apache-2.0
#include "debug/output_score.h"

#include <algorithm>
#include <cmath>

namespace leadline::debug {
namespace {

constexpr double kNoticeableNoise = 0.02;  // cosine 0.99
constexpr double kOtherAnswers = 0.05;
/// Of the standard deviation of a row: answers that are closer are as good as one another.
constexpr double kClearly = 0.25;
constexpr int64_t kMostLookedAt = 256;  // rows of one call
constexpr int64_t kTellingRows = 20;    // of fewer rows a single one is more than 0.05
/// Of the signal's power: rows that are all alike have no spread to lose.
constexpr double kLeastSpread = 0.01;

double spread_of(const float* row, int64_t width) {
  double sum = 0.0, squares = 0.0;
  for (int64_t i = 0; i < width; ++i) {
    if (!std::isfinite(row[i])) continue;
    sum += static_cast<double>(row[i]);
    squares += static_cast<double>(row[i]) * static_cast<double>(row[i]);
  }
  return std::max(squares - sum * sum / static_cast<double>(width), 0.0);
}

/// Whether a row is probabilities already; else its softmax is taken.
bool adds_up(const float* row, int64_t width) {
  constexpr double kSlack = 0.02;  // 8 bits are off by more than float
  double sum = 0.0;
  for (int64_t i = 0; i < width; ++i) {
    if (!(static_cast<double>(row[i]) >= 0.0)) return false;
    sum += static_cast<double>(row[i]);
  }
  return std::abs(sum - 1.0) <= kSlack;
}

/// What probabilities are divided by, and logits are lessened by before exp() and divided by.
struct Distribution {
  bool logits = false;
  double largest = 0.0;
  double sum = 0.0;

  Distribution(const float* row, int64_t width, bool of_logits) : logits(of_logits) {
    if (logits) {
      largest = static_cast<double>(*std::max_element(row, row + width));
      for (int64_t i = 0; i < width; ++i) sum += std::exp(static_cast<double>(row[i]) - largest);
      return;
    }
    for (int64_t i = 0; i < width; ++i) sum += probability_of(row[i]);
  }
  /// An integer model's 0 is less than half a step of 1/256, not impossible.
  static double probability_of(float value) {
    constexpr double kLeast = 1.0 / 1024.0;
    return std::max(static_cast<double>(value), 0.0) + kLeast;
  }
  double log_of(float value) const {
    return logits ? static_cast<double>(value) - largest - std::log(sum) : std::log(probability_of(value) / sum);
  }
};

/// Of a row from the float model's (Kullback-Leibler), as probabilities; rows with NaN or infinity are nothing alike.
double divergence_of(const float* row, const float* reference, int64_t width) {
  constexpr double kMost = 100.0;
  const auto finite = [](float v) { return std::isfinite(v); };
  if (!std::all_of(reference, reference + width, finite)) return 0.0;
  if (!std::all_of(row, row + width, finite)) return kMost;
  const bool logits = !adds_up(reference, width);
  const Distribution p(reference, width, logits);
  const Distribution q(row, width, logits);
  double sum = 0.0;
  for (int64_t i = 0; i < width; ++i) {
    const double log_p = p.log_of(reference[i]);
    sum += std::exp(log_p) * (log_p - q.log_of(row[i]));
  }
  return std::clamp(sum, 0.0, kMost);
}

}  // namespace

void RowScore::add(const float* results, const float* references, int64_t count, int64_t width) {
  const int64_t step = std::max<int64_t>(1, count / width / kMostLookedAt);
  for (int64_t row = 0; row + width <= count; row += width) {
    const auto a = std::max_element(results + row, results + row + width) - (results + row);
    const auto b = std::max_element(references + row, references + row + width) - (references + row);
    ++rows;
    same_argmax += a == b ? 1 : 0;
    for (int64_t i = row; i < row + width; ++i) {
      if (!std::isfinite(references[i])) continue;
      sum += static_cast<double>(references[i]);
      squares += static_cast<double>(references[i]) * static_cast<double>(references[i]);
      ++values;
    }
    const double row_spread = spread_of(references + row, width);
    spread += row_spread;
    const double regret = static_cast<double>(references[row + b]) - static_cast<double>(references[row + a]);
    clearly_other += regret > kClearly * std::sqrt(row_spread / static_cast<double>(width)) ? 1 : 0;
    if ((row / width) % step != 0) continue;
    divergences += divergence_of(results + row, references + row, width);
    ++looked_at;
  }
}

double RowScore::relative_noise(double noise, double signal) const {
  if (noise == 0.0) return 0.0;
  if (rows == 0) return signal > 0.0 ? noise / signal : 1.0;
  // Rows of a picture may each be of one color: what tells them from one another counts as well.
  const double all = values > 0 ? squares - sum * sum / static_cast<double>(values) : 0.0;
  const double told_apart = std::max({spread, all, kLeastSpread * signal});
  return told_apart > 0.0 ? noise / told_apart : 1.0;
}

void OutputScore::add(size_t output, const float* values, const float* references, int64_t count, int64_t width) {
  Sums& s = sums_[output];
  for (int64_t i = 0; i < count; ++i) {
    const double r = static_cast<double>(references[i]);
    if (!std::isfinite(r)) continue;
    const double a = std::isfinite(values[i]) ? static_cast<double>(values[i]) : -r;  // as wrong as can be
    s.noise += (a - r) * (a - r);
    s.signal += r * r;
    s.value += a * a;
    s.product += a * r;
  }
  if (width > 1) s.rows.add(values, references, count, width);
}

DebugMeasure OutputScore::measure() const {
  DebugMeasure result;
  for (const Sums& s : sums_) {
    const double error = s.rows.relative_noise(s.noise, s.signal);
    const double lengths = std::sqrt(s.signal) * std::sqrt(s.value);
    const double cosine = s.noise == 0.0 ? 1.0 : lengths > 0.0 ? std::clamp(s.product / lengths, -1.0, 1.0) : 0.0;
    result.error = std::max(result.error, error);
    result.cosine = std::min(result.cosine, cosine);
    result.rows += s.rows.rows;
    if (s.rows.rows > 0) {
      const double same = static_cast<double>(s.rows.same_argmax) / static_cast<double>(s.rows.rows);
      result.same_argmax = std::min(result.same_argmax, same);
      const double other = static_cast<double>(s.rows.clearly_other) / static_cast<double>(s.rows.rows);
      result.clearly_other = std::max(result.clearly_other, other);
      result.divergence = std::max(result.divergence, s.rows.divergence());
    }
  }
  return result;
}

bool lost_something(const DebugMeasure& measure) {
  if (measure.error > kNoticeableNoise) return true;
  return measure.rows >= kTellingRows && measure.clearly_other > kOtherAnswers;
}

}  // namespace leadline::debug
