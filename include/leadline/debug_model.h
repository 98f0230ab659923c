// SPDX-License-Identifier: Apache-2.0
// Debug models as TensorFlow has them: a quantized model with NumericVerify nodes, which compare it with float nodes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "leadline/debug_result.h"
#include "leadline/model.h"
#include "leadline/observer.h"

namespace leadline {

/// The quantized model with a float node and a NumericVerify beside each quantized node, as TensorFlow's debugger takes
/// it. The weights of the float nodes are those of the float model.
std::vector<std::byte> make_debug_model(const Model& float_model, const Model& quantized_model);

/// The same as a model to run, which shares the constants of both.
Model debug_model_of(const Model& float_model, const Model& quantized_model);

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
  std::vector<std::array<int64_t, 4>> numbers_;  // of each layer: samples for which a statistic is a number
  Callback callback_;
};

}  // namespace leadline
