// SPDX-License-Identifier: Apache-2.0
#include "debug/output_score.h"

#include <algorithm>
#include <cmath>

namespace leadline::debug {
namespace {

constexpr double kNoticeableNoise = 0.02;  // cosine 0.99
constexpr double kSameAnswers = 0.95;
constexpr int64_t kTellingRows = 20;  // of fewer rows a single one is more than the rest of 0.95
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

}  // namespace

void RowScore::add(const float* values, const float* references, int64_t count, int64_t width) {
  for (int64_t row = 0; row + width <= count; row += width) {
    const auto a = std::max_element(values + row, values + row + width) - (values + row);
    const auto b = std::max_element(references + row, references + row + width) - (references + row);
    ++rows;
    same_argmax += a == b ? 1 : 0;
    spread += spread_of(references + row, width);
  }
}

double RowScore::relative_noise(double noise, double signal) const {
  if (noise == 0.0) return 0.0;
  const double told_apart = rows > 0 ? std::max(spread, kLeastSpread * signal) : signal;
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
    }
  }
  return result;
}

bool lost_something(const DebugMeasure& measure) {
  if (measure.error > kNoticeableNoise) return true;
  return measure.rows >= kTellingRows && measure.same_argmax < kSameAnswers;
}

}  // namespace leadline::debug
