// SPDX-License-Identifier: Apache-2.0
// ONE_HOT: an axis of `depth` elements that are off, but for the one each index names. Indices outside it name none.
#include "ops/one_hot.h"

#include <cstring>

#include "ops/common.h"
#include "ops/families.h"
#include "ops/movement.h"

namespace leadline::ops {
namespace one_hot {
namespace {

enum Input { kIndices = 0, kDepth = 1, kOn = 2, kOff = 3 };

int one_hot_axis(const OpContext& c) {
  const int32_t axis = c.attributes<OneHotAttributes>().axis;
  const int rank = c.input(kIndices).shape.rank();
  c.require(axis >= -1 && axis <= rank, "axis {} is outside a result of rank {}", axis, rank + 1);
  return axis == -1 ? rank : axis;
}

void infer_one_hot(InferContext& c) {
  c.require_input_type(kIndices, {DType::kInt32, DType::kInt64});
  c.require_input_type(kDepth, {DType::kInt32, DType::kInt64});
  require_movable(c, c.input(kOn), {});
  require_same_type(c, c.input(kOn), c.output(0));
  require_same_type(c, c.input(kOff), c.output(0));
  for (const int i : {kDepth, kOn, kOff}) require_elements(c, i, 1);
  const int axis = one_hot_axis(c);
  if (!c.known(kDepth)) return c.defer();
  const int64_t depth = known_ints(c, kDepth)[0];
  c.require(depth >= 0, "the depth is {}, expected 0 or more", depth);
  const Shape& indices = c.input(kIndices).shape;
  std::vector<int64_t> dims(indices.begin(), indices.end());
  dims.insert(dims.begin() + axis, depth);
  c.set_output_shape(0, checked_shape(c, dims));
}

std::unique_ptr<Kernel> prepare_one_hot(PrepareContext& c) {
  const Shape& indices = c.input(kIndices).shape;
  const int axis = one_hot_axis(c);
  const int64_t depth = c.output(0).shape[axis];
  const int64_t outer = span_elements(indices, 0, axis);
  const int64_t inner = span_elements(indices, axis, indices.rank());
  const int64_t size = element_bytes(c.output(0).dtype());
  return make_kernel([=](RunContext& run) {
    const TensorView& out = run.output(0);
    const TensorView& index = run.input(kIndices);
    fill_elements(out.data, outer * depth * inner, run.input(kOff).data, size);
    const std::byte* on = run.input(kOn).data;
    for_items(outer * inner, 8, [&](int64_t at) {
      const int64_t hot = load_index(index.data, index.dtype, at);
      if (hot < 0 || hot >= depth) return;
      const int64_t place = (at / inner * depth + hot) * inner + at % inner;
      std::memcpy(out.data + place * size, on, static_cast<size_t>(size));
    });
  });
}

}  // namespace
}  // namespace one_hot

void register_one_hot(Registry& registry) {
  using namespace one_hot;
  registry.add({.id = op::kOneHot,
                .min_inputs = 4,
                .max_inputs = 4,
                .required_inputs = 4,
                .options = builtin_options(61),
                .make_attributes = make_attributes<OneHotAttributes>,
                .infer = infer_one_hot,
                .prepare = prepare_one_hot,
                .types = "all but strings"});
}

}  // namespace leadline::ops
