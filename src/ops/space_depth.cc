// SPDX-License-Identifier: Apache-2.0
// SPACE_TO_DEPTH, DEPTH_TO_SPACE: square blocks of an NHWC image become channels, and back.
#include "ops/space_depth.h"

#include "ops/common.h"
#include "ops/families.h"
#include "ops/movement.h"
#include "ops/quantization_rules.h"

namespace leadline::ops {
namespace {

/// Checks what both ops ask for; returns the block size.
int64_t check_image(const InferContext& c) {
  require_movable(c, c.input(0), {});
  require_same_type(c, c.input(0), c.output(0));
  c.require(c.input(0).shape.rank() == 4, "the input has shape {}, expected rank 4", c.input(0).shape.to_string());
  const int64_t block = c.attributes<BlockSizeAttributes>().block_size;
  c.require(block > 0, "the block size is {}, expected at least 1", block);
  return block;
}

void infer_space_to_depth(InferContext& c) {
  const int64_t block = check_image(c);
  const Shape& in = c.input(0).shape;
  c.require(in[1] % block == 0 && in[2] % block == 0, "an image of {} x {} has no whole blocks of {}", in[1], in[2],
            block);
  const int64_t channels = checked_multiply(c, in[3], block * block);
  c.set_output_shape(0, checked_shape(c, {in[0], in[1] / block, in[2] / block, channels}));
}

std::unique_ptr<Kernel> prepare_space_to_depth(PrepareContext& c) {
  const int64_t block = c.attributes<BlockSizeAttributes>().block_size;
  const Shape& in = c.input(0).shape;
  const auto strides = element_strides(in);
  kernels::StridedCopy copy;
  copy.add(in[0], strides[0]);
  copy.add(in[1] / block, block * strides[1]);
  copy.add(in[2] / block, block * strides[2]);
  copy.add(block, strides[1]);
  copy.add(block, strides[2]);
  copy.add(in[3], strides[3]);
  copy.pack();
  return make_move_kernel(0, copy);
}

void infer_depth_to_space(InferContext& c) {
  const int64_t block = check_image(c);
  const Shape& in = c.input(0).shape;
  c.require(in[3] % (block * block) == 0, "{} channels have no whole blocks of {} x {}", in[3], block, block);
  c.set_output_shape(0, checked_shape(c, {in[0], checked_multiply(c, in[1], block), checked_multiply(c, in[2], block),
                                          in[3] / (block * block)}));
}

std::unique_ptr<Kernel> prepare_depth_to_space(PrepareContext& c) {
  const int64_t block = c.attributes<BlockSizeAttributes>().block_size;
  const Shape& in = c.input(0).shape;
  const int64_t channels = in[3] / (block * block);
  const auto strides = element_strides(in);
  kernels::StridedCopy copy;
  copy.add(in[0], strides[0]);
  copy.add(in[1], strides[1]);
  copy.add(block, block * channels);
  copy.add(in[2], strides[2]);
  copy.add(block, channels);
  copy.add(channels, 1);
  copy.pack();
  return make_move_kernel(0, copy);
}

}  // namespace

void register_space_depth(Registry& registry) {
  registry.add({.id = op::kSpaceToDepth,
                .max_version = 2,
                .min_inputs = 1,
                .max_inputs = 1,
                .required_inputs = 1,
                .options = builtin_options(19),
                .make_attributes = make_attributes<BlockSizeAttributes>,
                .infer = infer_space_to_depth,
                .prepare = prepare_space_to_depth,
                .quantize = same_scale_rule({.int8 = 2}),
                .types = "all but strings"});
  registry.add({.id = op::kDepthToSpace,
                .max_version = 2,
                .min_inputs = 1,
                .max_inputs = 1,
                .required_inputs = 1,
                .options = builtin_options(94),
                .make_attributes = make_attributes<BlockSizeAttributes>,
                .infer = infer_depth_to_space,
                .prepare = prepare_depth_to_space,
                .quantize = same_scale_rule({.int8 = 2}),
                .types = "all but strings"});
}

}  // namespace leadline::ops
