// SPDX-License-Identifier: Apache-2.0
// Bias correction: rounding weights shifts the mean of each output channel by what was rounded off times the mean of
// what it is multiplied with. Means are known from samples, so the bias can make up for it (Nagel et al., 2019). Each
// layer is corrected for its own rounding, not for what layers before it did. Where an image is padded with zeros the
// shift is a little smaller than at the places that the correction assumes.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "ir/graph.h"
#include "quantize/integers.h"
#include "quantize/treatment.h"

namespace leadline::quantize {

/// Sums of each channel (index along the last axis) of a tensor over all samples.
struct ChannelSums {
  std::vector<double> sums;
  int64_t rows = 0;  // values that each sum has

  /// `values` are float32 of any alignment, the last axis `channels` long. Rows with values that are not finite are
  /// left out. A tensor whose number of channels changes is forgotten.
  void add(std::span<const std::byte> values, int64_t channels);
};

/// Means of the channels of a tensor of the float graph; empty when they are not known.
using MeansOf = std::function<std::vector<double>(int subgraph, int tensor)>;

/// Changes biases of layers of subgraph 0 that will be integers (OpDef::is_integer_layer) to offset the rounding of
/// their constant weights. Nodes without a bias get one. Returns how many were corrected. Takes the
/// memory of one tensor of weights at a time.
int correct_biases(ir::Graph& graph, const Treatments& treatments, const MeansOf& means_of,
                   const IntegerOptions& options);

}  // namespace leadline::quantize
