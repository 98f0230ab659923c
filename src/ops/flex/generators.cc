// SPDX-License-Identifier: Apache-2.0
// Flex ops that make values from few numbers: Range, LinSpace, ShapeN; Assert, which makes none; and
// FakeQuantWithMinMaxVarsPerChannel.
#include <cmath>
#include <limits>

#include "ops/flex/families.h"
#include "ops/flex/flex.h"

namespace leadline::ops {
namespace {

// Range(start, limit, delta)

template <typename T>
int64_t range_size(const OpContext& c) {
  const T start = c.input(0).values<T>()[0];
  const T limit = c.input(1).values<T>()[0];
  const T delta = c.input(2).values<T>()[0];
  c.require(delta != T(0), "the step is 0");
  if (delta > T(0) ? start >= limit : start <= limit) return 0;
  if constexpr (std::is_integral_v<T>) {
    const auto span =
        static_cast<uint64_t>(delta > 0 ? limit : start) - static_cast<uint64_t>(delta > 0 ? start : limit);
    const uint64_t step = delta > 0 ? static_cast<uint64_t>(delta) : uint64_t{0} - static_cast<uint64_t>(delta);
    const uint64_t size = span / step + (span % step != 0 ? 1 : 0);
    c.require(size <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max()), "a range of {} values is too long",
              size);
    return static_cast<int64_t>(size);
  } else {
    const double size =
        std::ceil(std::abs((static_cast<double>(limit) - static_cast<double>(start)) / static_cast<double>(delta)));
    c.require(size < 0x1p62, "a range of {} values is too long", size);
    return static_cast<int64_t>(size);
  }
}

void infer_range(InferContext& c) {
  node_def(c);
  for (int i = 0; i < 3; ++i) {
    require_same_type(c, c.input(i), c.output(0));
    require_elements(c, i, 1);
    if (!c.known(i)) return c.defer();
  }
  c.require_output_type(0, {DType::kFloat32, DType::kFloat64, DType::kInt32, DType::kInt64});
  c.set_output_shape(0, {visit_numeric(c, c.output(0).dtype(), [&](auto type) -> int64_t {
                       using T = decltype(type);
                       if constexpr (std::is_same_v<T, bool>)
                         return 0;
                       else
                         return range_size<T>(c);
                     })});
}

std::unique_ptr<Kernel> prepare_range(PrepareContext& c) {
  return visit_numeric(c, c.output(0).dtype(), [](auto type) {
    using T = decltype(type);
    return make_kernel([](RunContext& run) {
      T* out = run.output(0).mutable_as<T>();
      const T start = *run.input(0).as<T>();
      const T delta = *run.input(2).as<T>();
      // Sums, as TensorFlow makes them: a float range is not start + i * delta.
      T value = start;
      for_items(run.output(0).elements(), 2, [&](int64_t i) {
        out[i] = value;
        if constexpr (!std::is_same_v<T, bool>) value = wrapping_add(value, delta);
      });
    });
  });
}

// LinSpace(start, stop, num)

void infer_lin_space(InferContext& c) {
  node_def(c);
  c.require_input_type(0, {DType::kFloat32, DType::kFloat64});
  require_same_type(c, c.input(0), c.input(1));
  require_same_type(c, c.input(0), c.output(0));
  require_elements(c, 0, 1);
  require_elements(c, 1, 1);
  require_indices(c, 2);
  if (!c.known(2)) return c.defer();
  const int64_t count = integer_of_input(c, 2);
  c.require(count > 0, "the number of values is {}, expected more than 0", count);
  c.set_output_shape(0, {count});
}

std::unique_ptr<Kernel> prepare_lin_space(PrepareContext& c) {
  return visit_floating(c, c.input(0).dtype(), [](auto type) {
    using T = Compute<decltype(type)>;
    return make_kernel([](RunContext& run) {
      const T first = *run.input(0).as<T>();
      const T last = *run.input(1).as<T>();
      T* out = run.output(0).mutable_as<T>();
      const int64_t count = run.output(0).elements();
      const T step = count > 1 ? (last - first) / static_cast<T>(count - 1) : T(0);
      for_items(count, 2, [&](int64_t i) { out[i] = first + step * static_cast<T>(i); });
      if (count > 1) out[count - 1] = last;
    });
  });
}

// ShapeN(N tensors) -> N shapes

void infer_shapes(InferContext& c) {
  node_def(c);
  c.require(c.input_count() == c.output_count(), "it has {} inputs for {} outputs", c.input_count(), c.output_count());
  for (int i = 0; i < c.output_count(); ++i) {
    c.require_output_type(i, {DType::kInt32, DType::kInt64});
    c.set_output_shape(i, {c.input(i).shape.rank()});
  }
}

std::unique_ptr<Kernel> prepare_shapes(PrepareContext&) {
  return make_kernel([](RunContext& run) {
    for (int i = 0; i < run.output_count(); ++i) {
      const TensorView& out = run.output(i);
      for (int axis = 0; axis < run.input(i).shape.rank(); ++axis) {
        const int64_t size = run.input(i).shape[axis];
        if (out.dtype == DType::kInt64) {
          out.mutable_as<int64_t>()[axis] = size;
        } else {
          out.mutable_as<int32_t>()[axis] = static_cast<int32_t>(size);
        }
      }
    }
  });
}

// Assert(condition, data...): fails the run when the condition is false

void infer_assert(InferContext& c) {
  node_def(c);
  c.require(c.input_count() >= 1, "it has no condition");
  c.require_input_type(0, {DType::kBool});
  require_elements(c, 0, 1);
}

std::unique_ptr<Kernel> prepare_assert(PrepareContext&) {
  return make_kernel([](RunContext& run) {
    run.require(*run.input(0).as<bool>(), "the model asserts '{}', which is false", run.input_name(0));
  });
}

// FakeQuantWithMinMaxVarsPerChannel(inputs, min, max)

void infer_fake_quant(InferContext& c) {
  const int64_t bits = node_def(c).integer("num_bits", 8);
  c.require(bits >= 2 && bits <= 16, "it has {} bits, expected 2 to 16", bits);
  const Shape& shape = c.input(0).shape;
  c.require(shape.rank() >= 1, "the input is a scalar, expected at least a vector");
  for (int i = 0; i < 3; ++i) {
    c.require_input_type(i, {DType::kFloat32});
    if (i > 0) require_elements(c, i, shape[shape.rank() - 1]);
  }
  c.require_output_type(0, {DType::kFloat32});
  c.set_output_shape(0, shape);
}

std::unique_ptr<Kernel> prepare_fake_quant(PrepareContext& c) {
  const float first = node_def(c).flag("narrow_range", false) ? 1.0F : 0.0F;
  const auto last = static_cast<float>((int64_t{1} << node_def(c).integer("num_bits", 8)) - 1);
  return make_kernel([first, last](RunContext& run) {
    const Shape& shape = run.input(0).shape;
    const int64_t channels = shape[shape.rank() - 1];
    const auto* in = run.input(0).as<float>();
    auto* out = run.output(0).mutable_as<float>();
    run.pool().for_pieces(shape.elements(), 16, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const float low = run.input(1).as<float>()[i % channels];
        const float high = run.input(2).as<float>()[i % channels];
        if (low == 0.0F && high == 0.0F) {
          out[i] = 0.0F;
          continue;
        }
        // The limits move so that 0 is one of the levels.
        const float scale = (high - low) / (last - first);
        const float zero = std::clamp(std::round(first - low / scale), first, last);
        const float nudged_low = (first - zero) * scale;
        const float nudged_high = (last - zero) * scale;
        const float clamped = std::clamp(in[i], nudged_low, nudged_high) - nudged_low;
        out[i] = std::floor(clamped / scale + 0.5F) * scale + nudged_low;
      }
    });
  });
}

}  // namespace

void register_flex_generators(Registry& registry) {
  registry.add(flex_row("FlexRange", 3, 1, infer_range, prepare_range, "f32 f64 i32 i64"));
  registry.add(flex_row("FlexLinSpace", 3, 1, infer_lin_space, prepare_lin_space, "f32 f64"));
  registry.add(flex_row("FlexShapeN", -1, -1, infer_shapes, prepare_shapes, "any"));
  OpDef assert_row = flex_row("FlexAssert", -1, 0, infer_assert, prepare_assert, "bool");
  assert_row.pure = false;
  registry.add(std::move(assert_row));
  registry.add(flex_row("FlexFakeQuantWithMinMaxVarsPerChannel", 3, 1, infer_fake_quant, prepare_fake_quant, "f32"));
}

}  // namespace leadline::ops
