// SPDX-License-Identifier: Apache-2.0
#include "jobs/sample_lint.h"

#include <fmt/core.h>

#include <algorithm>

#include "io/zip.h"
#include "ops/op_ids.h"

namespace leadline::jobs {
namespace {

constexpr int64_t kFewSamples = 32;
constexpr size_t kRememberedMagnitudes = 256;
// A sample this many times as large as the usual one is reported; the model begins with a factor below 1/64 where it
// scales pixels itself.
constexpr double kOutlier = 1000;
constexpr double kScalesPixels = 64;

using Severity = SampleFinding::Severity;

bool scales(const ir::OpId& op) {
  return ir::is_one_of(op, {op::kMul, op::kDiv, op::kSub, op::kAdd, op::kCast, op::kQuantize});
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace

bool SampleInput::takes_any(int axis) const {
  const std::vector<int32_t>& signature = tensor.shape_signature;
  return std::cmp_less(axis, signature.size()) && signature[static_cast<size_t>(axis)] < 0;
}

std::string SampleInput::shape_text() const {
  std::string text;
  for (int axis = 0; axis < tensor.shape.rank(); ++axis) {
    text += (axis == 0 ? "" : ", ") + (takes_any(axis) ? "any" : std::to_string(tensor.shape[axis]));
  }
  return "[" + text + "]";
}

bool SampleInput::is_image() const {
  if (tensor.shape.rank() != 4 || takes_any(3)) return false;
  const int64_t channels = tensor.shape[3];
  return channels == 1 || channels == 3 || channels == 4;
}

SampleLint::Seen& SampleLint::seen(Key key) {
  for (auto& [other, what] : seen_) {
    if (other == key) return what;
  }
  return seen_.emplace_back(key, Seen{}).second;
}

void SampleLint::add_once(const char* kind, Key key, SampleFinding finding) {
  if (known_.emplace(kind, key).second) findings_.push_back(std::move(finding));
}

void SampleLint::add_integers(int subgraph, int input, const SampleInput& spec, const std::string& where,
                              int64_t sample, const SampleTensor& tensor) {
  add_once("integers", {subgraph, input},
           {Severity::kWarning,
            fmt::format("{}: {} values are converted to {}; scale them as in training, unless the model does it itself",
                        where, dtype_name(tensor.dtype), dtype_name(spec.tensor.dtype)),
            sample, spec.name});
}

void SampleLint::add_values(int subgraph, int input, const SampleInput& spec, const std::string& where, int64_t sample,
                            const SampleTensor& tensor, const ValueSummary& values) {
  const double magnitude = std::max(-values.min, values.max);
  Seen& before = seen({subgraph, input});
  if (before.magnitudes.size() >= 3) {
    const double typical = median(before.magnitudes);
    if (typical > 0 && magnitude > kOutlier * typical) {
      add_once("outlier", {subgraph, input},
               {Severity::kWarning,
                fmt::format("{}: values up to {:g}, where samples before it reached {:g}", where, magnitude, typical),
                sample, spec.name});
    }
  }
  if (before.magnitudes.size() < kRememberedMagnitudes) before.magnitudes.push_back(magnitude);
  before.min = std::min(before.min, values.min);
  before.max = std::max(before.max, values.max);
  before.whole = before.whole && values.whole;
  before.values += tensor.shape.elements();
}

void SampleLint::add_sample(const Sample& sample) {
  if (checksums_.size() >= 2) return;
  uint32_t sum = 0;
  for (const SampleTensor& tensor : sample.inputs) sum = update_crc(sum, tensor.data);
  checksums_.insert(sum);
}

void SampleLint::finish(int64_t samples, const std::vector<std::vector<SampleInput>>& inputs) {
  for (size_t subgraph = 0; subgraph < inputs.size(); ++subgraph) {
    for (size_t i = 0; i < inputs[subgraph].size(); ++i) {
      judge({static_cast<int>(subgraph), static_cast<int>(i)}, inputs[subgraph][i]);
    }
  }
  if (samples > 1 && checksums_.size() == 1) {
    findings_.push_back(
        {Severity::kWarning, fmt::format("all {} samples of the dataset are the same", samples), std::nullopt, ""});
  }
  if (samples < kFewSamples) {
    findings_.push_back({Severity::kNote,
                         fmt::format("only {} samples: ranges from a few hundred are more reliable", samples),
                         std::nullopt, ""});
  }
}

void SampleLint::judge(Key key, const SampleInput& spec) {
  const Seen& all = seen(key);
  if (all.values > 1 && all.min == all.max) {
    add_once("constant", key,
             {Severity::kWarning, fmt::format("input '{}': every value of every sample is {:g}", spec.name, all.min),
              std::nullopt, spec.name});
  } else if (spec.is_image() && all.values > 0 && all.whole && all.min >= 0 && all.max > 16 && all.max <= 255 &&
             !scales(spec.first_op)) {
    add_once(
        "pixels", key,
        {Severity::kWarning,
         fmt::format("input '{}': whole numbers from {:g} to {:g}, as of raw pixels, but the model begins with {}, "
                     "which does not scale them; scale them as in training",
                     spec.name, all.min, all.max, spec.first_op.is_none() ? "no op" : spec.first_op.name()),
         std::nullopt, spec.name});
  }
}

void SampleLint::look_at(const Calibration& calibration, const std::vector<std::vector<SampleInput>>& inputs) {
  const std::vector<TensorCalibration> tensors = calibration.tensors();
  for (const auto& [key, all] : seen_) {
    const SampleInput& spec = inputs[static_cast<size_t>(key.first)][static_cast<size_t>(key.second)];
    if (spec.first_op != op::kMul || all.values == 0 || all.min < -1 || all.max > 1) continue;
    const auto first = std::find_if(tensors.begin(), tensors.end(), [&](const TensorCalibration& tensor) {
      return tensor.subgraph == key.first && tensor.tensor == spec.first_output && tensor.elements > 0;
    });
    if (first == tensors.end()) continue;
    const double given = std::max(-all.min, all.max);
    const double left = std::max(-static_cast<double>(first->range.min), static_cast<double>(first->range.max));
    if (left <= 0 || left > given / kScalesPixels) continue;
    add_once("scaled twice", key,
             {Severity::kWarning,
              fmt::format("input '{}': values from {:g} to {:g}, but the model begins with a multiplication by about "
                          "{:.3g}, as if it took pixels from 0 to 255",
                          spec.name, all.min, all.max, left / given),
              std::nullopt, spec.name});
  }
}

void SampleLint::add_not_finite(const Model& model, const NotFiniteValue& value) {
  const SubgraphInfo graph = model.subgraph(value.subgraph);
  const auto writer = std::find_if(graph.nodes.begin(), graph.nodes.end(), [&](const NodeInfo& node) {
    return std::find(node.outputs.begin(), node.outputs.end(), value.tensor) != node.outputs.end();
  });
  const std::string source =
      writer == graph.nodes.end() ? "" : fmt::format(", the result of {} #{},", writer->op, writer->index);
  findings_.push_back(
      {Severity::kWarning,
       fmt::format("sample {}: '{}'{} holds values that are NaN or infinite; they are left out of its range",
                   value.sample, graph.tensors[static_cast<size_t>(value.tensor)].name, source),
       value.sample, ""});
}

}  // namespace leadline::jobs
