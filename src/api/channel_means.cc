// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <utility>

#include "api/boundary.h"
#include "leadline/quantizer.h"
#include "quantize/bias_correction.h"
#include "runtime/loaded_model.h"

namespace leadline {

struct ChannelMeans::State final : Observer {
  State(const Model& model, int num_threads, std::shared_ptr<Budget> budget)
      : interpreter(model, options(num_threads, std::move(budget))) {
    const ir::Subgraph& main = model.loaded()->graph()->subgraphs[0];
    for (const ir::Node& node : main.nodes) {
      const bool known = node.op == "CONV_2D" || node.op == "DEPTHWISE_CONV_2D" || node.op == "FULLY_CONNECTED";
      if (known && !node.inputs.empty() && node.inputs[0] != ir::kAbsent) sums[node.inputs[0]];
    }
    interpreter.add_observer(this);
  }

  static InterpreterOptions options(int num_threads, std::shared_ptr<Budget> budget) {
    InterpreterOptions result;
    result.num_threads = num_threads;
    result.budget = std::move(budget);
    result.disabled_passes = {"all"};  // for observers
    return result;
  }

  void before_node(const ObservedNode& node) override {
    if (node.subgraph != 0 || node.inputs.empty()) return;
    const ObservedTensor& input = node.inputs[0];
    const auto found = sums.find(input.index);
    const bool reads_it = node.op == "CONV_2D" || node.op == "DEPTHWISE_CONV_2D" || node.op == "FULLY_CONNECTED";
    if (!reads_it || found == sums.end() || input.dtype != DType::kFloat32 || input.shape.rank() == 0) return;
    found->second.add(input.data, input.shape[input.shape.rank() - 1]);
  }

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
