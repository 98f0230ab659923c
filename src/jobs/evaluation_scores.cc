// SPDX-License-Identifier: Apache-2.0
#include "jobs/evaluation_scores.h"

#include <cmath>
#include <limits>

#include "core/error.h"
#include "jobs/sample_values.h"

namespace leadline::jobs {
namespace {

double comparable(double value) { return std::isnan(value) ? -std::numeric_limits<double>::infinity() : value; }

/// How many values of the row come before `place` in the order of answers.
int64_t rank_of(const RealValues& values, int64_t begin, int64_t size, int64_t place) {
  const double own = comparable(values[begin + place]);
  int64_t rank = 0;
  for (int64_t i = 0; i < size; ++i) {
    const double other = comparable(values[begin + i]);
    rank += other > own || (other == own && i < place) ? 1 : 0;
  }
  return rank;
}

/// The output is the number of a class itself, as ARG_MAX computes it.
bool holds_classes(const SampleTensor& output, const TensorInfo& info, int64_t rows) {
  return is_integer(output.dtype) && info.scales.empty() && output.shape.elements() == rows;
}

}  // namespace

RealValues::RealValues(const SampleTensor& tensor, const TensorInfo* quantized)
    : tensor_(tensor), size_(tensor.shape.elements()) {
  require(is_real(tensor.dtype) || is_integer(tensor.dtype), ErrorCode::kUnsupported,
          "metrics of {} values do not exist, expected numbers", dtype_name(tensor.dtype));
  if (quantized == nullptr || !is_integer(tensor.dtype) || quantized->scales.size() != 1) return;
  scale_ = static_cast<double>(quantized->scales[0]);
  zero_point_ = quantized->zero_points.empty() ? 0 : static_cast<double>(quantized->zero_points[0]);
}

double RealValues::operator[](int64_t index) const { return scale_ * (real_at(tensor_, index) - zero_point_); }

int64_t top_answer(const RealValues& values, int64_t begin, int64_t size) {
  int64_t best = 0;
  for (int64_t i = 1; i < size; ++i) {
    if (comparable(values[begin + i]) > comparable(values[begin + best])) best = i;
  }
  return best;
}

SampleScore accuracy(const SampleTensor& output, const TensorInfo& info, const SampleTensor& target, int top_k) {
  const RealValues values(output, &info);
  const int64_t targets = target.shape.elements();
  const bool one_hot = targets == values.size() && targets > 1 && !holds_classes(output, info, targets);
  const int64_t rows = one_hot ? 1 : targets;
  require(rows > 0 && values.size() % rows == 0 && values.size() > 0, kBadArgument,
          "{} labels for an output of shape {}, expected one for each row", targets, output.shape.to_string());
  const int64_t classes = values.size() / rows;
  SampleScore score;
  for (int64_t row = 0; row < rows; ++row) {
    const std::optional<int64_t> label =
        one_hot ? top_answer(RealValues(target, nullptr), 0, targets) : integer_at(target, row);
    require(label.has_value(), kBadArgument, "labels of type {}, expected integers", dtype_name(target.dtype));
    int64_t answer = 0;
    bool right = false;
    if (holds_classes(output, info, rows)) {
      answer = integer_at(output, row).value_or(-1);
      right = answer == *label;
    } else if (classes == 1) {  // one probability: of class 1
      answer = values[row] > 0.5 ? 1 : 0;
      right = answer == *label;
    } else {
      require(*label >= 0 && *label < classes, kBadArgument, "the label is {}, the model has {} classes", *label,
              classes);
      answer = top_answer(values, row * classes, classes);
      right = top_k == 1 ? answer == *label : rank_of(values, row * classes, classes, *label) < top_k;
    }
    score.answers.emplace_back(*label, answer);
    score.correct += right ? 1 : 0;
  }
  score.value = static_cast<double>(score.correct) / static_cast<double>(rows);
  return score;
}

SampleScore agreement(const SampleTensor& output, const TensorInfo& info, const SampleTensor& expected,
                      const TensorInfo& expected_info) {
  const auto answer_of = [](const SampleTensor& tensor, const TensorInfo& about) {
    const RealValues values(tensor, &about);
    require(values.size() > 0, kBadArgument, "the output is empty");
    if (holds_classes(tensor, about, 1)) return integer_at(tensor, 0).value_or(-1);
    if (values.size() == 1) return int64_t{values[0] > 0.5 ? 1 : 0};
    return top_answer(values, 0, values.size());
  };
  SampleScore score;
  score.answers.emplace_back(answer_of(expected, expected_info), answer_of(output, info));
  score.correct = score.answers[0].first == score.answers[0].second ? 1 : 0;
  score.value = static_cast<double>(score.correct);
  return score;
}

SampleScore distance(Metric metric, const RealValues& output, const RealValues& expected) {
  require(output.size() == expected.size() && output.size() > 0, kBadArgument, "{} expected values for an output of {}",
          expected.size(), output.size());
  double squares = 0, absolutes = 0, dot = 0, own = 0, other = 0;
  for (int64_t i = 0; i < output.size(); ++i) {
    const double a = output[i], b = expected[i];
    squares += (a - b) * (a - b);
    absolutes += std::abs(a - b);
    dot += a * b;
    own += a * a;
    other += b * b;
  }
  SampleScore score;
  if (metric == Metric::kCosine) {
    const bool nothing = own == 0 || other == 0;  // two zeros are alike
    score.value = nothing ? (own == other ? 1 : 0) : dot / (std::sqrt(own) * std::sqrt(other));
  } else {
    score.value = (metric == Metric::kMeanSquaredError ? squares : absolutes) / static_cast<double>(output.size());
  }
  return score;
}

}  // namespace leadline::jobs
