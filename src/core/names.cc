// SPDX-License-Identifier: Apache-2.0
#include "leadline/names.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/error.h"

namespace leadline {
namespace {

template <typename Value, size_t Count>
using Table = std::array<std::pair<Value, const char*>, Count>;

constexpr Table<QuantizationMode, 9> kModes{{
    {QuantizationMode::kInt8, "int8"},
    {QuantizationMode::kInt16x8, "int16x8"},
    {QuantizationMode::kDynamicRange, "dynamic"},
    {QuantizationMode::kFloat16, "float16"},
    {QuantizationMode::kWeightOnlyInt8, "weight_only_int8"},
    {QuantizationMode::kWeightOnlyInt4, "weight_only_int4"},
    {QuantizationMode::kDynamicInt4, "dynamic_int4"},
    {QuantizationMode::kDynamicInt2, "dynamic_int2"},
    {QuantizationMode::kFloat, "float"},
}};

constexpr Table<CalibrationMethod, 5> kMethods{{
    {CalibrationMethod::kMinMax, "min_max"},
    {CalibrationMethod::kMovingAverage, "moving_average"},
    {CalibrationMethod::kPercentile, "percentile"},
    {CalibrationMethod::kMse, "mse"},
    {CalibrationMethod::kKl, "kl"},
}};

constexpr Table<TuneMetric, 4> kTuneMetrics{{
    {TuneMetric::kCosine, "cosine"},
    {TuneMetric::kSameTop, "same_top"},
    {TuneMetric::kAccuracy, "accuracy"},
    {TuneMetric::kKl, "kl"},
}};

constexpr Table<WeightRounding, 3> kRoundings{{
    {WeightRounding::kNearest, "nearest"},
    {WeightRounding::kMse, "mse"},
    {WeightRounding::kComq, "comq"},
}};

constexpr Table<WeightRotation, 3> kRotations{{
    {WeightRotation::kNone, "none"},
    {WeightRotation::kHadamard, "hadamard"},
    {WeightRotation::kDecomposedHadamard, "decomposed_hadamard"},
}};

constexpr Table<DType, 4> kIoTypes{{
    {DType::kFloat32, "float32"},
    {DType::kInt8, "int8"},
    {DType::kUInt8, "uint8"},
    {DType::kInt16, "int16"},
}};

constexpr Table<ErrorCode, 10> kCodes{{
    {ErrorCode::kInvalidModel, "invalid_model"},
    {ErrorCode::kUnsupported, "unsupported"},
    {ErrorCode::kInvalidArgument, "invalid_argument"},
    {ErrorCode::kBudget, "budget"},
    {ErrorCode::kIo, "io"},
    {ErrorCode::kRuntime, "runtime"},
    {ErrorCode::kCancelled, "cancelled"},
    {ErrorCode::kInternal, "internal"},
    {ErrorCode::kOutOfMemory, "out_of_memory"},
    {ErrorCode::kTimeout, "timeout"},
}};

template <typename Value, size_t Count>
const char* name_of(const Table<Value, Count>& table, Value value, const char* other) noexcept {
  for (const auto& [known, name] : table) {
    if (known == value) return name;
  }
  return other;
}

template <typename Value, size_t Count>
std::string list(const Table<Value, Count>& table, size_t count, const char* last) {
  std::string names;
  for (size_t i = 0; i < count; ++i) {
    if (i > 0) names += i + 1 < count ? ", " : last;
    names += table[i].second;
  }
  return names;
}

template <typename Value, size_t Count>
Value find(const Table<Value, Count>& table, std::string_view name, std::string_view what) {
  std::string wanted(name);
  std::replace(wanted.begin(), wanted.end(), '-', '_');
  for (const auto& [value, known] : table) {
    if (wanted == known) return value;
  }
  fail(ErrorCode::kInvalidArgument, "{} is '{}', expected one of: {}", what, name.substr(0, 80),
       list(table, Count, ", "));
}

}  // namespace

const char* quantization_mode_name(QuantizationMode mode) noexcept { return name_of(kModes, mode, "unknown"); }
const char* calibration_method_name(CalibrationMethod method) noexcept { return name_of(kMethods, method, "unknown"); }
const char* tune_metric_name(TuneMetric metric) noexcept { return name_of(kTuneMetrics, metric, "unknown"); }
const char* weight_rounding_name(WeightRounding rounding) noexcept { return name_of(kRoundings, rounding, "unknown"); }
const char* weight_rotation_name(WeightRotation rotation) noexcept { return name_of(kRotations, rotation, "unknown"); }
const char* error_code_name(ErrorCode code) noexcept { return name_of(kCodes, code, "internal"); }

QuantizationMode parse_quantization_mode(std::string_view name, std::string_view what) {
  return find(kModes, name, what);
}
CalibrationMethod parse_calibration_method(std::string_view name, std::string_view what) {
  return find(kMethods, name, what);
}
TuneMetric parse_tune_metric(std::string_view name, std::string_view what) { return find(kTuneMetrics, name, what); }
WeightRounding parse_weight_rounding(std::string_view name, std::string_view what) {
  return find(kRoundings, name, what);
}
WeightRotation parse_weight_rotation(std::string_view name, std::string_view what) {
  return find(kRotations, name, what);
}
DType parse_io_type(std::string_view name, std::string_view what) { return find(kIoTypes, name, what); }

void require_io_type(DType type, std::string_view what) {
  const bool known = std::any_of(kIoTypes.begin(), kIoTypes.end(), [&](const auto& row) { return row.first == type; });
  require(known, ErrorCode::kInvalidArgument, "{} is {}, expected one of: {}", what, dtype_name(type),
          list(kIoTypes, kIoTypes.size(), ", "));
}

std::string quantization_mode_names() { return list(kModes, kModes.size() - 1, " or "); }  // "float" is for recipes
std::string calibration_method_names() { return list(kMethods, kMethods.size(), " or "); }
std::string tune_metric_names() { return list(kTuneMetrics, kTuneMetrics.size(), " or "); }
std::string weight_rounding_names() { return list(kRoundings, kRoundings.size(), " or "); }
std::string io_type_names() { return list(kIoTypes, kIoTypes.size(), " or "); }

}  // namespace leadline
