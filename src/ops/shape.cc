// SPDX-License-Identifier: Apache-2.0
// SHAPE, RANK, RANGE, BROADCAST_ARGS. The first two need the shape of their input, never its data.
#include "ops/shape.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ops/common.h"
#include "ops/families.h"
#include "ops/movement.h"
#include "ops/quantization_rules.h"

namespace leadline::ops {
namespace {

void infer_shape(InferContext& c) {
  c.require_output_type(0, {DType::kInt32, DType::kInt64});
  c.set_output_shape(0, Shape{c.input(0).shape.rank()});
  for (const int64_t size : c.input(0).shape) {
    c.require(c.output(0).dtype() == DType::kInt64 || size <= INT32_MAX, "dimension {} does not fit into int32", size);
  }
}

std::unique_ptr<Kernel> prepare_shape(PrepareContext& c) {
  return make_kernel([shape = c.input(0).shape](RunContext& run) {
    const TensorView& out = run.output(0);
    for (int d = 0; d < shape.rank(); ++d) {
      if (out.dtype == DType::kInt64) {
        out.mutable_as<int64_t>()[d] = shape[d];
      } else {
        out.mutable_as<int32_t>()[d] = static_cast<int32_t>(shape[d]);
      }
    }
  });
}

void infer_rank(InferContext& c) {
  c.require_output_type(0, {DType::kInt32});
  c.set_output_shape(0, {});
}

std::unique_ptr<Kernel> prepare_rank(PrepareContext& c) {
  return make_kernel(
      [rank = c.input(0).shape.rank()](RunContext& run) { *run.output(0).mutable_as<int32_t>() = rank; });
}

/// Steps from start to limit; start and limit must lie in the direction of delta.
template <typename T>
int64_t range_size(const OpContext& c, T start, T limit, T delta) {
  c.require(delta != T{0}, "the step is 0");
  c.require((delta > T{0} && start <= limit) || (delta < T{0} && start >= limit),
            "steps of {} do not lead from {} to {}", delta, start, limit);
  if constexpr (std::is_integral_v<T>) {
    const auto distance = start <= limit ? static_cast<uint64_t>(limit) - static_cast<uint64_t>(start)
                                         : static_cast<uint64_t>(start) - static_cast<uint64_t>(limit);
    const uint64_t step = delta > 0 ? static_cast<uint64_t>(delta) : uint64_t{0} - static_cast<uint64_t>(delta);
    const uint64_t size = distance / step + (distance % step != 0 ? 1 : 0);
    c.require(size <= INT32_MAX, "a range of {} elements is too large", size);
    return static_cast<int64_t>(size);
  } else {
    const float size = std::ceil(std::abs((limit - start) / delta));
    c.require(size < 2147483648.0F, "a range of {} elements is too large", size);  // also false for NaN
    return static_cast<int64_t>(size);
  }
}

template <typename T>
T scalar(const OpContext& c, int i) {
  T value;
  std::memcpy(&value, c.input(i).data, sizeof(T));
  return value;
}

void infer_range(InferContext& c) {
  c.require_input_type(0, {DType::kFloat32, DType::kInt32, DType::kInt64});
  for (int i = 0; i < 3; ++i) {
    require_same_type(c, c.input(i), c.output(0));
    c.require(c.input(i).shape.rank() == 0, "input {} has shape {}, expected a scalar", i,
              c.input(i).shape.to_string());
  }
  if (!c.known(0) || !c.known(1) || !c.known(2)) return c.defer();
  auto size = [&](auto type) {
    using T = decltype(type);
    return range_size<T>(c, scalar<T>(c, 0), scalar<T>(c, 1), scalar<T>(c, 2));
  };
  switch (c.input(0).dtype()) {
    case DType::kFloat32:
      return c.set_output_shape(0, Shape{size(float{})});
    case DType::kInt64:
      return c.set_output_shape(0, Shape{size(int64_t{})});
    default:
      return c.set_output_shape(0, Shape{size(int32_t{})});
  }
}

/// Adds up as TFLite does: element i of a float range carries the rounding of i additions.
template <typename T>
void fill_range(RunContext& c) {
  T value = *c.input(0).as<T>();
  const T delta = *c.input(2).as<T>();
  T* out = c.output(0).mutable_as<T>();
  const int64_t count = c.output(0).elements();
  for_items(count, 1, [&](int64_t i) {
    out[i] = value;
    if constexpr (std::is_integral_v<T>) {
      // The value past the last one may not fit.
      value = static_cast<T>(static_cast<std::make_unsigned_t<T>>(value) + static_cast<std::make_unsigned_t<T>>(delta));
    } else {
      value += delta;
    }
  });
}

std::unique_ptr<Kernel> prepare_range(PrepareContext& c) {
  switch (c.output(0).dtype()) {
    case DType::kFloat32:
      return make_kernel(fill_range<float>);
    case DType::kInt64:
      return make_kernel(fill_range<int64_t>);
    default:
      return make_kernel(fill_range<int32_t>);
  }
}

void infer_broadcast_args(InferContext& c) {
  c.require_input_type(0, {DType::kInt32, DType::kInt64});
  for (int i = 0; i < 2; ++i) {
    require_same_type(c, c.input(i), c.output(0));
    c.require(c.input(i).shape.rank() == 1, "input {} has shape {}, expected a vector", i,
              c.input(i).shape.to_string());
  }
  c.set_output_shape(0, Shape{std::max(c.input(0).shape[0], c.input(1).shape[0])});
}

/// The shape that two shapes, given as data, broadcast to.
template <typename T>
void run_broadcast_args(RunContext& c) {
  const int64_t rank = c.output(0).elements();
  auto dimension = [&](int i, int64_t d) {
    const int64_t at = d - (rank - c.input(i).elements());
    return at < 0 ? T{1} : c.input(i).as<T>()[at];
  };
  for_items(rank, 4, [&](int64_t d) {
    const T a = dimension(0, d);
    const T b = dimension(1, d);
    c.require(a == b || a == 1 || b == 1, "dimensions {} and {} do not broadcast", a, b);
    c.output(0).mutable_as<T>()[d] = a == 1 ? b : a;
  });
}

std::unique_ptr<Kernel> prepare_broadcast_args(PrepareContext& c) {
  if (c.output(0).dtype() == DType::kInt64) return make_kernel(run_broadcast_args<int64_t>);
  return make_kernel(run_broadcast_args<int32_t>);
}

}  // namespace

void register_shape(Registry& registry) {
  registry.add({.id = op::kShape,
                .min_inputs = 1,
                .max_inputs = 1,
                .required_inputs = 1,
                .options = builtin_options(55),
                .make_attributes = make_attributes<ShapeAttributes>,
                .infer = infer_shape,
                .prepare = prepare_shape,
                .reads_shapes_only = true,
                .quantize = free_rule({.int8 = 1, .int16 = 1}),
                .types = "all -> i32 i64"});
  registry.add({.id = op::kRank,
                .min_inputs = 1,
                .max_inputs = 1,
                .required_inputs = 1,
                .options = builtin_options(86),
                .infer = infer_rank,
                .prepare = prepare_rank,
                .reads_shapes_only = true,
                .quantize = free_rule({.int8 = 1, .int16 = 1}),
                .types = "all -> i32"});
  registry.add({.id = op::kRange,
                .max_version = 2,
                .min_inputs = 3,
                .max_inputs = 3,
                .required_inputs = 3,
                .options = builtin_options(73),
                .infer = infer_range,
                .prepare = prepare_range,
                .types = "f32 i32 i64"});
  registry.add({.id = op::kBroadcastArgs,
                .min_inputs = 2,
                .max_inputs = 2,
                .required_inputs = 2,
                .infer = infer_broadcast_args,
                .prepare = prepare_broadcast_args,
                .types = "i32 i64"});
}

}  // namespace leadline::ops
