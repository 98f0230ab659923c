// SPDX-License-Identifier: Apache-2.0
// SPACE_TO_BATCH_ND, BATCH_TO_SPACE_ND: every block-th pixel of a (padded) image becomes an image of its own, and back.
#include <algorithm>
#include <array>
#include <cstring>

#include "ops/common.h"
#include "ops/families.h"
#include "ops/movement.h"
#include "ops/quantization_rules.h"

namespace leadline::ops {
namespace {

/// One axis that is spread over the batch: pixel x of the image is pixel (x + before) / block of the small image
/// number (x + before) % block.
struct BlockAxis {
  int64_t block = 1;
  int64_t before = 0;
  int64_t after = 0;
};

void check_block_operands(const InferContext& c) {
  require_movable(c, c.input(0), {});
  require_same_type(c, c.input(0), c.output(0));
  require_same_quantization(c, c.input(0), c.output(0));
  for (const int i : {1, 2}) c.require_input_type(i, {DType::kInt32, DType::kInt64});
  const Shape& block = c.input(1).shape;
  c.require(block.rank() == 1 && block[0] < c.input(0).shape.rank(),
            "the block has shape {}, which does not fit an input of shape {}", block.to_string(),
            c.input(0).shape.to_string());
  c.require(c.input(2).shape == Shape{block[0], 2}, "input 2 has shape {}, expected [{}, 2]",
            c.input(2).shape.to_string(), block[0]);
}

std::vector<BlockAxis> block_axes(const OpContext& c) {
  const auto blocks = known_ints(c, 1);
  const auto margins = known_ints(c, 2);
  std::vector<BlockAxis> axes(blocks.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    axes[i] = {blocks[i], margins[2 * i], margins[2 * i + 1]};
    c.require(axes[i].block >= 1 && axes[i].before >= 0 && axes[i].after >= 0,
              "axis {} has block {} and margins {} and {}", i + 1, axes[i].block, axes[i].before, axes[i].after);
  }
  return axes;
}

void infer_space_to_batch(InferContext& c) {
  check_block_operands(c);
  if (!c.known(1) || !c.known(2)) return c.defer();
  const Shape& input = c.input(0).shape;
  std::vector<int64_t> dims(input.begin(), input.end());
  const auto axes = block_axes(c);
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t padded = checked_add(c, checked_add(c, dims[i + 1], axes[i].before), axes[i].after);
    c.require(padded % axes[i].block == 0, "dimension {}, padded to {}, is not a multiple of the block {}", i + 1,
              padded, axes[i].block);
    dims[i + 1] = padded / axes[i].block;
    dims[0] = checked_multiply(c, dims[0], axes[i].block);
  }
  c.set_output_shape(0, checked_shape(c, dims));
}

void infer_batch_to_space(InferContext& c) {
  check_block_operands(c);
  if (!c.known(1) || !c.known(2)) return c.defer();
  const Shape& input = c.input(0).shape;
  std::vector<int64_t> dims(input.begin(), input.end());
  const auto axes = block_axes(c);
  for (size_t i = 0; i < axes.size(); ++i) {
    c.require(dims[0] % axes[i].block == 0, "a batch of {} is not a multiple of the blocks", input[0]);
    dims[0] /= axes[i].block;
    const int64_t crop = checked_add(c, axes[i].before, axes[i].after);
    const int64_t full = checked_multiply(c, dims[i + 1], axes[i].block);
    c.require(crop <= full, "{} pixels of dimension {}, which has {}, are cropped", crop, i + 1, full);
    dims[i + 1] = full - crop;
  }
  c.set_output_shape(0, checked_shape(c, dims));
}

/// Calls body(block) for the part of the image that lies in each small image, reading from the image.
template <typename Body>
void for_each_block(const Shape& image, const Shape& small, const std::vector<BlockAxis>& axes, const Body& body) {
  const auto image_strides = element_strides(image);
  const auto small_strides = element_strides(small);
  int64_t count = 1;
  for (const BlockAxis& axis : axes) count *= axis.block;
  for (int64_t number = 0; number < count; ++number) {
    kernels::StridedCopy block;
    block.add(image[0], image_strides[0], small_strides[0]);
    block.to = number * image[0] * small_strides[0];
    // The last axis counts fastest.
    std::array<int64_t, kMaxRank> offsets{};
    int64_t rest = number;
    for (size_t i = axes.size(); i-- > 0;) {
      offsets[i] = rest % axes[i].block;
      rest /= axes[i].block;
    }
    for (size_t i = 0; i < axes.size(); ++i) {
      const int64_t step = axes[i].block;
      const int64_t shift = offsets[i] - axes[i].before;  // pixel = small pixel * step + shift
      const int64_t first = shift >= 0 ? 0 : (-shift + step - 1) / step;
      const int64_t size = image[static_cast<int>(i) + 1];
      const int64_t end = size - shift <= 0 ? 0 : (size - shift + step - 1) / step;
      const int64_t pixels = std::max<int64_t>(0, end - first);
      block.add(pixels, pixels > 1 ? step * image_strides[i + 1] : 0, small_strides[i + 1]);
      if (pixels == 0) continue;
      block.from += (first * step + shift) * image_strides[i + 1];
      block.to += first * small_strides[i + 1];
    }
    for (size_t d = axes.size() + 1; d < image_strides.size(); ++d) {
      block.add(image[static_cast<int>(d)], image_strides[d], small_strides[d]);
    }
    body(block);
  }
}

std::unique_ptr<Kernel> prepare_space_to_batch(PrepareContext& c) {
  std::array<std::byte, 16> zero{};
  const DType type = c.output(0).dtype();
  const int64_t size = element_bytes(type);
  if (type == DType::kUInt8 || type == DType::kInt8 || type == DType::kInt16) {
    const auto zero_point = static_cast<int16_t>(c.output(0).quantization().zero_point0());
    std::memcpy(zero.data(), &zero_point, static_cast<size_t>(std::min<int64_t>(size, 2)));
  }
  const auto axes = block_axes(c);
  const bool padded = std::any_of(axes.begin(), axes.end(), [](const BlockAxis& a) { return a.before + a.after > 0; });
  return make_kernel([=](RunContext& run) {
    const TensorView& in = run.input(0);
    const TensorView& out = run.output(0);
    if (out.elements() == 0) return;
    if (padded) fill_elements(out.data, out.elements(), zero.data(), size);
    if (in.elements() == 0) return;
    for_each_block(in.shape, out.shape, axes, [&](const kernels::StridedCopy& block) {
      copy_strided(block, size, in.data, out.data, run.pool());
    });
  });
}

std::unique_ptr<Kernel> prepare_batch_to_space(PrepareContext& c) {
  const int64_t size = element_bytes(c.output(0).dtype());
  return make_kernel([size, axes = block_axes(c)](RunContext& run) {
    const TensorView& in = run.input(0);
    const TensorView& out = run.output(0);
    if (out.elements() == 0) return;
    for_each_block(out.shape, in.shape, axes, [&](kernels::StridedCopy block) {
      std::swap(block.from, block.to);
      for (auto& axis : block.axes) std::swap(axis.from, axis.to);
      copy_strided(block, size, in.data, out.data, run.pool());
    });
  });
}

}  // namespace

void register_space_batch(Registry& registry) {
  registry.add({.id = op::kSpaceToBatchNd,
                .max_version = 4,
                .min_inputs = 3,
                .max_inputs = 3,
                .required_inputs = 3,
                .options = builtin_options(25),
                .infer = infer_space_to_batch,
                .prepare = prepare_space_to_batch,
                .quantize = same_scale_rule({.int8 = 2, .int16 = 4}),
                .types = "all but strings"});
  registry.add({.id = op::kBatchToSpaceNd,
                .max_version = 4,
                .min_inputs = 3,
                .max_inputs = 3,
                .required_inputs = 3,
                .options = builtin_options(24),
                .infer = infer_batch_to_space,
                .prepare = prepare_batch_to_space,
                .quantize = same_scale_rule({.int8 = 2, .int16 = 4}),
                .types = "all but strings"});
}

}  // namespace leadline::ops
