// SPDX-License-Identifier: Apache-2.0
// Float .tflite -> quantized .tflite, after training.
//
//   leadline::QuantizeOptions options;
//   options.mode = leadline::QuantizationMode::kInt8;
//   const leadline::Quantizer quantizer(model, options);
//   leadline::Calibrator calibrator(quantizer.model());
//   // ... samples ...
//   const leadline::Calibration calibration = calibrator.calibration();
//   const std::vector<std::byte> file = quantizer.quantize(&calibration);
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "leadline/budget.h"
#include "leadline/calibration.h"
#include "leadline/model.h"
#include "leadline/names.h"
#include "leadline/progress.h"
#include "leadline/recipe.h"

namespace leadline {

struct QuantizeOptions {
  QuantizationMode mode = QuantizationMode::kInt8;
  /// Types of the model's float inputs and outputs after full integer quantization: float32, int8, uint8 or int16.
  DType input_type = DType::kFloat32;
  DType output_type = DType::kFloat32;
  /// Nodes without an integer form stay float; otherwise they are an error that lists them.
  bool allow_float = true;
  bool per_channel = true;                         ///< a scale for each output channel of convolutions
  bool per_channel_dense = true;                   ///< and of FULLY_CONNECTED
  CalibrationRule calibration_rule;                ///< how ranges are chosen from samples
  std::shared_ptr<const Calibration> calibration;  ///< made before, of QuantizeJob::model(), instead of samples
  std::vector<RecipeRule> recipe;                  ///< the last line that matches a node decides; without one: `mode`
  bool bias_correction = false;  ///< biases make up for the mean error of integer weights (needs ChannelMeans)
  /// Nothing is quantized: the float model gets the ranges that samples gave its tensors (their min and max), for a
  /// quantizer that takes them from the file. What tf.lite calls calibrate_only; `mode` and others have no effect.
  bool ranges_only = false;
  bool equalize = false;  ///< cross-layer equalization before quantizing: see Quantizer::model()
  /// Weights of fewer elements stay float in modes that quantize only weights; TensorFlow's converter takes 1,024.
  int64_t min_weight_elements = 256;
  /// How weights become integers; kComq needs samples in every mode.
  WeightRounding rounding = WeightRounding::kNearest;
  bool sparsify = false;  ///< weights of dense layers without their zeros, where that is smaller
  /// Of tensors that floats are quantized into while running; empty: the float tensor's with "_int8" or "_int16".
  std::string quantized_name;
  bool keep_state = false;         ///< samples are one stream, as in CalibrateOptions
  int64_t max_samples = 0;         ///< use at most this many; 0: all
  int num_threads = 1;             ///< for runs on samples; -1: as many as CPUs are usable
  std::shared_ptr<Budget> budget;  ///< null: the model's
};

/// Adds the rules of a recipe to the options; its settings replace theirs.
void apply(const RecipeDocument& recipe, QuantizeOptions& options);

/// What became of a node.
struct QuantizedNode {
  int subgraph = 0;
  int node = 0;  ///< in the float model
  std::string op;
  std::string name;
  QuantizationMode mode = QuantizationMode::kFloat;
  std::string reason;  ///< why it stays float although it was to be quantized
};

struct QuantizationPlan {
  int64_t result_bytes = 0;
  int64_t extra_bytes = 0;  ///< the largest tensor on its way into it
  int64_t graph_bytes = 0;  ///< of the quantized graph
  int64_t peak_bytes = 0;   ///< all of them
};

/// Means of each channel of what CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED read, over samples: what bias
/// correction needs besides a Calibration.
class ChannelMeans {
 public:
  /// Of the float model that is quantized: Quantizer::model().
  explicit ChannelMeans(const Model& model, int num_threads = 1, std::shared_ptr<Budget> budget = nullptr);
  ~ChannelMeans();
  ChannelMeans(ChannelMeans&&) noexcept;
  ChannelMeans& operator=(ChannelMeans&&) noexcept;

  /// To resize inputs and set their values.
  Interpreter& interpreter();
  /// Runs the interpreter and adds. A run that throws may have added some of its layers.
  void add_sample();
  int64_t samples() const;
  /// Of a tensor of subgraph 0; empty when it is none of those, or no sample reached it.
  std::vector<double> means(int tensor) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A model on its way to another number format. Reads nothing but small constants until quantize(). Thread-safe.
class Quantizer {
 public:
  /// Throws Error(kUnsupported) for a model that is quantized already, and when integers are required of nodes that
  /// have no integer form; Error(kInvalidArgument) for options that contradict each other.
  explicit Quantizer(const Model& model, QuantizeOptions options = {});

  /// The float model that is quantized, and has to be calibrated: the given one, or with `equalize` its equalized form.
  const Model& model() const;
  /// Whether quantize() has to be given a calibration: activations become integers, and the model does not bring their
  /// ranges along (FAKE_QUANT nodes, from training for quantization); or it needs Gram matrices.
  bool needs_calibration() const;
  /// Whether the calibration has to have Gram matrices (CalibrateOptions::gram_matrices): weights are rounded by them.
  bool needs_gram_matrices() const;
  /// Every node of the float model and what will become of it.
  std::vector<QuantizedNode> nodes() const;
  /// Exact with the calibration; without, an upper bound: as if no two values had the same scale. Nodes that have to
  /// stay float because a calibration has no range for them are known only with it.
  QuantizationPlan plan(const Calibration* calibration = nullptr) const;
  /// A model to plan with: the structure of the quantized model. Its large constants are zeros without memory.
  Model outline() const;
  /// The quantized file. It takes a calibration of model() where needs_calibration() says so; others refine what the
  /// model does not bring along. Bias correction takes means of it.
  /// `progress` counts bytes of the file.
  std::vector<std::byte> quantize(const Calibration* calibration = nullptr, const ChannelMeans* means = nullptr,
                                  const Progress& progress = {}) const;
  /// The same into memory that `allocate` returns, of exactly the bytes it is asked for.
  using Allocate = std::function<std::span<std::byte>(int64_t bytes)>;
  void quantize_into(const Allocate& allocate, const Calibration* calibration = nullptr,
                     const ChannelMeans* means = nullptr, const Progress& progress = {}) const;
  /// The same as a model to run, in memory of its own that is charged to the options' budget.
  Model quantize_to_model(const Calibration* calibration = nullptr, const ChannelMeans* means = nullptr,
                          const Progress& progress = {}) const;

 private:
  struct Data;
  struct Result;
  std::shared_ptr<const Data> data_;
};

}  // namespace leadline
