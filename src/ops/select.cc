// SPDX-License-Identifier: Apache-2.0
// SELECT, SELECT_V2: elements of x where the condition holds, else of y. WHERE: coordinates of what is not zero.
#include <cstring>
#include <limits>

#include "ops/elementwise.h"
#include "ops/families.h"
#include "ops/movement.h"

namespace leadline::ops {
namespace {

// SELECT, SELECT_V2.

/// When all operands and the output as written have one element, the output keeps its shape: the format mixes
/// shapes like [] and [1] there.
bool is_single(const OpContext& c) {
  const ir::Value& written = *c.output(0).value;  // [] without a rank: nothing was written
  return c.input(0).shape.elements() == 1 && c.input(1).shape.elements() == 1 && c.input(2).shape.elements() == 1 &&
         written.shape.elements() == 1 && (written.has_rank || written.shape.rank() > 0);
}

void require_select_types(const InferContext& c) {
  c.require_input_type(0, {DType::kBool});
  const int64_t bytes = element_bytes(c.input(1).dtype());
  if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8) {
    c.fail(ErrorCode::kUnsupported, "input 1 '{}' has type {}, expected elements of 1, 2, 4 or 8 bytes",
           c.input(1).value->name, dtype_name(c.input(1).dtype()));
  }
  require_same_type(c, c.input(1), c.input(2));
  c.require_output_type(0, {c.input(1).dtype()});
}

/// The condition's shape as SELECT broadcasts it: one value for everything, or one for each first index of x.
Shape condition_shape(const OpContext& c) {
  const Shape& condition = c.input(0).shape;
  const Shape& x = c.input(1).shape;
  if (condition == x || condition.rank() == 0) return condition;
  c.require(condition.rank() == 1 && x.rank() >= 1 && condition[0] == x[0],
            "condition of shape {} fits neither {} nor its first dimension", condition.to_string(), x.to_string());
  Shape column = condition;
  while (column.rank() < x.rank()) column.push_back(1);
  return column;
}

void infer_select(InferContext& c) {
  require_select_types(c);
  if (is_single(c)) return c.set_output_shape(0, c.output(0).value->shape);
  const Shape& x = c.input(1).shape;
  c.require(x == c.input(2).shape, "inputs 1 and 2 have shapes {} and {}, expected the same", x.to_string(),
            c.input(2).shape.to_string());
  condition_shape(c);
  c.set_output_shape(0, x);
}

void infer_select_v2(InferContext& c) {
  require_select_types(c);
  if (is_single(c)) return c.set_output_shape(0, c.output(0).value->shape);
  c.set_output_shape(0, broadcast_shapes(c, broadcast_shapes(c, c.input(0).shape, c.input(1).shape), c.input(2).shape));
}

/// out[i] = condition[i * steps[0]] ? x[i * steps[1]] : y[i * steps[2]]
template <typename T>
void select_row(const uint8_t* condition, const T* x, const T* y, T* out, int64_t count,
                const std::array<int64_t, 3>& steps) {
  if (steps[0] == 0 && steps[1] == 1 && steps[2] == 1) {
    const T* from = *condition != 0 ? x : y;
    if (from != out) std::memmove(out, from, static_cast<size_t>(count) * sizeof(T));
  } else if (steps[0] == 1 && steps[1] == 1 && steps[2] == 1) {
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) {
      const T a = x[i];
      const T b = y[i];
      out[i] = condition[i] != 0 ? a : b;
    }
  } else {
    for (int64_t i = 0; i < count; ++i) {
      out[i] = condition[i * steps[0]] != 0 ? x[i * steps[1]] : y[i * steps[2]];
    }
  }
}

template <typename T>
std::unique_ptr<Kernel> select_kernel(const kernels::BroadcastPlan<3>& plan) {
  return make_kernel([plan](RunContext& c) {
    const auto* condition = c.input(0).as<uint8_t>();
    const T* x = c.input(1).as<T>();
    const T* y = c.input(2).as<T>();
    T* out = c.output(0).mutable_as<T>();
    const std::array<int64_t, 3> steps = {plan.step(0), plan.step(1), plan.step(2)};
    c.pool().for_pieces(plan.elements, kLightCost, [&](int64_t begin, int64_t end) {
      kernels::for_each_row(plan, begin, end, [&](int64_t at, const std::array<int64_t, 3>& from, int64_t count) {
        select_row(condition + from[0], x + from[1], y + from[2], out + at, count, steps);
      });
    });
  });
}

template <bool kV2>
std::unique_ptr<Kernel> prepare_select(PrepareContext& c) {
  kernels::BroadcastPlan<3> plan;
  if (is_single(c)) {
    plan = kernels::plan_broadcast<3>(Shape{}, {Shape{}, Shape{}, Shape{}});
  } else {
    plan = kernels::plan_broadcast<3>(
        c.output(0).shape, {kV2 ? c.input(0).shape : condition_shape(c), c.input(1).shape, c.input(2).shape});
  }
  switch (element_bytes(c.input(1).dtype())) {
    case 1:
      return select_kernel<uint8_t>(plan);
    case 2:
      return select_kernel<uint16_t>(plan);
    case 4:
      return select_kernel<uint32_t>(plan);
    default:
      return select_kernel<uint64_t>(plan);
  }
}

// WHERE.

/// body(T) for a type that WHERE can test; bool as bytes.
template <typename Body>
auto visit_condition(DType type, const Body& body) {
  switch (type) {
    case DType::kFloat32:
      return body(float{});
    case DType::kInt64:
      return body(int64_t{});
    case DType::kInt32:
      return body(int32_t{});
    case DType::kUInt32:
      return body(uint32_t{});
    case DType::kInt8:
      return body(int8_t{});
    default:
      return body(uint8_t{});
  }
}

void infer_where(InferContext& c) {
  c.require_input_type(
      0, {DType::kBool, DType::kFloat32, DType::kInt64, DType::kInt32, DType::kInt8, DType::kUInt8, DType::kUInt32});
  c.require_output_type(0, {DType::kInt64});
  const Shape& shape = c.input(0).shape;
  c.require(shape.rank() >= 1, "the condition is a scalar, expected at least one dimension");
  if (!c.known(0)) return c.defer();
  const int64_t count = visit_condition(c.input(0).dtype(), [&](auto zero) {
    int64_t found = 0;
    const auto values = c.input(0).values<decltype(zero)>();
    for_items(static_cast<int64_t>(values.size()), 1,
              [&](int64_t i) { found += values[static_cast<size_t>(i)] != zero ? 1 : 0; });
    return found;
  });
  c.set_output_shape(0, {count, shape.rank()});
}

template <typename T>
void write_coordinates(const T* values, const Shape& shape, int64_t* out, int64_t most) {
  const auto rank = static_cast<size_t>(shape.rank());
  std::array<int64_t, kMaxRank> index = {};
  const int64_t count = shape.elements();
  int64_t written = 0;
  for_items(count, 4, [&](int64_t i) {
    if (written == most) return false;
    if (values[i] != T{0}) {
      std::copy_n(index.begin(), rank, out + written * shape.rank());
      ++written;
    }
    for (size_t axis = rank; axis-- > 0;) {
      if (++index[axis] < shape[static_cast<int>(axis)]) break;
      index[axis] = 0;
    }
    return true;
  });
}

std::unique_ptr<Kernel> prepare_where(PrepareContext&) {
  return make_kernel([](RunContext& c) {
    const TensorView& condition = c.input(0);
    auto* out = c.output(0).mutable_as<int64_t>();
    const int64_t most = c.output(0).shape[0];
    visit_condition(condition.dtype,
                    [&](auto zero) { write_coordinates(condition.as<decltype(zero)>(), condition.shape, out, most); });
  });
}

}  // namespace

void register_select(Registry& registry) {
  constexpr std::string_view kTypes = "every type of 1, 2, 4 or 8 bytes";
  add_ops(registry, 3, Sharing::kInPlace,
          {
              {.id = op::kSelect,
               .max_version = 4,
               .options = builtin_options(47),
               .infer = infer_select,
               .prepare = prepare_select<false>,
               .quantize = same_scale_rule({.int8 = 1, .int16 = 1}),
               .types = kTypes},
              {.id = op::kSelectV2,
               .max_version = 2,
               .options = builtin_options(98),
               .infer = infer_select_v2,
               .prepare = prepare_select<true>,
               .quantize = same_scale_rule({.int8 = 1, .int16 = 1}),
               .types = kTypes},
          });
  add_ops(registry, 1, Sharing::kNone,
          {{.id = op::kWhere,
            .max_version = 2,
            .options = builtin_options(85),
            .infer = infer_where,
            .prepare = prepare_where,
            .types = "bool f32 i64 i32 i8 u8 u32"}});
}

}  // namespace leadline::ops
