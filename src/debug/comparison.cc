// SPDX-License-Identifier: Apache-2.0
#include "debug/comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/cancel.h"
#include "core/integer_range.h"
#include "debug/decode.h"
#include "debug/match.h"

namespace leadline::debug {
namespace {

constexpr int64_t kHistogramValues = 16384;  // of each tensor and sample

int64_t key_of(int subgraph, int node) { return static_cast<int64_t>(subgraph) << 32 | static_cast<int64_t>(node); }

const float* floats(std::span<const ObservedTensor> operands, size_t i, const ObservedTensor& value,
                    bool& other_shape) {
  if (i >= operands.size() || operands[i].index < 0) return nullptr;
  if (!(operands[i].shape == value.shape)) {
    other_shape = true;
    return nullptr;
  }
  return reinterpret_cast<const float*>(operands[i].data.data());
}

/// A step through a tensor that meets all channels.
int64_t histogram_step(int64_t elements, int64_t channels) {
  int64_t step = std::max<int64_t>(1, elements / kHistogramValues);
  while (std::gcd(step, channels) != 1) ++step;
  return step;
}

/// The finite float nearest to a value.
float nearest_float(double value) {
  constexpr double kHighest = std::numeric_limits<float>::max();
  return static_cast<float>(std::clamp(value, -kHighest, kHighest));
}

void bin(float value, const DebugHistogram& h, std::vector<int64_t>& bins, int64_t& below, int64_t& above) {
  if (!(value >= h.min)) {
    below += value < h.min ? 1 : 0;  // NaN is in no bin
    return;
  }
  if (value > h.max) {
    ++above;
    return;
  }
  // In double: the width of a range of large floats is none of them.
  const double width = double{h.max} - h.min;
  const auto place = width > 0.0 ? static_cast<int>((double{value} - h.min) / width * kHistogramBins) : 0;
  ++bins[static_cast<size_t>(std::clamp(place, 0, kHistogramBins - 1))];
}

}  // namespace

int64_t channel_count(const Shape& shape) {
  const int64_t last = shape.rank() > 0 ? shape[shape.rank() - 1] : 1;
  return last < 1 || last > kMaxChannels ? 1 : last;
}

Comparison::Comparison(const ComparisonGraph& graph) : graph_(graph), states_(graph.probes.size()) {
  for (size_t i = 0; i < graph.probes.size(); ++i) {
    places_.emplace(key_of(graph.probes[i].subgraph, graph.probes[i].probe_node), i);
  }
}

void Comparison::clear() { states_ = std::vector<ProbeState>(graph_.probes.size()); }

int64_t Comparison::bytes_for(const Shape& shape) {
  return static_cast<int64_t>(sizeof(ProbeState)) + 2 * ErrorSums::bytes_for(channel_count(shape)) +
         2 * kHistogramBins * static_cast<int64_t>(sizeof(int64_t));
}

void Comparison::after_node(const ObservedNode& node) {
  const auto place = places_.find(key_of(node.subgraph, node.node));
  if (place == places_.end()) return;
  compare(graph_.probes[place->second], states_[place->second], node);
}

void Comparison::start(ProbeState& state, const ObservedTensor& value, const Quantization& quantization,
                       const float* reference, int64_t elements) const {
  const int64_t channels = channel_count(value.shape);
  state.own = ErrorSums(channels);
  state.accumulated = ErrorSums(channels);
  state.started = true;
  state.histogram.reference.assign(kHistogramBins, 0);
  state.histogram.quantized.assign(kHistogramBins, 0);
  const bool integers = value.dtype != DType::kFloat32 && value.dtype != DType::kFloat16;
  if (integers && quantization.scale.size() == 1) {
    const auto [lowest, highest] = integer_range(value.dtype).value_or(std::pair<int64_t, int64_t>(0, 0));
    const float scale = quantization.scale[0];
    const auto zero = static_cast<double>(quantization.zero_point[0]);
    state.range_min = nearest_float(scale * (static_cast<double>(lowest) - zero));
    state.range_max = nearest_float(scale * (static_cast<double>(highest) - zero));
    state.slack = 0.5F * scale;
    state.histogram.min = state.range_min;
    state.histogram.max = state.range_max;
    state.counts_levels = value.dtype == DType::kInt8 || value.dtype == DType::kUInt8;
    return;
  }
  // Without integers the first sample says where the bins are, with room around.
  float low = 0.0F;
  float high = 0.0F;
  for (int64_t i = 0; i < elements; ++i) {
    if (!std::isfinite(reference[i])) continue;
    low = std::min(low, reference[i]);
    high = std::max(high, reference[i]);
  }
  const double room = 0.125 * (double{high} - low);
  state.histogram.min = low < 0.0F ? nearest_float(low - room) : 0.0F;
  state.histogram.max = high > 0.0F ? nearest_float(high + room) : 0.0F;
}

void Comparison::count_levels(ProbeState& state, const ObservedTensor& value) const {
  std::array<bool, 256> seen{};
  for (std::byte b : value.data) seen[std::to_integer<size_t>(b)] = true;
  for (size_t i = 0; i < seen.size(); ++i) {
    if (seen[i]) state.levels.set(i);
  }
}

void Comparison::fill_histogram(ProbeState& state, const float* values, const float* references, int64_t first,
                                int64_t count, int64_t step) const {
  DebugHistogram& h = state.histogram;
  for (int64_t i = (step - first % step) % step; i < count; i += step) {
    bin(values[i], h, h.quantized, h.quantized_below, h.quantized_above);
    bin(references[i], h, h.reference, h.reference_below, h.reference_above);
  }
}

void Comparison::compare(const Probe& probe, ProbeState& state, const ObservedNode& node) {
  const ObservedTensor& value = node.inputs[0];
  bool other_shape = false;
  const float* own = floats(node.inputs, 1, value, other_shape);
  const float* accumulated = floats(node.inputs, 2, value, other_shape);
  if (other_shape) ++state.other_shapes;
  // What is said to lie outside of a range lies inside of the values that are said to be seen.
  const float* seen = accumulated != nullptr ? accumulated : own;
  const int64_t elements = value.shape.elements();
  state.shape = value.shape;
  if (seen == nullptr || elements == 0) return;
  const auto& values = graph_.graph->subgraphs[static_cast<size_t>(probe.subgraph)].values;
  const Quantization& quantization = values[static_cast<size_t>(value.index)].quantization;
  if (!state.started || state.own.channels() != channel_count(value.shape)) {
    start(state, value, quantization, seen, elements);
  }
  const Decoder decoder(value.dtype, value.shape, value.data.data(), quantization);
  const int64_t block = state.own.block();
  if (static_cast<int64_t>(block_.size()) < block) block_.resize(static_cast<size_t>(block));
  const int64_t channels = state.own.channels();
  const int64_t step = histogram_step(elements, channels);
  const bool bounded = state.slack > 0.0F;
  const float low = state.range_min - state.slack;
  const float high = state.range_max + state.slack;
  PacedCheck check;
  for (int64_t first = 0; first < elements; first += block) {
    check.count(16 * block);
    const int64_t count = std::min(block, elements - first);
    decoder.read(first, count, block_.data());
    if (own != nullptr) state.own.add(block_.data(), own + first, count);
    if (accumulated != nullptr) state.accumulated.add(block_.data(), accumulated + first, count);
    if (bounded) {
      int64_t outside = 0;
      for (int64_t i = first; i < first + count; ++i) outside += (seen[i] < low) | (seen[i] > high);
      state.outside += outside;
    }
    fill_histogram(state, block_.data(), seen + first, first, count, step);
    if (probe.kind == Probe::Kind::kOutput && channels > 1) {
      state.rows.add(block_.data(), accumulated + first, count, channels);
    }
  }
  state.compared += elements;
  if (state.counts_levels) count_levels(state, value);
}

}  // namespace leadline::debug
