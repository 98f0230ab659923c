// SPDX-License-Identifier: Apache-2.0
// A subgraph that a node calls: inputs and outputs inside the arena, memory from the caller.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "ops/op.h"
#include "runtime/runner.h"

namespace leadline::runtime {

class CalledSubgraph final : public ops::Callee {
 public:
  /// `caller` is the host of the node that calls it.
  CalledSubgraph(Environment& environment, int subgraph, std::shared_ptr<const ir::ChangedNodes> changed,
                 const NodeHost& caller)
      : environment_(environment), runner_(environment, subgraph, std::move(changed), caller) {}

  bool plan(std::span<const Shape> inputs) override;
  int output_count() const override { return static_cast<int>(subgraph().outputs.size()); }
  const Shape& output_shape(int i) const override;
  int64_t workspace_bytes() const override;
  std::span<const TensorView> run(std::span<const TensorView> inputs, std::byte* workspace) override;
  std::span<const TensorView> results() const override { return results_; }
  void forget_results() override { results_.clear(); }
  int input_count() const override { return static_cast<int>(subgraph().inputs.size()); }
  DType input_type(int i) const override;
  DType output_type(int i) const override;

  /// Releases everything, the results too.
  void release();
  Runner& runner() { return runner_; }
  const Runner& runner() const { return runner_; }

 private:
  const ir::Subgraph& subgraph() const { return runner_.outline().subgraph(); }
  void copy_inputs(std::span<const TensorView> inputs);
  void copy_outputs();

  Environment& environment_;
  Runner runner_;
  std::vector<TensorView> results_;
  std::vector<TensorView> last_results_;  // the inputs of a run may be those of the one before
};

}  // namespace leadline::runtime
