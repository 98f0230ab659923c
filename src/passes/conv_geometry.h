// SPDX-License-Identifier: Apache-2.0
// Sizes of CONV_2D and DEPTHWISE_CONV_2D nodes along one axis, for passes that change their padding.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "ops/conv.h"
#include "passes/editor.h"

namespace leadline::passes {

struct ConvAxis {
  int64_t filter = 1;
  int64_t stride = 1;
  int64_t dilation = 1;
};

/// What both convolutions have.
struct ConvGeometry {
  ir::Padding padding = ir::Padding::kValid;
  ConvAxis rows;
  ConvAxis columns;
};

/// Zeros before and after that SAME padding adds to an input of `size` (-1: any); nothing when that depends on a size
/// that is not known.
inline std::optional<std::pair<int64_t, int64_t>> same_padding(const ConvAxis& axis, int64_t size) {
  const int64_t reach = (axis.filter - 1) * axis.dilation + 1;
  int64_t total = reach - 1;  // with stride 1 any size gives the same
  if (axis.stride != 1) {
    if (size < 0) return {};
    const int64_t outputs = (size + axis.stride - 1) / axis.stride;
    total = std::max<int64_t>((outputs - 1) * axis.stride + reach - size, 0);
  }
  return std::pair{total / 2, total - total / 2};
}

inline bool is_conv(const ir::Node& node) {
  return node.code != ir::kCustomOp && (node.op == "CONV_2D" || node.op == "DEPTHWISE_CONV_2D");
}

/// The geometry of a convolution with a filter whose shape is known and sane; nothing otherwise.
inline std::optional<ConvGeometry> conv_geometry(Editor& e, const ir::Node& node) {
  if (!is_conv(node) || node.inputs.size() < 2) return {};
  const ir::Value& filter = e.value(node.inputs[1]);
  if (filter.signature || filter.shape.rank() != 4) return {};
  ConvGeometry g;
  const auto take = [&](const auto& a) {
    g.padding = a.padding;
    g.rows = {filter.shape[1], a.stride_h, a.dilation_h};
    g.columns = {filter.shape[2], a.stride_w, a.dilation_w};
  };
  if (node.op == "CONV_2D") {
    take(attributes<ops::Conv2DAttributes>(node));
  } else {
    take(attributes<ops::DepthwiseConv2DAttributes>(node));
  }
  for (const ConvAxis& axis : {g.rows, g.columns}) {
    if (axis.filter < 1 || axis.stride < 1 || axis.dilation < 1) return {};
  }
  return g;
}

/// The node's attributes with padding and dilations of `g`.
inline std::shared_ptr<const ir::Attributes> with_geometry(const ir::Node& node, const ConvGeometry& g) {
  const auto change = [&](auto a) -> std::shared_ptr<const ir::Attributes> {
    a.padding = g.padding;
    a.dilation_h = static_cast<int32_t>(g.rows.dilation);
    a.dilation_w = static_cast<int32_t>(g.columns.dilation);
    return std::make_shared<decltype(a)>(a);
  };
  return node.op == "CONV_2D" ? change(attributes<ops::Conv2DAttributes>(node))
                              : change(attributes<ops::DepthwiseConv2DAttributes>(node));
}

}  // namespace leadline::passes
