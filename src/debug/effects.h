// SPDX-License-Identifier: Apache-2.0
// What parts of a network cost at its outputs: large parts first, then the parts of those that cost something.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "debug/mixed_graph.h"
#include "debug/regions.h"
#include "leadline/debug_result.h"

namespace leadline::debug {

/// A region whose effect was measured.
struct MeasuredRegion {
  Region region;
  int parent = -1;  // in Effects::regions
  bool opened = false;
  double effect = 0.0;
  double cosine = 0.0;
  std::optional<double> weights_effect = {};  // with its weights alone as in the float model
  std::optional<double> values_effect = {};   // with its values alone not rounded
};

struct Effects {
  std::vector<RegionNode> nodes;
  std::vector<MeasuredRegion> regions;  // parents before their parts
  DebugMeasure base;                    // with everything quantized
  std::optional<double> weights_error;  // with weights alone quantized
  std::optional<double> values_error;   // with values alone quantized

  /// Regions that cost something and none of whose parts costs most of it: where to look. The worst first; none is
  /// inside of another.
  std::vector<int> guilty() const;
};

/// The share of the error before that is gone after.
double share_gone(const DebugMeasure& after, const DebugMeasure& before);

/// Measures the outputs with these nodes of the quantized model in float, but for what is `rounded`.
using MeasureFloat = std::function<DebugMeasure(const std::vector<bool>& nodes, Rounded rounded)>;

/// At most `max_runs` measurements, none of them begun once `out_of_time` says so. `f` is the float model's subgraph,
/// for names.
Effects measure_effects(const MixedGraphs& graphs, const ir::Subgraph& f, const MeasureFloat& measure, int max_runs,
                        const std::function<bool()>& out_of_time = {});

/// Writes regions, the effects of layers, and suspects by effect into a result.
void add_effects(const Effects& effects, DebugResult& result);

}  // namespace leadline::debug
