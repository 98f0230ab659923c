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

#include <cstdint>
#include <memory>

#include "leadline/budget.h"
#include "leadline/debug_result.h"
#include "leadline/interpreter.h"
#include "leadline/model.h"

namespace leadline {

struct DebugOptions {
  int num_threads = 1;
  std::shared_ptr<Budget> budget;  ///< null: the float model's
  int subgraph = 0;
  bool own_error = true;  ///< also run each float node on the quantized model's values
  int worst_channels = 8;
  int histograms = 16;      ///< of this many of the worst layers
  bool equalized = false;   ///< the quantized model was made with `equalize`: compare with even channels
  int64_t max_samples = 0;  ///< use at most this many; 0: all
  /// Of DebugJob, for a model that lost something at its outputs. Both are measured on at most 32 of the samples, which
  /// are kept (32 MB at most).
  bool effects = true;      ///< what parts of the network cost at the outputs; otherwise suspects are a guess
  bool suggestions = true;  ///< changes that were made, quantized and measured
  int effect_runs = 64;     ///< at most this many parts are measured
};

/// Runs a float model, its quantized form and, for each quantized node, the float node on the same inputs, all in one
/// planned graph. Activations are not kept: every node's values are compared when they are there.
class QuantizationDebugger {
 public:
  /// Throws Error(kInvalidArgument) when the models do not belong together.
  QuantizationDebugger(const Model& float_model, const Model& quantized_model, DebugOptions options = {});
  ~QuantizationDebugger();
  QuantizationDebugger(QuantizationDebugger&&) noexcept;
  QuantizationDebugger& operator=(QuantizationDebugger&&) noexcept;

  /// Its inputs are those of the float model, in order; both models get them (quantized with rounding and clipping
  /// where the quantized model takes integers). Its outputs are the float model's, then the quantized model's.
  Interpreter& interpreter();
  /// Runs and records. After a run that throws the statistics hold what came before the failing node.
  void add_sample();
  JobPlan plan() const;
  DebugResult result() const;
  /// Forgets all samples.
  void clear();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace leadline
