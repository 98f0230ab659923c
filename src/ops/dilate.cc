// SPDX-License-Identifier: Apache-2.0
// DILATE: padding between the elements of a tensor, so that neighbours along axis i come to lie dilations[i] apart.
#include <vector>

#include "ops/common.h"
#include "ops/families.h"
#include "ops/movement.h"
#include "ops/quantization_rules.h"

namespace leadline::ops {
namespace dilate {
namespace {

enum Input { kOperand = 0, kDilations = 1, kPadding = 2 };

void infer(InferContext& c) {
  require_movable(c, c.input(kOperand), {});
  require_same_type(c, c.input(kOperand), c.output(0));
  require_same_type(c, c.input(kOperand), c.input(kPadding));
  c.require_input_type(kDilations, {DType::kInt32});
  require_elements(c, kPadding, 1);
  const Shape& input = c.input(kOperand).shape;
  c.require(input.rank() >= 1, "the input is a scalar, expected at least a vector");
  c.require(c.input(kDilations).shape == Shape{input.rank()}, "the dilations have shape {}, expected [{}]",
            c.input(kDilations).shape.to_string(), input.rank());
  if (!c.known(kDilations)) return c.defer();
  const std::vector<int64_t> dilations = known_ints(c, kDilations);
  std::vector<int64_t> dims;
  for (int d = 0; d < input.rank(); ++d) {
    const int64_t dilation = dilations[static_cast<size_t>(d)];
    c.require(dilation >= 1, "the dilation of axis {} is {}, expected at least 1", d, dilation);
    dims.push_back(input[d] == 0 ? 0 : checked_add(c, checked_multiply(c, input[d] - 1, dilation), 1));
  }
  c.set_output_shape(0, checked_shape(c, dims));
}

std::unique_ptr<Kernel> prepare(PrepareContext& c) {
  const Shape& input = c.input(kOperand).shape;
  const Shape& output = c.output(0).shape;
  const auto from = element_strides(input);
  const auto to = element_strides(output);
  kernels::StridedCopy block;
  for (int d = 0; d < input.rank(); ++d) {
    // The last element lies at the end of its axis, which is how the dilation is found.
    const int64_t dilation = input[d] > 1 ? (output[d] - 1) / (input[d] - 1) : 1;
    block.add(input[d], from[static_cast<size_t>(d)], to[static_cast<size_t>(d)] * dilation);
  }
  return make_kernel([block, size = element_bytes(c.input(kOperand).dtype())](RunContext& run) {
    const TensorView& result = run.output(0);
    if (result.bytes == 0) return;
    if (result.elements() > run.input(kOperand).elements()) {
      fill_elements(result.data, result.elements(), run.input(kPadding).data, size);
    }
    copy_strided(block, size, run.input(kOperand).data, result.data, run.pool());
  });
}

}  // namespace
}  // namespace dilate

void register_dilate(Registry& registry) {
  using namespace dilate;
  registry.add({.id = op::kDilate,
                .min_inputs = 3,
                .max_inputs = 3,
                .required_inputs = 3,
                .options = builtin_options_2(18),
                .infer = infer,
                .prepare = prepare,
                .quantize = same_scale_rule({.int8 = 1, .int16 = 1}),
                .types = "all but sub-byte and strings"});
}

}  // namespace leadline::ops
