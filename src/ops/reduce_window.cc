// SPDX-License-Identifier: Apache-2.0
// REDUCE_WINDOW, STABLEHLO_REDUCE_WINDOW: a sliding window over every axis, reduced by one simple function.
//
// The input may be dilated (gaps between elements) and padded or cropped; what is not an element of the input counts as
// the initial value, and takes part in the reduction. Nothing of that is materialised: every position of a window is
// mapped back to the input.
#include "ops/reduce_window.h"

#include <array>
#include <limits>
#include <type_traits>

#include "ops/common.h"
#include "ops/families.h"
#include "ops/movement.h"

namespace leadline::ops {
namespace reduce_window {
namespace {

struct Axis {
  int64_t input = 0;         // elements
  int64_t input_stride = 0;  // of one element
  int64_t dilation = 1;      // distance of neighbouring elements after dilation
  int64_t low = 0;           // padding before the first; negative: cropped
  int64_t window = 1;
  int64_t window_dilation = 1;
  int64_t stride = 1;
  int64_t output = 0;
  int64_t inner_window = 1;  // positions of a window over the axes inside this one
};

struct WindowPlan {
  std::array<Axis, kMaxRank> axes{};
  int rank = 0;
  int64_t positions = 1;  // of a whole window
};

/// Arithmetic wraps around as two's complement does.
struct Add {
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      return a + b;
    } else {
      return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    }
  }
};

struct Mul {
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      return a * b;
    } else {
      return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    }
  }
};

struct Min {
  template <typename T>
  T operator()(T a, T b) const {
    return a <= b ? a : b;
  }
};

struct Max {
  template <typename T>
  T operator()(T a, T b) const {
    return a >= b ? a : b;
  }
};

struct All {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a != T{0} && b != T{0});
  }
};

struct Any {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a != T{0} || b != T{0});
  }
};

template <typename Op, typename T>
class WindowReducer {
 public:
  WindowReducer(const WindowPlan& plan, const T* input, T init) : plan_(plan), input_(input), init_(init) {}

  /// The window of the output element with this row-major number.
  T reduce(int64_t element) {
    for (int d = plan_.rank - 1; d >= 0; --d) {
      const Axis& axis = plan_.axes[static_cast<size_t>(d)];
      start_[static_cast<size_t>(d)] = element % axis.output * axis.stride - axis.low;
      element /= axis.output;
    }
    sum_ = init_;
    walk(0, 0);
    return sum_;
  }

 private:
  void walk(int d, int64_t offset) {
    const Axis& axis = plan_.axes[static_cast<size_t>(d)];
    const bool innermost = d + 1 == plan_.rank;
    for_items(axis.window, 8 * static_cast<double>(axis.inner_window), [&](int64_t k) {
      const int64_t at = start_[static_cast<size_t>(d)] + k * axis.window_dilation;
      const int64_t index = axis.dilation == 1 ? at : at / axis.dilation;
      if (at < 0 || index >= axis.input || (axis.dilation != 1 && at % axis.dilation != 0)) {
        for_items(axis.inner_window, 1, [&](int64_t) { sum_ = Op{}(sum_, init_); });
      } else if (innermost) {
        sum_ = Op{}(sum_, input_[offset + index * axis.input_stride]);
      } else {
        walk(d + 1, offset + index * axis.input_stride);
      }
    });
  }

  const WindowPlan& plan_;
  const T* input_;
  const T init_;
  std::array<int64_t, kMaxRank> start_{};
  T sum_{};
};

template <typename Op>
std::unique_ptr<Kernel> typed_kernel(const PrepareContext& c, const WindowPlan& plan) {
  const auto make = [&](auto zero) -> std::unique_ptr<Kernel> {
    using T = decltype(zero);
    return make_kernel([plan](RunContext& run) {
      const double cost = static_cast<double>(plan.positions) * 8.0;
      T* out = run.output(0).mutable_as<T>();
      run.pool().for_pieces(run.output(0).elements(), cost, [&](int64_t begin, int64_t end) {
        WindowReducer<Op, T> reducer(plan, run.input(0).as<T>(), *run.input(1).as<T>());
        for (int64_t i = begin; i < end; ++i) out[i] = reducer.reduce(i);
      });
    });
  };
  switch (c.input(0).dtype()) {
    case DType::kFloat32:
      return make(float{});
    case DType::kFloat64:
      return make(double{});
    case DType::kBool:  // TFLite computes with the stored bytes: the sum of two trues is 2
    case DType::kInt8:
      return make(int8_t{});
    case DType::kUInt8:
      return make(uint8_t{});
    case DType::kInt16:
      return make(int16_t{});
    case DType::kInt32:
      return make(int32_t{});
    default:
      return make(int64_t{});
  }
}

std::unique_ptr<Kernel> window_kernel(const PrepareContext& c, WindowFunction function, const WindowPlan& plan) {
  switch (function) {
    case WindowFunction::kAdd:
      return typed_kernel<Add>(c, plan);
    case WindowFunction::kMul:
      return typed_kernel<Mul>(c, plan);
    case WindowFunction::kMin:
      return typed_kernel<Min>(c, plan);
    case WindowFunction::kMax:
      return typed_kernel<Max>(c, plan);
    case WindowFunction::kAll:
      return typed_kernel<All>(c, plan);
    default:
      return typed_kernel<Any>(c, plan);
  }
}

void check_operands(const OpContext& c) {
  c.require_input_type(0, {DType::kFloat32, DType::kFloat64, DType::kBool, DType::kInt8, DType::kUInt8, DType::kInt16,
                           DType::kInt32, DType::kInt64});
  require_same_type(c, c.input(0), c.input(1));
  require_same_type(c, c.input(0), c.output(0));
  c.require(c.input(0).shape.rank() > 0, "the input is a scalar, expected at least one axis");
  c.require(c.input(1).shape.elements() >= 1, "the initial value has shape {}, expected one value",
            c.input(1).shape.to_string());
}

/// Dilated, padded and window sizes stay within what a tensor may have, so that no index overflows.
constexpr int64_t kMaxExtent = std::numeric_limits<int32_t>::max();

void check_factor(const OpContext& c, const char* what, int d, int64_t value) {
  c.require(value >= 1 && value <= kMaxExtent, "{} {} of axis {} is outside 1 to {}", what, value, d, kMaxExtent);
}

/// Completes the axis' output size; `high` is the padding after the last element.
void size_axis(const OpContext& c, int d, int64_t high, Axis& axis) {
  check_factor(c, "window size", d, axis.window);
  check_factor(c, "window stride", d, axis.stride);
  check_factor(c, "window dilation", d, axis.window_dilation);
  check_factor(c, "base dilation", d, axis.dilation);
  c.require(axis.low >= -kMaxExtent && axis.low <= kMaxExtent && high >= -kMaxExtent && high <= kMaxExtent,
            "padding {} and {} of axis {} is too large", axis.low, high, d);
  const int64_t dilated = axis.input == 0 ? 0 : checked_multiply(c, axis.input - 1, axis.dilation) + 1;
  const int64_t padded = dilated + axis.low + high;
  c.require(padded >= 0 && padded <= kMaxExtent, "axis {} has size {} after dilation and padding, expected 0 to {}", d,
            padded, kMaxExtent);
  const int64_t extent = checked_multiply(c, axis.window - 1, axis.window_dilation) + 1;
  axis.output = padded < extent ? 0 : (padded - extent) / axis.stride + 1;
}

/// `plan.axes` has everything but sizes and strides of the input, the output, and window positions.
void complete(const OpContext& c, const std::array<int64_t, kMaxRank>& high, WindowPlan& plan) {
  const Shape& shape = c.input(0).shape;
  const std::vector<int64_t> strides = element_strides(shape);
  plan.rank = shape.rank();
  for (int d = plan.rank - 1; d >= 0; --d) {
    const auto i = static_cast<size_t>(d);
    Axis& axis = plan.axes[i];
    axis.input = shape[d];
    axis.input_stride = strides[i];
    axis.inner_window = plan.positions;
    size_axis(c, d, high[i], axis);
    plan.positions = checked_multiply(c, plan.positions, axis.window);
  }
}

Shape output_shape(const WindowPlan& plan) {
  Shape shape;
  for (int d = 0; d < plan.rank; ++d) shape.push_back(plan.axes[static_cast<size_t>(d)].output);
  return shape;
}

// REDUCE_WINDOW

WindowFunction function_of(const OpContext& c) {
  const int32_t function = c.attributes<ReduceWindowAttributes>().reduce_function;
  if (function < 1 || function > 6) c.fail(ErrorCode::kUnsupported, "reduction function {} is not supported", function);
  return static_cast<WindowFunction>(function);
}

WindowPlan plan_of(const OpContext& c) {
  WindowPlan plan;
  for (int i = 2; i < 5; ++i) {
    const auto values = c.input(i).values<int64_t>();
    for (size_t d = 0; d < values.size(); ++d) {
      Axis& axis = plan.axes[d];
      (i == 2 ? axis.window : i == 3 ? axis.stride : axis.window_dilation) = values[d];
    }
  }
  complete(c, {}, plan);
  return plan;
}

void infer(InferContext& c) {
  check_operands(c);
  function_of(c);
  bool known = true;
  for (int i = 2; i < 5; ++i) {
    c.require_input_type(i, {DType::kInt64});
    require_elements(c, i, c.input(0).shape.rank());
    known &= c.known(i);
  }
  if (!known) return c.defer();
  c.set_output_shape(0, output_shape(plan_of(c)));
}

std::unique_ptr<Kernel> prepare(PrepareContext& c) { return window_kernel(c, function_of(c), plan_of(c)); }

// STABLEHLO_REDUCE_WINDOW

/// The body is a subgraph of one node, which says what it computes.
WindowFunction body_of(const OpContext& c) {
  const int index = c.attributes<StablehloReduceWindowAttributes>().body_subgraph;
  const std::vector<ir::Node>& nodes = c.host().subgraph(index).nodes;
  if (nodes.size() != 1) {
    c.fail(ErrorCode::kUnsupported, "its body, subgraph {}, has {} nodes, expected one", index, nodes.size());
  }
  const ir::OpId op = nodes[0].op;
  if (is_one_of(op, {op::kAdd, op::kStablehloAdd})) return WindowFunction::kAdd;
  if (is_one_of(op, {op::kMul, op::kStablehloMultiply})) return WindowFunction::kMul;
  if (is_one_of(op, {op::kMaximum, op::kStablehloMaximum})) return WindowFunction::kMax;
  if (is_one_of(op, {op::kMinimum, op::kStablehloMinimum})) return WindowFunction::kMin;
  if (is_one_of(op, {op::kLogicalAnd, op::kStablehloAnd})) return WindowFunction::kAll;
  if (is_one_of(op, {op::kLogicalOr, op::kStablehloOr})) return WindowFunction::kAny;
  c.fail(ErrorCode::kUnsupported, "its body, subgraph {}, computes {}, which is not a supported reduction", index,
         op.name());
}

WindowPlan stablehlo_plan(const OpContext& c) {
  const auto& a = c.attributes<StablehloReduceWindowAttributes>();
  const auto rank = static_cast<size_t>(c.input(0).shape.rank());
  c.require(a.window_dimensions.size() == rank, "window_dimensions has {} entries, the input rank {}",
            a.window_dimensions.size(), rank);
  const auto at = [&](const std::vector<int64_t>& list, const char* name, size_t count, size_t i, int64_t missing) {
    c.require(list.empty() || list.size() == count, "{} has {} entries, expected {}", name, list.size(), count);
    return list.empty() ? missing : list[i];
  };
  WindowPlan plan;
  std::array<int64_t, kMaxRank> high{};
  for (size_t d = 0; d < rank; ++d) {
    Axis& axis = plan.axes[d];
    axis.window = a.window_dimensions[d];
    axis.stride = at(a.window_strides, "window_strides", rank, d, 1);
    axis.dilation = at(a.base_dilations, "base_dilations", rank, d, 1);
    axis.window_dilation = at(a.window_dilations, "window_dilations", rank, d, 1);
    axis.low = at(a.padding, "padding", 2 * rank, 2 * d, 0);
    high[d] = at(a.padding, "padding", 2 * rank, 2 * d + 1, 0);
  }
  complete(c, high, plan);
  return plan;
}

void infer_stablehlo(InferContext& c) {
  check_operands(c);
  body_of(c);
  c.set_output_shape(0, output_shape(stablehlo_plan(c)));
}

std::unique_ptr<Kernel> prepare_stablehlo(PrepareContext& c) { return window_kernel(c, body_of(c), stablehlo_plan(c)); }

}  // namespace
}  // namespace reduce_window

void register_reduce_window(Registry& registry) {
  using namespace reduce_window;
  constexpr std::string_view kTypes = "f32 f64 bool i8 u8 i16 i32 i64";
  registry.add({.id = op::kReduceWindow,
                .min_inputs = 5,
                .max_inputs = 5,
                .required_inputs = 5,
                .options = builtin_options_2(20),
                .make_attributes = make_attributes<ReduceWindowAttributes>,
                .infer = infer,
                .prepare = prepare,
                .types = kTypes});
  registry.add({.id = op::kStablehloReduceWindow,
                .min_inputs = 2,
                .max_inputs = 2,
                .required_inputs = 2,
                .options = builtin_options_2(13),
                .make_attributes = make_attributes<StablehloReduceWindowAttributes>,
                .infer = infer_stablehlo,
                .prepare = prepare_stablehlo,
                .types = kTypes});
}

}  // namespace leadline::ops
