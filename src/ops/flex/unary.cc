// SPDX-License-Identifier: Apache-2.0
// Flex ops that are a function of each element: Erf, Atan, Softplus, ... of floating types, and of complex ones where
// the function is analytic; Abs, Neg, Sign, Square and the like of integers too.
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>

#include "ops/flex/families.h"
#include "ops/flex/flex.h"
#include "ops/flex/special_functions.h"

namespace leadline::ops {
namespace {

/// out[i] = f(in[i]). Nothing else is compiled for each function and type, of which there are hundreds.
using Map = void (*)(const std::byte* in, std::byte* out, int64_t count);

template <typename T, typename R, typename F>
void map_elements(const std::byte* from, std::byte* to, int64_t count) {
  const T* in = reinterpret_cast<const T*>(from);
  R* out = reinterpret_cast<R*>(to);
  for (int64_t i = 0; i < count; ++i) out[i] = static_cast<R>(F{}(static_cast<Compute<T>>(in[i])));
}

/// The kernel of a map for the types of the node.
std::unique_ptr<Kernel> map_kernel(const OpContext& c, Map map) {
  return std::make_unique<UnaryKernel>(dtype_bits(c.input(0).dtype()) / 8, dtype_bits(c.output(0).dtype()) / 8, map,
                                       kFunctionCost);
}

void infer_same(InferContext& c) {
  node_def(c);
  require_same_type(c, c.input(0), c.output(0));
  c.set_output_shape(0, c.input(0).shape);
}

void infer_bool(InferContext& c) {
  node_def(c);
  c.require_output_type(0, {DType::kBool});
  c.set_output_shape(0, c.input(0).shape);
}

/// Real floating types only.
template <typename F>
std::unique_ptr<Kernel> prepare_real(PrepareContext& c) {
  return map_kernel(c, visit_floating(c, c.input(0).dtype(), [](auto example) -> Map {
                      using T = decltype(example);
                      return map_elements<T, T, F>;
                    }));
}

/// Real and complex floating types.
template <typename F>
std::unique_ptr<Kernel> prepare_analytic(PrepareContext& c) {
  const DType type = c.input(0).dtype();
  if (is_floating(type)) return prepare_real<F>(c);
  return map_kernel(c, visit_analytic(c, type, [](auto example) -> Map {
                      using T = decltype(example);
                      return map_elements<T, T, F>;
                    }));
}

/// Every number.
template <typename F>
std::unique_ptr<Kernel> prepare_any(PrepareContext& c) {
  return map_kernel(c, visit_number(c, c.input(0).dtype(), [](auto example) -> Map {
                      using T = decltype(example);
                      return map_elements<T, T, F>;
                    }));
}

template <typename F>
std::unique_ptr<Kernel> prepare_predicate(PrepareContext& c) {
  return map_kernel(c, visit_floating(c, c.input(0).dtype(),
                                      [](auto example) -> Map { return map_elements<decltype(example), bool, F>; }));
}

// Function objects whose body is one expression of x.
#define LEADLINE_FUNCTION(name, expression) \
  struct name {                             \
    template <typename T>                   \
    T operator()(T x) const {               \
      return static_cast<T>(expression);    \
    }                                       \
  }
LEADLINE_FUNCTION(Erf, std::erf(x));
LEADLINE_FUNCTION(Erfc, std::erfc(x));
LEADLINE_FUNCTION(Erfinv, inverse_erf(x));
LEADLINE_FUNCTION(Ndtri, -std::numbers::sqrt2* inverse_erfc(2.0 * static_cast<double>(x)));
LEADLINE_FUNCTION(Lgamma, log_gamma(x));
LEADLINE_FUNCTION(Digamma, digamma(x));
LEADLINE_FUNCTION(BesselI0e, bessel_i0e(x));
LEADLINE_FUNCTION(BesselI1e, bessel_i1e(x));
LEADLINE_FUNCTION(Acos, std::acos(x));
LEADLINE_FUNCTION(Asin, std::asin(x));
LEADLINE_FUNCTION(Atan, std::atan(x));
LEADLINE_FUNCTION(Acosh, std::acosh(x));
LEADLINE_FUNCTION(Asinh, std::asinh(x));
LEADLINE_FUNCTION(Atanh, std::atanh(x));
LEADLINE_FUNCTION(Sin, std::sin(x));
LEADLINE_FUNCTION(Cos, std::cos(x));
LEADLINE_FUNCTION(Tan, std::tan(x));
LEADLINE_FUNCTION(Sinh, std::sinh(x));
LEADLINE_FUNCTION(Cosh, std::cosh(x));
LEADLINE_FUNCTION(Tanh, std::tanh(x));
LEADLINE_FUNCTION(Exp, std::exp(x));
LEADLINE_FUNCTION(Expm1, std::expm1(x));
LEADLINE_FUNCTION(Log, std::log(x));
LEADLINE_FUNCTION(Log1p, std::log1p(x));
LEADLINE_FUNCTION(Sqrt, std::sqrt(x));
LEADLINE_FUNCTION(Rsqrt, T(1) / std::sqrt(x));
LEADLINE_FUNCTION(Reciprocal, T(1) / x);
LEADLINE_FUNCTION(Sigmoid, T(1) / (T(1) + std::exp(-x)));
LEADLINE_FUNCTION(Ceil, std::ceil(x));
LEADLINE_FUNCTION(Floor, std::floor(x));
LEADLINE_FUNCTION(Rint, std::nearbyint(x));  // halves to the even neighbour
LEADLINE_FUNCTION(Softplus, std::max(x, T(0)) + std::log1p(std::exp(-std::abs(x))));
LEADLINE_FUNCTION(Softsign, x / (T(1) + std::abs(x)));
LEADLINE_FUNCTION(Elu, x < T(0) ? std::expm1(x) : x);
// The constants of "Self-Normalizing Neural Networks" (2017).
LEADLINE_FUNCTION(Selu, T(1.0507009873554804934193349852946) *
                            (x < T(0) ? T(1.6732632423543772848170429916717) * std::expm1(x) : x));
LEADLINE_FUNCTION(Square, wrapping_mul(x, x));
#undef LEADLINE_FUNCTION

struct Negative {
  template <typename T>
  T operator()(T x) const {
    if constexpr (std::is_same_v<T, bool>)
      return x;
    else
      return wrapping_sub(T(0), x);
  }
};
struct Absolute {
  template <typename T>
  T operator()(T x) const {
    if constexpr (std::is_unsigned_v<T> || kIsComplex<T>)
      return x;
    else
      return x < T(0) ? wrapping_sub(T(0), x) : (x == T(0) ? T(0) : x);
  }
};
struct Sign {
  template <typename T>
  T operator()(T x) const {
    if constexpr (kIsComplex<T>)
      return x == T(0) ? T(0) : x / std::abs(x);
    else if constexpr (std::is_unsigned_v<T>)
      return static_cast<T>(x != T(0));
    else
      return x > T(0) ? T(1) : (x < T(0) ? T(-1) : x);
  }
};
struct Relu {
  template <typename T>
  T operator()(T x) const {
    if constexpr (kIsComplex<T>)
      return x;
    else
      return x < T(0) ? T(0) : x;
  }
};
struct Relu6 {
  template <typename T>
  T operator()(T x) const {
    if constexpr (kIsComplex<T> || std::is_same_v<T, bool>)
      return x;
    else
      return x < T(0) ? T(0) : (x > T(6) ? T(6) : x);
  }
};
struct IsNan {
  template <typename T>
  bool operator()(T x) const {
    return std::isnan(x);
  }
};
struct IsInf {
  template <typename T>
  bool operator()(T x) const {
    return std::isinf(x);
  }
};
struct IsFinite {
  template <typename T>
  bool operator()(T x) const {
    return std::isfinite(x);
  }
};

std::unique_ptr<Kernel> prepare_leaky_relu(PrepareContext& c) {
  const float alpha = node_def(c).number("alpha", 0.2F);
  return visit_floating(c, c.input(0).dtype(), [alpha](auto type) {
    using T = decltype(type);
    return unary_kernel<T>([alpha](Compute<T> x) { return x > 0 ? x : x * static_cast<Compute<T>>(alpha); });
  });
}

void infer_logical_not(InferContext& c) {
  c.require_input_type(0, {DType::kBool});
  infer_same(c);
}

struct Not {
  bool operator()(bool x) const { return !x; }
};
std::unique_ptr<Kernel> prepare_logical_not(PrepareContext& c) { return map_kernel(c, map_elements<bool, bool, Not>); }

/// Integers with results of type R; void: of the same type.
template <typename F, typename R = void>
std::unique_ptr<Kernel> prepare_integers(PrepareContext& c) {
  const DType type = c.input(0).dtype();
  return map_kernel(c, visit_numeric(c, type, [&](auto example) -> Map {
                      using T = decltype(example);
                      if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
                        return map_elements<T, std::conditional_t<std::is_void_v<R>, T, R>, F>;
                      else
                        c.fail(ErrorCode::kUnsupported, "type {} is not supported, expected integers",
                               dtype_name(type));
                    }));
}

struct Invert {
  template <typename T>
  T operator()(T x) const {
    return static_cast<T>(~x);
  }
};
struct PopulationCount {
  template <typename T>
  int operator()(T x) const {
    return std::popcount(static_cast<std::make_unsigned_t<T>>(x));
  }
};

void infer_population_count(InferContext& c) {
  node_def(c);
  c.require_output_type(0, {DType::kUInt8});
  c.set_output_shape(0, c.input(0).shape);
}

// Complex numbers and their parts

void infer_part(InferContext& c) {
  node_def(c);
  c.require_input_type(0, {DType::kComplex64, DType::kComplex128});
  c.require_output_type(0, {c.input(0).dtype() == DType::kComplex64 ? DType::kFloat32 : DType::kFloat64});
  c.set_output_shape(0, c.input(0).shape);
}

template <typename F>
std::unique_ptr<Kernel> prepare_part(PrepareContext& c) {
  const bool single = c.input(0).dtype() == DType::kComplex64;
  return map_kernel(
      c, single ? map_elements<std::complex<float>, float, F> : map_elements<std::complex<double>, double, F>);
}

struct Conjugate {
  template <typename T>
  T operator()(const T& z) const {
    return std::conj(z);
  }
};
std::unique_ptr<Kernel> prepare_conjugate(PrepareContext& c) {
  using Single = std::complex<float>;
  using Double = std::complex<double>;
  const bool single = c.input(0).dtype() == DType::kComplex64;
  return map_kernel(c, single ? map_elements<Single, Single, Conjugate> : map_elements<Double, Double, Conjugate>);
}

void infer_conjugate(InferContext& c) {
  c.require_input_type(0, {DType::kComplex64, DType::kComplex128});
  infer_same(c);
}

#define LEADLINE_PART(name, expression)            \
  struct name {                                    \
    template <typename T>                          \
    T operator()(const std::complex<T>& z) const { \
      return expression;                           \
    }                                              \
  }
LEADLINE_PART(RealPart, z.real());
LEADLINE_PART(ImaginaryPart, z.imag());
LEADLINE_PART(Magnitude, std::abs(z));
LEADLINE_PART(Phase, std::arg(z));
#undef LEADLINE_PART

void infer_complex(InferContext& c) {
  node_def(c);
  c.require_input_type(0, {DType::kFloat32, DType::kFloat64});
  require_same_type(c, c.input(0), c.input(1));
  c.require_output_type(0, {c.input(0).dtype() == DType::kFloat32 ? DType::kComplex64 : DType::kComplex128});
  c.set_output_shape(0, broadcast_shapes(c, c.input(0).shape, c.input(1).shape));
}

std::unique_ptr<Kernel> prepare_complex(PrepareContext& c) {
  const auto make = [](auto re, auto im) { return std::complex<decltype(re)>(re, im); };
  if (c.input(0).dtype() == DType::kFloat32) return binary_kernel<float, std::complex<float>>(c, make);
  return binary_kernel<double, std::complex<double>>(c, make);
}

constexpr std::string_view kReal = "f32 f64 f16 bf16";
constexpr std::string_view kAnalytic = "f32 f64 f16 bf16 c64 c128";

template <typename F>
OpDef real_row(std::string_view name) {
  return flex_row(name, 1, 1, infer_same, prepare_real<F>, kReal);
}
template <typename F>
OpDef analytic_row(std::string_view name) {
  return flex_row(name, 1, 1, infer_same, prepare_analytic<F>, kAnalytic);
}
template <typename F>
OpDef any_row(std::string_view name) {
  return flex_row(name, 1, 1, infer_same, prepare_any<F>, "all numbers");
}

}  // namespace

void register_flex_unary(Registry& registry) {
  std::vector<OpDef> rows = {
      real_row<Erf>("FlexErf"),
      real_row<Erfc>("FlexErfc"),
      real_row<Erfinv>("FlexErfinv"),
      real_row<Ndtri>("FlexNdtri"),
      real_row<Lgamma>("FlexLgamma"),
      real_row<Digamma>("FlexDigamma"),
      real_row<BesselI0e>("FlexBesselI0e"),
      real_row<BesselI1e>("FlexBesselI1e"),
      analytic_row<Acos>("FlexAcos"),
      analytic_row<Asin>("FlexAsin"),
      analytic_row<Atan>("FlexAtan"),
      analytic_row<Acosh>("FlexAcosh"),
      analytic_row<Asinh>("FlexAsinh"),
      analytic_row<Atanh>("FlexAtanh"),
      analytic_row<Sin>("FlexSin"),
      analytic_row<Cos>("FlexCos"),
      analytic_row<Tan>("FlexTan"),
      analytic_row<Sinh>("FlexSinh"),
      analytic_row<Cosh>("FlexCosh"),
      analytic_row<Tanh>("FlexTanh"),
      analytic_row<Exp>("FlexExp"),
      real_row<Expm1>("FlexExpm1"),
      analytic_row<Log>("FlexLog"),
      real_row<Log1p>("FlexLog1p"),
      analytic_row<Sqrt>("FlexSqrt"),
      analytic_row<Rsqrt>("FlexRsqrt"),
      analytic_row<Reciprocal>("FlexReciprocal"),
      analytic_row<Reciprocal>("FlexInv"),
      analytic_row<Sigmoid>("FlexSigmoid"),
      real_row<Ceil>("FlexCeil"),
      real_row<Floor>("FlexFloor"),
      real_row<Rint>("FlexRint"),
      real_row<Rint>("FlexRound"),
      real_row<Softplus>("FlexSoftplus"),
      real_row<Softsign>("FlexSoftsign"),
      real_row<Elu>("FlexElu"),
      real_row<Selu>("FlexSelu"),
      any_row<Square>("FlexSquare"),
      any_row<Negative>("FlexNeg"),
      any_row<Absolute>("FlexAbs"),
      any_row<Sign>("FlexSign"),
      any_row<Relu>("FlexRelu"),
      any_row<Relu6>("FlexRelu6"),
      flex_row("FlexLeakyRelu", 1, 1, infer_same, prepare_leaky_relu, kReal),
      flex_row("FlexIsNan", 1, 1, infer_bool, prepare_predicate<IsNan>, kReal),
      flex_row("FlexIsInf", 1, 1, infer_bool, prepare_predicate<IsInf>, kReal),
      flex_row("FlexIsFinite", 1, 1, infer_bool, prepare_predicate<IsFinite>, kReal),
      flex_row("FlexLogicalNot", 1, 1, infer_logical_not, prepare_logical_not, "bool"),
      flex_row("FlexInvert", 1, 1, infer_same, prepare_integers<Invert>, "all integers"),
      flex_row("FlexPopulationCount", 1, 1, infer_population_count, prepare_integers<PopulationCount, uint8_t>,
               "all integers"),
      flex_row("FlexConj", 1, 1, infer_conjugate, prepare_conjugate, "c64 c128"),
      flex_row("FlexReal", 1, 1, infer_part, prepare_part<RealPart>, "c64 c128"),
      flex_row("FlexImag", 1, 1, infer_part, prepare_part<ImaginaryPart>, "c64 c128"),
      flex_row("FlexComplexAbs", 1, 1, infer_part, prepare_part<Magnitude>, "c64 c128"),
      flex_row("FlexAngle", 1, 1, infer_part, prepare_part<Phase>, "c64 c128"),
      flex_row("FlexComplex", 2, 1, infer_complex, prepare_complex, "f32 f64"),
  };
  for (OpDef& row : rows) registry.add(std::move(row));
}

}  // namespace leadline::ops
