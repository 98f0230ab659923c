// SPDX-License-Identifier: Apache-2.0
// TILE, BROADCAST_TO, FILL, ZEROS_LIKE: elements repeated.
#include <cstring>

#include "ops/common.h"
#include "ops/families.h"
#include "ops/movement.h"
#include "ops/quantization_rules.h"

namespace leadline::ops {
namespace {

using kernels::StridedCopy;

/// Every axis as (copies, elements): the copies step 0 in the input.
StridedCopy tiled(const OpContext& c) {
  const Shape& input = c.input(0).shape;
  const auto strides = element_strides(input);
  const auto copies = known_ints(c, 1);
  StridedCopy block;
  for (int d = 0; d < input.rank(); ++d) {
    const auto i = static_cast<size_t>(d);
    block.add(copies[i], 0);
    block.add(input[d], strides[i]);
  }
  block.pack();
  return block;
}

void infer_tile(InferContext& c) {
  require_movable(c, c.input(0), {.strings = true});
  require_same_type(c, c.input(0), c.output(0));
  c.require_input_type(1, {DType::kInt32, DType::kInt64});
  const Shape& input = c.input(0).shape;
  require_elements(c, 1, input.rank());
  if (!c.known(1)) return c.defer();
  const auto copies = known_ints(c, 1);
  std::vector<int64_t> dims;
  for (int d = 0; d < input.rank(); ++d) {
    const int64_t count = copies[static_cast<size_t>(d)];
    c.require(count >= 0, "dimension {} is repeated {} times, expected 0 or more", d, count);
    dims.push_back(checked_multiply(c, input[d], count));
  }
  c.set_output_shape(0, checked_shape(c, dims));
  finish_move(c, 0, tiled(c));
}

std::unique_ptr<Kernel> prepare_tile(PrepareContext& c) { return make_move_kernel(0, tiled(c)); }

StridedCopy stretched(const Shape& input, const Shape& output) {
  StridedCopy block;
  const auto strides = element_strides(input);
  const int missing = output.rank() - input.rank();
  for (int d = 0; d < output.rank(); ++d) {
    const int i = d - missing;
    const bool repeated = i < 0 || input[i] == 1;
    block.add(output[d], repeated ? 0 : strides[static_cast<size_t>(i)]);
  }
  block.pack();
  return block;
}

void infer_broadcast_to(InferContext& c) {
  require_movable(c, c.input(0), {.strings = true, .sub_byte = true});
  require_same_type(c, c.input(0), c.output(0));
  c.require_input_type(1, {DType::kInt32, DType::kInt64});
  c.require(c.input(1).shape.rank() == 1, "the new shape has shape {}, expected a vector",
            c.input(1).shape.to_string());
  if (!c.known(1)) return c.defer();
  const Shape& input = c.input(0).shape;
  const Shape output = checked_shape(c, known_ints(c, 1));
  const int missing = output.rank() - input.rank();
  c.require(missing >= 0, "shape {} does not broadcast to {}", input.to_string(), output.to_string());
  for (int d = 0; d < input.rank(); ++d) {
    c.require(input[d] == 1 || input[d] == output[d + missing], "shape {} does not broadcast to {}", input.to_string(),
              output.to_string());
  }
  c.set_output_shape(0, output);
  finish_move(c, 0, stretched(input, output));
}

std::unique_ptr<Kernel> prepare_broadcast_to(PrepareContext& c) {
  return make_move_kernel(0, stretched(c.input(0).shape, c.output(0).shape));
}

void infer_fill(InferContext& c) {
  require_movable(c, c.input(1), {.strings = true});
  require_same_type(c, c.input(1), c.output(0));
  require_same_quantization(c, c.input(1), c.output(0));
  c.require_input_type(0, {DType::kInt32, DType::kInt64});
  c.require(c.input(0).shape.rank() == 1, "the shape to fill has shape {}, expected a vector",
            c.input(0).shape.to_string());
  c.require(c.input(1).shape.rank() == 0, "the value has shape {}, expected a scalar", c.input(1).shape.to_string());
  if (!c.known(0)) return c.defer();
  const Shape output = checked_shape(c, known_ints(c, 0));
  c.set_output_shape(0, output);
  finish_move(c, 1, stretched({}, output));
}

std::unique_ptr<Kernel> prepare_fill(PrepareContext& c) {
  return make_move_kernel(1, stretched({}, c.output(0).shape));
}

void infer_zeros_like(InferContext& c) {
  require_movable(c, c.input(0), {});
  require_same_type(c, c.input(0), c.output(0));
  c.set_output_shape(0, c.input(0).shape);
}

std::unique_ptr<Kernel> prepare_zeros_like(PrepareContext&) {
  return make_kernel([](RunContext& c) {
    const TensorView& out = c.output(0);
    if (out.bytes > 0) fill_bytes(out.data, std::byte{0}, out.bytes);
  });
}

}  // namespace

void register_broadcast(Registry& registry) {
  registry.add({.id = op::kTile,
                .max_version = 3,
                .min_inputs = 2,
                .max_inputs = 2,
                .required_inputs = 2,
                .options = builtin_options(51),
                .infer = infer_tile,
                .prepare = prepare_tile,
                .quantize = same_scale_rule({.int8 = 3, .int16 = 3}),
                .types = "all but sub-byte"});
  registry.add({.id = op::kBroadcastTo,
                .max_version = 4,
                .min_inputs = 2,
                .max_inputs = 2,
                .required_inputs = 2,
                .options = builtin_options(104),
                .infer = infer_broadcast_to,
                .prepare = prepare_broadcast_to,
                .quantize = same_scale_rule({.int8 = 3, .int16 = 3}),
                .types = "all"});
  registry.add({.id = op::kFill,
                .max_version = 5,
                .min_inputs = 2,
                .max_inputs = 2,
                .required_inputs = 2,
                .options = builtin_options(68),
                .infer = infer_fill,
                .prepare = prepare_fill,
                .quantize = same_scale_rule({.int8 = 3, .int16 = 3}),
                .types = "all but sub-byte"});
  registry.add({.id = op::kZerosLike,
                .min_inputs = 1,
                .max_inputs = 1,
                .required_inputs = 1,
                .options = builtin_options(67),
                .infer = infer_zeros_like,
                .prepare = prepare_zeros_like,
                .reads_shapes_only = true,
                .types = "all but strings and sub-byte"});
}

}  // namespace leadline::ops
