// SPDX-License-Identifier: Apache-2.0
// Flex ops that reduce along axes (Sum, Mean, Prod, Max, Min, All, Any, EuclideanNorm, ArgMax, ArgMin) and those that
// accumulate along one (Cumsum, Cumprod, CumulativeLogsumexp).
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>

#include "ops/flex/families.h"
#include "ops/flex/flex.h"

namespace leadline::ops {
namespace {

/// Which axes of a shape an input with axes names.
std::vector<bool> reduced_axes(const OpContext& c, const Shape& shape, int input) {
  std::vector<bool> reduced(static_cast<size_t>(shape.rank()), false);
  for (int64_t axis : known_ints(c, input)) {
    reduced[static_cast<size_t>(resolve_axis(c, axis, shape.rank()))] = true;
  }
  return reduced;
}

void infer_reduction(InferContext& c) {
  const bool keep = node_def(c).flag("keep_dims", false);
  require_indices(c, 1);
  require_same_type(c, c.input(0), c.output(0));
  if (!c.known(1)) return c.defer();
  const Shape& shape = c.input(0).shape;
  const std::vector<bool> reduced = reduced_axes(c, shape, 1);
  Shape result;
  for (int i = 0; i < shape.rank(); ++i) {
    if (!reduced[static_cast<size_t>(i)]) {
      result.push_back(shape[i]);
    } else if (keep) {
      result.push_back(1);
    }
  }
  c.set_output_shape(0, result);
}

/// Sizes and strides of the axes that stay and of those that vanish.
struct ReductionLayout {
  struct Axis {
    int64_t size = 0;
    int64_t stride = 0;
  };
  std::vector<Axis> kept;
  std::vector<Axis> reduced;
  int64_t results = 1;
  int64_t terms = 1;

  ReductionLayout(const Shape& shape, const std::vector<bool>& is_reduced) {
    int64_t stride = 1;
    std::vector<Axis> axes(static_cast<size_t>(shape.rank()));
    for (int i = shape.rank() - 1; i >= 0; --i) {
      axes[static_cast<size_t>(i)] = {shape[i], stride};
      stride *= shape[i];
    }
    for (size_t i = 0; i < axes.size(); ++i) {
      (is_reduced[i] ? reduced : kept).push_back(axes[i]);
      (is_reduced[i] ? terms : results) *= axes[i].size;
    }
  }

  static int64_t offset(const std::vector<Axis>& axes, int64_t index) {
    int64_t offset = 0;
    for (size_t i = axes.size(); i-- > 0;) {
      offset += index % axes[i].size * axes[i].stride;
      index /= axes[i].size;
    }
    return offset;
  }
};

/// What sums are kept in. Sums and products of integers wrap around, so that of a wider type the low bits are theirs.
template <typename T>
struct AccumulatorOf {
  using Type = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
};
template <>
struct AccumulatorOf<bool> {
  using Type = bool;
};
template <>
struct AccumulatorOf<float> {
  using Type = double;
};
template <>
struct AccumulatorOf<double> {
  using Type = double;
};
template <>
struct AccumulatorOf<kernels::Half> {
  using Type = double;
};
template <>
struct AccumulatorOf<kernels::BFloat16> {
  using Type = double;
};
template <>
struct AccumulatorOf<std::complex<float>> {
  using Type = std::complex<double>;
};
template <>
struct AccumulatorOf<std::complex<double>> {
  using Type = std::complex<double>;
};
template <typename T>
using Accumulator = typename AccumulatorOf<T>::Type;
/// In what a sum starts and is finished: the integer type itself, or what floats are summed in.
template <typename T>
using Exact = std::conditional_t<std::is_integral_v<T>, T, Accumulator<T>>;

template <typename A, typename T>
A widen(T value) {
  if constexpr (std::is_same_v<T, kernels::Half> || std::is_same_v<T, kernels::BFloat16>) {
    return static_cast<A>(static_cast<float>(value));
  } else {
    return static_cast<A>(value);
  }
}
template <typename T, typename A>
T narrow(A value) {
  if constexpr (std::is_same_v<T, kernels::Half> || std::is_same_v<T, kernels::BFloat16>) {
    return T(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}

template <typename A>
A lowest() {
  if constexpr (std::numeric_limits<A>::has_infinity)
    return -std::numeric_limits<A>::infinity();
  else
    return std::numeric_limits<A>::lowest();
}
template <typename A>
A highest() {
  if constexpr (std::numeric_limits<A>::has_infinity)
    return std::numeric_limits<A>::infinity();
  else
    return std::numeric_limits<A>::max();
}

// Each has the value of no terms, how a term is added and what becomes of the sum of `count` terms.
struct Plain {
  template <typename A>
  static A finish(A sum, int64_t /*count*/) {
    return sum;
  }
};
struct Sum : Plain {
  static constexpr bool kOrdered = false;
  template <typename A>
  static A start() {
    return A(0);
  }
  template <typename A>
  static A add(A sum, A term) {
    return wrapping_add(sum, term);
  }
};
struct Mean : Sum {
  template <typename A>
  static A finish(A sum, int64_t count) {
    if constexpr (std::is_integral_v<A>)
      return count == 0 ? A(0) : static_cast<A>(sum / static_cast<A>(count));
    else
      return sum / A(static_cast<double>(count));
  }
};
struct Product : Plain {
  static constexpr bool kOrdered = false;
  template <typename A>
  static A start() {
    return A(1);
  }
  template <typename A>
  static A add(A sum, A term) {
    return wrapping_mul(sum, term);
  }
};
struct Norm {
  static constexpr bool kOrdered = false;
  template <typename A>
  static A start() {
    return A(0);
  }
  template <typename A>
  static A add(A sum, A term) {
    if constexpr (kIsComplex<A>)
      return sum + term * std::conj(term);
    else
      return wrapping_add(sum, wrapping_mul(term, term));
  }
  template <typename A>
  static A finish(A sum, int64_t /*count*/) {
    if constexpr (std::is_integral_v<A>)
      return static_cast<A>(std::sqrt(static_cast<double>(sum)));
    else
      return std::sqrt(sum);
  }
};
struct Largest : Plain {
  static constexpr bool kOrdered = true;
  template <typename A>
  static A start() {
    return lowest<A>();
  }
  template <typename A>
  static A add(A a, A b) {
    return b != b || b > a ? b : a;
  }
};
struct Smallest : Plain {
  static constexpr bool kOrdered = true;
  template <typename A>
  static A start() {
    return highest<A>();
  }
  template <typename A>
  static A add(A a, A b) {
    return b != b || b < a ? b : a;
  }
};
struct AllOf : Plain {
  static constexpr bool kOrdered = true;
  template <typename A>
  static A start() {
    return true;
  }
  template <typename A>
  static A add(A a, A b) {
    return a && b;
  }
};
struct AnyOf : Plain {
  static constexpr bool kOrdered = true;
  template <typename A>
  static A start() {
    return false;
  }
  template <typename A>
  static A add(A a, A b) {
    return a || b;
  }
};

/// How terms of a type become accumulators, and sums results: all that a reduction compiles once for each type, since
/// the loops over them see accumulators only.
template <typename A>
struct TermAccess {
  A start;
  /// `count` values from element `at` on, `stride` apart.
  void (*read)(const TensorView& in, int64_t at, int64_t stride, int64_t count, A* terms);
  void (*finish)(const TensorView& out, int64_t at, A sum, int64_t terms);
};

template <typename T, typename A>
void read_terms(const TensorView& in, int64_t at, int64_t stride, int64_t count, A* terms) {
  const T* from = in.as<T>() + at;
  for (int64_t i = 0; i < count; ++i) terms[i] = widen<A>(from[i * stride]);
}

template <typename T, typename F, typename A>
void finish_sum(const TensorView& out, int64_t at, A sum, int64_t terms) {
  out.mutable_as<T>()[at] = narrow<T>(F::template finish<Exact<T>>(static_cast<Exact<T>>(sum), terms));
}

/// Terms of one result, a run along the last reduced axis after the other.
template <typename A, typename F>
A add_terms(const ReductionLayout& layout, const TermAccess<A>& access, const TensorView& in, int64_t base) {
  constexpr int64_t kMostTerms = 128;
  std::array<A, kMostTerms> terms;
  const ReductionLayout::Axis run = layout.reduced.empty() ? ReductionLayout::Axis{1, 1} : layout.reduced.back();
  A sum = access.start;
  for (int64_t k = 0; k < layout.terms; k += run.size) {
    const int64_t first = base + ReductionLayout::offset(layout.reduced, k);
    for (int64_t i = 0; i < run.size; i += kMostTerms) {
      const int64_t count = std::min(kMostTerms, run.size - i);
      access.read(in, first + i * run.stride, run.stride, count, terms.data());
      for (int64_t t = 0; t < count; ++t) sum = F::template add<A>(sum, terms[static_cast<size_t>(t)]);
    }
  }
  return sum;
}

template <typename A, typename F>
std::unique_ptr<Kernel> reduction_of(ReductionLayout layout, const TermAccess<A>& access) {
  return make_kernel([layout = std::move(layout), access](RunContext& run) {
    const double cost = 8 + 3 * static_cast<double>(layout.terms);
    run.pool().for_pieces(layout.results, cost, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t base = ReductionLayout::offset(layout.kept, i);
        access.finish(run.output(0), i, add_terms<A, F>(layout, access, run.input(0), base), layout.terms);
      }
    });
  });
}

template <typename T, typename F>
std::unique_ptr<Kernel> reduction_kernel(ReductionLayout layout) {
  using A = Accumulator<T>;
  return reduction_of<A, F>(std::move(layout),
                            {static_cast<A>(F::template start<Exact<T>>()), read_terms<T, A>, finish_sum<T, F, A>});
}

template <typename F>
std::unique_ptr<Kernel> prepare_reduction(PrepareContext& c) {
  const ReductionLayout layout(c.input(0).shape, reduced_axes(c, c.input(0).shape, 1));
  return visit_number(c, c.input(0).dtype(), [&](auto type) -> std::unique_ptr<Kernel> {
    using T = decltype(type);
    if constexpr (std::is_same_v<T, bool> || (F::kOrdered && kIsComplex<T>)) {
      c.fail(ErrorCode::kUnsupported, "type {} is not supported", dtype_name(c.input(0).dtype()));
    } else {
      return reduction_kernel<T, F>(layout);
    }
  });
}

template <typename F>
std::unique_ptr<Kernel> prepare_logical(PrepareContext& c) {
  c.require_input_type(0, {DType::kBool});
  return reduction_kernel<bool, F>(ReductionLayout(c.input(0).shape, reduced_axes(c, c.input(0).shape, 1)));
}

// ArgMax, ArgMin

void infer_arg(InferContext& c) {
  node_def(c);
  c.require_output_type(0, {DType::kInt32, DType::kInt64, DType::kInt16, DType::kUInt16});
  require_indices(c, 1);
  if (!c.known(1)) return c.defer();
  const Shape& shape = c.input(0).shape;
  const int axis = resolve_axis(c, integer_of_input(c, 1), shape.rank());
  c.require(shape[axis] > 0 || shape.elements() > 0, "axis {} of the input has no elements", axis);
  Shape result;
  for (int i = 0; i < shape.rank(); ++i) {
    if (i != axis) result.push_back(shape[i]);
  }
  c.set_output_shape(0, result);
}

template <bool kLargest>
std::unique_ptr<Kernel> prepare_arg(PrepareContext& c) {
  const Shape& shape = c.input(0).shape;
  const int axis = resolve_axis(c, integer_of_input(c, 1), shape.rank());
  const int64_t size = shape[axis];
  const int64_t inner = span_elements(shape, axis + 1, shape.rank());
  const auto make = [&](auto type) {
    using T = decltype(type);
    return make_kernel([size, inner](RunContext& run) {
      const T* in = run.input(0).as<T>();
      const TensorView& out = run.output(0);
      run.pool().for_pieces(out.elements(), 2 * static_cast<double>(size), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const T* from = in + i / inner * size * inner + i % inner;
          int64_t best = 0;
          for (int64_t k = 1; k < size; ++k) {
            const auto value = static_cast<Compute<T>>(from[k * inner]);
            const auto so_far = static_cast<Compute<T>>(from[best * inner]);
            if (kLargest ? value > so_far : value < so_far) best = k;
          }
          if (out.dtype == DType::kInt64)
            out.mutable_as<int64_t>()[i] = best;
          else if (out.dtype == DType::kInt32)
            out.mutable_as<int32_t>()[i] = static_cast<int32_t>(best);
          else
            out.mutable_as<uint16_t>()[i] = static_cast<uint16_t>(best);
        }
      });
    });
  };
  if (is_floating(c.input(0).dtype())) return visit_floating(c, c.input(0).dtype(), make);
  return visit_numeric(c, c.input(0).dtype(), make);
}

// Cumsum, Cumprod, CumulativeLogsumexp

void infer_scan(InferContext& c) {
  node_def(c);
  require_indices(c, 1);
  require_elements(c, 1, 1);
  require_same_type(c, c.input(0), c.output(0));
  if (!c.known(1)) return c.defer();
  resolve_axis(c, known_ints(c, 1)[0], c.input(0).shape.rank());
  c.set_output_shape(0, c.input(0).shape);
}

struct LogSumExp : Plain {
  static constexpr bool kOrdered = true;
  template <typename A>
  static A start() {
    return lowest<A>();
  }
  template <typename A>
  static A add(A a, A b) {
    const A most = std::max(a, b);
    if (most == lowest<A>()) return most;
    return most + std::log1p(std::exp(std::min(a, b) - most));
  }
};

struct ScanLayout {
  int64_t size, inner, outer;
  bool exclusive, reverse;
};

template <typename T, typename F>
std::unique_ptr<Kernel> scan_kernel(const ScanLayout& l) {
  return make_kernel([l](RunContext& run) {
    using A = Accumulator<T>;
    const T* in = run.input(0).as<T>();
    T* out = run.output(0).mutable_as<T>();
    run.pool().for_pieces(l.outer * l.inner, 4 * static_cast<double>(l.size), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = i / l.inner * l.size * l.inner + i % l.inner;
        A sum = static_cast<A>(F::template start<Exact<T>>());
        for (int64_t k = 0; k < l.size; ++k) {
          const int64_t at = first + (l.reverse ? l.size - 1 - k : k) * l.inner;
          const A term = widen<A>(in[at]);
          if (l.exclusive) out[at] = narrow<T>(sum);
          sum = F::template add<A>(sum, term);
          if (!l.exclusive) out[at] = narrow<T>(sum);
        }
      }
    });
  });
}

ScanLayout scan_layout(const OpContext& c) {
  const Shape& shape = c.input(0).shape;
  const int axis = resolve_axis(c, integer_of_input(c, 1), shape.rank());
  return {shape[axis], span_elements(shape, axis + 1, shape.rank()), span_elements(shape, 0, axis),
          node_def(c).flag("exclusive", false), node_def(c).flag("reverse", false)};
}

template <typename F>
std::unique_ptr<Kernel> prepare_scan(PrepareContext& c) {
  const ScanLayout layout = scan_layout(c);
  return visit_number(c, c.input(0).dtype(), [&](auto type) -> std::unique_ptr<Kernel> {
    using T = decltype(type);
    if constexpr (std::is_same_v<T, bool>)
      c.fail(ErrorCode::kUnsupported, "type bool is not supported");
    else
      return scan_kernel<T, F>(layout);
  });
}

std::unique_ptr<Kernel> prepare_log_sum_exp(PrepareContext& c) {
  const ScanLayout layout = scan_layout(c);
  return visit_floating(c, c.input(0).dtype(),
                        [&](auto type) { return scan_kernel<decltype(type), LogSumExp>(layout); });
}

}  // namespace

void register_flex_reduce(Registry& registry) {
  const auto reduction = [&](std::string_view name, Prepare prepare, std::string_view types) {
    registry.add(flex_row(name, 2, 1, infer_reduction, prepare, types));
  };
  reduction("FlexSum", prepare_reduction<Sum>, "all numbers");
  reduction("FlexMean", prepare_reduction<Mean>, "all numbers");
  reduction("FlexProd", prepare_reduction<Product>, "all numbers");
  reduction("FlexEuclideanNorm", prepare_reduction<Norm>, "all numbers");
  reduction("FlexMax", prepare_reduction<Largest>, "real numbers");
  reduction("FlexMin", prepare_reduction<Smallest>, "real numbers");
  reduction("FlexAll", prepare_logical<AllOf>, "bool");
  reduction("FlexAny", prepare_logical<AnyOf>, "bool");
  registry.add(flex_row("FlexArgMax", 2, 1, infer_arg, prepare_arg<true>, "real numbers"));
  registry.add(flex_row("FlexArgMin", 2, 1, infer_arg, prepare_arg<false>, "real numbers"));
  registry.add(flex_row("FlexCumsum", 2, 1, infer_scan, prepare_scan<Sum>, "all numbers"));
  registry.add(flex_row("FlexCumprod", 2, 1, infer_scan, prepare_scan<Product>, "all numbers"));
  registry.add(flex_row("FlexCumulativeLogsumexp", 2, 1, infer_scan, prepare_log_sum_exp, "f32 f64 f16 bf16"));
}

}  // namespace leadline::ops
