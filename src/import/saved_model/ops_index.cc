// SPDX-License-Identifier: Apache-2.0
// Ops on indices, conditions, shapes and types.
#include "import/saved_model/op_functions.h"
#include "ops/gather.h"
#include "ops/one_hot.h"
#include "ops/shape.h"

namespace leadline::saved_model {
namespace {

int gather_along(OpCall& call, int64_t axis) {
  ops::GatherAttributes a;
  a.axis = call.e.axis(call.in(), axis);
  const int64_t batch_dims = call.attr_int("batch_dims", 0);
  a.batch_dims = small(batch_dims < 0 ? batch_dims + call.e.rank(call.in(1)) : batch_dims);
  return call.builder().node("GATHER", {call.in(0), call.in(1)}, call.name(), a);
}

int shape_of(OpCall& call, int x, DType type) {
  ops::ShapeAttributes a;
  a.out_type = type;
  return call.builder().node("SHAPE", {x}, call.e.name("Shape"), a, type);
}

}  // namespace

Outputs gather(OpCall& call) { return {gather_along(call, call.inputs.size() > 2 ? call.integer(2, "an axis") : 0)}; }

Outputs resource_gather(OpCall& call) { return {gather_along(call, call.attr_int("batch_dims", 0))}; }

Outputs one_hot(OpCall& call) {
  auto a = std::make_shared<ops::OneHotAttributes>();
  a->axis = small(call.attr_int("axis", -1));
  Dims dims = call.e.dims(call.in());
  const auto rank = static_cast<int64_t>(dims.size());
  require(a->axis >= -1 && a->axis <= rank, ErrorCode::kInvalidModel, "axis {} of a tensor of rank {}", a->axis,
          rank + 1);
  dims.insert(a->axis < 0 ? dims.end() : dims.begin() + a->axis, -1);
  return {call.sized("ONE_HOT", {call.in(0), call.in32(1), call.in(2), call.in(3)}, call.e.dtype(call.in(2)), dims, a)};
}

Outputs select(OpCall& call) {
  return {call.builder().node(call.row.target, {call.in(0), call.in(1), call.in(2)}, call.name(),
                              call.e.dtype(call.in(1)))};
}

/// One row for each true element: the number of rows is known only in a run.
Outputs where(OpCall& call) {
  ops::NodeSpec spec;
  spec.op = "WHERE";
  spec.inputs = {call.in()};
  spec.outputs = {{call.name(), DType::kInt64, {}, Dims{-1, call.e.rank(call.in())}}};
  return call.builder().add(std::move(spec));
}

Outputs fill(OpCall& call) {
  const int sizes = call.in(0);
  return {call.sized("FILL", {sizes, call.in(1)}, call.e.dtype(call.in(1)), call.unknown_like(sizes))};
}

Outputs shape(OpCall& call) { return {shape_of(call, call.in(), call.attr_type("out_type", DType::kInt32))}; }

Outputs shape_n(OpCall& call) {
  Outputs results;
  for (const int x : call.inputs) results.push_back(shape_of(call, x, call.attr_type("out_type", DType::kInt32)));
  return results;
}

Outputs rank(OpCall& call) {
  if (call.builder().has_rank(call.in())) return {call.e.integer(call.e.rank(call.in()))};
  return {call.builder().node("RANK", {call.in()}, call.name(), DType::kInt32)};
}

Outputs size(OpCall& call) {
  return {
      call.e.reduce("REDUCE_PROD", shape_of(call, call.in(), call.attr_type("out_type", DType::kInt32)), {0}, false)};
}

Outputs cast(OpCall& call) { return {call.e.cast(call.in(), call.attr_type("DstT", call.e.dtype(call.in())))}; }

Outputs zeros_like(OpCall& call) { return {call.builder().node("ZEROS_LIKE", {call.in()}, call.name())}; }

Outputs ones_like(OpCall& call) {
  const int one = call.one_of(call.e.dtype(call.in()));
  return {call.builder().node("FILL", {shape_of(call, call.in(), DType::kInt32), one}, call.name(), call.e.dtype(one))};
}

Outputs scatter_nd(OpCall& call) {
  const int sizes = call.in32(2);
  return {
      call.sized("SCATTER_ND", {call.in32(0), call.in(1), sizes}, call.e.dtype(call.in(1)), call.unknown_like(sizes))};
}

/// The row's target combines old and new values; without one the new replace the old. What is not written to keeps its
/// value: new values are scattered over zeros, and so is a mark of where they are.
int scattered_into(OpCall& call, int x, int indices, int updates) {
  Emitter& e = call.e;
  const int sizes = shape_of(call, x, DType::kInt32);
  const int values = call.builder().node("SCATTER_ND", {indices, updates, sizes}, call.name(), e.dtype(x));
  if (const std::string_view combined_by = call.row.target; !combined_by.empty()) {
    return e.binary(call.row.target, x, values);
  }
  const int update_sizes = shape_of(call, updates, DType::kInt32);
  const int ones = call.builder().node("FILL", {update_sizes, e.integer(1)}, e.name("Fill"), DType::kInt32);
  const int marks = call.builder().node("SCATTER_ND", {indices, ones, sizes}, e.name("ScatterNd"), DType::kInt32);
  return e.select(e.compare("GREATER", marks, e.integer(0)), values, x);
}

Outputs tensor_scatter_update(OpCall& call) { return {scattered_into(call, call.in(0), call.in32(1), call.in(2))}; }

}  // namespace leadline::saved_model
