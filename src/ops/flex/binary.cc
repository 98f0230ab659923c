// SPDX-License-Identifier: Apache-2.0
// Flex ops of two tensors that broadcast, element by element: arithmetic of all numbers, comparisons, logic, bits.
#include <cmath>
#include <cstring>
#include <limits>

#include "ops/flex/families.h"
#include "ops/flex/flex.h"
#include "ops/flex/special_functions.h"

namespace leadline::ops {
namespace {

void infer_pair(InferContext& c, std::optional<DType> result) {
  node_def(c);
  require_same_type(c, c.input(0), c.input(1));
  if (result) {
    c.require_output_type(0, {*result});
  } else {
    require_same_type(c, c.input(0), c.output(0));
  }
  c.set_output_shape(0, broadcast_shapes(c, c.input(0).shape, c.input(1).shape));
}
void infer_arithmetic(InferContext& c) { infer_pair(c, std::nullopt); }
void infer_comparison(InferContext& c) { infer_pair(c, DType::kBool); }

/// A row of results: out[i] = f(a[i * a_step], b[i * b_step]). Nothing else is compiled for each function and type, of
/// which there are hundreds.
using PairRow = void (*)(const std::byte* a, int64_t a_step, const std::byte* b, int64_t b_step, std::byte* out,
                         int64_t count);

/// Types that only storage has compute as float.
template <typename T, typename R, typename F>
void pair_row(const std::byte* a, int64_t a_step, const std::byte* b, int64_t b_step, std::byte* out, int64_t count) {
  const T* x = reinterpret_cast<const T*>(a);
  const T* y = reinterpret_cast<const T*>(b);
  R* z = reinterpret_cast<R*>(out);
  for (int64_t i = 0; i < count; ++i) {
    z[i] = static_cast<R>(F{}(static_cast<Compute<T>>(x[i * a_step]), static_cast<Compute<T>>(y[i * b_step])));
  }
}

/// The kernel of a row for the types of the node.
std::unique_ptr<Kernel> pair_kernel(const OpContext& c, PairRow row) {
  const int64_t in_bytes = dtype_bits(c.input(0).dtype()) / 8;
  const int64_t out_bytes = dtype_bits(c.output(0).dtype()) / 8;
  return std::make_unique<BinaryKernel>(c, BinaryLayout{in_bytes, in_bytes, out_bytes, kFunctionCost}, row);
}

[[noreturn]] void fail_for_bool(const OpContext& c) { c.fail(ErrorCode::kUnsupported, "type bool is not supported"); }

template <typename F>
std::unique_ptr<Kernel> prepare_binary_any(PrepareContext& c) {
  return pair_kernel(c, visit_number(c, c.input(0).dtype(), [&](auto example) -> PairRow {
                       using T = decltype(example);
                       if constexpr (std::is_same_v<T, bool>)
                         fail_for_bool(c);
                       else
                         return pair_row<T, T, F>;
                     }));
}

/// Rows of real numbers with results of type R; void: of the same type.
template <typename F, typename R = void>
PairRow real_binary_row(const OpContext& c) {
  const auto row = [](auto example) -> PairRow {
    using T = decltype(example);
    return pair_row<T, std::conditional_t<std::is_void_v<R>, T, R>, F>;
  };
  const DType type = c.input(0).dtype();
  return is_floating(type) ? visit_floating(c, type, row) : visit_numeric(c, type, row);
}

template <typename F>
std::unique_ptr<Kernel> prepare_ordered(PrepareContext& c) {
  return pair_kernel(c, real_binary_row<F>(c));
}

template <typename F>
std::unique_ptr<Kernel> prepare_order(PrepareContext& c) {
  return pair_kernel(c, real_binary_row<F, bool>(c));
}

template <typename F>
std::unique_ptr<Kernel> prepare_binary_real(PrepareContext& c) {
  return pair_kernel(c, visit_floating(c, c.input(0).dtype(), [](auto example) -> PairRow {
                       using T = decltype(example);
                       return pair_row<T, T, F>;
                     }));
}

template <typename F>
std::unique_ptr<Kernel> prepare_binary_analytic(PrepareContext& c) {
  if (is_floating(c.input(0).dtype())) return prepare_binary_real<F>(c);
  return pair_kernel(c, visit_analytic(c, c.input(0).dtype(), [](auto example) -> PairRow {
                       using T = decltype(example);
                       return pair_row<T, T, F>;
                     }));
}

template <typename F>
std::unique_ptr<Kernel> prepare_equality(PrepareContext& c) {
  return pair_kernel(c, visit_number(c, c.input(0).dtype(),
                                     [](auto example) -> PairRow { return pair_row<decltype(example), bool, F>; }));
}

#define LEADLINE_FUNCTION(name, expression) \
  struct name {                             \
    template <typename T>                   \
    T operator()(T a, T b) const {          \
      return static_cast<T>(expression);    \
    }                                       \
  }
LEADLINE_FUNCTION(Add, wrapping_add(a, b));
LEADLINE_FUNCTION(Sub, wrapping_sub(a, b));
LEADLINE_FUNCTION(Mul, wrapping_mul(a, b));
LEADLINE_FUNCTION(Divide, a / b);
LEADLINE_FUNCTION(DivNoNan, b == T(0) ? T(0) : a / b);
LEADLINE_FUNCTION(MulNoNan, b == T(0) ? T(0) : a * b);
LEADLINE_FUNCTION(Maximum, a != a || a > b ? a : b);  // NaN wins
LEADLINE_FUNCTION(Minimum, a != a || a < b ? a : b);
LEADLINE_FUNCTION(Atan2, std::atan2(a, b));
LEADLINE_FUNCTION(Xlogy, a == T(0) ? T(0) : a * std::log(b));
LEADLINE_FUNCTION(Xlog1py, a == T(0) ? T(0) : a * std::log1p(b));
LEADLINE_FUNCTION(Xdivy, a == T(0) ? T(0) : a / b);
LEADLINE_FUNCTION(Igamma, lower_gamma(a, b));
LEADLINE_FUNCTION(Igammac, 1 - lower_gamma(a, b));
LEADLINE_FUNCTION(NextAfter, std::nextafter(a, b));
#undef LEADLINE_FUNCTION

struct SquaredDifference {
  template <typename T>
  T operator()(T a, T b) const {
    const T d = wrapping_sub(a, b);
    if constexpr (kIsComplex<T>)
      return d * std::conj(d);
    else
      return wrapping_mul(d, d);
  }
};

#define LEADLINE_COMPARISON(name, sign) \
  struct name {                         \
    template <typename T>               \
    bool operator()(T a, T b) const {   \
      return a sign b;                  \
    }                                   \
  }
LEADLINE_COMPARISON(Equal, ==);
LEADLINE_COMPARISON(NotEqual, !=);
LEADLINE_COMPARISON(Less, <);
LEADLINE_COMPARISON(LessEqual, <=);
LEADLINE_COMPARISON(Greater, >);
LEADLINE_COMPARISON(GreaterEqual, >=);
#undef LEADLINE_COMPARISON

// Division and powers, which differ between integers and others

/// A quotient or remainder of integers. The smallest number divided by -1 wraps around.
enum class Rounding : uint8_t { kDown, kToZero };

template <typename T>
T divide(T a, T b, Rounding rounding) {
  if constexpr (std::is_integral_v<T>) {
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return wrapping_sub(T(0), a);
    }
    const T quotient = static_cast<T>(a / b);
    const bool down = rounding == Rounding::kDown && a % b != 0 && ((a < 0) != (b < 0));
    return static_cast<T>(quotient - (down ? 1 : 0));
  } else {
    return rounding == Rounding::kDown ? std::floor(a / b) : std::trunc(a / b);
  }
}

template <typename T>
T remainder(T a, T b, Rounding rounding) {
  if constexpr (std::is_integral_v<T>) {
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return 0;
    }
    const T rest = static_cast<T>(a % b);
    return static_cast<T>(rounding == Rounding::kDown && rest != 0 && ((rest < 0) != (b < 0)) ? rest + b : rest);
  } else {
    const T rest = std::fmod(a, b);
    return rounding == Rounding::kDown && rest != 0 && ((rest < 0) != (b < 0)) ? rest + b : rest;
  }
}

/// Fails where a divisor of integers is zero, before anything is computed.
class CheckedDivision final : public Kernel {
 public:
  CheckedDivision(std::unique_ptr<Kernel> kernel, size_t bytes) : kernel_(std::move(kernel)), bytes_(bytes) {}
  void run(RunContext& run) override {
    if (run.output(0).elements() > 0) {
      const std::byte* divisors = run.input(1).data;
      for_items(run.input(1).elements(), 1, [&](int64_t i) {
        uint64_t divisor = 0;
        std::memcpy(&divisor, divisors + static_cast<size_t>(i) * bytes_, bytes_);
        run.require(divisor != 0, "divisor {} is 0: integers cannot be divided by it", i);
      });
    }
    kernel_->run(run);
  }

 private:
  std::unique_ptr<Kernel> kernel_;
  size_t bytes_;  // of a divisor
};

template <bool kRemainder, Rounding kRounding>
struct Division {
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_same_v<T, bool>)
      return a;  // refused before
    else
      return kRemainder ? remainder(a, b, kRounding) : divide(a, b, kRounding);
  }
};

template <bool kRemainder, Rounding kRounding>
std::unique_ptr<Kernel> prepare_division(PrepareContext& c) {
  const DType type = c.input(0).dtype();
  if (type == DType::kBool) fail_for_bool(c);
  auto kernel = pair_kernel(c, real_binary_row<Division<kRemainder, kRounding>>(c));
  if (is_floating(type)) return kernel;
  return std::make_unique<CheckedDivision>(std::move(kernel), static_cast<size_t>(dtype_bits(type) / 8));
}

/// Div of integers rounds to zero; of others it is RealDiv.
std::unique_ptr<Kernel> prepare_div(PrepareContext& c) {
  const DType type = c.input(0).dtype();
  if (is_floating(type) || type == DType::kComplex64 || type == DType::kComplex128)
    return prepare_binary_analytic<Divide>(c);
  return prepare_division<false, Rounding::kToZero>(c);
}

template <typename T>
T power(T base, T exponent) {
  if constexpr (std::is_integral_v<T>) {
    if (exponent < 0) return static_cast<T>(base == 1 ? 1 : (base == T(-1) ? (exponent % 2 == 0 ? 1 : -1) : 0));
    T result = 1;
    for (auto left = static_cast<uint64_t>(exponent); left != 0; left >>= 1) {
      if ((left & 1) != 0) result = wrapping_mul(result, base);
      base = wrapping_mul(base, base);
    }
    return result;
  } else {
    return std::pow(base, exponent);
  }
}

struct Power {
  template <typename T>
  T operator()(T a, T b) const {
    return power(a, b);
  }
};

// Bits and logic

template <typename F>
std::unique_ptr<Kernel> prepare_bits(PrepareContext& c) {
  const DType type = c.input(0).dtype();
  return pair_kernel(c, visit_numeric(c, type, [&](auto example) -> PairRow {
                       using T = decltype(example);
                       if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
                         return pair_row<T, T, F>;
                       else
                         c.fail(ErrorCode::kUnsupported, "type {} is not supported, expected integers",
                                dtype_name(type));
                     }));
}

struct BitAnd {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a & b);
  }
};
struct BitOr {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a | b);
  }
};
struct BitXor {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a ^ b);
  }
};
/// Shifts by less than nothing or more than the width are clamped, as TensorFlow does.
template <typename T>
int shift_count(T b) {
  constexpr int kMost = static_cast<int>(8 * sizeof(T)) - 1;
  if constexpr (std::is_signed_v<T>) {
    if (b < 0) return 0;
  }
  return b > static_cast<T>(kMost) ? kMost : static_cast<int>(b);
}
struct LeftShift {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(static_cast<uint64_t>(a) << shift_count(b));
  }
};
struct RightShift {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a >> shift_count(b));
  }
};

template <typename F>
std::unique_ptr<Kernel> prepare_logic(PrepareContext& c) {
  c.require_input_type(0, {DType::kBool});
  return pair_kernel(c, pair_row<bool, bool, F>);
}
struct And {
  bool operator()(bool a, bool b) const { return a && b; }
};
struct Or {
  bool operator()(bool a, bool b) const { return a || b; }
};

std::unique_ptr<Kernel> prepare_approximate_equal(PrepareContext& c) {
  const float tolerance = node_def(c).number("tolerance", 1e-5F);
  return visit_floating(c, c.input(0).dtype(), [&](auto type) {
    using T = decltype(type);
    return binary_kernel<T, bool>(
        c, [tolerance](Compute<T> a, Compute<T> b) { return std::abs(a - b) < static_cast<Compute<T>>(tolerance); },
        kFunctionCost);
  });
}

// Three operands

void infer_betainc(InferContext& c) {
  node_def(c);
  c.require_input_type(0, {DType::kFloat32, DType::kFloat64});
  Shape shape;
  for (int i = 0; i < 3; ++i) {
    require_same_type(c, c.input(0), c.input(i));
    if (c.input(i).shape.rank() > 0) shape = c.input(i).shape;
  }
  for (int i = 0; i < 3; ++i) {
    c.require(c.input(i).shape.rank() == 0 || c.input(i).shape == shape, "input {} has shape {}, expected {} or []", i,
              c.input(i).shape.to_string(), shape.to_string());
  }
  require_same_type(c, c.input(0), c.output(0));
  c.set_output_shape(0, shape);
}

template <typename T>
void run_betainc(RunContext& run) {
  const auto value = [&](int i, int64_t at) {
    return static_cast<double>(run.input(i).as<T>()[run.input(i).shape.rank() == 0 ? 0 : at]);
  };
  run.pool().for_pieces(run.output(0).elements(), 400, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      run.output(0).mutable_as<T>()[i] = static_cast<T>(incomplete_beta(value(0, i), value(1, i), value(2, i)));
    }
  });
}

std::unique_ptr<Kernel> prepare_betainc(PrepareContext& c) {
  return make_kernel(c.input(0).dtype() == DType::kFloat32 ? run_betainc<float> : run_betainc<double>);
}

/// min <= max element by element, or single numbers.
void infer_clip(InferContext& c) {
  node_def(c);
  for (int i = 1; i < 3; ++i) {
    require_same_type(c, c.input(0), c.input(i));
    const Shape& bound = c.input(i).shape;
    c.require(bound.elements() == 1 || bound == c.input(0).shape, "input {} has shape {}, expected {} or one value", i,
              bound.to_string(), c.input(0).shape.to_string());
  }
  require_same_type(c, c.input(0), c.output(0));
  c.set_output_shape(0, c.input(0).shape);
}

std::unique_ptr<Kernel> prepare_clip(PrepareContext& c) {
  return visit_numeric(c, c.input(0).dtype(), [](auto type) {
    using T = decltype(type);
    return make_kernel([](RunContext& run) {
      const T* in = run.input(0).as<T>();
      T* out = run.output(0).mutable_as<T>();
      const bool one_low = run.input(1).elements() == 1;
      const bool one_high = run.input(2).elements() == 1;
      run.pool().for_pieces(run.output(0).elements(), kLightCost, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const T low = run.input(1).as<T>()[one_low ? 0 : i];
          const T high = run.input(2).as<T>()[one_high ? 0 : i];
          const T capped = high < in[i] ? high : in[i];
          out[i] = capped < low ? low : capped;
        }
      });
    });
  });
}

constexpr std::string_view kNumbers = "all numbers";

}  // namespace

void register_flex_binary(Registry& registry) {
  const auto arithmetic = [&](std::string_view name, Prepare prepare, std::string_view types) {
    registry.add(flex_row(name, 2, 1, infer_arithmetic, prepare, types));
  };
  const auto comparison = [&](std::string_view name, Prepare prepare, std::string_view types) {
    registry.add(flex_row(name, 2, 1, infer_comparison, prepare, types));
  };
  arithmetic("FlexAdd", prepare_binary_any<Add>, kNumbers);
  arithmetic("FlexAddV2", prepare_binary_any<Add>, kNumbers);
  arithmetic("FlexSub", prepare_binary_any<Sub>, kNumbers);
  arithmetic("FlexMul", prepare_binary_any<Mul>, kNumbers);
  arithmetic("FlexSquaredDifference", prepare_binary_any<SquaredDifference>, kNumbers);
  arithmetic("FlexRealDiv", prepare_binary_analytic<Divide>, "f32 f64 f16 bf16 c64 c128");
  arithmetic("FlexDiv", prepare_div, kNumbers);
  arithmetic("FlexDivNoNan", prepare_binary_analytic<DivNoNan>, "f32 f64 f16 bf16 c64 c128");
  arithmetic("FlexMulNoNan", prepare_binary_analytic<MulNoNan>, "f32 f64 f16 bf16 c64 c128");
  arithmetic("FlexXdivy", prepare_binary_analytic<Xdivy>, "f32 f64 f16 bf16 c64 c128");
  arithmetic("FlexXlogy", prepare_binary_analytic<Xlogy>, "f32 f64 f16 bf16 c64 c128");
  arithmetic("FlexXlog1py", prepare_binary_real<Xlog1py>, "f32 f64 f16 bf16");
  arithmetic("FlexMaximum", prepare_ordered<Maximum>, "real numbers");
  arithmetic("FlexMinimum", prepare_ordered<Minimum>, "real numbers");
  arithmetic("FlexAtan2", prepare_binary_real<Atan2>, "f32 f64 f16 bf16");
  arithmetic("FlexIgamma", prepare_binary_real<Igamma>, "f32 f64 f16 bf16");
  arithmetic("FlexIgammac", prepare_binary_real<Igammac>, "f32 f64 f16 bf16");
  arithmetic("FlexNextAfter", prepare_binary_real<NextAfter>, "f32 f64");
  arithmetic("FlexPow", prepare_binary_any<Power>, kNumbers);
  arithmetic("FlexFloorDiv", prepare_division<false, Rounding::kDown>, "real numbers");
  arithmetic("FlexTruncateDiv", prepare_division<false, Rounding::kToZero>, "real numbers");
  arithmetic("FlexFloorMod", prepare_division<true, Rounding::kDown>, "real numbers");
  arithmetic("FlexMod", prepare_division<true, Rounding::kToZero>, "real numbers");
  arithmetic("FlexTruncateMod", prepare_division<true, Rounding::kToZero>, "real numbers");
  arithmetic("FlexBitwiseAnd", prepare_bits<BitAnd>, "all integers");
  arithmetic("FlexBitwiseOr", prepare_bits<BitOr>, "all integers");
  arithmetic("FlexBitwiseXor", prepare_bits<BitXor>, "all integers");
  arithmetic("FlexLeftShift", prepare_bits<LeftShift>, "all integers");
  arithmetic("FlexRightShift", prepare_bits<RightShift>, "all integers");
  arithmetic("FlexLogicalAnd", prepare_logic<And>, "bool");
  arithmetic("FlexLogicalOr", prepare_logic<Or>, "bool");
  comparison("FlexEqual", prepare_equality<Equal>, kNumbers);
  comparison("FlexNotEqual", prepare_equality<NotEqual>, kNumbers);
  comparison("FlexLess", prepare_order<Less>, "real numbers");
  comparison("FlexLessEqual", prepare_order<LessEqual>, "real numbers");
  comparison("FlexGreater", prepare_order<Greater>, "real numbers");
  comparison("FlexGreaterEqual", prepare_order<GreaterEqual>, "real numbers");
  comparison("FlexApproximateEqual", prepare_approximate_equal, "f32 f64 f16 bf16");
  registry.add(flex_row("FlexBetainc", 3, 1, infer_betainc, prepare_betainc, "f32 f64"));
  registry.add(flex_row("FlexClipByValue", 3, 1, infer_clip, prepare_clip, "real numbers"));
}

}  // namespace leadline::ops
