// SPDX-License-Identifier: Apache-2.0
// Names of metrics, sums of scores, and how results are printed.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/error.h"
#include "core/join.h"
#include "io/json.h"
#include "leadline/evaluate.h"

namespace leadline {
namespace {

constexpr std::array<const char*, 6> kNames = {"accuracy", "mse", "mae", "cosine", "agreement", "function"};

bool is_share(Metric metric) { return metric == Metric::kAccuracy || metric == Metric::kAgreement; }

std::string full_name(const EvaluateResult& result) {
  return result.metric == Metric::kAccuracy && result.top_k > 1 ? fmt::format("top-{} accuracy", result.top_k)
                                                                : metric_name(result.metric);
}

}  // namespace

const char* metric_name(Metric metric) noexcept {
  const auto index = static_cast<size_t>(metric);
  return index < kNames.size() ? kNames[index] : "unknown";
}

Metric parse_metric(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (name == kNames[i]) return static_cast<Metric>(i);
  }
  fail(ErrorCode::kInvalidArgument, "unknown metric '{}'; expected one of: {}", name, join(kNames, ", "));
}

ScoreSum::ScoreSum(const EvaluateOptions& options)
    : per_sample_(options.per_sample),
      max_confusion_classes_(options.max_confusion_classes),
      counts_answers_(is_share(options.metric)) {
  result_.metric = options.metric;
  result_.top_k = options.top_k;
}

void ScoreSum::add(const SampleScore& score) {
  ++result_.samples;
  sum_ += score.value;
  if (per_sample_) result_.per_sample.push_back(score.value);
  if (!counts_answers_) return;
  result_.answers += std::ssize(score.answers);
  result_.correct += score.correct;
  for (const auto& [label, answer] : score.answers) {
    const int64_t needed = std::max(label, answer) + 1;
    if (result_.classes < 0 || needed > max_confusion_classes_ || std::min(label, answer) < 0) {
      result_.classes = -1;  // too many, or no classes
      result_.confusion.clear();
      continue;
    }
    if (needed > result_.classes) {
      std::vector<int64_t> larger(static_cast<size_t>(needed * needed));
      for (int64_t row = 0; row < result_.classes; ++row) {
        const auto from = result_.confusion.begin() + row * result_.classes;
        std::copy(from, from + result_.classes, larger.begin() + row * needed);
      }
      result_.confusion = std::move(larger);
      result_.classes = needed;
    }
    ++result_.confusion[static_cast<size_t>(label * result_.classes + answer)];
  }
}

EvaluateResult ScoreSum::result() const {
  EvaluateResult result = result_;
  result.classes = std::max<int64_t>(result.classes, 0);
  if (result.answers > 0) {
    result.value = static_cast<double>(result.correct) / static_cast<double>(result.answers);
  } else if (result.samples > 0) {
    result.value = sum_ / static_cast<double>(result.samples);
  }
  return result;
}

std::string EvaluateResult::to_text() const {
  std::string text = fmt::format("{} {:.6g}", full_name(*this), value);
  if (is_share(metric)) {
    text = fmt::format("{} {:.2f} %: {} of {}", full_name(*this), 100 * value, correct, answers);
  }
  text +=
      fmt::format("  ({} samples, {:.2f} s, {} at most)\n", samples, seconds, format_bytes(counted_peak_bytes, units));
  if (classes <= 1 || !is_share(metric)) return text;
  size_t width = 1;
  for (const int64_t count : confusion) width = std::max(width, fmt::formatted_size("{}", count));
  width = std::max(width, fmt::formatted_size("{}", classes - 1));
  if (classes > 20) return text;
  text += metric == Metric::kAccuracy ? "\nAnswers (columns) by label (rows)\n"
                                      : "\nAnswers (columns) by answer of the reference (rows)\n";
  text += std::string(width + 2, ' ');
  for (int64_t answer = 0; answer < classes; ++answer) text += fmt::format("  {:>{}}", answer, width);
  text += '\n';
  for (int64_t label = 0; label < classes; ++label) {
    text += fmt::format("  {:>{}}", label, width);
    for (int64_t answer = 0; answer < classes; ++answer) {
      text += fmt::format("  {:>{}}", confusion[static_cast<size_t>(label * classes + answer)], width);
    }
    text += '\n';
  }
  return text;
}

std::string EvaluateResult::to_json() const {
  Json json = {{"metric", metric_name(metric)}, {"value", value}, {"samples", samples}};
  if (is_share(metric)) {
    json["top_k"] = top_k;
    json["answers"] = answers;
    json["correct"] = correct;
    if (classes > 0) {
      json["confusion"] = Json::array();
      for (int64_t label = 0; label < classes; ++label) {
        const auto row = confusion.begin() + label * classes;
        json["confusion"].push_back(std::vector<int64_t>(row, row + classes));
      }
    }
  }
  if (!per_sample.empty()) json["per_sample"] = per_sample;
  json["findings"] = Json::array();
  for (const SampleFinding& finding : findings) json["findings"].push_back(finding.message);
  json["seconds"] = seconds;
  json["counted_peak_bytes"] = counted_peak_bytes;
  return json.dump(2);
}

}  // namespace leadline
