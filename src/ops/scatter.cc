// SPDX-License-Identifier: Apache-2.0
// SCATTER_ND: zeros, with slices of the updates added where an index tensor says. Indices are checked before
// anything is written; updates of the same place add up, in their order.
#include <algorithm>
#include <array>
#include <cstring>

#include "kernels/reference/contraction.h"
#include "ops/common.h"
#include "ops/families.h"
#include "ops/loops/split.h"
#include "ops/movement.h"

namespace leadline::ops {
namespace scatter {
namespace {

enum Input { kIndices = 0, kUpdates = 1, kShape = 2 };

/// Tuple t of the indices names the slice of the output that slice t of the updates is added to.
struct ScatterSizes {
  int64_t tuples = 0;
  int64_t inner = 0;  // elements of a slice
  int width = 0;      // numbers of a tuple
  std::array<int64_t, kMaxRank> limits{};

  int64_t target(const TensorView& indices, int64_t t) const {
    int64_t slice = 0;
    for (int k = 0; k < width; ++k) {
      slice = slice * limits[static_cast<size_t>(k)] + load_index(indices.data, indices.dtype, t * width + k);
    }
    return slice;
  }
};

ScatterSizes scatter_sizes(const OpContext& c) {
  const Shape& indices = c.input(kIndices).shape;
  const Shape& output = c.output(0).shape;
  ScatterSizes sizes;
  sizes.width = static_cast<int>(indices[indices.rank() - 1]);
  for (int d = 0; d < sizes.width; ++d) sizes.limits[static_cast<size_t>(d)] = output[d];
  // Updates without elements add nothing, whatever the number of slices.
  if (c.input(kUpdates).shape.elements() == 0) return sizes;
  sizes.tuples = 1;
  sizes.inner = 1;
  for (int d = 0; d + 1 < indices.rank(); ++d) sizes.tuples *= indices[d];
  for (int d = sizes.width; d < output.rank(); ++d) sizes.inner *= output[d];
  return sizes;
}

void infer(InferContext& c) {
  c.require_input_type(kIndices, {DType::kInt32, DType::kInt64});
  c.require_input_type(kUpdates, {DType::kFloat32, DType::kUInt8, DType::kBool, DType::kInt8, DType::kInt16,
                                  DType::kInt32, DType::kInt64});
  c.require_input_type(kShape, {DType::kInt32, DType::kInt64});
  require_same_type(c, c.input(kUpdates), c.output(0));
  const Shape& indices = c.input(kIndices).shape;
  const Shape& updates = c.input(kUpdates).shape;
  const Shape& shape = c.input(kShape).shape;
  c.require(indices.rank() >= 1, "the indices are a scalar, expected at least a vector");
  c.require(shape.rank() == 1 && shape[0] <= kMaxRank,
            "the shape operand has shape {}, expected one axis of at most {}", shape.to_string(), kMaxRank);
  const int outer = indices.rank() - 1;
  const int64_t width = indices[outer];
  c.require(width <= shape[0], "indices of {} numbers do not fit an output of rank {}", width, shape[0]);
  c.require(updates.rank() == outer + shape[0] - width, "the updates have shape {}, expected rank {}",
            updates.to_string(), outer + shape[0] - width);
  for (int d = 0; d < outer; ++d) {
    c.require(updates[d] == indices[d], "updates of shape {} and indices of shape {} differ in dimension {}",
              updates.to_string(), indices.to_string(), d);
  }
  if (!c.known(kShape)) return c.defer();
  const Shape output = checked_shape(c, known_ints(c, kShape));
  for (int d = outer; d < updates.rank(); ++d) {
    c.require(updates[d] == output[d - outer + static_cast<int>(width)],
              "updates of shape {} do not fit an output of shape {}", updates.to_string(), output.to_string());
  }
  c.set_output_shape(0, output);
}

void check_indices(const RunContext& c, const ScatterSizes& sizes) {
  const TensorView& indices = c.input(kIndices);
  const int64_t count = indices.elements();
  if (sizes.width == 0) return;
  for_items(count / sizes.width, 4 * static_cast<double>(sizes.width), [&](int64_t t) {
    for (int k = 0; k < sizes.width; ++k) {
      const int64_t index = load_index(indices.data, indices.dtype, t * sizes.width + k);
      const int64_t limit = sizes.limits[static_cast<size_t>(k)];
      c.require(index >= 0 && index < limit, "index {} is outside dimension {} of {} elements", index, k, limit);
    }
  });
}

/// These columns of every slice.
template <typename T, typename Add>
void add_slices(const RunContext& c, const ScatterSizes& sizes, IndexRange columns, const Add& add) {
  const auto width = static_cast<double>(columns.size());
  for_boxes<2>({{{{0, sizes.tuples}}, {columns}}}, (width + 8) / width, [&](const auto& box) {
    for (int64_t t = box[0].begin; t < box[0].end; ++t) {
      const T* from = c.input(kUpdates).as<T>() + t * sizes.inner;
      T* to = c.output(0).mutable_as<T>() + sizes.target(c.input(kIndices), t) * sizes.inner;
      for (int64_t i = box[1].begin; i < box[1].end; ++i) to[i] = add(to[i], from[i]);
    }
  });
}

template <typename T, typename Add>
void scatter(RunContext& c, const ScatterSizes& sizes, const Add& add) {
  check_indices(c, sizes);
  const TensorView& output = c.output(0);
  if (output.bytes > 0) fill_bytes(output.data, std::byte{0}, output.bytes);
  // Two tuples may name the same slice, so threads divide the slices' columns.
  for_column_parts(c.pool(), sizes.inner, static_cast<double>(sizes.tuples),
                   [&](IndexRange columns) { add_slices<T>(c, sizes, columns, add); });
}

template <typename T>
std::unique_ptr<Kernel> make_scatter(const ScatterSizes& sizes) {
  return make_kernel([sizes](RunContext& c) {
    if constexpr (std::is_floating_point_v<T>) {
      scatter<T>(c, sizes, [](T a, T b) { return a + b; });
    } else {
      scatter<T>(c, sizes, [](T a, T b) { return kernels::reference::wrapping_add(a, b); });
    }
  });
}

std::unique_ptr<Kernel> prepare(PrepareContext& c) {
  const ScatterSizes sizes = scatter_sizes(c);
  switch (c.output(0).dtype()) {
    case DType::kFloat32:
      return make_scatter<float>(sizes);
    case DType::kInt8:
      return make_scatter<int8_t>(sizes);
    case DType::kUInt8:
      return make_scatter<uint8_t>(sizes);
    case DType::kInt16:
      return make_scatter<int16_t>(sizes);
    case DType::kInt32:
      return make_scatter<int32_t>(sizes);
    case DType::kInt64:
      return make_scatter<int64_t>(sizes);
    default:  // bool: bytes, any of which but 0 is true
      return make_kernel([sizes](RunContext& run) {
        scatter<uint8_t>(run, sizes, [](uint8_t a, uint8_t b) { return static_cast<uint8_t>((a | b) != 0); });
      });
  }
}

}  // namespace
}  // namespace scatter

void register_scatter(Registry& registry) {
  using namespace scatter;
  registry.add({.id = op::kScatterNd,
                .min_inputs = 3,
                .max_inputs = 3,
                .required_inputs = 3,
                .options = builtin_options(97),
                .infer = infer,
                .prepare = prepare,
                .types = "f32 i8 u8 i16 i32 i64 bool"});
}

}  // namespace leadline::ops
