// SPDX-License-Identifier: Apache-2.0
// TRANSPOSE: axes in another order.
#include <array>

#include "ops/common.h"
#include "ops/families.h"
#include "ops/movement.h"
#include "ops/quantization_rules.h"

namespace leadline::ops {
namespace {

/// Axis of the input that becomes each axis of the output; the permutation's data must be known.
std::vector<int> permutation(const OpContext& c) {
  const int rank = c.input(0).shape.rank();
  std::vector<int> axes;
  std::array<bool, kMaxRank> used{};
  for (const int64_t value : known_ints(c, 1)) {
    const int axis = resolve_axis(c, value, rank);
    c.require(!used[static_cast<size_t>(axis)], "the permutation has axis {} twice", axis);
    used[static_cast<size_t>(axis)] = true;
    axes.push_back(axis);
  }
  return axes;
}

kernels::StridedCopy transposed(const OpContext& c) {
  const Shape& input = c.input(0).shape;
  const auto strides = element_strides(input);
  kernels::StridedCopy block;
  for (const int axis : permutation(c)) block.add(input[axis], strides[static_cast<size_t>(axis)]);
  block.pack();
  return block;
}

void infer_transpose(InferContext& c) {
  require_movable(c, c.input(0), {.strings = true, .sub_byte = true});
  require_same_type(c, c.input(0), c.output(0));
  c.require_input_type(1, {DType::kInt32, DType::kInt64});
  const Shape& input = c.input(0).shape;
  c.require(c.input(1).shape == Shape{input.rank()}, "the permutation has shape {}, expected [{}]",
            c.input(1).shape.to_string(), input.rank());
  if (!c.known(1)) return c.defer();
  Shape output;
  for (const int axis : permutation(c)) output.push_back(input[axis]);
  c.set_output_shape(0, output);
  finish_move(c, 0, transposed(c));
}

std::unique_ptr<Kernel> prepare_transpose(PrepareContext& c) { return make_move_kernel(0, transposed(c)); }

}  // namespace

void register_transpose(Registry& registry) {
  registry.add({.id = op::kTranspose,
                .max_version = 9,
                .min_inputs = 2,
                .max_inputs = 2,
                .required_inputs = 2,
                .options = builtin_options(26),
                .infer = infer_transpose,
                .prepare = prepare_transpose,
                .quantize = same_scale_rule({.int8 = 2, .int16 = 5}),
                .types = "all"});
}

}  // namespace leadline::ops
