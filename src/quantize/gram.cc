// SPDX-License-Identifier: Apache-2.0
#include "quantize/gram.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/cancel.h"
#include "kernels/statistics/products.h"
#include "ops/conv.h"
#include "ops/registry.h"

namespace leadline::quantize {
namespace {

constexpr int64_t kMostPlaces = 256;  // of one node in one run: neighbouring places say much the same
constexpr double kLargest = 0x1p40;   // of a sample; 2^22 samples of it still fit a sum
constexpr double kSteps = 0x1p64;     // of a sum, to 1

GramMatrix::Sum to_sum(double value) {
  const double clamped = std::clamp(value, -kLargest, kLargest);
  const double whole = std::floor(clamped);
  return (static_cast<GramMatrix::Sum>(whole) << 64) + static_cast<GramMatrix::Sum>((clamped - whole) * kSteps);
}

/// How a filter lies on an image along one axis.
struct Axis {
  int64_t input = 0;
  int64_t filter = 0;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t output = 0;
  int64_t before = 0;  // padding

  Axis(int64_t input_size, int64_t filter_size, int64_t step, int64_t gap, bool padded)
      : input(input_size), filter(filter_size), stride(std::max<int64_t>(step, 1)), dilation(gap) {
    const int64_t reach = (filter - 1) * dilation + 1;
    output = padded ? (input + stride - 1) / stride : std::max<int64_t>((input - reach) / stride + 1, 0);
    if (padded) before = std::max<int64_t>((output - 1) * stride + reach - input, 0) / 2;
  }
  int64_t at(int64_t place, int64_t k) const { return place * stride + k * dilation - before; }
};

float load(const std::byte* data, int64_t i) {
  float value;
  std::memcpy(&value, data + i * static_cast<int64_t>(sizeof value), sizeof value);
  return value;
}

const ir::Value* constant_weights(const ir::Subgraph& subgraph, const ir::Node& node, const ops::OpDef& op) {
  const auto i = static_cast<size_t>(op.contraction.weights);
  if (i >= node.inputs.size() || node.inputs[i] == ir::kAbsent) return nullptr;
  const ir::Value& weights = subgraph.value(node.inputs[i]);
  const bool fits = weights.constant && weights.dtype == DType::kFloat32 && weights.sparsity == nullptr;
  return fits ? &weights : nullptr;
}

/// The numbers of groups and columns of a layer; no columns: it has no matrix.
std::pair<int64_t, int64_t> sizes(const ir::Subgraph& subgraph, const ir::Node& node, const ops::OpDef& op,
                                  const Shape& weights) {
  const auto kind = op.contraction.kind;
  if (weights.elements() == 0) return {1, 0};
  if (kind == ops::ContractionKind::kDense)
    return weights.rank() == 2 ? std::pair(int64_t{1}, weights[1]) : std::pair(int64_t{1}, int64_t{0});
  const bool window = op.window != nullptr && weights.rank() == 4;
  const Shape& input = subgraph.value(node.inputs[static_cast<size_t>(op.contraction.activations)]).shape;
  if (!window || input.rank() != 4 || input[3] <= 0) return {1, 0};
  if (kind == ops::ContractionKind::kDepthwise) return {input[3], weights[1] * weights[2]};
  if (kind != ops::ContractionKind::kConvolution || input[3] % weights[3] != 0) return {1, 0};
  return {input[3] / weights[3], weights[1] * weights[2] * weights[3]};
}

}  // namespace

void GramMatrix::merge(const GramMatrix& other) {
  if (other.sums.empty()) return;
  if (sums.empty()) sums.assign(other.sums.size(), 0);
  for (size_t i = 0; i < sums.size(); ++i) sums[i] += other.sums[i];
}

bool GramMatrix::expand(int64_t group, std::span<float> out) const {
  if (sums.empty()) return false;
  const Sum* upper = sums.data() + group * group_sums();
  const auto real = [](Sum sum) { return static_cast<double>(sum) / kSteps; };
  double largest = 0.0;
  for (int64_t i = 0, at = 0; i < columns; ++i) {
    largest = std::max(largest, real(upper[at]));
    at += diagonal() ? 1 : columns - i;
  }
  if (!(largest > 0.0)) return false;
  PacedCheck check;
  for (int64_t i = 0; i < columns; ++i) {
    check.count(4 * columns);
    if (diagonal()) {
      out[static_cast<size_t>(i)] = static_cast<float>(real(upper[i]) / largest);
      continue;
    }
    for (int64_t j = i; j < columns; ++j) {
      const auto value = static_cast<float>(real(*upper++) / largest);
      out[static_cast<size_t>(i * columns + j)] = value;
      out[static_cast<size_t>(j * columns + i)] = value;
    }
  }
  return true;
}

std::vector<GramMatrix> empty_grams(const ir::Graph& graph) {
  std::vector<GramMatrix> result;
  for (size_t s = 0; s < graph.subgraphs.size(); ++s) {
    const ir::Subgraph& subgraph = graph.subgraphs[s];
    for (size_t n = 0; n < subgraph.nodes.size(); ++n) {
      const ir::Node& node = subgraph.nodes[n];
      const ops::OpDef* op = ops::row_of(node);
      if (op == nullptr || !op->contraction) continue;
      const ir::Value* weights = constant_weights(subgraph, node, *op);
      if (weights == nullptr) continue;
      const auto [groups, columns] = sizes(subgraph, node, *op, weights->shape);
      if (columns > 0) result.push_back({static_cast<int>(s), static_cast<int>(n), groups, columns, {}});
    }
  }
  return result;
}

GramRecorder::GramRecorder(const ir::Graph& graph, std::vector<GramMatrix>& grams)
    : graph_(graph), grams_(grams), sample_(grams.size()) {
  int64_t widest = 0;
  for (const GramMatrix& gram : grams) widest = std::max(widest, gram.columns);
  places_.resize(static_cast<size_t>(widest * kMostPlaces));
  sums_.resize(static_cast<size_t>(widest));
}

int64_t GramRecorder::bytes(const std::vector<GramMatrix>& grams) {
  int64_t widest = 0;
  int64_t total = 0;
  for (const GramMatrix& gram : grams) {
    widest = std::max(widest, gram.columns);
    total += gram.groups * gram.group_sums() * static_cast<int64_t>(sizeof(double));
    total += static_cast<int64_t>(sizeof(std::vector<double>));
  }
  return total + widest * (kMostPlaces + 1) * static_cast<int64_t>(sizeof(float));
}

void GramRecorder::record(const ObservedNode& node) {
  const auto found = std::lower_bound(
      grams_.begin(), grams_.end(), std::pair(node.subgraph, node.node),
      [](const GramMatrix& gram, const std::pair<int, int>& key) { return std::pair(gram.subgraph, gram.node) < key; });
  if (found == grams_.end() || found->subgraph != node.subgraph || found->node != node.node) return;
  const ir::Subgraph& subgraph = graph_.subgraphs[static_cast<size_t>(node.subgraph)];
  const ir::Node& source = subgraph.nodes[static_cast<size_t>(node.node)];
  const ops::ContractionOperands& operands = ops::row_of(source)->contraction;
  const ObservedTensor& input = node.inputs[static_cast<size_t>(operands.activations)];
  if (input.dtype != DType::kFloat32 || input.data.empty()) return;
  std::vector<double>& sample = sample_[static_cast<size_t>(found - grams_.begin())];
  if (sample.empty()) {
    const auto sums = static_cast<size_t>(found->groups * found->group_sums());
    sample.assign(sums, 0.0);
    if (found->sums.empty()) found->sums.assign(sums, 0);  // so that keeping the sample cannot fail
  }
  const int weights = source.inputs[static_cast<size_t>(operands.weights)];
  add_places(source, input, subgraph.value(weights).shape, *found, sample);
}

void GramRecorder::add_places(const ir::Node& node, const ObservedTensor& input, const Shape& weights, GramMatrix& gram,
                              std::vector<double>& sample) {
  const ops::OpDef& op = *ops::row_of(node);
  const int64_t columns = gram.columns;
  const std::byte* data = input.data.data();
  // Takes `count` places, of which `fill` writes one to memory, for one group.
  const auto take = [&](int64_t group, int64_t count, const auto& fill) {
    const int64_t step = (count + kMostPlaces - 1) / kMostPlaces;
    int64_t kept = 0;
    for (int64_t place = 0; place < count; place += step) {
      float* row = places_.data() + kept * columns;
      fill(place, row);
      kept += std::all_of(row, row + columns, [](float value) { return std::isfinite(value); }) ? 1 : 0;
    }
    add_products(gram, group, kept, sample);
  };
  if (op.contraction.kind == ops::ContractionKind::kDense) {
    take(0, input.shape.elements() / columns, [&](int64_t place, float* row) {
      std::memcpy(row, data + place * columns * static_cast<int64_t>(sizeof(float)),
                  static_cast<size_t>(columns) * sizeof(float));
    });
    return;
  }
  const auto attributes = node.attributes->clone();
  const ops::ConvWindow& window = *op.window(*attributes);
  const Shape& image = input.shape;
  const bool padded = window.padding == ir::Padding::kSame;
  const Axis rows(image[1], weights[1], window.stride_h, window.dilation_h, padded);
  const Axis cols(image[2], weights[2], window.stride_w, window.dilation_w, padded);
  const int64_t channels = image[3];
  const int64_t depth = columns / (rows.filter * cols.filter);  // of a filter
  const int64_t in_one_image = rows.output * cols.output;
  for (int64_t group = 0; group < gram.groups; ++group) {
    take(group, image[0] * in_one_image, [&](int64_t place, float* row) {
      const int64_t picture = place / in_one_image;
      for (int64_t y = 0; y < rows.filter; ++y) {
        const int64_t in_y = rows.at(place % in_one_image / cols.output, y);
        for (int64_t x = 0; x < cols.filter; ++x, row += depth) {
          const int64_t in_x = cols.at(place % cols.output, x);
          const bool inside = in_y >= 0 && in_y < rows.input && in_x >= 0 && in_x < cols.input;
          const int64_t from = ((picture * rows.input + in_y) * cols.input + in_x) * channels + group * depth;
          for (int64_t c = 0; c < depth; ++c) row[c] = inside ? load(data, from + c) : 0.0F;
        }
      }
    });
  }
}

void GramRecorder::add_products(const GramMatrix& gram, int64_t group, int64_t places, std::vector<double>& sample) {
  const int64_t columns = gram.columns;
  double* target = sample.data() + group * gram.group_sums();
  PacedCheck check;
  if (gram.diagonal()) {
    for (int64_t place = 0; place < places; ++place) {
      const float* row = places_.data() + place * columns;
      for (int64_t i = 0; i < columns; ++i) target[i] += static_cast<double>(row[i]) * static_cast<double>(row[i]);
    }
    return;
  }
  for (int64_t i = 0; i < columns; ++i) {
    check.count(places * (columns - i));
    const int64_t length = columns - i;
    std::fill_n(sums_.data(), length, 0.0F);
    for (int64_t place = 0; place < places; ++place) {
      const float* row = places_.data() + place * columns;
      if (row[i] != 0.0F) kernels::add_scaled(row[i], row + i, length, sums_.data());
    }
    for (int64_t j = 0; j < length; ++j) *target++ += static_cast<double>(sums_[static_cast<size_t>(j)]);
  }
}

void GramRecorder::keep_sample() {
  PacedCheck check;
  for (size_t g = 0; g < grams_.size(); ++g) {
    std::vector<double>& sample = sample_[g];
    if (sample.empty()) continue;
    check.count(static_cast<int64_t>(sample.size()));
    for (size_t i = 0; i < sample.size(); ++i) {
      if (std::isfinite(sample[i])) grams_[g].sums[i] += to_sum(sample[i]);
    }
    sample.clear();  // keeps its memory
  }
}

void GramRecorder::forget_sample() {
  for (std::vector<double>& sample : sample_) sample.clear();
}

}  // namespace leadline::quantize
