// SPDX-License-Identifier: Apache-2.0
#include "debug/result.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/cancel.h"
#include "debug/index.h"
#include "debug/layer_names.h"
#include "debug/match.h"
#include "debug/weight_error.h"
#include "ops/registry.h"
#include "ops/weakness.h"

namespace leadline::debug {
namespace {

LayerNames names_of(const ir::Graph& graph) {
  std::vector<std::string_view> names;
  for (const ir::Subgraph& subgraph : graph.subgraphs) {
    for (const ir::Value& value : subgraph.values) names.push_back(value.name);
  }
  return LayerNames(names);
}

/// Layers by the value they describe, also through DEQUANTIZE.
class Producers {
 public:
  Producers(const ir::Graph& quantized, const std::vector<Probe>& probes) {
    for (size_t i = 0, layer = 0; i < probes.size(); ++i) {
      if (probes[i].kind != Probe::Kind::kLayer) continue;
      layers_[{probes[i].subgraph, probes[i].tensor}] = static_cast<int>(layer++);
    }
    for (size_t s = 0; s < quantized.subgraphs.size(); ++s) {
      const int subgraph = static_cast<int>(s);
      for (const ir::Node& node : quantized.subgraphs[s].nodes) {
        if (!changes_type_only(node) || layers_.contains({subgraph, node.outputs[0]})) continue;
        const auto source = layers_.find({subgraph, node.inputs[0]});
        if (source != layers_.end()) layers_[{subgraph, node.outputs[0]}] = source->second;
      }
    }
  }
  int of(int subgraph, int value) const {
    const auto found = layers_.find({subgraph, value});
    return found == layers_.end() ? -1 : found->second;
  }

 private:
  std::map<std::pair<int, int>, int> layers_;
};

double output_noise(const ErrorStatistics& error, const ProbeState& state) {
  if (error.snr_db >= kBestSnrDb) return 0.0;
  const double noise = error.mean_squared_error * static_cast<double>(error.elements);
  const double signal = noise * std::pow(10.0, error.snr_db / 10.0);
  return state.rows.relative_noise(noise, signal);
}

LayerDebug describe(const ir::Graph& reference, const ir::Graph& quantized, const Probe& probe, const ProbeState& state,
                    const LayerNames& names, const ResultOptions& options) {
  const ir::Subgraph& subgraph = quantized.subgraphs[at(probe.subgraph)];
  const ir::Value& value = subgraph.values[at(probe.tensor)];
  LayerDebug layer;
  layer.subgraph = probe.subgraph;
  layer.node = probe.node;
  layer.tensor = probe.tensor;
  layer.float_node = probe.float_node;
  layer.float_tensor = probe.float_tensor;
  const ir::OpId op = probe.node >= 0 ? subgraph.nodes[at(probe.node)].op.id() : op::kQuantize;
  const ops::OpDef* row = ops::registry().find(op);
  layer.op = op.name();
  layer.fixed_range = row != nullptr && row->quantize.output.int8.scale != 0.0F && value.quantization.scale.size() == 1;
  layer.name = value.name;
  const auto& float_values =
      reference.subgraphs[at(std::min(probe.subgraph, static_cast<int>(reference.subgraphs.size()) - 1))].values;
  const bool has_float_name = probe.float_tensor >= 0 && at(probe.float_tensor) < float_values.size();
  if (has_float_name) layer.float_name = float_values[at(probe.float_tensor)].name;
  layer.weakness = ops::weakness_of(op);
  layer.layer = names.layer(has_float_name ? layer.float_name : value.name, row != nullptr && row->contraction);
  layer.dtype = value.dtype;
  layer.shape = state.started ? state.shape : value.shape;
  layer.scales = value.quantization.scale;
  layer.zero_points = value.quantization.zero_point;
  layer.is_output = std::find(subgraph.outputs.begin(), subgraph.outputs.end(), probe.tensor) != subgraph.outputs.end();
  layer.note = probe.note;
  if (state.other_shapes > 0) layer.note = "the float model's tensor had another shape";
  const double scale = layer.scales.size() == 1 ? static_cast<double>(layer.scales[0]) : 0.0;
  if (probe.own && !state.own.empty()) layer.own = state.own.statistics(scale);
  if (probe.accumulated && !state.accumulated.empty()) layer.accumulated = state.accumulated.statistics(scale);
  const ErrorSums& seen = state.accumulated.empty() ? state.own : state.accumulated;
  layer.seen_min = seen.min();
  layer.seen_max = seen.max();
  layer.range_min = state.range_min;
  layer.range_max = state.range_max;
  if (state.compared > 0) layer.saturated = static_cast<double>(state.outside) / static_cast<double>(state.compared);
  layer.levels_used = state.counts_levels ? static_cast<int>(state.levels.count()) : 0;
  layer.channels = static_cast<int>(seen.channels());
  layer.worst_channels = (probe.own ? state.own : state.accumulated).worst_channels(options.worst_channels);
  if (probe.node >= 0 && probe.float_node >= 0) {
    const size_t other = std::min(at(probe.subgraph), reference.subgraphs.size() - 1);
    layer.weights = weight_errors(subgraph, probe.node, reference.subgraphs[other], probe.float_node);
  }
  layer.quantized = is_quantized(value) || !layer.weights.empty();
  if (state.started) layer.histogram = state.histogram;
  return layer;
}

/// Keeps the histograms of the worst layers alone.
void drop_histograms(std::vector<LayerDebug>& layers, const std::vector<DebugSuspect>& suspects, int kept) {
  std::vector<int> order;
  for (const DebugSuspect& suspect : suspects) order.push_back(suspect.layer);
  std::vector<int> rest;
  for (const LayerDebug& layer : layers) rest.push_back(layer.index);
  const auto error = [&](int i) {
    const LayerDebug& layer = layers[at(i)];
    return layer.own ? layer.own->lost_signal : layer.accumulated ? layer.accumulated->lost_signal : 0.0;
  };
  std::stable_sort(rest.begin(), rest.end(), [&](int a, int b) { return error(a) > error(b); });
  order.insert(order.end(), rest.begin(), rest.end());
  std::vector<bool> keep(layers.size());
  for (int i : order) {
    if (kept <= 0) break;
    if (keep[at(i)] || !layers[at(i)].histogram) continue;
    keep[at(i)] = true;
    --kept;
  }
  for (size_t i = 0; i < layers.size(); ++i) {
    if (!keep[i]) layers[i].histogram.reset();
  }
}

}  // namespace

DebugResult make_result(const ir::Graph& reference, const ir::Graph& quantized, const ComparisonGraph& graph,
                        const Comparison& comparison, const ResultOptions& options) {
  DebugResult result;
  const LayerNames names = names_of(reference);
  const Producers producers(quantized, graph.probes);
  PacedCheck check;
  for (size_t i = 0; i < graph.probes.size(); ++i) {
    check.count(1 << 13);
    const Probe& probe = graph.probes[i];
    const ProbeState& state = comparison.states()[i];
    if (probe.kind == Probe::Kind::kOutput) {
      DebugOutput output;
      output.name = reference.subgraphs[std::min(at(probe.subgraph), reference.subgraphs.size() - 1)]
                        .values[at(probe.float_tensor)]
                        .name;
      output.layer = producers.of(probe.subgraph, probe.tensor);
      const auto& scales = quantized.subgraphs[at(probe.subgraph)].values[at(probe.tensor)].quantization.scale;
      output.accumulated = state.accumulated.statistics(scales.size() == 1 ? static_cast<double>(scales[0]) : 0.0);
      output.rows = state.rows.rows;
      output.same_argmax =
          output.rows > 0 ? static_cast<double>(state.rows.same_argmax) / static_cast<double>(output.rows) : 0.0;
      output.clearly_other =
          output.rows > 0 ? static_cast<double>(state.rows.clearly_other) / static_cast<double>(output.rows) : 0.0;
      output.divergence = state.rows.divergence();
      output.noise = output_noise(output.accumulated, state);
      result.outputs.push_back(std::move(output));
      continue;
    }
    LayerDebug layer = describe(reference, quantized, probe, state, names, options);
    layer.index = static_cast<int>(result.layers.size());
    if (probe.node >= 0) {
      for (int v : quantized.subgraphs[at(probe.subgraph)].nodes[at(probe.node)].inputs) {
        const int source = v == ir::kAbsent ? -1 : producers.of(probe.subgraph, v);
        if (source >= 0 && source != layer.index) layer.inputs.push_back(source);
      }
    }
    result.layers.push_back(std::move(layer));
  }
  for (const DebugOutput& output : result.outputs) {
    if (output.layer >= 0) result.layers[at(output.layer)].is_output = true;
  }
  result.unmatched = graph.unmatched;
  result.suspects = find_suspects(result.layers);
  drop_histograms(result.layers, result.suspects, options.histograms);
  return result;
}

}  // namespace leadline::debug
