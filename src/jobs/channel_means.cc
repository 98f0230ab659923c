// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <utility>

#include "core/boundary.h"
#include "leadline/quantizer.h"
#include "ops/registry.h"
#include "quantize/bias_correction.h"
#include "runtime/loaded_model.h"

namespace leadline {

struct ChannelMeans::State final : Observer {
  State(const Model& model, int num_threads, std::shared_ptr<Budget> budget)
      : interpreter(model, options(num_threads, std::move(budget))) {
    const ir::Subgraph& main = model.loaded()->graph()->subgraphs[0];
    for (const ir::Node& node : main.nodes) {
      const ops::OpDef* op = ops::row_of(node);
      const bool layer = op != nullptr && op->is_integer_layer();
      readers.push_back(layer ? op->contraction.activations : kNoInput);
      if (layer) sums[node.inputs[static_cast<size_t>(readers.back())]];
    }
    interpreter.add_observer(this);
  }

  static InterpreterOptions options(int num_threads, std::shared_ptr<Budget> budget) {
    InterpreterOptions result;
    result.num_threads = num_threads;
    result.budget = std::move(budget);
    result.disabled_passes = {"all"};  // for observers
    result.keep_plans = false;         // what is planned is for one size
    return result;
  }

  void before_node(const ObservedNode& node) override {
    const int place = node.subgraph == 0 ? readers[static_cast<size_t>(node.node)] : kNoInput;
    if (place == kNoInput) return;
    const ObservedTensor& input = node.inputs[static_cast<size_t>(place)];
    const auto found = sums.find(input.index);
    if (found == sums.end() || input.dtype != DType::kFloat32 || input.shape.rank() == 0) return;
    found->second.add(input.data, input.shape[input.shape.rank() - 1]);
  }

  static constexpr int kNoInput = -1;
  std::vector<int> readers;  // by node of subgraph 0: the input that a layer's weights are applied to
  std::map<int, quantize::ChannelSums> sums;
  Interpreter interpreter;
  int64_t samples = 0;
};

ChannelMeans::ChannelMeans(const Model& model, int num_threads, std::shared_ptr<Budget> budget) try
    : state_(std::make_unique<State>(model, num_threads, std::move(budget))) {
} catch (...) {
  rethrow_as_error();
}
ChannelMeans::~ChannelMeans() = default;
ChannelMeans::ChannelMeans(ChannelMeans&&) noexcept = default;
ChannelMeans& ChannelMeans::operator=(ChannelMeans&&) noexcept = default;

Interpreter& ChannelMeans::interpreter() try { return state_->interpreter; } catch (...) {
  rethrow_as_error();
}

void ChannelMeans::add_sample() try {
  state_->interpreter.invoke();
  ++state_->samples;
} catch (...) {
  rethrow_as_error();
}

int64_t ChannelMeans::samples() const { return state_->samples; }

std::vector<double> ChannelMeans::means(int tensor) const try {
  const auto found = state_->sums.find(tensor);
  if (found == state_->sums.end() || found->second.rows == 0) return {};
  std::vector<double> result = found->second.sums;
  for (double& mean : result) mean /= static_cast<double>(found->second.rows);
  return result;
} catch (...) {
  rethrow_as_error();
}

}  // namespace leadline
