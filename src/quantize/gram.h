// SPDX-License-Identifier: Apache-2.0
// What the weights of a layer are multiplied with, as sums of products: when a row of weights changes by e, the results
// of the layer change by e^T G e in the mean square. Rounding of weights (rounding.h) makes that small.
//
// Sums are integers, in steps of 2^-64, so that those of parts merge to exactly those of the whole, however samples
// were split.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ir/graph.h"
#include "leadline/observer.h"

namespace leadline::quantize {

/// A layer of rows of more weights than this keeps the squares alone: products would take more memory than they help.
inline constexpr int64_t kMostGramColumns = 2048;

/// G of one node; with groups (a grouped or depthwise convolution) one for each, on its own input channels.
struct GramMatrix {
  using Sum = __int128;

  int subgraph = 0;
  int node = 0;
  int64_t groups = 1;
  int64_t columns = 0;    // weights of an output channel, in their order in memory
  std::vector<Sum> sums;  // by group the upper triangle, row by row, or the diagonal; empty or zeros: of no samples

  bool diagonal() const { return columns > kMostGramColumns; }
  int64_t group_sums() const { return diagonal() ? columns : columns * (columns + 1) / 2; }
  /// Of `sums`, once there are samples.
  int64_t bytes() const { return groups * group_sums() * static_cast<int64_t>(sizeof(Sum)); }
  void merge(const GramMatrix& other);

  /// G of one group with a largest diagonal element of 1, all `columns` * `columns` of it, or the diagonal. False when
  /// there is nothing but zeros.
  bool expand(int64_t group, std::span<float> out) const;
};

/// One for each node that has one: CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED with constant float weights.
std::vector<GramMatrix> empty_grams(const ir::Graph& graph);

/// Adds the samples of a model to its matrices. A sample is recorded apart, and added when its run has succeeded. Not
/// thread-safe.
class GramRecorder {
 public:
  /// `grams`: of empty_grams(graph); both outlive the recorder.
  GramRecorder(const ir::Graph& graph, std::vector<GramMatrix>& grams);
  /// Memory it takes, beside the matrices.
  static int64_t bytes(const std::vector<GramMatrix>& grams);

  /// Adds what a node is about to read to the running sample. Places with values that are not finite are left out, and
  /// of many places those that are evenly spread.
  void record(const ObservedNode& node);
  void keep_sample();
  void forget_sample();

 private:
  void add_places(const ir::Node& node, const ObservedTensor& input, const Shape& weights, GramMatrix& gram,
                  std::vector<double>& sample);
  void add_products(const GramMatrix& gram, int64_t group, int64_t places, std::vector<double>& sample);

  const ir::Graph& graph_;
  std::vector<GramMatrix>& grams_;
  std::vector<std::vector<double>> sample_;  // by matrix; empty: not reached
  std::vector<float> places_;                // a row of values for each place
  std::vector<float> sums_;
};

}  // namespace leadline::quantize
