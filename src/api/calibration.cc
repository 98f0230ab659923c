// SPDX-License-Identifier: Apache-2.0
#include "leadline/calibration.h"

#include "api/calibration_data.h"
#include "core/boundary.h"
#include "core/cancel.h"
#include "core/error.h"
#include "quantize/ranges.h"
#include "quantize/statistics_bytes.h"
#include "runtime/loaded_model.h"

namespace leadline {
std::unique_ptr<Calibration::Data> Calibration::Data::copy_of(const quantize::ModelStatistics& statistics,
                                                              std::shared_ptr<Budget> budget) {
  auto data = std::make_unique<Data>(std::move(budget));
  data->charge.resize(statistics.bytes());
  data->statistics.model = statistics.model;
  data->statistics.histograms = statistics.histograms;
  data->statistics.samples = statistics.samples;
  data->statistics.tensors.reserve(statistics.tensors.size());
  PacedCheck check;
  for (const quantize::WatchedTensor& tensor : statistics.tensors) {
    check.count(statistics.histograms ? quantize::Histogram::kBytes : 64);
    data->statistics.tensors.push_back(tensor);
  }
  data->statistics.keeps_grams = statistics.keeps_grams;
  data->statistics.grams.reserve(statistics.grams.size());
  for (const quantize::GramMatrix& gram : statistics.grams) {
    check.count(gram.bytes());
    data->statistics.grams.push_back(gram);
  }
  return data;
}

Calibration::Calibration() try : data_(std::make_unique<Data>()) {
} catch (...) {
  rethrow_as_error();
}
Calibration::Calibration(std::unique_ptr<Data> data) : data_(std::move(data)) {}
Calibration::Calibration(const Calibration& other) try
    : data_(Data::copy_of(other.data_->statistics, other.data_->charge.budget())) {
} catch (...) {
  rethrow_as_error();
}
Calibration& Calibration::operator=(const Calibration& other) try {
  if (this != &other) data_ = Data::copy_of(other.data_->statistics, other.data_->charge.budget());
  return *this;
} catch (...) {
  rethrow_as_error();
}
Calibration::Calibration(Calibration&&) noexcept = default;
Calibration& Calibration::operator=(Calibration&&) noexcept = default;
Calibration::~Calibration() = default;

void Calibration::merge(const Calibration& later) try {
  const auto of_no_model = [](const Data& data) { return data.statistics.model == 0 && data.statistics.samples == 0; };
  if (of_no_model(*later.data_)) return;
  if (of_no_model(*data_)) {
    *this = later;
    return;
  }
  data_->statistics.merge(later.data_->statistics);
} catch (...) {
  rethrow_as_error();
}

int64_t Calibration::samples() const { return data_->statistics.samples; }
bool Calibration::histograms() const { return data_->statistics.histograms; }
bool Calibration::gram_matrices() const { return data_->statistics.keeps_grams; }
int64_t Calibration::memory_bytes() const { return data_->charge.bytes(); }
bool Calibration::is_of(const Model& model) const {
  return data_->statistics.model == quantize::fingerprint(*model.loaded()->graph());
}

std::vector<TensorCalibration> Calibration::tensors() const try {
  std::vector<TensorCalibration> result;
  for (const quantize::WatchedTensor& tensor : data_->statistics.tensors) {
    const quantize::Observation& seen = tensor.statistics.all;
    ValueRange range;
    if (seen.elements > 0) range = {seen.range.min, seen.range.max};
    result.push_back({tensor.subgraph, tensor.tensor, tensor.name, seen.elements, seen.not_finite, range});
  }
  return result;
} catch (...) {
  rethrow_as_error();
}

std::optional<ValueRange> Calibration::range(int subgraph, int tensor, const CalibrationRule& rule, int bits,
                                             bool symmetric) const try {
  quantize::check_rule(rule, bits);
  require(histograms() || !needs_histograms(rule.method), ErrorCode::kInvalidArgument,
          "the calibration method {} needs histograms, but the calibration was made without",
          calibration_method_name(rule.method));
  const quantize::WatchedTensor* watched = data_->statistics.find(subgraph, tensor);
  if (watched == nullptr || watched->statistics.all.elements == 0) return std::nullopt;
  const quantize::Range range = quantize::choose_range(watched->statistics, rule, bits, symmetric);
  return ValueRange{range.min, range.max};
} catch (...) {
  rethrow_as_error();
}

std::vector<std::byte> Calibration::to_bytes() const try { return quantize::to_bytes(data_->statistics); } catch (...) {
  rethrow_as_error();
}

Calibration Calibration::from_bytes(std::span<const std::byte> bytes, std::shared_ptr<Budget> budget) try {
  auto data = std::make_unique<Data>(budget ? std::move(budget) : Budget::machine_default());
  data->statistics = quantize::from_bytes(bytes, data->charge);
  return Calibration(std::move(data));
} catch (...) {
  rethrow_as_error();
}

}  // namespace leadline
