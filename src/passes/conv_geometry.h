// SPDX-License-Identifier: Apache-2.0
// Sizes of convolutions over images along one axis, for passes that change their padding.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "ops/conv.h"
#include "ops/registry.h"
#include "passes/editor.h"

namespace leadline::passes {

struct ConvAxis {
  int64_t filter = 1;
  int64_t stride = 1;
  int64_t dilation = 1;
};

/// How a convolution moves over its image.
struct ConvGeometry {
  int image = 0;  // the input it reads
  ir::Padding padding = ir::Padding::kValid;
  ops::Border border;
  ConvAxis rows;
  ConvAxis columns;
};

/// Zeros before and after that SAME padding adds to an input of `size` (-1: any); nothing when that depends on a size
/// that is not known.
inline std::optional<std::pair<int64_t, int64_t>> same_padding(const ConvAxis& axis, int64_t size) {
  const int64_t reach = (axis.filter - 1) * axis.dilation + 1;
  int64_t total = reach - 1;  // with stride 1 any size has the same
  if (axis.stride != 1) {
    if (size < 0) return {};
    const int64_t outputs = (size + axis.stride - 1) / axis.stride;
    total = std::max<int64_t>((outputs - 1) * axis.stride + reach - size, 0);
  }
  return std::pair{total / 2, total - total / 2};
}

/// The geometry of a convolution over images with a filter whose shape is known and sane; nothing otherwise.
inline std::optional<ConvGeometry> conv_geometry(Editor& e, const ir::Node& node) {
  const ops::OpDef* op = ops::row_of(node);
  if (op == nullptr || op->window == nullptr) return {};
  const int weights = node.inputs[static_cast<size_t>(op->contraction.weights)];
  const ir::Value& filter = e.value(weights);
  if (filter.signature || filter.shape.rank() != op->contraction.rank) return {};
  const auto attributes = node.attributes->clone();
  const ops::ConvWindow& window = *op->window(*attributes);
  const ConvGeometry g{.image = op->contraction.activations,
                       .padding = window.padding,
                       .border = window.border,
                       .rows = {filter.shape[1], window.stride_h, window.dilation_h},
                       .columns = {filter.shape[2], window.stride_w, window.dilation_w}};
  for (const ConvAxis& axis : {g.rows, g.columns}) {
    if (axis.filter < 1 || axis.stride < 1 || axis.dilation < 1) return {};
  }
  return g;
}

/// The attributes of a convolution with padding, border and dilations of `g`.
inline std::shared_ptr<const ir::Attributes> with_geometry(const ir::Node& node, const ConvGeometry& g) {
  std::shared_ptr<ir::Attributes> attributes = node.attributes->clone();
  ops::ConvWindow& window = *ops::row_of(node)->window(*attributes);
  window.padding = g.padding;
  window.border = g.border;
  window.dilation_h = static_cast<int32_t>(g.rows.dilation);
  window.dilation_w = static_cast<int32_t>(g.columns.dilation);
  return attributes;
}

}  // namespace leadline::passes
