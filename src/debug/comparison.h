// SPDX-License-Identifier: Apache-2.0
// Compares values while a comparison graph runs. Keeps sums, never values: memory depends on the number of layers and
// channels, not on samples or tensor sizes.
#pragma once

#include <array>
#include <bitset>
#include <memory>
#include <unordered_map>
#include <vector>

#include "debug/comparison_graph.h"
#include "debug/error_sums.h"
#include "debug/output_score.h"
#include "leadline/debug_result.h"
#include "leadline/observer.h"

namespace leadline::debug {

inline constexpr int kHistogramBins = 64;

/// What is known of one probe after some samples.
struct ProbeState {
  ErrorSums own;
  ErrorSums accumulated;
  bool started = false;
  Shape shape;
  int64_t compared = 0;
  int64_t outside = 0;       // references beyond what the integers can hold
  RowScore rows;             // of outputs
  int64_t other_shapes = 0;  // runs whose reference had another shape
  float range_min = 0.0F;
  float range_max = 0.0F;
  float slack = 0.0F;  // half a step
  std::bitset<256> levels;
  bool counts_levels = false;
  DebugHistogram histogram;
};

class Comparison final : public Observer {
 public:
  /// `graph` outlives this.
  explicit Comparison(const ComparisonGraph& graph);

  void after_node(const ObservedNode& node) override;
  void clear();
  const std::vector<ProbeState>& states() const { return states_; }
  /// Memory of the sums of one probe.
  static int64_t bytes_for(const Shape& shape);

 private:
  void start(ProbeState& state, const ObservedTensor& value, const Quantization& quantization, const float* reference,
             int64_t elements) const;
  void compare(const Probe& probe, ProbeState& state, const ObservedNode& node);
  void count_levels(ProbeState& state, const ObservedTensor& value) const;
  void fill_histogram(ProbeState& state, const float* values, const float* references, int64_t first, int64_t count,
                      int64_t step) const;

  const ComparisonGraph& graph_;
  std::unordered_map<int64_t, size_t> places_;  // by subgraph and node
  std::vector<ProbeState> states_;
  std::vector<float> block_;
};

/// The axis-free view of a tensor's channels: size of the last axis, 1 where it is too long to be one.
int64_t channel_count(const Shape& shape);

}  // namespace leadline::debug
