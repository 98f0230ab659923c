// SPDX-License-Identifier: Apache-2.0
// Ops that choose, collect or order by data, and random numbers. Sizes of many results are known only in a run.
#include <algorithm>

#include "import/saved_model/op_functions.h"
#include "ops/bucketize.h"
#include "ops/random.h"
#include "ops/sparse_to_dense.h"
#include "ops/unique.h"

namespace leadline::saved_model {
namespace {

std::shared_ptr<ops::RandomAttributes> seeds(const OpCall& call) {
  auto a = std::make_shared<ops::RandomAttributes>();
  a->seed = call.attr_int("seed", 0);
  a->seed2 = call.attr_int("seed2", 0);
  return a;
}

/// The first `count` (a scalar) elements of a vector.
int first_of(OpCall& call, int x, int count) {
  Emitter& e = call.e;
  return call.sized("SLICE", {x, e.ints({0}), e.reshape(count, {1})}, e.dtype(x), {-1});
}

}  // namespace

/// SegmentSum has no number of segments: the last id decides.
Outputs segment(OpCall& call) {
  Emitter& e = call.e;
  const int x = call.in(0);
  const int ids = call.in32(1);
  require(e.rank(x) >= 1 && e.rank(ids) <= e.rank(x), kBad, "ids of rank {} for data of rank {}", e.rank(ids),
          e.rank(x));
  Dims dims = e.dims(x);
  dims.erase(dims.begin(), dims.begin() + e.rank(ids));
  dims.insert(dims.begin(), -1);
  std::vector<int> inputs = {x, ids};
  if (call.node.op != "SegmentSum") inputs.push_back(call.in32(2));
  return {call.sized(call.row.target, inputs, e.dtype(x), dims)};
}

/// V4 and V5 fill up to max_output_size and return how many count; older ones, and those that do not pad, end there.
Outputs non_max_suppression(OpCall& call) {
  Emitter& e = call.e;
  const std::string_view op = call.node.op;
  const bool soft = op == "NonMaxSuppressionV5";
  const int lowest = op == "NonMaxSuppressionV2" ? e.scalar(-3.4e38F) : call.in(4);
  ops::NodeSpec spec;
  spec.op = soft ? "NON_MAX_SUPPRESSION_V5" : "NON_MAX_SUPPRESSION_V4";
  spec.inputs = {call.in(0), call.in(1), call.in32(2), call.in(3), lowest};
  if (soft) spec.inputs.push_back(call.in(5));
  spec.outputs = {{call.name(), DType::kInt32, {}, Dims{-1}}};
  if (soft) spec.outputs.push_back({call.name() + ":1", DType::kFloat32, {}, Dims{-1}});
  spec.outputs.push_back({call.name() + ":2", DType::kInt32, {}, Dims{}});
  Outputs results = call.builder().add(std::move(spec));
  if (call.attr_bool("pad_to_max_output_size", false)) return results;
  for (size_t i = 0; i + 1 < results.size(); ++i) results[i] = first_of(call, results[i], results.back());
  return results;
}

Outputs unique(OpCall& call) {
  Emitter& e = call.e;
  require(e.rank(call.in()) == 1, kBad, "the input has rank {}, expected 1", e.rank(call.in()));
  auto attributes = std::make_shared<ops::UniqueAttributes>();
  attributes->idx_out_type = call.attr_type("out_idx", DType::kInt32);
  ops::NodeSpec spec;
  spec.op = "UNIQUE";
  spec.inputs = {call.in()};
  spec.outputs = {{call.name(), e.dtype(call.in()), {}, Dims{-1}},
                  {call.name() + ":1", attributes->idx_out_type, {}, e.dims(call.in())}};
  spec.outputs[1].samples = call.builder().samples(call.in());
  spec.attributes = attributes;
  return call.builder().add(std::move(spec));
}

Outputs sparse_to_dense(OpCall& call) {
  auto attributes = std::make_shared<ops::SparseToDenseAttributes>();
  attributes->validate_indices = call.attr_bool("validate_indices", true);
  return {call.sized("SPARSE_TO_DENSE", {call.in(0), call.in(1), call.in(2), call.in(3)}, call.e.dtype(call.in(2)),
                     call.unknown_like(call.in(1)), attributes)};
}

/// All pieces one after the other, and taken in the order that the indices say. Where two fit, the last one counts.
Outputs dynamic_stitch(OpCall& call) {
  Emitter& e = call.e;
  const size_t count = call.inputs.size() / 2;
  require(count >= 1 && call.inputs.size() == 2 * count, kBad, "it has {} inputs, expected as many indices as data",
          call.inputs.size());
  std::vector<int> pieces;
  std::vector<int32_t> sources;
  int32_t next = 0;
  for (size_t i = 0; i < count; ++i) {
    const std::vector<int64_t> indices = call.ints(i, "indices");
    const int piece = call.in(count + i);
    const int index_rank = e.rank(call.in(i));
    require(index_rank <= e.rank(piece), kBad, "indices of rank {} for data of rank {}", index_rank, e.rank(piece));
    std::vector<Emitter::Size> sizes = {{-1, static_cast<int64_t>(indices.size())}};
    for (int axis = index_rank; axis < e.rank(piece); ++axis) sizes.emplace_back(piece, axis);
    pieces.push_back(e.reshape_like(piece, sizes));
    for (const int64_t index : indices) {
      require(index >= 0 && index <= (1 << 20), kBad, "an index is {}, expected 0 to {}", index, 1 << 20);
      if (sources.size() <= static_cast<size_t>(index)) sources.resize(static_cast<size_t>(index) + 1, -1);
      sources[static_cast<size_t>(index)] = next++;
    }
  }
  call.refuse_if(std::find(sources.begin(), sources.end(), -1) != sources.end(), "leaves elements without a value");
  return {e.gather(e.concat(pieces, 0), e.ints(sources), 0)};
}

Outputs invert_permutation(OpCall& call) {
  Emitter& e = call.e;
  require(e.rank(call.in()) == 1, kBad, "the input has rank {}, expected 1", e.rank(call.in()));
  const int size = e.shape_part(call.in(), 0, 1);
  const int places =
      call.sized("RANGE", {e.integer(0), e.reshape(size, {}), e.integer(1)}, DType::kInt32, e.dims(call.in()));
  const int indices = e.reshape(call.in32(0), {-1, 1});
  const int y = call.builder().node("SCATTER_ND", {indices, places, size}, call.name(), DType::kInt32);
  return {e.cast(y, e.dtype(call.in()))};
}

Outputs roll(OpCall& call) {
  Emitter& e = call.e;
  int y = call.in();
  const std::vector<int64_t> shifts = call.ints(1, "a shift");
  const std::vector<int64_t> axes = call.ints(2, "an axis");
  require(shifts.size() == axes.size(), kBad, "{} shifts for {} axes", shifts.size(), axes.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    const int axis = e.axis(y, axes[i]);
    const int64_t size = e.dims(y)[static_cast<size_t>(axis)];
    call.refuse_if(size < 0 && (shifts[i] > INT32_MAX || shifts[i] < -INT32_MAX), "rolls too far");
    const int64_t shift = size > 0 ? (shifts[i] % size + size) % size : size == 0 ? 0 : shifts[i];
    if (shift == 0) continue;
    // The shift counts from the end of an axis of unknown size, which must be at least as long.
    y = e.concat({e.slice(y, axis, -shift, INT64_MAX), e.slice(y, axis, 0, -shift)}, axis);
  }
  return {y};
}

Outputs bucketize(OpCall& call) {
  ops::BucketizeAttributes attributes;
  const AttrValue* boundaries = find_attr(call.node.attrs, "boundaries");
  require(boundaries != nullptr && boundaries->kind == AttrValue::Kind::kList && boundaries->parts != nullptr, kBad,
          "it lacks boundaries");
  attributes.boundaries = boundaries->parts->floats;
  return {call.builder().node("BUCKETIZE", {call.in()}, call.name(), attributes, DType::kInt32)};
}

Outputs bitcast(OpCall& call) {
  return {call.builder().node("BITCAST", {call.in()}, call.name(), call.attr_type("type", DType::kInt32))};
}

Outputs random(OpCall& call) {
  const DType dtype = call.attr_type("dtype", DType::kFloat32);
  call.refuse_if(dtype != DType::kFloat32, fmt::format("makes random numbers of type {}", dtype_name(dtype)));
  const int sizes = call.in32(0);
  return {call.sized(call.row.target, {sizes}, dtype, call.unknown_like(sizes), seeds(call))};
}

Outputs multinomial(OpCall& call) {
  const DType dtype = call.attr_type("output_dtype", DType::kInt64);
  require(call.e.rank(call.in()) == 2, kBad, "the logits have rank {}, expected 2", call.e.rank(call.in()));
  return {
      call.sized("MULTINOMIAL", {call.in(0), call.in32(1)}, dtype, Dims{call.e.dims(call.in())[0], -1}, seeds(call))};
}

}  // namespace leadline::saved_model
