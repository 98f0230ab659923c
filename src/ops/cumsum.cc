// SPDX-License-Identifier: Apache-2.0
// CUMSUM: running sums along one axis.
#include "ops/cumsum.h"

#include <type_traits>

#include "ops/common.h"
#include "ops/families.h"
#include "ops/movement.h"

namespace leadline::ops {
namespace {

void infer_cumsum(InferContext& c) {
  c.require_input_type(0, {DType::kFloat32, DType::kInt32, DType::kInt64});
  require_same_type(c, c.input(0), c.output(0));
  c.require_input_type(1, {DType::kInt32});
  require_elements(c, 1, 1);
  const Shape& shape = c.input(0).shape;
  c.require(shape.rank() >= 1, "the input is a scalar, expected at least a vector");
  if (c.known(1)) resolve_axis(c, known_ints(c, 1)[0], shape.rank());
  c.set_output_shape(0, shape);
}

/// Integers wrap around.
template <typename T>
T add(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
  } else {
    return a + b;
  }
}

template <typename T>
void run_cumsum(RunContext& c, bool exclusive, bool reverse) {
  const Shape& shape = c.input(0).shape;
  const int64_t given = *c.input(1).as<int32_t>();
  c.require(given >= -shape.rank() && given < shape.rank(), "axis {} is outside a tensor of rank {}", given,
            shape.rank());
  const int axis = static_cast<int>(given < 0 ? given + shape.rank() : given);
  if (shape.elements() == 0) return;
  const int64_t size = shape[axis];
  const int64_t inner = span_elements(shape, axis + 1, shape.rank());
  const int64_t outer = span_elements(shape, 0, axis);
  for_boxes<3>({{{{0, outer}}, {{0, size}}, {{0, inner}}}}, 1, [&](const auto& box) {
    for (int64_t o = box[0].begin; o < box[0].end; ++o) {
      const T* in = c.input(0).as<T>() + o * size * inner;
      T* out = c.output(0).mutable_as<T>() + o * size * inner;
      for (int64_t n = box[1].begin; n < box[1].end; ++n) {
        const int64_t at = (reverse ? size - 1 - n : n) * inner;
        const int64_t before = at + (reverse ? inner : -inner);
        for (int64_t i = box[2].begin; i < box[2].end; ++i) {
          const T sum = n == 0 ? T{0} : out[before + i];
          const T value = exclusive ? (n == 0 ? T{0} : in[before + i]) : in[at + i];
          out[at + i] = add(sum, value);
        }
      }
    }
  });
}

std::unique_ptr<Kernel> prepare_cumsum(PrepareContext& c) {
  const auto& a = c.attributes<CumsumAttributes>();
  auto kernel = [exclusive = a.exclusive, reverse = a.reverse](auto type) {
    return make_kernel([=](RunContext& run) { run_cumsum<decltype(type)>(run, exclusive, reverse); });
  };
  switch (c.input(0).dtype()) {
    case DType::kFloat32:
      return kernel(float{});
    case DType::kInt64:
      return kernel(int64_t{});
    default:
      return kernel(int32_t{});
  }
}

}  // namespace

void register_cumsum(Registry& registry) {
  registry.add({.id = op::kCumsum,
                .min_inputs = 2,
                .max_inputs = 2,
                .required_inputs = 2,
                .options = builtin_options(102),
                .make_attributes = make_attributes<CumsumAttributes>,
                .infer = infer_cumsum,
                .prepare = prepare_cumsum,
                .types = "f32 i32 i64"});
}

}  // namespace leadline::ops
