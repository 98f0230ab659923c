// SPDX-License-Identifier: Apache-2.0
// What quantization did to a model, layer by layer: the float and the quantized model run side by side.
//
//   leadline::QuantizationDebugger debugger(float_model, quantized_model);
//   std::cout << debugger.plan().to_text();
//   for (const auto& sample : samples) {
//     debugger.interpreter().set_tensor(debugger.interpreter().inputs()[0], sample);
//     debugger.add_sample();
//   }
//   for (const auto& suspect : debugger.result().suspects) std::cout << suspect.why << '\n';
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "leadline/budget.h"
#include "leadline/debug_result.h"
#include "leadline/interpreter.h"
#include "leadline/model.h"
#include "leadline/observer.h"

namespace leadline {

struct DebuggerOptions {
  int num_threads = 1;
  std::shared_ptr<Budget> budget;  ///< null: the float model's
  int subgraph = 0;
  bool own_error = true;  ///< also run each float node on the quantized model's values
  int worst_channels = 8;
  int histograms = 16;  ///< of so many of the worst layers
};

/// Runs a float model, its quantized form and, for each quantized node, the float node on the same inputs, all in one
/// planned graph. Activations are not kept: every node's values are compared when they are there.
class QuantizationDebugger {
 public:
  /// Throws Error(kInvalidArgument) when the models do not belong together.
  QuantizationDebugger(const Model& float_model, const Model& quantized_model, DebuggerOptions options = {});
  ~QuantizationDebugger();
  QuantizationDebugger(QuantizationDebugger&&) noexcept;
  QuantizationDebugger& operator=(QuantizationDebugger&&) noexcept;

  /// Its inputs are those of the float model, in order; both models get them (quantized with rounding and clipping
  /// where the quantized model wants integers). Its outputs are the float model's, then the quantized model's.
  Interpreter& interpreter();
  /// Runs and records. After a run that throws the statistics hold what came before the failing node.
  void add_sample();
  DebugPlan plan() const;
  DebugResult result() const;
  /// Forgets all samples.
  void clear();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The quantized model with a float node and a NumericVerify beside each quantized node, as TensorFlow's debugger takes
/// it. The weights of the float nodes are those of the float model.
std::vector<std::byte> make_debug_model(const Model& float_model, const Model& quantized_model);

/// The same as a model to run, which shares the constants of both.
Model debug_model_of(const Model& float_model, const Model& quantized_model);

/// A NumericVerify of a debug model.
struct VerifiedLayer {
  int subgraph = 0;
  int node = 0;  ///< the NumericVerify
  std::string output_name;
  int output_tensor = 0;
  int tensor = 0;  ///< the quantized tensor
  int reference = 0;
  std::string tensor_name;  ///< as the model without debugging calls it
  std::string op;           ///< that computes the tensor
  std::vector<float> scales;
  std::vector<int64_t> zero_points;
};

/// TensorFlow's five numbers, each the mean over samples. NaN in a sample makes them NaN, and is counted.
struct VerifiedStatistics {
  int64_t samples = 0;
  int64_t not_finite = 0;
  double num_elements = 0.0;
  double stddev = 0.0;
  double mean_error = 0.0;
  double max_abs_error = 0.0;
  double mean_squared_error = 0.0;
};

/// Watches the NumericVerify nodes of a debug model while it runs; statistics are taken when a node is done, before its
/// memory is used again.
class DebugModelObserver : public Observer {
 public:
  /// Called with the index of a layer: difference (float32), quantized values and reference, each valid in the call.
  using Callback = std::function<void(size_t layer, const ObservedTensor& difference, const ObservedTensor& quantized,
                                      const ObservedTensor& reference)>;

  /// Throws Error(kInvalidArgument) when no subgraph has a NumericVerify.
  explicit DebugModelObserver(const Model& debug_model);
  void set_callback(Callback callback) { callback_ = std::move(callback); }
  const std::vector<VerifiedLayer>& layers() const { return layers_; }
  /// Of each layer, in the same order.
  std::vector<VerifiedStatistics> statistics() const;
  void clear();
  void after_node(const ObservedNode& node) override;

 private:
  std::vector<VerifiedLayer> layers_;
  std::vector<VerifiedStatistics> sums_;
  Callback callback_;
};

}  // namespace leadline
