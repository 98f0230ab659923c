// SPDX-License-Identifier: Apache-2.0
// Attributes of STABLEHLO_GATHER and STABLEHLO_SCATTER.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/attributes.h"

namespace leadline::ops {

struct StablehloGatherAttributes : ir::AttributeSet<StablehloGatherAttributes> {
  std::vector<int64_t> offset_dims;
  std::vector<int64_t> collapsed_slice_dims;
  std::vector<int64_t> start_index_map;
  int64_t index_vector_dim = 0;
  std::vector<int64_t> slice_sizes;
  bool indices_are_sorted = false;
  void fields(ir::FieldVisitor& v) {
    v.field("offset_dims", offset_dims);
    v.field("collapsed_slice_dims", collapsed_slice_dims);
    v.field("start_index_map", start_index_map);
    v.field("index_vector_dim", index_vector_dim);
    v.field("slice_sizes", slice_sizes);
    v.field("indices_are_sorted", indices_are_sorted);
  }
};

struct StablehloScatterAttributes : ir::AttributeSet<StablehloScatterAttributes> {
  bool indices_are_sorted = false;
  std::vector<int64_t> update_window_dims;
  std::vector<int64_t> inserted_window_dims;
  std::vector<int64_t> scatter_dims_to_operand_dims;
  int64_t index_vector_dim = 0;
  bool unique_indices = false;
  int32_t update_computation_subgraph = 0;
  void fields(ir::FieldVisitor& v) {
    v.field("indices_are_sorted", indices_are_sorted);
    v.field("update_window_dims", update_window_dims);
    v.field("inserted_window_dims", inserted_window_dims);
    v.field("scatter_dims_to_operand_dims", scatter_dims_to_operand_dims);
    v.field("index_vector_dim", index_vector_dim);
    v.field("unique_indices", unique_indices);
    v.subgraph("update_computation_subgraph_index", update_computation_subgraph);
  }
};

}  // namespace leadline::ops
