// SPDX-License-Identifier: Apache-2.0
// The words that users choose by, and what they are called: one table each for C++, Python and the command line.
// '-' and '_' are the same in names that are read; names that are shown have '_'.
#pragma once

#include <string>
#include <string_view>

#include "leadline/error.h"
#include "leadline/types.h"

namespace leadline {

/// How the numbers of a node are stored and computed with.
enum class QuantizationMode {
  kFloat,           ///< "float": stays as it is
  kFloat16,         ///< "float16": weights are stored as float16
  kDynamicRange,    ///< "dynamic": int8 weights; activations are quantized while running
  kInt8,            ///< "int8": int8 weights and activations; needs a Calibration
  kInt16x8,         ///< "int16x8": int8 weights, int16 activations; needs a Calibration
  kWeightOnlyInt8,  ///< "weight_only_int8": int8 weights that are widened before use; computes in float
  kWeightOnlyInt4,  ///< "weight_only_int4": the same with 4 bits
  kDynamicInt4,     ///< "dynamic_int4": kDynamicRange with weights of 4 bits, of convolutions and dense layers
  kDynamicInt2,     ///< "dynamic_int2": the same with 2 bits, of dense layers
};

/// How weights become integers.
enum class WeightRounding {
  kNearest,  ///< "nearest": scales that hold the largest weight, each weight to the nearest integer
  kMse,      ///< "mse": scales that cut off the rarest weights where that loses less, in the mean square
  kComq,     ///< "comq": scales and integers that change the layer's results least; needs samples (Gram matrices)
};

/// What is done to the rows of a dense layer's weights, and undone in what it reads, so that outliers are spread out.
enum class WeightRotation {
  kNone,                ///< "none"
  kHadamard,            ///< "hadamard": what the layer reads goes through the custom op aeq.hadamard_rotation
  kDecomposedHadamard,  ///< "decomposed_hadamard": it is multiplied with a constant matrix, by builtin ops
};

/// How a range is chosen from what was seen.
enum class CalibrationMethod {
  kMinMax,         ///< "min_max": the smallest and the largest value
  kMovingAverage,  ///< "moving_average": of the extremes of the last 256 samples, later ones counting more
  kPercentile,     ///< "percentile": all but the rarest values
  kMse,            ///< "mse": the range whose integers lie nearest in the mean square
  kKl,             ///< "kl": the range whose integers keep the distribution best (relative entropy)
};

/// A method with its numbers.
struct CalibrationRule {
  CalibrationMethod method = CalibrationMethod::kMinMax;
  double percentile = 99.99;  ///< share of values inside the range, above 50
  double momentum = 0.9;      ///< weight of the past in a moving average
};

/// What tuning measures a quantized model by; but for accuracy, the worst of its outputs counts.
enum class TuneMetric {
  kCosine,    ///< cosine of the angle between its outputs and those of the float model
  kSameTop,   ///< share of rows whose largest value is at the same place as the float model's
  kAccuracy,  ///< share of labels that are its top answer
  kKl,        ///< exp(-d), d the mean Kullback-Leibler divergence of rows from the float model's, as probabilities
};

/// Never null, also for values outside the enumeration.
const char* quantization_mode_name(QuantizationMode mode) noexcept;
const char* calibration_method_name(CalibrationMethod method) noexcept;
const char* tune_metric_name(TuneMetric metric) noexcept;
const char* weight_rounding_name(WeightRounding rounding) noexcept;
const char* weight_rotation_name(WeightRotation rotation) noexcept;
/// "invalid_model", "budget", ...
const char* error_code_name(ErrorCode code) noexcept;

/// Whether activations are integers, so that samples must say their ranges.
constexpr bool is_integer(QuantizationMode mode) noexcept {
  return mode == QuantizationMode::kInt8 || mode == QuantizationMode::kInt16x8;
}
/// Whether a method needs the histograms of a Calibration.
constexpr bool needs_histograms(CalibrationMethod method) noexcept {
  return method != CalibrationMethod::kMinMax && method != CalibrationMethod::kMovingAverage;
}

/// What is called so. `what` is the option or argument, for the message. Throws Error(kInvalidArgument) that lists the
/// names for any other text.
QuantizationMode parse_quantization_mode(std::string_view name, std::string_view what = "mode");
CalibrationMethod parse_calibration_method(std::string_view name, std::string_view what = "method");
TuneMetric parse_tune_metric(std::string_view name, std::string_view what = "metric");
WeightRounding parse_weight_rounding(std::string_view name, std::string_view what = "rounding");
WeightRotation parse_weight_rotation(std::string_view name, std::string_view what = "rotation");
/// The type of a quantized model's inputs or outputs: float32, int8, uint8 or int16.
DType parse_io_type(std::string_view name, std::string_view what);
/// Throws Error(kInvalidArgument) for types that inputs and outputs of a quantized model cannot have.
void require_io_type(DType type, std::string_view what);

/// "int8, int16x8 or dynamic": the names that a model, a range or an input can have, for help texts.
std::string quantization_mode_names();
std::string calibration_method_names();
std::string tune_metric_names();
std::string weight_rounding_names();
std::string io_type_names();

}  // namespace leadline
