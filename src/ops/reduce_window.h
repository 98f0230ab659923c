// SPDX-License-Identifier: Apache-2.0
// Attributes of REDUCE_WINDOW and STABLEHLO_REDUCE_WINDOW.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/attributes.h"

namespace leadline::ops {

/// Numbered as in the format.
enum class WindowFunction : int32_t { kUnsupported = 0, kAdd = 1, kMul = 2, kMin = 3, kMax = 4, kAll = 5, kAny = 6 };

struct ReduceWindowAttributes : ir::AttributeSet<ReduceWindowAttributes> {
  int32_t reduce_function = 0;
  void fields(ir::FieldVisitor& v) { v.field("reduce_function", reduce_function); }
};

/// An empty list stands for ones (padding: zeros). `padding` has a low and a high entry for every axis; negative
/// entries crop.
struct StablehloReduceWindowAttributes : ir::AttributeSet<StablehloReduceWindowAttributes> {
  std::vector<int64_t> window_dimensions;
  std::vector<int64_t> window_strides;
  std::vector<int64_t> base_dilations;
  std::vector<int64_t> window_dilations;
  std::vector<int64_t> padding;
  int32_t body_subgraph = 0;
  void fields(ir::FieldVisitor& v) {
    v.field("window_dimensions", window_dimensions);
    v.field("window_strides", window_strides);
    v.field("base_dilations", base_dilations);
    v.field("window_dilations", window_dilations);
    v.field("padding", padding);
    v.subgraph("body_subgraph_index", body_subgraph);
  }
};

}  // namespace leadline::ops
