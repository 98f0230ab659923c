// SPDX-License-Identifier: Apache-2.0
// What debugging a quantized model finds, as plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "leadline/job_plan.h"
#include "leadline/types.h"

namespace leadline {

/// How far values are from what they should be, over all samples. Pairs with NaN or infinity are counted and left out.
struct ErrorStatistics {
  int64_t elements = 0;    ///< pairs compared
  int64_t not_finite = 0;  ///< pairs with NaN or infinity
  int64_t broken = 0;      ///< those of them whose reference is a number
  double mean_error = 0.0;
  double stddev = 0.0;
  double max_abs_error = 0.0;
  double mean_squared_error = 0.0;
  double rmse = 0.0;
  double rmse_over_scale = 0.0;  ///< in quantization steps; 0: no single scale. Perfect rounding gives 1/sqrt(12)
  double cosine = 1.0;           ///< of the angle between both
  double snr_db = 0.0;           ///< signal to noise; kBestSnrDb when there is no noise
  double lost_signal = 0.0;      ///< noise power over signal power, at most 1, averaged over the channels
};
inline constexpr double kBestSnrDb = 300.0;
/// rmse / scale of values that are spread evenly and rounded to the nearest step.
inline constexpr double kRoundingYardstick = 0.28867513459481287;

/// One channel (index of the last axis) of a layer; own error.
struct ChannelError {
  int channel = 0;
  double mean_error = 0.0;
  double rmse = 0.0;
  double max_abs_error = 0.0;
  double lost_signal = 0.0;
  float min = 0.0F;  ///< of the reference
  float max = 0.0F;
};

/// A constant operand against the float model's.
struct WeightError {
  int input = 0;     ///< operand of the node
  std::string name;  ///< of the tensor in the quantized model
  DType dtype = DType::kInt8;
  Shape shape;
  int channels = 1;  ///< along the axis of the scales, or of the output channels
  int scales = 0;
  double rmse = 0.0;
  double max_abs_error = 0.0;
  double snr_db = 0.0;
  int worst_channel = 0;  ///< where most of the signal is lost
  double worst_lost_signal = 0.0;
  int peak_channel = 0;         ///< where single values stand out most
  double peak = 1.0;            ///< its largest absolute value over its median one
  int largest_channel = 0;      ///< the one with the largest value
  double channel_spread = 1.0;  ///< its largest absolute value over the median channel's
};

/// Counts in equal bins over [min, max], of about 16384 values of each sample, evenly taken.
struct DebugHistogram {
  float min = 0.0F;
  float max = 0.0F;
  std::vector<int64_t> reference;  ///< the float model's values
  std::vector<int64_t> quantized;
  int64_t reference_below = 0;  ///< outside the range
  int64_t reference_above = 0;
  int64_t quantized_below = 0;
  int64_t quantized_above = 0;
};

/// One output tensor of a node of the quantized model.
struct LayerDebug {
  int index = 0;  ///< in DebugResult::layers
  int subgraph = 0;
  int node = -1;  ///< in the quantized model; -1: an input of the model that is quantized before it
  int tensor = 0;
  int float_node = -1;  ///< in the float model; -1: no counterpart
  int float_tensor = -1;
  std::string op;
  std::string name;        ///< of the tensor in the quantized model
  std::string float_name;  ///< in the float model: what recipes and denylists match; empty: no counterpart
  std::string layer;       ///< the Keras layer that the name leads back to
  DType dtype = DType::kInt8;
  Shape shape;
  std::vector<float> scales;
  std::vector<int64_t> zero_points;
  bool is_output = false;    ///< of the model
  bool quantized = false;    ///< false: computes in float as before
  bool fixed_range = false;  ///< the integer kernels of its op fix the range of the result
  std::string weakness;      ///< why its op loses more than others in 8 bits, whatever the model; empty: it does not
  std::vector<int> inputs;   ///< layers it reads
  /// What the layer adds by itself: against the float node fed with the same inputs.
  std::optional<ErrorStatistics> own;
  /// All error so far: against the float model.
  std::optional<ErrorStatistics> accumulated;
  /// What it costs at the model's outputs: the share of the power of their error that goes when this layer, or the
  /// region it was measured in, computes in float. Below 0: its error makes up for another's. Absent: not measured.
  std::optional<double> effect;
  int region = -1;         ///< the smallest of DebugResult::regions that has it; -1: none
  double saturated = 0.0;  ///< share of values whose float value lies outside the range of the integers
  float range_min = 0.0F;  ///< what the integers can hold; both 0 for floats
  float range_max = 0.0F;
  float seen_min = 0.0F;  ///< what the float model's tensor held
  float seen_max = 0.0F;
  int levels_used = 0;  ///< different values seen in an 8-bit tensor; 0: not counted
  int channels = 1;
  std::vector<ChannelError> worst_channels;  ///< by lost_signal, the worst first
  std::vector<WeightError> weights;
  std::optional<DebugHistogram> histogram;
  std::string note;  ///< why there is no own or accumulated error, where there is none
};

/// A layer that deserves a look. The list is ordered, the worst first.
struct DebugSuspect {
  int layer = 0;       ///< index of LayerDebug
  double score = 0.0;  ///< the share of its signal that the layer loses by itself
  std::string kind;    ///< "weight_outlier", "channel_outlier", "saturation", "wide_range", "few_levels", "not_finite",
                       ///< "weights", "weight_peak", "fixed_range", "rounding"
  std::string why;
  std::string try_this;
};

/// What a model is worth against the float model, over samples.
struct DebugMeasure {
  double error = 0.0;        ///< power of the error over power of the signal, of the worst output
  double cosine = 1.0;       ///< of the worst output
  double same_argmax = 1.0;  ///< of the worst output; 1 where there are no rows
  /// Share of rows whose largest value is at a place that the float model rates much lower, of the worst output.
  double clearly_other = 0.0;
  double divergence = 0.0;  ///< of rows as probabilities from the float model's (Kullback-Leibler), the worst output's
  int64_t rows = 0;         ///< of all outputs
  int64_t file_bytes = 0;
  double seconds = 0.0;  ///< CPU time of a run
};

/// Layers that were measured together: a part of the network by the names of its tensors, or a stretch of it.
struct DebugRegion {
  std::string name;         ///< what the names of its tensors begin with, or that of its first and last layer
  int parent = -1;          ///< the region it is a part of
  std::vector<int> layers;  ///< in DebugResult::layers
  int nodes = 0;            ///< of the float model
  double effect = 0.0;      ///< the share of the power of the outputs' error that goes when it computes in float
  double cosine = 0.0;      ///< of the worst output, then
  /// The same when only its weights are as in the float model, or only its values are not rounded; absent: not
  /// measured.
  std::optional<double> weights_effect;
  std::optional<double> values_effect;
};

/// A change that was made, quantized and measured, and helps.
struct DebugSuggestion {
  std::string kind;          ///< "keep_float", "int16", "recalibrate", "method", "equalize", "bias_correction",
                             ///< "per_channel", "wider_weights", or several of them joined by "+"
  std::string what;          ///< in words
  std::string recipe;        ///< JSON in the float model's names that quantize takes as it is
  bool recalibrate = false;  ///< with the samples that were debugged, or samples like them
  DebugMeasure before;
  DebugMeasure after;
  int64_t samples = 0;   ///< that it was measured on
  bool held_out = true;  ///< none of which was used to choose or to calibrate
};

struct DebugOutput {
  std::string name;  ///< in the float model
  int layer = -1;
  ErrorStatistics accumulated;
  double same_argmax = 0.0;  ///< share of rows (along the last axis) whose largest value is at the same place
  int64_t rows = 0;
  double clearly_other = 0.0;  ///< share of rows whose largest value is where the float model's is much lower
  double divergence = 0.0;     ///< mean over rows, as probabilities, from the float model's (Kullback-Leibler)
  double noise = 0.0;          ///< power of the error relative to what tells the values of a row apart
};

/// How a result came about, for its page. What is empty or 0 is left out of it.
struct DebugRun {
  std::string float_model;  ///< paths, as commands can repeat them
  std::string quantized_model;
  std::string data;
  double seconds = 0.0;
  int64_t counted_bytes = 0;  ///< the most that the budget counted
};

/// Pure data.
struct DebugResult {
  int64_t samples = 0;
  int64_t float_bytes = 0;  ///< of the files
  int64_t quantized_bytes = 0;
  JobPlan plan;
  std::vector<LayerDebug> layers;  ///< in the order they run
  std::vector<DebugOutput> outputs;
  std::vector<DebugSuspect> suspects;
  std::vector<DebugRegion> regions;  ///< whose effect was measured, the largest effect first
  /// The error of the outputs, as DebugMeasure::error, with everything quantized and with weights or values alone;
  /// absent: not measured.
  std::optional<double> error;
  std::optional<double> weights_error;
  std::optional<double> values_error;
  std::vector<DebugSuggestion> suggestions;  ///< the one that helps most first
  int64_t changes_tried = 0;                 ///< to find them
  std::vector<std::string> notes;            ///< what was not measured, and why
  std::vector<std::string> unmatched;        ///< nodes of the quantized model without a counterpart, and why

  /// In a sentence or two: what the model lost, and the first suggestion.
  std::string verdict() const;
  std::string to_json() const;
  /// Error, effect and bytes of each node of the quantized model, for Model Explorer to show over its graph.
  std::string to_node_data() const;
  /// One line per layer.
  std::string to_csv() const;
  /// For a terminal of 80 columns: outputs, parts, layers, suspects, suggestions and, last, the verdict. Layers and
  /// parts of equal blocks are one row, but those with `opened` in their names.
  std::string to_text(const std::string& opened = {}) const;
  /// One self-contained page: verdict, suspects, error along the network, layers, histograms.
  std::string to_html(const DebugRun& run = {}) const;
  /// For the output of a notebook's cell: the verdict, and the page in a frame that can reach nothing around it.
  std::string to_notebook_html(const DebugRun& run = {}) const;
};

/// A NumericVerify of a debug model.
struct VerifiedLayer {
  int subgraph = 0;
  int node = 0;  ///< the NumericVerify
  std::string output_name;
  int output_tensor = 0;
  int tensor = 0;  ///< the quantized tensor
  int reference = 0;
  std::string tensor_name;  ///< as the float model calls it
  std::string op;           ///< that computes the tensor
  std::vector<float> scales;
  std::vector<int64_t> zero_points;
};

/// TensorFlow's five numbers, each the mean over the samples for which it is a number; values that are not finite are
/// counted.
struct VerifiedStatistics {
  int64_t samples = 0;
  int64_t not_finite = 0;
  double num_elements = 0.0;
  double stddev = 0.0;
  double mean_error = 0.0;
  double max_abs_error = 0.0;
  double mean_squared_error = 0.0;
};

}  // namespace leadline
