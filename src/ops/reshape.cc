// SPDX-License-Identifier: Apache-2.0
// RESHAPE, SQUEEZE, EXPAND_DIMS: the same elements under another shape.
#include "ops/reshape.h"

#include <array>
#include <cstring>

#include "ops/common.h"
#include "ops/families.h"
#include "ops/movement.h"
#include "ops/quantization_rules.h"

namespace leadline::ops {
namespace {

/// Output 0 is input 0 with this shape. The bytes of strings are known with their data.
void set_view(InferContext& c, const Shape& shape) {
  c.set_output_shape(0, shape);
  if (c.input(0).dtype() != DType::kString) return;
  if (!c.known(0)) return c.defer();
  known_strings(c, 0);
  c.set_output_bytes(0, c.input(0).bytes);
}

void require_view_types(const InferContext& c) {
  require_movable(c, c.input(0), {.strings = true, .sub_byte = true});
  require_same_type(c, c.input(0), c.output(0));
}

/// `wanted` with its -1, if there is one, replaced by what is left of the input's elements.
Shape resolve_shape(const InferContext& c, const Shape& input, std::vector<int64_t> wanted) {
  int stretched = -1;
  int64_t others = 1;  // elements of the other dimensions, counting 0 as 1
  bool has_zero = false;
  for (size_t d = 0; d < wanted.size(); ++d) {
    if (wanted[d] == -1) {
      c.require(stretched < 0, "the new shape has more than one -1");
      stretched = static_cast<int>(d);
      continue;
    }
    c.require(wanted[d] >= 0, "the new shape has a dimension of {}", wanted[d]);
    if (wanted[d] == 0) {
      has_zero = true;
    } else {
      others = checked_multiply(c, others, wanted[d]);
    }
  }
  if (stretched >= 0) {
    // TFLite's rule for empty tensors: 0, or the quotient of the nonzero dimensions when the new shape has a 0.
    int64_t elements = 1;
    for (const int64_t size : input) elements = size == 0 ? elements : checked_multiply(c, elements, size);
    const bool empty = input.elements() == 0;
    wanted[static_cast<size_t>(stretched)] = empty && !has_zero ? 0 : elements / others;
  }
  const Shape shape = checked_shape(c, wanted);
  c.require(shape.elements() == input.elements(), "a tensor of shape {} cannot get shape {}", input.to_string(),
            shape.to_string());
  return shape;
}

void infer_reshape(InferContext& c) {
  require_view_types(c);
  std::vector<int64_t> wanted;
  const bool from_tensor = c.has_input(1) && c.input(1).shape.rank() == 1;
  if (from_tensor) {
    c.require_input_type(1, {DType::kInt32, DType::kInt64});
    if (!c.known(1)) return c.defer();
    wanted = known_ints(c, 1);
  } else {
    const auto& attribute = c.attributes<ReshapeAttributes>().new_shape;
    // Old converters wrote [0] for a scalar.
    if (!(attribute.size() == 1 && attribute[0] == 0)) wanted.assign(attribute.begin(), attribute.end());
  }
  set_view(c, resolve_shape(c, c.input(0).shape, std::move(wanted)));
}

void infer_squeeze(InferContext& c) {
  require_view_types(c);
  const Shape& input = c.input(0).shape;
  const auto& dims = c.attributes<SqueezeAttributes>().squeeze_dims;
  std::array<bool, kMaxRank> drop{};
  for (const int32_t dim : dims) {
    const int axis = resolve_axis(c, dim, input.rank());
    c.require(input[axis] == 1, "dimension {} of shape {} is not 1 and cannot be dropped", axis, input.to_string());
    drop[static_cast<size_t>(axis)] = true;
  }
  Shape output;
  for (int d = 0; d < input.rank(); ++d) {
    const bool dropped = dims.empty() ? input[d] == 1 : drop[static_cast<size_t>(d)];
    if (!dropped) output.push_back(input[d]);
  }
  set_view(c, output);
}

void infer_expand_dims(InferContext& c) {
  require_view_types(c);
  require_same_quantization(c, c.input(0), c.output(0));
  c.require_input_type(1, {DType::kInt32, DType::kInt64});
  require_elements(c, 1, 1);
  if (!c.known(1)) return c.defer();
  const Shape& input = c.input(0).shape;
  const int axis = resolve_axis(c, known_ints(c, 1)[0], input.rank() + 1);
  std::vector<int64_t> dims(input.begin(), input.end());
  dims.insert(dims.begin() + axis, 1);
  set_view(c, checked_shape(c, dims));
}

std::unique_ptr<Kernel> prepare_view(PrepareContext&) {
  return make_kernel([](RunContext& c) {
    const TensorView& from = c.input(0);
    const TensorView& to = c.output(0);
    if (from.data != to.data && to.bytes > 0) copy_bytes(to.data, from.data, to.bytes);
  });
}

}  // namespace

void register_reshape(Registry& registry) {
  registry.add({.id = op::kReshape,
                .min_inputs = 1,
                .max_inputs = 2,
                .required_inputs = 1,
                .options = builtin_options(17),
                .make_attributes = make_attributes<ReshapeAttributes>,
                .infer = infer_reshape,
                .prepare = prepare_view,
                .sharing = Sharing::kView,
                .reshapes = true,
                .quantize = same_scale_rule({.int8 = 1, .int16 = 1}),
                .types = "all"});
  registry.add({.id = op::kSqueeze,
                .max_version = 2,
                .min_inputs = 1,
                .max_inputs = 1,
                .required_inputs = 1,
                .options = builtin_options(30),
                .make_attributes = make_attributes<SqueezeAttributes>,
                .infer = infer_squeeze,
                .prepare = prepare_view,
                .sharing = Sharing::kView,
                .reshapes = true,
                .quantize = same_scale_rule({.int8 = 1, .int16 = 1}),
                .types = "all"});
  registry.add({.id = op::kExpandDims,
                .min_inputs = 2,
                .max_inputs = 2,
                .required_inputs = 2,
                .options = builtin_options(52),
                .infer = infer_expand_dims,
                .prepare = prepare_view,
                .sharing = Sharing::kView,
                .reshapes = true,
                .quantize = same_scale_rule({.int8 = 1, .int16 = 1}),
                .types = "all"});
}

}  // namespace leadline::ops
