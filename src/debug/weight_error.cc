// SPDX-License-Identifier: Apache-2.0
#include "debug/weight_error.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "core/cancel.h"
#include "debug/decode.h"
#include "debug/index.h"
#include "ops/registry.h"

namespace leadline::debug {
namespace {

constexpr double kDeadShare = 1e-6;  // of the largest channel

constexpr int64_t kChunk = 4096;

struct ChannelSums {
  double squared = 0.0;
  double signal = 0.0;
  double largest = 0.0;
};

/// The constant behind value `v`: itself, or what DEQUANTIZE widens. Null: computed.
const ir::Value* constant_behind(const ir::Subgraph& subgraph, int v) {
  const ir::Value& value = subgraph.values[at(v)];
  if (value.constant) return &value;
  for (const ir::Node& node : subgraph.nodes) {
    if (node.op != op::kDequantize || node.outputs[0] != v || node.inputs[0] == ir::kAbsent) continue;
    const ir::Value& source = subgraph.values[at(node.inputs[0])];
    return source.constant ? &source : nullptr;
  }
  return nullptr;
}

/// The axis of output channels of input `i`: where the scales are, else what the op's row says of its weights.
int channel_axis(const ir::Value& value, const ir::Node& node, size_t i) {
  if (value.quantization.per_channel()) return value.quantization.axis;
  const ops::OpDef* op = ops::row_of(node);
  const bool weights = op != nullptr && op->symmetric_input() == static_cast<int>(i);
  return weights && op->symmetric_axis() < value.shape.rank() ? std::max(op->symmetric_axis(), 0) : 0;
}

/// The median absolute value of some values of a channel, evenly taken; values lie as outer x channels x inner.
double median_size(const ir::Value& value, int64_t channel, int64_t channels, int64_t inner) {
  constexpr int64_t kTaken = 63;
  const int64_t count = value.shape.elements() / channels;
  const int64_t taken = std::min(count, kTaken);
  std::array<float, kTaken> sizes{};
  for (int64_t k = 0; k < taken; ++k) {
    const int64_t place = k * count / taken;
    const int64_t element = (place / inner * channels + channel) * inner + place % inner;
    float weight = 0.0F;
    std::memcpy(&weight, value.data.data() + element * 4, sizeof(weight));
    sizes[static_cast<size_t>(k)] = std::fabs(weight);
  }
  std::nth_element(sizes.begin(), sizes.begin() + taken / 2, sizes.begin() + taken);
  return static_cast<double>(sizes[static_cast<size_t>(taken / 2)]);
}

WeightError compare(const ir::Value& actual, const ir::Value& expected, int axis) {
  const int64_t elements = expected.shape.elements();
  const int64_t channels = actual.shape.rank() > 0 ? actual.shape[axis] : 1;
  int64_t inner = 1;
  for (int i = axis + 1; i < actual.shape.rank(); ++i) inner *= actual.shape[i];
  std::vector<ChannelSums> sums(static_cast<size_t>(channels));
  const Decoder values(actual.dtype, actual.shape, actual.data.data(), actual.quantization);
  const Decoder wanted(expected.dtype, expected.shape, expected.data.data(), expected.quantization);
  std::vector<float> a(static_cast<size_t>(std::min(elements, kChunk)));
  std::vector<float> b(a.size());
  WeightError result;
  PacedCheck check;
  for (int64_t first = 0; first < elements; first += kChunk) {
    check.count(16 * kChunk);
    const int64_t count = std::min(kChunk, elements - first);
    values.read(first, count, a.data());
    wanted.read(first, count, b.data());
    for (int64_t i = 0; i < count; ++i) {
      const double x = static_cast<double>(a[static_cast<size_t>(i)]);
      const double y = static_cast<double>(b[static_cast<size_t>(i)]);
      ChannelSums& s = sums[static_cast<size_t>((first + i) / inner % channels)];
      s.squared += (x - y) * (x - y);
      s.signal += y * y;
      s.largest = std::max(s.largest, std::fabs(y));
      result.max_abs_error = std::max(result.max_abs_error, std::fabs(x - y));
    }
  }
  result.name = actual.name;
  result.dtype = actual.dtype;
  result.shape = actual.shape;
  result.channels = static_cast<int>(channels);
  result.scales = static_cast<int>(actual.quantization.scale.size());
  double squared = 0.0;
  double signal = 0.0;
  std::vector<double> largest;
  for (size_t c = 0; c < sums.size(); ++c) {
    const ChannelSums& s = sums[c];
    squared += s.squared;
    signal += s.signal;
    largest.push_back(s.largest);
    const double lost = s.squared == 0.0 ? 0.0 : s.signal > s.squared ? s.squared / s.signal : 1.0;
    if (lost > result.worst_lost_signal) {
      result.worst_lost_signal = lost;
      result.worst_channel = static_cast<int>(c);
    }
    const double median = median_size(expected, static_cast<int64_t>(c), channels, inner);
    if (median > 0.0 && s.largest / median > result.peak) {
      result.peak = s.largest / median;
      result.peak_channel = static_cast<int>(c);
    }
    if (s.largest > sums[at(result.largest_channel)].largest) result.largest_channel = static_cast<int>(c);
  }
  result.rmse = std::sqrt(squared / static_cast<double>(elements));
  result.snr_db = squared > 0.0 && signal > 0.0 ? 10.0 * std::log10(signal / squared) : kBestSnrDb;
  const double top = sums[at(result.largest_channel)].largest;
  // Channels that training left dead are next to nothing, and no measure for the others.
  std::erase_if(largest, [top](double size) { return size < kDeadShare * top; });
  if (largest.empty()) return result;
  std::nth_element(largest.begin(), largest.begin() + static_cast<std::ptrdiff_t>(largest.size() / 2), largest.end());
  const double median = largest[largest.size() / 2];
  if (median > 0.0) result.channel_spread = top / median;
  return result;
}

}  // namespace

std::vector<WeightError> weight_errors(const ir::Subgraph& quantized, int node, const ir::Subgraph& reference,
                                       int float_node) {
  std::vector<WeightError> result;
  const ir::Node& q = quantized.nodes[at(node)];
  const ir::Node& f = reference.nodes[at(float_node)];
  for (size_t i = 0; i < std::min(q.inputs.size(), f.inputs.size()); ++i) {
    if (q.inputs[i] == ir::kAbsent || f.inputs[i] == ir::kAbsent) continue;
    const ir::Value& expected = reference.values[at(f.inputs[i])];
    const ir::Value* actual = constant_behind(quantized, q.inputs[i]);
    if (!expected.constant || expected.dtype != DType::kFloat32 || expected.sparsity || expected.source) continue;
    if (actual == nullptr || actual->sparsity || actual->source || actual->dtype == DType::kFloat32) continue;
    if (!(actual->shape == expected.shape) || expected.shape.elements() == 0) continue;
    if (!Decoder::readable(actual->dtype, actual->quantization)) continue;
    WeightError error = compare(*actual, expected, channel_axis(*actual, q, i));
    error.input = static_cast<int>(i);
    result.push_back(std::move(error));
  }
  return result;
}

}  // namespace leadline::debug
