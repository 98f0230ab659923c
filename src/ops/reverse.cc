// SPDX-License-Identifier: Apache-2.0
// REVERSE_V2: some axes backwards.
#include <algorithm>
#include <array>

#include "ops/common.h"
#include "ops/families.h"
#include "ops/movement.h"
#include "ops/quantization_rules.h"

namespace leadline::ops {
namespace {

/// The input with these axes backwards. Context: OpContext or RunContext.
template <typename Context>
kernels::StridedCopy reversed(const Context& c, const Shape& shape, const std::byte* axes, int64_t count) {
  std::array<bool, kMaxRank> backwards{};
  for (int64_t i = 0; i < count; ++i) {
    const int64_t axis = load_index(axes, DType::kInt32, i);
    c.require(axis >= -shape.rank() && axis < shape.rank(), "axis {} is outside a tensor of rank {}", axis,
              shape.rank());
    backwards[static_cast<size_t>(axis < 0 ? axis + shape.rank() : axis)] = true;
  }
  const auto strides = element_strides(shape);
  kernels::StridedCopy block;
  for (int d = 0; d < shape.rank(); ++d) {
    const int64_t stride = strides[static_cast<size_t>(d)];
    const bool flip = backwards[static_cast<size_t>(d)] && shape[d] > 0;
    block.add(shape[d], flip ? -stride : stride);
    if (flip) block.from += (shape[d] - 1) * stride;
  }
  block.pack();
  return block;
}

void infer_reverse(InferContext& c) {
  require_movable(c, c.input(0), {.strings = true});
  require_same_type(c, c.input(0), c.output(0));
  c.require_input_type(1, {DType::kInt32});
  const Shape& shape = c.input(0).shape;
  const Shape& axes = c.input(1).shape;
  c.require(axes.rank() == 1 && axes[0] <= shape.rank(), "the axes have shape {}, expected at most [{}]",
            axes.to_string(), shape.rank());
  c.set_output_shape(0, shape);
  if (c.known(1)) {
    finish_move(c, 0, reversed(c, shape, c.input(1).data, axes[0]));
  } else if (c.input(0).dtype() == DType::kString) {
    c.defer();
  }
}

std::unique_ptr<Kernel> prepare_reverse(PrepareContext& c) {
  const Shape shape = c.input(0).shape;
  const int64_t count = c.input(1).shape[0];
  if (c.input(1).known) return make_move_kernel(0, reversed(c, shape, c.input(1).data, count));
  return make_kernel([=](RunContext& run) {
    move_elements(run, run.input(0), run.output(0), reversed(run, shape, run.input(1).data, count));
  });
}

}  // namespace

void register_reverse(Registry& registry) {
  registry.add({.id = op::kReverseV2,
                .max_version = 4,
                .min_inputs = 2,
                .max_inputs = 2,
                .required_inputs = 2,
                .options = builtin_options(81),
                .infer = infer_reverse,
                .prepare = prepare_reverse,
                .quantize = same_scale_rule({.int8 = 3, .int16 = 3}),
                .types = "all but sub-byte"});
}

}  // namespace leadline::ops
