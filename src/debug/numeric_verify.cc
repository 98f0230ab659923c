// SPDX-License-Identifier: Apache-2.0
#include "debug/numeric_verify.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "ops/op_ids.h"

namespace leadline::debug {
namespace {

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// What the float model calls a tensor: converters add digits to names that occur twice, and Leadline's quantizer the
/// type, where the float tensor still exists.
std::string original_name(const std::string& name, const std::string& twin, const std::set<std::string_view>& names) {
  if (twin == name + "/float") {
    for (const std::string_view type : {"_int8", "_int16"}) {
      if (!name.ends_with(type)) continue;
      const std::string_view base = std::string_view(name).substr(0, name.size() - type.size());
      if (names.contains(base)) return std::string(base);
    }
    return name;
  }
  if (name.starts_with(twin) && is_number(std::string_view(name).substr(twin.size()))) return twin;
  for (size_t size = name.size(); size > 1 && is_number(std::string_view(name).substr(size - 1, 1)); --size) {
    const std::string_view base = std::string_view(name).substr(0, size - 1);
    if (names.contains(base)) return std::string(base);
  }
  return name;
}

/// Sums f(d) in lanes of their own: one addition need not wait for the one before.
template <typename F>
double sum_of(std::span<const float> values, const F& f) {
  constexpr size_t kLanes = 8;
  std::array<double, kLanes> lanes{};
  const size_t whole = values.size() / kLanes * kLanes;
  for (size_t i = 0; i < whole; i += kLanes) {
    for (size_t k = 0; k < kLanes; ++k) lanes[k] += f(static_cast<double>(values[i + k]));
  }
  for (size_t i = whole; i < values.size(); ++i) lanes[i - whole] += f(static_cast<double>(values[i]));
  return std::accumulate(lanes.begin(), lanes.end(), 0.0);
}

}  // namespace

void add_differences(VerifiedStatistics& sums, NumberCounts& numbers, std::span<const float> differences) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  float largest = 0.0F;
  int64_t not_finite = 0;
  bool any_nan = false;
  for (const float d : differences) {
    const float size = std::fabs(d);
    largest = std::max(largest, size);  // leaves NaN out
    not_finite += size <= kLargest ? 0 : 1;
    any_nan = any_nan || std::isnan(d);
  }
  const auto n = static_cast<double>(differences.size());
  const double mean = sum_of(differences, [](double d) { return d; }) / n;
  const double variance = sum_of(differences, [mean](double d) { return (d - mean) * (d - mean); }) / n;
  const double squares =
      std::isfinite(mean) ? variance + mean * mean : sum_of(differences, [](double d) { return d * d; }) / n;
  ++sums.samples;
  sums.not_finite += not_finite;
  sums.num_elements += n;
  const auto add = [&](double& sum, size_t which, double value) {
    if (std::isnan(value)) return;
    sum += value;
    ++numbers[which];
  };
  add(sums.stddev, 0, std::sqrt(variance));
  add(sums.mean_error, 1, mean);
  add(sums.max_abs_error, 2, any_nan ? std::numeric_limits<double>::quiet_NaN() : static_cast<double>(largest));
  add(sums.mean_squared_error, 3, squares);
}

std::vector<VerifiedLayer> find_verified_layers(const ir::Graph& graph) {
  std::vector<VerifiedLayer> layers;
  for (size_t s = 0; s < graph.subgraphs.size(); ++s) {
    const ir::Subgraph& subgraph = graph.subgraphs[s];
    std::set<std::string_view> names;
    std::map<int, const ir::Node*> producers;
    for (const ir::Value& value : subgraph.values) names.insert(value.name);
    for (const ir::Node& node : subgraph.nodes) {
      for (int v : node.outputs) producers[v] = &node;
    }
    for (size_t n = 0; n < subgraph.nodes.size(); ++n) {
      const ir::Node& node = subgraph.nodes[n];
      if (node.op != op::kNumericVerify || node.inputs.size() != 2) continue;
      const auto value = [&](int v) -> const ir::Value& { return subgraph.value(v); };
      VerifiedLayer layer;
      layer.subgraph = static_cast<int>(s);
      layer.node = static_cast<int>(n);
      layer.output_name = value(node.outputs[0]).name;
      layer.output_tensor = node.outputs[0];
      layer.tensor = node.inputs[0];
      layer.reference = node.inputs[1];
      layer.tensor_name = original_name(value(layer.tensor).name, value(layer.reference).name, names);
      if (const auto maker = producers.find(layer.tensor); maker != producers.end())
        layer.op = maker->second->op.name();
      layer.scales = value(layer.tensor).quantization.scale;
      layer.zero_points = value(layer.tensor).quantization.zero_point;
      layers.push_back(std::move(layer));
    }
  }
  return layers;
}

VerifiedStatistics mean_of(VerifiedStatistics sums, const NumberCounts& numbers) {
  sums.num_elements /= static_cast<double>(sums.samples);
  sums.stddev /= static_cast<double>(numbers[0]);  // 0 / 0 is NaN
  sums.mean_error /= static_cast<double>(numbers[1]);
  sums.max_abs_error /= static_cast<double>(numbers[2]);
  sums.mean_squared_error /= static_cast<double>(numbers[3]);
  return sums;
}

}  // namespace leadline::debug
