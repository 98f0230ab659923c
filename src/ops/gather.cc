// SPDX-License-Identifier: Apache-2.0
// GATHER, GATHER_ND: elements or slices picked by an index tensor. Indices are checked before anything is read.
#include "ops/gather.h"

#include <algorithm>
#include <cstring>

#include "ops/common.h"
#include "ops/families.h"
#include "ops/movement.h"
#include "ops/quantization_rules.h"

namespace leadline::ops {
namespace {

/// Copies slice `from_slice` to slice `to_slice`, for slices of `count` elements of any type but strings.
struct SliceCopier {
  const std::byte* from;
  std::byte* to;
  int64_t count;
  int bits;

  void operator()(int64_t from_slice, int64_t to_slice) const {
    if (const int64_t size = count * bits; size % 8 == 0) {
      const int64_t bytes = size / 8;
      if (bytes == 4) {
        std::memcpy(to + to_slice * 4, from + from_slice * 4, 4);
      } else {
        copy_bytes(to + to_slice * bytes, from + from_slice * bytes, bytes);
      }
      return;
    }
    for_items(count, 1, [&](int64_t k) {
      put_packed(to, to_slice * count + k, bits, get_packed(from, from_slice * count + k, bits));
    });
  }
};

/// Calls pick(slice of the input) for every slice of the output in order, or in parallel parts through SliceCopier.
template <typename SourceOf>
void gather_slices(const RunContext& c, const TensorView& from, const TensorView& to, int64_t slices, int64_t count,
                   const SourceOf& source_of) {
  if (to.dtype == DType::kString) {
    const StringTensorReader strings = run_strings(c, from);
    StringTensorWriter writer({to.data, static_cast<size_t>(to.bytes)}, slices * count);
    for_items(slices * count, 32, [&](int64_t i) { writer.add(strings[source_of(i / count) * count + i % count]); });
    return;
  }
  const SliceCopier copy = {from.data, to.data, count, dtype_bits(to.dtype)};
  if (copy.bits * count % 8 != 0) {
    // Neighbouring slices share bytes: one thread, and the last byte may be used in part.
    if (to.bytes > 0) to.data[to.bytes - 1] = std::byte{0};
    for_items(slices, 8 * static_cast<double>(count), [&](int64_t s) { copy(source_of(s), s); });
    return;
  }
  const double cost = kByteCost * static_cast<double>(count * copy.bits) / 8 + 2;
  c.pool().for_pieces(slices, cost, [&](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; ++s) copy(source_of(s), s);
  });
}

/// Completes inference of a string output: its bytes follow from the data of both inputs.
template <typename SourceOf>
void finish_strings(InferContext& c, int64_t slices, int64_t count, const SourceOf& source_of) {
  c.require(string_tensor_bytes(c.output(0).shape.elements(), 0).has_value(), "shape {} has too many strings",
            c.output(0).shape.to_string());
  const StringTensorReader strings = known_strings(c, 0);
  int64_t characters = 0;
  for_items(slices * count, 16, [&](int64_t i) {
    characters += static_cast<int64_t>(strings[source_of(i / count) * count + i % count].size());
  });
  set_string_bytes(c, 0, slices * count, characters);
}

/// GATHER as loops: for each batch, for each outer slice, for each index.
struct GatherSizes {
  int64_t batch = 0;
  int64_t outer = 0;
  int64_t axis = 0;
  int64_t indices = 0;  // for each batch
  int64_t inner = 0;

  int64_t slices() const { return batch * outer * indices; }
  /// Slice of the input for slice `s` of the output, in units of `inner` elements.
  int64_t source(const std::byte* index_data, DType index_type, int64_t s) const {
    const int64_t i = s % indices;
    const int64_t rest = s / indices;
    return rest * axis + load_index(index_data, index_type, rest / outer * indices + i);
  }
};

struct GatherAxes {
  int axis = 0;
  int batch_dims = 0;
};

GatherAxes gather_axes(const OpContext& c) {
  const auto& a = c.attributes<GatherAttributes>();
  GatherAxes axes;
  axes.axis = resolve_axis(c, a.axis, c.input(0).shape.rank());
  const int index_rank = c.input(1).shape.rank();
  axes.batch_dims = a.batch_dims < 0 ? a.batch_dims + index_rank : a.batch_dims;
  c.require(axes.batch_dims >= 0 && axes.batch_dims <= index_rank && axes.batch_dims <= axes.axis,
            "batch_dims is {}, expected at most the axis {} and the rank {} of the indices", a.batch_dims, axes.axis,
            index_rank);
  return axes;
}

GatherSizes gather_sizes(const OpContext& c) {
  const GatherAxes axes = gather_axes(c);
  const Shape& input = c.input(0).shape;
  const Shape& indices = c.input(1).shape;
  if (c.output(0).shape.elements() == 0) return {};
  // The output has elements, so every factor below is at least 1 and divides the output's size.
  GatherSizes sizes = {1, 1, input[axes.axis], 1, 1};
  for (int d = 0; d < axes.batch_dims; ++d) sizes.batch *= input[d];
  for (int d = axes.batch_dims; d < axes.axis; ++d) sizes.outer *= input[d];
  for (int d = axes.batch_dims; d < indices.rank(); ++d) sizes.indices *= indices[d];
  for (int d = axes.axis + 1; d < input.rank(); ++d) sizes.inner *= input[d];
  return sizes;
}

template <typename Context>
void check_indices(const Context& c, const std::byte* data, DType type, int64_t count, int64_t limit) {
  for_items(count, 2, [&](int64_t i) {
    const int64_t index = load_index(data, type, i);
    c.require(index >= 0 && index < limit, "index {} is outside an axis of {} elements", index, limit);
  });
}

void infer_gather(InferContext& c) {
  require_movable(c, c.input(0), {.strings = true, .sub_byte = true});
  require_same_type(c, c.input(0), c.output(0));
  c.require_input_type(1, {DType::kInt16, DType::kInt32, DType::kInt64});
  const Shape& input = c.input(0).shape;
  const Shape& indices = c.input(1).shape;
  const GatherAxes axes = gather_axes(c);
  std::vector<int64_t> dims(input.begin(), input.begin() + axes.axis);
  for (int d = 0; d < axes.batch_dims; ++d) {
    c.require(input[d] == indices[d], "shapes {} and {} differ in batch dimension {}", input.to_string(),
              indices.to_string(), d);
  }
  dims.insert(dims.end(), indices.begin() + axes.batch_dims, indices.end());
  dims.insert(dims.end(), input.begin() + axes.axis + 1, input.end());
  c.set_output_shape(0, checked_shape(c, dims));
  if (c.input(0).dtype() != DType::kString) return;
  if (!c.known(0) || !c.known(1)) return c.defer();
  const GatherSizes sizes = gather_sizes(c);
  const Operand& index = c.input(1);
  check_indices(c, index.data, index.dtype(), sizes.batch * sizes.indices, sizes.axis);
  finish_strings(c, sizes.slices(), sizes.inner, [&](int64_t s) { return sizes.source(index.data, index.dtype(), s); });
}

std::unique_ptr<Kernel> prepare_gather(PrepareContext& c) {
  return make_kernel([sizes = gather_sizes(c), limit = c.input(0).shape[gather_axes(c).axis]](RunContext& run) {
    const TensorView& index = run.input(1);
    check_indices(run, index.data, index.dtype, index.elements(), limit);
    gather_slices(run, run.input(0), run.output(0), sizes.slices(), sizes.inner,
                  [&](int64_t s) { return sizes.source(index.data, index.dtype, s); });
  });
}

/// GATHER_ND: every index tuple names a slice through the first axes of the input.
struct TupleSizes {
  int64_t tuples = 0;
  int64_t inner = 0;
  int width = 0;
  std::array<int64_t, kMaxRank> limits{};

  /// Slice number for tuple `t`, in units of `inner` elements.
  int64_t source(const std::byte* data, DType type, int64_t t) const {
    int64_t slice = 0;
    for (int k = 0; k < width; ++k)
      slice = slice * limits[static_cast<size_t>(k)] + load_index(data, type, t * width + k);
    return slice;
  }
};

TupleSizes tuple_sizes(const OpContext& c) {
  const Shape& input = c.input(0).shape;
  const Shape& indices = c.input(1).shape;
  TupleSizes sizes;
  sizes.width = static_cast<int>(indices[indices.rank() - 1]);
  for (int d = 0; d < sizes.width; ++d) sizes.limits[static_cast<size_t>(d)] = input[d];
  if (c.output(0).shape.elements() == 0) return sizes;
  sizes.tuples = 1;
  sizes.inner = 1;
  for (int d = 0; d + 1 < indices.rank(); ++d) sizes.tuples *= indices[d];
  for (int d = sizes.width; d < input.rank(); ++d) sizes.inner *= input[d];
  return sizes;
}

template <typename Context>
void check_tuples(const Context& c, const TupleSizes& sizes, const std::byte* data, DType type) {
  for_items(sizes.tuples, 2 * static_cast<double>(sizes.width), [&](int64_t t) {
    for (int k = 0; k < sizes.width; ++k) {
      const int64_t index = load_index(data, type, t * sizes.width + k);
      const int64_t limit = sizes.limits[static_cast<size_t>(k)];
      c.require(index >= 0 && index < limit, "index {} is outside dimension {} of {} elements", index, k, limit);
    }
  });
}

void infer_gather_nd(InferContext& c) {
  require_movable(c, c.input(0), {.strings = true});
  require_same_type(c, c.input(0), c.output(0));
  c.require_input_type(1, {DType::kInt16, DType::kInt32, DType::kInt64});
  const Shape& input = c.input(0).shape;
  const Shape& indices = c.input(1).shape;
  c.require(input.rank() >= 1, "the input is a scalar, expected at least a vector");
  c.require(indices.rank() >= 1, "the indices are a scalar, expected at least a vector");
  const int64_t width = indices[indices.rank() - 1];
  c.require(width <= input.rank(), "indices of {} numbers do not fit an input of rank {}", width, input.rank());
  std::vector<int64_t> dims(indices.begin(), indices.end() - 1);
  dims.insert(dims.end(), input.begin() + width, input.end());
  c.set_output_shape(0, checked_shape(c, dims));
  if (c.input(0).dtype() != DType::kString) return;
  if (!c.known(0) || !c.known(1)) return c.defer();
  const TupleSizes sizes = tuple_sizes(c);
  const Operand& index = c.input(1);
  check_tuples(c, sizes, index.data, index.dtype());
  finish_strings(c, sizes.tuples, sizes.inner, [&](int64_t t) { return sizes.source(index.data, index.dtype(), t); });
}

std::unique_ptr<Kernel> prepare_gather_nd(PrepareContext& c) {
  return make_kernel([sizes = tuple_sizes(c)](RunContext& run) {
    const TensorView& index = run.input(1);
    check_tuples(run, sizes, index.data, index.dtype);
    gather_slices(run, run.input(0), run.output(0), sizes.tuples, sizes.inner,
                  [&](int64_t t) { return sizes.source(index.data, index.dtype, t); });
  });
}

}  // namespace

void register_gather(Registry& registry) {
  registry.add({.id = op::kGather,
                .max_version = 8,
                .min_inputs = 2,
                .max_inputs = 2,
                .required_inputs = 2,
                .options = builtin_options(23),
                .make_attributes = make_attributes<GatherAttributes>,
                .infer = infer_gather,
                .prepare = prepare_gather,
                .quantize = with_table(same_scale_rule({.int8 = 2, .int16 = 4, .hybrid = 2}), 0),
                .types = "all"});
  registry.add({.id = op::kGatherNd,
                .max_version = 6,
                .min_inputs = 2,
                .max_inputs = 2,
                .required_inputs = 2,
                .options = builtin_options(83),
                .infer = infer_gather_nd,
                .prepare = prepare_gather_nd,
                .quantize = same_scale_rule({.int8 = 1, .int16 = 3}),
                .types = "all but sub-byte"});
}

}  // namespace leadline::ops
