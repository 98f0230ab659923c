// SPDX-License-Identifier: Apache-2.0
// STABLEHLO_GATHER, STABLEHLO_SCATTER: windows of a tensor that start where index vectors say.
//
// Both ops relate a "batched" tensor (the gather's result, the scatter's updates) to an operand. Every axis of the
// batched tensor either numbers the index vectors or runs through a window of the operand. Windows that would reach
// outside the operand are moved inside by a gather; a scatter leaves out the elements that are outside.
#include "ops/stablehlo_indexing.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "ops/common.h"
#include "ops/elementwise.h"
#include "ops/families.h"
#include "ops/movement.h"

namespace leadline::ops {
namespace stablehlo_indexing {
namespace {

/// How an axis of the batched tensor moves through the indices and the operand.
struct BatchedAxis {
  int64_t size = 0;
  int64_t index_stride = 0;  // axes that number index vectors
  int operand_axis = -1;     // axes of windows
};

/// One coordinate of an index vector.
struct Coordinate {
  int64_t offset = 0;  // in the indices, from the start of the vector
  int operand_axis = 0;
};

struct Indexing {
  std::array<BatchedAxis, kMaxRank> axes{};
  int rank = 0;  // of the batched tensor
  std::vector<Coordinate> coordinates;
  std::array<int64_t, kMaxRank> operand{};         // sizes
  std::array<int64_t, kMaxRank> operand_stride{};  // of elements
  int operand_rank = 0;
  DType index_type = DType::kInt32;
};

/// Starts further out than this are as far outside as any: sums with a position in a window do not overflow.
constexpr int64_t kFarOutside = int64_t{1} << 48;

using Point = std::array<int64_t, kMaxRank>;

/// Where in the operand the window of the index vector at `first` starts.
Point read_start(const Indexing& x, const std::byte* indices, int64_t first) {
  Point start{};
  for (const Coordinate& c : x.coordinates) {
    start[static_cast<size_t>(c.operand_axis)] =
        std::clamp(load_index(indices, x.index_type, first + c.offset), -kFarOutside, kFarOutside);
  }
  return start;
}

bool contains(const std::vector<int64_t>& list, int64_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

/// Throws unless the entries are different numbers in [0, limit).
void check_axes(const OpContext& c, const char* name, const std::vector<int64_t>& axes, int limit) {
  for (size_t i = 0; i < axes.size(); ++i) {
    c.require(axes[i] >= 0 && axes[i] < limit, "{} has {}, outside 0 to {}", name, axes[i], limit - 1);
    c.require(std::find(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(i), axes[i]) ==
                  axes.begin() + static_cast<std::ptrdiff_t>(i),
              "{} has {} twice", name, axes[i]);
  }
}

/// The part that both ops share. `window_axes` of the batched tensor run, in this order, through the operand's axes
/// that are not in `single_axes`; the other axes number the index vectors. Sizes of the window axes are left at 0.
Indexing make_indexing(const OpContext& c, const std::vector<int64_t>& window_axes,
                       const std::vector<int64_t>& single_axes, const std::vector<int64_t>& index_to_operand,
                       int64_t vector_axis, const char* window_name, const char* single_name, const char* map_name) {
  const Shape& operand = c.input(0).shape;
  const Shape& indices = c.input(1).shape;
  c.require_input_type(1, {DType::kInt32, DType::kInt64});
  c.require(vector_axis >= 0 && vector_axis <= indices.rank(), "index_vector_dim is {}, the indices have rank {}",
            vector_axis, indices.rank());
  const bool scalar_indices = vector_axis == indices.rank();
  const int batch_rank = indices.rank() - (scalar_indices ? 0 : 1);
  Indexing x;
  x.index_type = c.input(1).dtype();
  c.require(window_axes.size() <= kMaxRank && batch_rank + static_cast<int>(window_axes.size()) <= kMaxRank,
            "{} window axes and {} index axes are more than {}", window_axes.size(), batch_rank, kMaxRank);
  x.rank = batch_rank + static_cast<int>(window_axes.size());
  x.operand_rank = operand.rank();
  check_axes(c, window_name, window_axes, x.rank);
  check_axes(c, single_name, single_axes, x.operand_rank);
  check_axes(c, map_name, index_to_operand, x.operand_rank);
  c.require(static_cast<int>(window_axes.size() + single_axes.size()) == x.operand_rank,
            "{} has {} axes and {} {}, together not the operand's rank {}", window_name, window_axes.size(),
            single_name, single_axes.size(), x.operand_rank);
  const int64_t vector_size = scalar_indices ? 1 : indices[static_cast<int>(vector_axis)];
  c.require(static_cast<int64_t>(index_to_operand.size()) == vector_size, "{} has {} axes, index vectors have {}",
            map_name, index_to_operand.size(), vector_size);

  const std::vector<int64_t> operand_strides = element_strides(operand);
  for (int d = 0; d < x.operand_rank; ++d) {
    x.operand[static_cast<size_t>(d)] = operand[d];
    x.operand_stride[static_cast<size_t>(d)] = operand_strides[static_cast<size_t>(d)];
  }
  const std::vector<int64_t> index_strides = element_strides(indices);
  for (size_t i = 0; i < index_to_operand.size(); ++i) {
    const int64_t step = scalar_indices ? 0 : index_strides[static_cast<size_t>(vector_axis)];
    x.coordinates.push_back({static_cast<int64_t>(i) * step, static_cast<int>(index_to_operand[i])});
  }
  int index_axis = 0;
  for (int d = 0; d < x.rank; ++d) {
    if (contains(window_axes, d)) continue;
    if (index_axis == vector_axis) ++index_axis;
    x.axes[static_cast<size_t>(d)] = {indices[index_axis], index_strides[static_cast<size_t>(index_axis)], -1};
    ++index_axis;
  }
  int operand_axis = 0;
  for (int64_t d : window_axes) {
    while (contains(single_axes, operand_axis)) ++operand_axis;
    x.axes[static_cast<size_t>(d)].operand_axis = operand_axis++;
  }
  return x;
}

/// Calls visit(number, first of its index vector, position in the window by operand axis) for the elements
/// [begin, end) of the batched tensor.
template <typename Visit>
void for_each_element(const Indexing& x, int64_t begin, int64_t end, const Visit& visit) {
  for (int64_t n = begin; n < end; ++n) {
    int64_t rest = n;
    int64_t vector = 0;
    Point position{};
    for (int d = x.rank - 1; d >= 0; --d) {
      const BatchedAxis& axis = x.axes[static_cast<size_t>(d)];
      const int64_t at = rest % axis.size;
      rest /= axis.size;
      if (axis.operand_axis >= 0) {
        position[static_cast<size_t>(axis.operand_axis)] = at;
      } else {
        vector += at * axis.index_stride;
      }
    }
    visit(n, vector, position);
  }
}

// STABLEHLO_GATHER

Indexing gather_indexing(const OpContext& c) {
  const auto& a = c.attributes<StablehloGatherAttributes>();
  const Shape& operand = c.input(0).shape;
  Indexing x = make_indexing(c, a.offset_dims, a.collapsed_slice_dims, a.start_index_map, a.index_vector_dim,
                             "offset_dims", "collapsed_slice_dims", "start_index_map");
  c.require(static_cast<int>(a.slice_sizes.size()) == operand.rank(), "slice_sizes has {} entries, the operand rank {}",
            a.slice_sizes.size(), operand.rank());
  for (int d = 0; d < operand.rank(); ++d) {
    const int64_t size = a.slice_sizes[static_cast<size_t>(d)];
    const int64_t least = contains(a.collapsed_slice_dims, d) ? 1 : 0;
    c.require(size >= least && size <= operand[d], "slice size {} of axis {} is outside {} to {}", size, d, least,
              operand[d]);
  }
  for (int d = 0; d < x.rank; ++d) {
    BatchedAxis& axis = x.axes[static_cast<size_t>(d)];
    if (axis.operand_axis >= 0) axis.size = a.slice_sizes[static_cast<size_t>(axis.operand_axis)];
  }
  return x;
}

void infer_stablehlo_gather(InferContext& c) {
  require_movable(c, c.input(0), {});
  if (element_bytes(c.input(0).dtype()) > 8) c.require_input_type(0, {DType::kFloat32});
  require_same_type(c, c.input(0), c.output(0));
  const Indexing x = gather_indexing(c);
  Shape shape;
  for (int d = 0; d < x.rank; ++d) shape.push_back(x.axes[static_cast<size_t>(d)].size);
  c.set_output_shape(0, shape);
}

std::unique_ptr<Kernel> prepare_stablehlo_gather(PrepareContext& c) {
  const auto& a = c.attributes<StablehloGatherAttributes>();
  const Indexing x = gather_indexing(c);
  Point last_start{};
  for (int d = 0; d < x.operand_rank; ++d) {
    const auto i = static_cast<size_t>(d);
    last_start[i] = x.operand[i] - a.slice_sizes[i];
  }
  return make_kernel([x, last_start](RunContext& run) {
    const std::byte* indices = run.input(1).data;
    const std::byte* from = run.input(0).data;
    std::byte* to = run.output(0).data;
    const int64_t bytes = element_bytes(run.input(0).dtype);
    run.pool().for_pieces(run.output(0).elements(), 32, [&](int64_t begin, int64_t end) {
      for_each_element(x, begin, end, [&](int64_t n, int64_t vector, const Point& position) {
        const Point start = read_start(x, indices, vector);
        int64_t source = 0;
        for (size_t d = 0; d < static_cast<size_t>(x.operand_rank); ++d) {
          source += (std::clamp<int64_t>(start[d], 0, last_start[d]) + position[d]) * x.operand_stride[d];
        }
        std::memcpy(to + n * bytes, from + source * bytes, static_cast<size_t>(bytes));
      });
    });
  });
}

// STABLEHLO_SCATTER

enum class Update : uint8_t { kReplace, kAdd, kMultiply, kMaximum, kMinimum };

/// An update computation without nodes replaces; one with a node combines the two values.
Update update_of(const OpContext& c) {
  const int index = c.attributes<StablehloScatterAttributes>().update_computation_subgraph;
  const std::vector<ir::Node>& nodes = c.host().subgraph(index).nodes;
  if (nodes.empty()) return Update::kReplace;
  if (nodes.size() > 1) {
    c.fail(ErrorCode::kUnsupported, "its update computation, subgraph {}, has {} nodes, expected at most one", index,
           nodes.size());
  }
  const ir::OpId op = nodes[0].op;
  if (op == op::kStablehloAdd) return Update::kAdd;
  if (op == op::kStablehloMultiply) return Update::kMultiply;
  if (op == op::kStablehloMaximum) return Update::kMaximum;
  if (op == op::kStablehloMinimum) return Update::kMinimum;
  c.fail(ErrorCode::kUnsupported, "its update computation, subgraph {}, is {}, which is not supported", index,
         op.name());
}

Indexing scatter_indexing(const OpContext& c) {
  const auto& a = c.attributes<StablehloScatterAttributes>();
  Indexing x =
      make_indexing(c, a.update_window_dims, a.inserted_window_dims, a.scatter_dims_to_operand_dims, a.index_vector_dim,
                    "update_window_dims", "inserted_window_dims", "scatter_dims_to_operand_dims");
  const Shape& updates = c.input(2).shape;
  c.require(updates.rank() == x.rank, "the updates have rank {}, expected {}", updates.rank(), x.rank);
  for (int d = 0; d < x.rank; ++d) {
    BatchedAxis& axis = x.axes[static_cast<size_t>(d)];
    if (axis.operand_axis >= 0) axis.size = updates[d];
    c.require(axis.size == updates[d], "axis {} of the updates has size {}, the indices have {} there", d, updates[d],
              axis.size);
  }
  return x;
}

void infer_stablehlo_scatter(InferContext& c) {
  c.require_input_type(
      0, {DType::kFloat32, DType::kFloat16, DType::kFloat64, DType::kInt8, DType::kUInt8, DType::kInt16, DType::kUInt16,
          DType::kInt32, DType::kUInt32, DType::kInt64, DType::kUInt64, DType::kBool});
  require_same_type(c, c.input(0), c.input(2));
  require_same_type(c, c.input(0), c.output(0));
  update_of(c);
  scatter_indexing(c);
  c.set_output_shape(0, c.input(0).shape);
}

/// Integers wrap around as two's complement does.
template <typename T>
T combine(Update update, T old, T value) {
  using C = Compute<T>;
  const C a = static_cast<C>(old);
  const C b = static_cast<C>(value);
  switch (update) {
    case Update::kReplace:
      return value;
    case Update::kAdd:
      if constexpr (std::is_same_v<T, bool>) return a || b;
      if constexpr (std::is_integral_v<C>) return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
      return static_cast<T>(a + b);
    case Update::kMultiply:
      if constexpr (std::is_same_v<T, bool>) return a && b;
      if constexpr (std::is_integral_v<C>) return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
      return static_cast<T>(a * b);
    case Update::kMaximum:
      return static_cast<T>(a < b ? b : a);
    case Update::kMinimum:
      return static_cast<T>(b < a ? b : a);
  }
  return value;
}

template <typename T>
std::unique_ptr<Kernel> scatter_kernel(const Indexing& x, Update update) {
  return make_kernel([x, update](RunContext& run) {
    const TensorView& out = run.output(0);
    if (out.bytes == 0) return;
    copy_bytes(out.data, run.input(0).data, out.bytes);
    const std::byte* indices = run.input(1).data;
    const T* updates = run.input(2).as<T>();
    T* values = out.mutable_as<T>();
    // In order: two updates may have the same target.
    for_pieces(run.input(2).elements(), 32, [&](int64_t begin, int64_t end) {
      for_each_element(x, begin, end, [&](int64_t n, int64_t vector, const Point& position) {
        const Point start = read_start(x, indices, vector);
        int64_t target = 0;
        for (size_t d = 0; d < static_cast<size_t>(x.operand_rank); ++d) {
          const int64_t at = start[d] + position[d];
          if (at < 0 || at >= x.operand[d]) return;
          target += at * x.operand_stride[d];
        }
        values[target] = combine(update, values[target], updates[n]);
      });
    });
  });
}

std::unique_ptr<Kernel> prepare_stablehlo_scatter(PrepareContext& c) {
  const Indexing x = scatter_indexing(c);
  const Update update = update_of(c);
  const DType type = c.input(0).dtype();
  const auto make = [&](auto zero) { return scatter_kernel<decltype(zero)>(x, update); };
  return is_floating(type) ? visit_floating(c, type, make) : visit_numeric(c, type, make);
}

}  // namespace
}  // namespace stablehlo_indexing

void register_stablehlo_indexing(Registry& registry) {
  using namespace stablehlo_indexing;
  registry.add({.id = op::kStablehloGather,
                .min_inputs = 2,
                .max_inputs = 2,
                .required_inputs = 2,
                .options = builtin_options_2(16),
                .make_attributes = make_attributes<StablehloGatherAttributes>,
                .infer = infer_stablehlo_gather,
                .prepare = prepare_stablehlo_gather,
                .types = "any of 1 to 8 bytes"});
  registry.add({.id = op::kStablehloScatter,
                .min_inputs = 3,
                .max_inputs = 3,
                .required_inputs = 3,
                .options = builtin_options_2(7),
                .make_attributes = make_attributes<StablehloScatterAttributes>,
                .infer = infer_stablehlo_scatter,
                .prepare = prepare_stablehlo_scatter,
                .types = "f32 f16 f64 i8 u8 i16 u16 i32 u32 i64 u64 bool"});
}

}  // namespace leadline::ops
