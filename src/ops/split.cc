// SPDX-License-Identifier: Apache-2.0
// SPLIT, SPLIT_V, UNPACK: one tensor cut into several along an axis.
#include "ops/split.h"

#include <algorithm>
#include <cstring>

#include "ops/common.h"
#include "ops/families.h"
#include "ops/movement.h"
#include "ops/quantization_rules.h"

namespace leadline::ops {
namespace {

void check_split(const InferContext& c, int data, int count) {
  require_movable(c, c.input(data), {});
  c.require(count == c.output_count(), "the op has {} outputs, but its attribute says {}", c.output_count(), count);
  for (int i = 0; i < c.output_count(); ++i) require_same_type(c, c.input(data), c.output(i));
}

/// One row: output i is the next runs[i] elements of input `data`. Those that lie in the input stay there.
std::unique_ptr<Kernel> make_piece_kernel(PrepareContext& c, int data, std::vector<int64_t> runs) {
  const int64_t size = element_bytes(c.input(data).dtype());
  int64_t at = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    c.output_is_slice_of(static_cast<int>(i), data, at);
    at += runs[i] * size;
  }
  return make_kernel([=, runs = std::move(runs)](RunContext& run) {
    const std::byte* source = run.input(data).data;
    for (size_t i = 0; i < runs.size(); ++i) {
      std::byte* target = run.output(static_cast<int>(i)).data;
      const int64_t bytes = runs[i] * size;
      if (source != target && bytes > 0) {
        run.pool().for_pieces(bytes, kByteCost, [&](int64_t begin, int64_t end) {
          std::memcpy(target + begin, source + begin, static_cast<size_t>(end - begin));
        });
      }
      source += bytes;
    }
  });
}

/// Output i is elements [sum of runs before it, + runs[i]) of each of `rows` rows of input `data`.
std::unique_ptr<Kernel> make_cut_kernel(PrepareContext& prepare, int data, int64_t rows, std::vector<int64_t> runs) {
  if (rows == 1) return make_piece_kernel(prepare, data, std::move(runs));
  const int64_t size = element_bytes(prepare.input(data).dtype());
  int64_t row = 0;
  for (const int64_t run : runs) row += run;
  return make_kernel([=, runs = std::move(runs)](RunContext& c) {
    if (row == 0 || rows == 0) return;
    const std::byte* input = c.input(data).data;
    c.pool().for_pieces(rows, kByteCost * static_cast<double>(row * size) + 4, [&](int64_t begin, int64_t end) {
      int64_t at = 0;
      for (size_t i = 0; i < runs.size(); ++i) {
        const int64_t run = runs[i];
        if (run == 0) continue;
        std::byte* to = c.output(static_cast<int>(i)).data;
        for (int64_t r = begin; r < end; ++r) {
          copy_bytes(to + r * run * size, input + (r * row + at) * size, run * size);
        }
        at += run;
      }
    });
  });
}

/// Pieces of input `data` along `axis`, as long as the outputs' shapes say.
std::unique_ptr<Kernel> cut_along(PrepareContext& c, int data, int axis) {
  const Shape& input = c.input(data).shape;
  std::vector<int64_t> runs;
  for (int i = 0; i < c.output_count(); ++i) {
    const Shape& output = c.output(i).shape;
    runs.push_back(span_elements(output, axis, output.rank()));
  }
  return make_cut_kernel(c, data, span_elements(input, 0, axis), std::move(runs));
}

void infer_split(InferContext& c) {
  const int count = c.attributes<SplitAttributes>().num_splits;
  check_split(c, 1, count);
  c.require_input_type(0, {DType::kInt32});
  require_elements(c, 0, 1);
  if (!c.known(0)) return c.defer();
  const Shape& input = c.input(1).shape;
  const int axis = resolve_axis(c, known_ints(c, 0)[0], input.rank());
  c.require(count > 0 && input[axis] % count == 0, "dimension {} of shape {} does not split into {} equal parts", axis,
            input.to_string(), count);
  Shape output = input;
  output.set(axis, input[axis] / count);
  for (int i = 0; i < c.output_count(); ++i) c.set_output_shape(i, output);
}

std::unique_ptr<Kernel> prepare_split(PrepareContext& c) {
  return cut_along(c, 1, resolve_axis(c, known_ints(c, 0)[0], c.input(1).shape.rank()));
}

void infer_split_v(InferContext& c) {
  check_split(c, 0, c.attributes<SplitAttributes>().num_splits);
  c.require_input_type(1, {DType::kInt32, DType::kInt64});
  c.require_input_type(2, {DType::kInt32});
  c.require(c.input(1).shape == Shape{c.output_count()}, "the sizes have shape {}, expected [{}]",
            c.input(1).shape.to_string(), c.output_count());
  require_elements(c, 2, 1);
  if (!c.known(1) || !c.known(2)) return c.defer();
  const Shape& input = c.input(0).shape;
  const int axis = resolve_axis(c, known_ints(c, 2)[0], input.rank());
  std::vector<int64_t> sizes = known_ints(c, 1);
  int64_t sum = 0;
  int64_t* rest = nullptr;
  for (int64_t& size : sizes) {
    c.require(size >= -1, "a part has size {}", size);
    if (size >= 0) {
      sum = checked_add(c, sum, size);
    } else {
      c.require(rest == nullptr, "the sizes have more than one -1");
      rest = &size;
    }
  }
  c.require(rest != nullptr ? sum <= input[axis] : sum == input[axis],
            "the parts have {} elements along axis {}, the input has {}", sum, axis, input[axis]);
  if (rest != nullptr) *rest = input[axis] - sum;
  for (int i = 0; i < c.output_count(); ++i) {
    Shape output = input;
    output.set(axis, sizes[static_cast<size_t>(i)]);
    c.set_output_shape(i, output);
  }
}

std::unique_ptr<Kernel> prepare_split_v(PrepareContext& c) {
  return cut_along(c, 0, resolve_axis(c, known_ints(c, 2)[0], c.input(0).shape.rank()));
}

void infer_unpack(InferContext& c) {
  const auto& attributes = c.attributes<UnpackAttributes>();
  check_split(c, 0, attributes.num);
  const Shape& input = c.input(0).shape;
  const int axis = resolve_axis(c, attributes.axis, input.rank());
  c.require(input[axis] == attributes.num, "dimension {} of shape {} does not unpack into {} tensors", axis,
            input.to_string(), attributes.num);
  Shape output;
  for (int d = 0; d < input.rank(); ++d) {
    if (d != axis) output.push_back(input[d]);
  }
  for (int i = 0; i < c.output_count(); ++i) {
    require_same_quantization(c, c.input(0), c.output(i));
    c.set_output_shape(i, output);
  }
}

std::unique_ptr<Kernel> prepare_unpack(PrepareContext& c) {
  const Shape& input = c.input(0).shape;
  const int axis = resolve_axis(c, c.attributes<UnpackAttributes>().axis, input.rank());
  std::vector<int64_t> runs(static_cast<size_t>(c.output_count()), span_elements(input, axis + 1, input.rank()));
  return make_cut_kernel(c, 0, span_elements(input, 0, axis), std::move(runs));
}

}  // namespace

void register_split(Registry& registry) {
  registry.add({.id = op::kSplit,
                .max_version = 5,
                .min_inputs = 2,
                .max_inputs = 2,
                .required_inputs = 2,
                .max_outputs = -1,
                .options = builtin_options(35),
                .make_attributes = make_attributes<SplitAttributes>,
                .infer = infer_split,
                .prepare = prepare_split,
                .quantize = same_scale_rule({.int8 = 2, .int16 = 4}),
                .types = "all but strings"});
  registry.add({.id = op::kSplitV,
                .max_version = 3,
                .min_inputs = 3,
                .max_inputs = 3,
                .required_inputs = 3,
                .max_outputs = -1,
                .options = builtin_options(79),
                .make_attributes = make_attributes<SplitAttributes>,
                .infer = infer_split_v,
                .prepare = prepare_split_v,
                .quantize = same_scale_rule({.int8 = 2, .int16 = 2}),
                .types = "all but strings"});
  registry.add({.id = op::kUnpack,
                .max_version = 6,
                .min_inputs = 1,
                .max_inputs = 1,
                .required_inputs = 1,
                .min_outputs = 0,
                .max_outputs = -1,
                .options = builtin_options(64),
                .make_attributes = make_attributes<UnpackAttributes>,
                .infer = infer_unpack,
                .prepare = prepare_unpack,
                .quantize = same_scale_rule({.int8 = 2, .int16 = 4}),
                .types = "all but strings"});
}

}  // namespace leadline::ops
