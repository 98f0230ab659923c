// SPDX-License-Identifier: Apache-2.0
// BITCAST: the same bits read as another type. A wider type takes in the last axis, a narrower one adds an axis.
// Not a view: constants are aligned for the type they have in the file only.
#include <cstring>
#include <vector>

#include "ops/common.h"
#include "ops/families.h"
#include "ops/movement.h"

namespace leadline::ops {
namespace {

/// Handles name objects of the runtime, so numbers must not become handles.
void require_plain(const OpContext& c, const Operand& operand) {
  require_movable(c, operand, {.sub_byte = true});
  if (operand.dtype() == DType::kResource || operand.dtype() == DType::kVariant) {
    c.fail(ErrorCode::kUnsupported, "tensor '{}' has type {}, which has no bits to cast", operand.value->name,
           dtype_name(operand.dtype()));
  }
}

void infer_bitcast(InferContext& c) {
  require_plain(c, c.input(0));
  require_plain(c, c.output(0));
  const int from = dtype_bits(c.input(0).dtype());
  const int to = dtype_bits(c.output(0).dtype());
  const Shape& shape = c.input(0).shape;
  std::vector<int64_t> dims(shape.begin(), shape.end());
  if (from > to) {
    dims.push_back(from / to);
  } else if (from < to) {
    c.require(!dims.empty() && dims.back() == to / from, "{} of shape {} cannot become {}: the last axis must be {}",
              dtype_name(c.input(0).dtype()), shape.to_string(), dtype_name(c.output(0).dtype()), to / from);
    dims.pop_back();
  }
  c.set_output_shape(0, checked_shape(c, dims));
}

std::unique_ptr<Kernel> prepare_bitcast(PrepareContext&) {
  return make_kernel([](RunContext& c) {
    const TensorView& output = c.output(0);
    const std::byte* from = c.input(0).data;
    if (output.bytes > 0 && from != output.data) copy_bytes(output.data, from, output.bytes);
  });
}

}  // namespace

void register_bitcast(Registry& registry) {
  registry.add({.id = op::kBitcast,
                .min_inputs = 1,
                .max_inputs = 1,
                .required_inputs = 1,
                .options = builtin_options(124),
                .infer = infer_bitcast,
                .prepare = prepare_bitcast,
                .sharing = Sharing::kInPlace,
                .types = "all but strings"});
}

}  // namespace leadline::ops
