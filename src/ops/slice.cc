// SPDX-License-Identifier: Apache-2.0
// SLICE, STRIDED_SLICE: a box of a tensor. Shapes that follow from constants are known before the run even when
// where the box begins is not.
#include "ops/slice.h"

#include <algorithm>

#include "ops/common.h"
#include "ops/families.h"
#include "ops/movement.h"
#include "ops/quantization_rules.h"

namespace leadline::ops {
namespace {

using kernels::StridedCopy;

/// Integers of a tensor while running.
std::vector<int64_t> run_ints(const TensorView& tensor) {
  std::vector<int64_t> values(static_cast<size_t>(tensor.elements()));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = load_index(tensor.data, tensor.dtype, static_cast<int64_t>(i));
  }
  return values;
}

void check_slice_operands(const InferContext& c, std::initializer_list<DType> index_types) {
  require_movable(c, c.input(0), {.strings = true, .sub_byte = true});
  require_same_type(c, c.input(0), c.output(0));
  for (int i = 1; i < c.input_count(); ++i) {
    c.require_input_type(i, index_types);
    c.require(c.input(i).shape.rank() == 1 && c.input(i).shape == c.input(1).shape,
              "input {} has shape {}, expected a vector as long as input 1, which has {}", i,
              c.input(i).shape.to_string(), c.input(1).shape.to_string());
  }
}

/// The box from `begins` with the output's sizes. Context: OpContext or RunContext.
template <typename Context>
StridedCopy slice_block(const Context& c, const Shape& input, const Shape& output, const std::vector<int64_t>& begins) {
  const auto strides = element_strides(input);
  StridedCopy block;
  for (int d = 0; d < input.rank(); ++d) {
    const auto i = static_cast<size_t>(d);
    c.require(begins[i] >= 0 && begins[i] <= input[d] - output[d],
              "a slice of {} elements from {} leaves dimension {} of shape {}", output[d], begins[i], d,
              input.to_string());
    block.add(output[d], strides[i]);
    block.from += begins[i] * strides[i];
  }
  block.pack();
  return block;
}

/// Output 0 is `block` of input 0, and stays in the input where that is possible.
std::unique_ptr<Kernel> make_slice_kernel(PrepareContext& c, const StridedCopy& block) {
  const int64_t size = element_bytes(c.input(0).dtype());
  bool contiguous = size > 0 && block.elements() > 0;
  for (int d = 0; d < block.rank; ++d) {
    const StridedCopy::Axis& axis = block.axes[static_cast<size_t>(d)];
    contiguous = contiguous && (axis.size == 1 || axis.from == axis.to);
  }
  if (!contiguous) return make_move_kernel(0, block);
  const int64_t offset = block.from * size;
  c.output_is_slice_of(0, 0, offset);
  return make_kernel([block, offset](RunContext& run) {
    if (run.output(0).data == run.input(0).data + offset) return;
    move_elements(run, run.input(0), run.output(0), block);
  });
}

void infer_slice(InferContext& c) {
  check_slice_operands(c, {DType::kInt32, DType::kInt64});
  const Shape& input = c.input(0).shape;
  require_elements(c, 1, input.rank());
  if (!c.known(2)) return c.defer();
  std::vector<int64_t> sizes = known_ints(c, 2);
  const bool open = std::any_of(sizes.begin(), sizes.end(), [](int64_t size) { return size < 0; });
  if (!c.known(1)) {
    if (open || c.input(0).dtype() == DType::kString) return c.defer();
  }
  std::vector<int64_t> begins(sizes.size(), 0);
  if (c.known(1)) begins = known_ints(c, 1);
  for (int d = 0; d < input.rank(); ++d) {
    const auto i = static_cast<size_t>(d);
    c.require(sizes[i] >= -1, "dimension {} has size {}", d, sizes[i]);
    c.require(begins[i] >= 0 && begins[i] <= input[d], "the slice begins at {}, outside dimension {} of shape {}",
              begins[i], d, input.to_string());
    if (sizes[i] == -1) sizes[i] = input[d] - begins[i];
    c.require(sizes[i] <= input[d], "a slice of {} elements does not fit into dimension {} of shape {}", sizes[i], d,
              input.to_string());
  }
  const Shape output = checked_shape(c, sizes);
  c.set_output_shape(0, output);
  if (c.known(1)) finish_move(c, 0, slice_block(c, input, output, begins));
}

std::unique_ptr<Kernel> prepare_slice(PrepareContext& c) {
  const Shape input = c.input(0).shape;
  const Shape output = c.output(0).shape;
  if (c.input(1).known) return make_slice_kernel(c, slice_block(c, input, output, known_ints(c, 1)));
  return make_kernel([=](RunContext& run) {
    move_elements(run, run.input(0), run.output(0), slice_block(run, input, output, run_ints(run.input(1))));
  });
}

/// One axis of the input, or a new one, and the entry of begin/end/strides that speaks about it.
struct Axis {
  int input = -1;  // -1: a new axis of size 1
  int entry = -1;  // -1: the whole axis
  bool shrink = false;
};

bool bit(int32_t mask, int i) { return ((static_cast<uint32_t>(mask) >> i) & 1U) != 0; }

/// Entries matched to axes, the ellipsis expanded.
std::vector<Axis> match_axes(const OpContext& c) {
  const auto& a = c.attributes<StridedSliceAttributes>();
  const int rank = c.input(0).shape.rank();
  const auto entries = static_cast<int>(c.input(1).shape[0]);
  int named = 0;  // axes of the input that entries name
  bool ellipsis = false;
  for (int i = 0; i < entries; ++i) {
    if (bit(a.ellipsis_mask, i)) {
      c.require(!ellipsis, "the ellipsis mask {:#x} has more than one bit", static_cast<uint32_t>(a.ellipsis_mask));
      ellipsis = true;
    } else if (!bit(a.new_axis_mask, i)) {
      ++named;
    }
  }
  c.require(named <= rank, "{} axes are indexed, but the input has rank {}", named, rank);
  std::vector<Axis> axes;
  int next = 0;
  auto take_whole = [&](int count) {
    for (int k = 0; k < count; ++k) axes.push_back({next++, -1, false});
  };
  for (int i = 0; i < entries; ++i) {
    if (bit(a.ellipsis_mask, i)) {
      take_whole(rank - named);
    } else if (bit(a.new_axis_mask, i)) {
      axes.push_back({-1, i, false});
    } else {
      axes.push_back({next++, i, bit(a.shrink_axis_mask, i)});
    }
  }
  take_whole(rank - next);
  return axes;
}

struct Range {
  int64_t start = 0;
  int64_t length = 0;
  int64_t stride = 1;
  bool inside = true;  // all its elements are elements of the axis
};

int64_t range_length(int64_t distance, int64_t stride) {
  if (distance == 0 || (distance < 0) != (stride < 0)) return 0;
  return stride > 0 ? (distance - 1) / stride + 1 : (distance + 1) / stride + 1;
}

/// The elements of an axis of `size` that entry `axis.entry` takes, by TFLite's rules.
Range resolve_range(const StridedSliceAttributes& a, const Axis& axis, int64_t size, int64_t begin, int64_t end,
                    int64_t stride) {
  auto wrap = [&](int64_t index) {
    if (index < 0) index += size;
    return stride > 0 ? std::clamp<int64_t>(index, 0, size) : std::clamp<int64_t>(index, -1, size - 1);
  };
  Range range;
  range.stride = stride;
  range.start = wrap(begin);
  if (bit(a.begin_mask, axis.entry)) range.start = stride > 0 ? 0 : size - 1;
  if (axis.shrink) {
    range.length = 1;
    range.inside = range.start >= 0 && range.start < size && stride > 0;
    return range;
  }
  const bool to_end = bit(a.end_mask, axis.entry);
  if (a.offset && !to_end) {
    range.length = range_length(end, stride);
    const int64_t last = range.start + (range.length - 1) * stride;
    range.inside = range.length == 0 || (range.start >= 0 && range.start < size && last >= 0 && last < size);
    return range;
  }
  int64_t stop = wrap(end);
  if (to_end) stop = stride > 0 ? size : -1;
  range.length = range_length(stop - range.start, stride);
  return range;
}

/// What a strided slice takes. A box that leaves the input is an error only when it runs: models of unknown rank
/// are planned with shapes that change before the first run.
struct Box {
  StridedCopy block;
  std::vector<int64_t> dims;  // of the output
  int left = -1;              // an axis of the input that the box leaves

  template <typename Context>
  void require_inside(const Context& c, const Shape& input) const {
    c.require(left < 0, "the slice leaves dimension {} of shape {}", left, input.to_string());
  }
};

Box strided_box(const StridedSliceAttributes& a, const Shape& input, const std::vector<Axis>& axes,
                const std::vector<int64_t>& begins, const std::vector<int64_t>& ends,
                const std::vector<int64_t>& steps) {
  const auto strides = element_strides(input);
  Box box;
  for (const Axis& axis : axes) {
    if (axis.input < 0) {
      box.dims.push_back(1);
      continue;
    }
    const int64_t size = input[axis.input];
    Range range = {0, size, 1, true};
    if (axis.entry >= 0) {
      const auto i = static_cast<size_t>(axis.entry);
      range = resolve_range(a, axis, size, begins[i], ends[i], steps[i]);
    }
    if (!range.inside) box.left = axis.input;
    if (!axis.shrink) box.dims.push_back(range.length);
    const int64_t stride = strides[static_cast<size_t>(axis.input)];
    // The step of a single element is not needed, and would overflow for strides near the ends of int32.
    box.block.add(range.length, range.length > 1 ? range.stride * stride : 0);
    if (range.length > 0) box.block.from += range.start * stride;
  }
  box.block.pack();
  return box;
}

/// With `offset` the length of every range is known without its begin, unless an end mask asks for the rest.
bool shape_needs_begin(const StridedSliceAttributes& a, const std::vector<Axis>& axes) {
  return std::any_of(axes.begin(), axes.end(), [&](const Axis& axis) {
    if (axis.input < 0 || axis.entry < 0 || axis.shrink) return false;
    return !a.offset || (bit(a.end_mask, axis.entry) && !bit(a.begin_mask, axis.entry));
  });
}

void infer_strided_slice(InferContext& c) {
  check_slice_operands(c, {DType::kInt32});
  const auto& a = c.attributes<StridedSliceAttributes>();
  c.require(c.input(1).shape[0] <= 31, "there are {} indices, at most 31 are supported", c.input(1).shape[0]);
  const std::vector<Axis> axes = match_axes(c);
  if (!c.known(2) || !c.known(3)) return c.defer();
  const std::vector<int64_t> ends = known_ints(c, 2);
  const std::vector<int64_t> steps = known_ints(c, 3);
  for (const int64_t step : steps) c.require(step != 0, "a stride is 0");
  const Shape& input = c.input(0).shape;
  if (c.known(1)) {
    const Box box = strided_box(a, input, axes, known_ints(c, 1), ends, steps);
    c.set_output_shape(0, checked_shape(c, box.dims));
    if (c.input(0).dtype() == DType::kString && c.known(0)) box.require_inside(c, input);
    finish_move(c, 0, box.block);
    return;
  }
  if (shape_needs_begin(a, axes) || c.input(0).dtype() == DType::kString) return c.defer();
  std::vector<int64_t> dims;
  for (const Axis& axis : axes) {
    const auto i = static_cast<size_t>(std::max(axis.entry, 0));
    if (axis.shrink) continue;
    if (axis.input < 0) {
      dims.push_back(1);
    } else if (axis.entry < 0 || bit(a.end_mask, axis.entry)) {
      const int64_t step = axis.entry < 0 ? 1 : steps[i];
      dims.push_back(range_length(step > 0 ? input[axis.input] : -input[axis.input], step));
    } else {
      dims.push_back(range_length(ends[i], steps[i]));
      c.require(dims.back() <= input[axis.input], "{} elements do not fit into dimension {} of shape {}", dims.back(),
                axis.input, input.to_string());
    }
  }
  c.set_output_shape(0, checked_shape(c, dims));
}

std::unique_ptr<Kernel> prepare_strided_slice(PrepareContext& c) {
  const auto& a = c.attributes<StridedSliceAttributes>();
  const Shape input = c.input(0).shape;
  const std::vector<Axis> axes = match_axes(c);
  const std::vector<int64_t> ends = known_ints(c, 2);
  const std::vector<int64_t> steps = known_ints(c, 3);
  const bool known = c.input(1).known;
  const Box planned = known ? strided_box(a, input, axes, known_ints(c, 1), ends, steps) : Box{};
  if (known && planned.left < 0) return make_slice_kernel(c, planned.block);
  return make_kernel([=](RunContext& run) {
    const Box box = known ? planned : strided_box(a, input, axes, run_ints(run.input(1)), ends, steps);
    box.require_inside(run, input);
    move_elements(run, run.input(0), run.output(0), box.block);
  });
}

}  // namespace

void register_slice(Registry& registry) {
  registry.add({.id = op::kSlice,
                .max_version = 8,
                .min_inputs = 3,
                .max_inputs = 3,
                .required_inputs = 3,
                .options = builtin_options(48),
                .infer = infer_slice,
                .prepare = prepare_slice,
                .quantize = same_scale_rule({.int8 = 2, .int16 = 4}),
                .types = "all"});
  registry.add({.id = op::kStridedSlice,
                .max_version = 8,
                .min_inputs = 4,
                .max_inputs = 4,
                .required_inputs = 4,
                .options = builtin_options(32),
                .make_attributes = make_attributes<StridedSliceAttributes>,
                .infer = infer_strided_slice,
                .prepare = prepare_strided_slice,
                .quantize = same_scale_rule({.int8 = 2, .int16 = 2}),
                .types = "all"});
}

}  // namespace leadline::ops
