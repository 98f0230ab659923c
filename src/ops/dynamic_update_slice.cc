// SPDX-License-Identifier: Apache-2.0
// DYNAMIC_UPDATE_SLICE: a tensor with a block of it replaced. Where the block starts is known while running only, and
// is moved inside when the block would not fit. Caches are updated in place.
#include <algorithm>
#include <array>
#include <cstring>

#include "ops/common.h"
#include "ops/families.h"
#include "ops/movement.h"
#include "ops/quantization_rules.h"

namespace leadline::ops {
namespace dynamic_update_slice {
namespace {

enum Input { kOperand = 0, kUpdate = 1, kStart = 2 };

void infer(InferContext& c) {
  require_movable(c, c.input(kOperand), {.sub_byte = true});
  require_same_type(c, c.input(kOperand), c.input(kUpdate));
  require_same_type(c, c.input(kOperand), c.output(0));
  c.require_input_type(kStart, {DType::kInt32, DType::kInt64});
  const Shape& operand = c.input(kOperand).shape;
  const Shape& update = c.input(kUpdate).shape;
  c.require(c.input(kStart).shape == Shape{operand.rank()}, "the start indices have shape {}, expected [{}]",
            c.input(kStart).shape.to_string(), operand.rank());
  bool fits = update.rank() == operand.rank();
  for (int d = 0; fits && d < update.rank(); ++d) fits = update[d] <= operand[d];
  c.require(fits, "an update of shape {} does not fit into shape {}", update.to_string(), operand.to_string());
  c.set_output_shape(0, operand);
}

/// The update, with the axes' limits for its start.
struct UpdateBlock {
  kernels::StridedCopy copy;
  std::array<int64_t, kMaxRank> last_start{};
  bool whole = false;  // nothing of the operand is left
};

UpdateBlock update_block(const OpContext& c) {
  const Shape& operand = c.input(kOperand).shape;
  const Shape& update = c.input(kUpdate).shape;
  const auto from = element_strides(update);
  const auto to = element_strides(operand);
  UpdateBlock block;
  block.whole = update.elements() == operand.elements();
  for (int d = 0; d < operand.rank(); ++d) {
    block.copy.add(update[d], from[static_cast<size_t>(d)], to[static_cast<size_t>(d)]);
    block.last_start[static_cast<size_t>(d)] = operand[d] - update[d];
  }
  return block;
}

void put_packed_block(const kernels::StridedCopy& copy, int bits, const std::byte* from, std::byte* to) {
  kernels::StridedCopy targets = copy;  // for_each_source walks `from` strides
  for (auto& axis : targets.axes) axis.from = axis.to;
  targets.from = copy.to;
  int64_t next = 0;
  for_each_source(targets, 8, [&](int64_t at) { put_packed(to, at, bits, get_packed(from, next++, bits)); });
}

void run(const RunContext& c, const UpdateBlock& block) {
  const TensorView& operand = c.input(kOperand);
  const TensorView& update = c.input(kUpdate);
  const TensorView& start = c.input(kStart);
  const TensorView& output = c.output(0);
  if (output.bytes == 0) return;
  if (block.whole) {
    if (update.data != output.data) copy_bytes(output.data, update.data, output.bytes);
    return;
  }
  // Read before anything is written: the output may be any input's memory.
  kernels::StridedCopy copy = block.copy;
  for (int d = 0; d < copy.rank; ++d) {
    const auto axis = static_cast<size_t>(d);
    copy.to +=
        std::clamp<int64_t>(load_index(start.data, start.dtype, d), 0, block.last_start[axis]) * copy.axes[axis].to;
  }
  if (operand.data != output.data) copy_bytes(output.data, operand.data, output.bytes);
  if (update.elements() == 0) return;
  const int bits = dtype_bits(output.dtype);
  if (bits < 8) {
    put_packed_block(copy, bits, update.data, output.data);
  } else {
    copy_strided(copy, bits / 8, update.data, output.data, c.pool());
  }
}

std::unique_ptr<Kernel> prepare(PrepareContext& c) {
  return make_kernel([block = update_block(c)](RunContext& context) { run(context, block); });
}

}  // namespace
}  // namespace dynamic_update_slice

void register_dynamic_update_slice(Registry& registry) {
  using namespace dynamic_update_slice;
  registry.add({.id = op::kDynamicUpdateSlice,
                .max_version = 6,
                .min_inputs = 3,
                .max_inputs = 3,
                .required_inputs = 3,
                .options = builtin_options(117),
                .infer = infer,
                .prepare = prepare,
                .sharing = Sharing::kInPlace,
                .quantize = same_scale_rule({.int8 = 1}),
                .types = "all but strings"});
}

}  // namespace leadline::ops
