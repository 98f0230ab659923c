// SPDX-License-Identifier: Apache-2.0
// Arithmetic, comparisons, reductions.
#include <algorithm>
#include <cmath>
#include <limits>

#include "import/bits.h"
#include "import/functions.h"
#include "import/saved_model/op_functions.h"
#include "ops/activation.h"
#include "ops/arg_min_max.h"
#include "ops/cumsum.h"
#include "ops/reduce.h"

namespace leadline::saved_model {

Outputs unary(OpCall& call) { return {importing::unary(call.e, call.row.target, call.in())}; }

Outputs binary(OpCall& call) {
  if (call.node.op == "SquaredDifference") return {importing::squared_difference(call.e, call.in(0), call.in(1))};
  return {call.builder().node(call.row.target, {call.in(0), call.in(1)}, call.name())};
}

Outputs comparison(OpCall& call) {
  return {call.builder().node(call.row.target, {call.in(0), call.in(1)}, call.name(), DType::kBool)};
}

Outputs reduction(OpCall& call) {
  int axes = call.in32(1);
  if (call.e.rank(axes) == 0) axes = call.e.reshape(axes, {1});
  ops::ReduceAttributes attributes;
  attributes.keep_dims = call.attr_bool("keep_dims", false);
  if (const auto known = call.builder().known_ints(axes); known && known->empty()) return {call.in()};
  if (const auto known = call.builder().known_ints(axes); known && call.builder().has_rank(call.in())) {
    axes = call.e.ints(call.e.axes(call.in(), *known));
  }
  return {call.builder().node(call.row.target, {call.in(), axes}, call.name(), attributes)};
}

namespace {

bool near(std::optional<float> value, double wanted) {
  return value && std::abs(static_cast<double>(*value) - wanted) < 1e-5;
}

/// Looks for one of GELU's forms, x * 0.5 * (1 + erf(x / sqrt(2))), among the nodes that make a product.
class GeluMatch {
 public:
  explicit GeluMatch(OpCall& call) : call_(call) {}

  /// The x of GELU, or nothing.
  std::optional<ValueRef> find() {
    const auto& in = call_.node.inputs;
    for (const size_t left : {0U, 1U}) {
      const ValueRef& a = in[left];
      const ValueRef& b = in[1 - left];
      if (const auto x = erf_argument(b)) {  // (0.5 * x) * (1 + erf)
        const auto half = scaled(a, 0.5);
        if (half && *half == *x) return x;
      }
      if (is_number(a, 0.5)) {  // 0.5 * (x * (1 + erf))
        const FlatNode* product = call_.made_by(b, "Mul", 2);
        for (const size_t k : {0U, 1U}) {
          if (product == nullptr) break;
          const auto x = erf_argument(product->inputs[1 - k]);
          if (x && product->inputs[k] == *x) return x;
        }
      }
      if (const FlatNode* product = call_.made_by(b, "Mul", 2); product != nullptr) {  // x * (0.5 * (1 + erf))
        for (const size_t k : {0U, 1U}) {
          const auto x = erf_argument(product->inputs[1 - k]);
          if (x && *x == a && is_number(product->inputs[k], 0.5)) return x;
        }
      }
      if (const FlatNode* complement = call_.made_by(b, "Erfc", 1); complement != nullptr) {  // 0.5 * x * erfc(-x / √2)
        const auto half = scaled(a, 0.5);
        if (half && scaled_by_root(complement->inputs[0], *half, -1.0)) return half;
      }
    }
    return {};
  }

 private:
  bool is_number(const ValueRef& ref, double wanted) const {
    if (ref.kind != ValueRef::Kind::kConstant) return false;
    const FlatConstant& constant = call_.importer.model().constants[static_cast<size_t>(ref.index)];
    if (constant.dtype != TfType::kFloat || constant.source->bytes() != sizeof(float)) return false;
    float value = 0;
    constant.source->read(std::as_writable_bytes(std::span(&value, 1)));
    return near(value, wanted);
  }
  /// y when `ref` is y times the number.
  std::optional<ValueRef> scaled(const ValueRef& ref, double factor) const {
    const FlatNode* product = call_.made_by(ref, "Mul", 2);
    if (product == nullptr) return {};
    if (is_number(product->inputs[0], factor)) return product->inputs[1];
    if (is_number(product->inputs[1], factor)) return product->inputs[0];
    return {};
  }
  bool scaled_by_root(const ValueRef& ref, const ValueRef& x, double sign) const {
    const auto product = scaled(ref, sign * std::sqrt(0.5));
    if (product && *product == x) return true;
    if (sign < 0) {
      if (const FlatNode* minus = call_.made_by(ref, "Neg", 1)) return scaled_by_root(minus->inputs[0], x, 1.0);
      const FlatNode* inner = call_.made_by(ref, "Mul", 2);
      if (inner == nullptr) return false;
      for (const ValueRef& part : inner->inputs) {
        const FlatNode* minus = call_.made_by(part, "Neg", 1);
        if (minus != nullptr && minus->inputs[0] == x && scaled(ref, std::sqrt(0.5))) return true;
      }
    }
    return false;
  }
  /// x when `ref` is 1 + erf(x / sqrt(2)).
  std::optional<ValueRef> erf_argument(const ValueRef& ref) const {
    const FlatNode* sum = call_.made_by(ref, "AddV2", 2);
    if (sum == nullptr) return {};
    for (const size_t k : {0U, 1U}) {
      const FlatNode* error = call_.made_by(sum->inputs[k], "Erf", 1);
      if (error == nullptr || !is_number(sum->inputs[1 - k], 1.0)) continue;
      if (const auto product = scaled(error->inputs[0], std::sqrt(0.5))) return product;
      const FlatNode* quotient = call_.made_by(error->inputs[0], "RealDiv", 2);
      if (quotient != nullptr && is_number(quotient->inputs[1], std::sqrt(2.0))) return quotient->inputs[0];
    }
    return {};
  }

  OpCall& call_;
};

}  // namespace

Outputs mul(OpCall& call) {
  if (call.node.inputs.size() == 2 && call.e.dtype(call.in()) == DType::kFloat32) {
    if (const auto x = GeluMatch(call).find()) {
      return {call.builder().node("GELU", {call.value(*x)}, call.name(), ops::GeluAttributes{})};
    }
  }
  return binary(call);
}

Outputs square(OpCall& call) {
  if (call.e.dtype(call.in()) != DType::kFloat32) return {call.e.mul(call.in(), call.in())};
  return {call.builder().node("SQUARE", {call.in()}, call.name())};
}

/// ADD_N needs equal shapes, which the samples of unknown sizes show.
Outputs add_n(OpCall& call) {
  const auto same = [&](int v) { return call.builder().samples(v) == call.builder().samples(call.in()); };
  if (call.inputs.size() > 2 && std::all_of(call.inputs.begin(), call.inputs.end(), same)) {
    return {call.builder().node("ADD_N", call.inputs, call.name())};
  }
  int sum = call.in();
  for (size_t i = 1; i < call.inputs.size(); ++i) sum = call.e.add(sum, call.in(i));
  return {sum};
}

Outputs approximate_equal(OpCall& call) {
  Emitter& e = call.e;
  const int distance = importing::unary(e, "ABS", e.sub(call.in(0), call.in(1)));
  return {e.compare("LESS", distance, e.scalar_like(distance, call.attr_float("tolerance", 1e-5F)))};
}

Outputs reciprocal(OpCall& call) { return {call.e.div(call.e.scalar_like(call.in(), 1.0), call.in())}; }

namespace {

/// What `emit` computes where the input is not zero, 0 elsewhere.
Outputs unless_zero(OpCall& call, size_t zero_input, int (*emit)(Emitter& e, int a, int b)) {
  Emitter& e = call.e;
  const int tested = call.in(zero_input);
  const int zero = e.compare("EQUAL", tested, e.scalar_like(tested, 0.0));
  const int safe = e.select(zero, e.scalar_like(tested, 1.0), tested);
  const int a = zero_input == 0 ? safe : call.in(0);
  const int b = zero_input == 1 ? safe : call.in(1);
  const int result = emit(e, a, b);
  return {e.select(zero, e.scalar_like(result, 0.0), result)};
}

}  // namespace

Outputs div_no_nan(OpCall& call) {
  return unless_zero(call, 1, [](Emitter& e, int a, int b) { return e.div(a, b); });
}

Outputs multiply_no_nan(OpCall& call) {
  Emitter& e = call.e;
  const int zero = e.compare("EQUAL", call.in(1), e.scalar_like(call.in(1), 0.0));
  const int product = e.mul(call.in(0), call.in(1));
  return {e.select(zero, e.scalar_like(product, 0.0), product)};
}

Outputs bit_logic(OpCall& call) {
  const std::string_view op = call.node.op;
  if (op == "Invert") return {importing::bitwise_not(call.e, call.in())};
  const int a = call.in(0);
  const int b = call.in(1);
  if (op == "LeftShift") return {importing::left_shift(call.e, a, b)};
  return {op == "BitwiseAnd" ? importing::bitwise_and(call.e, a, b) : importing::bitwise_or(call.e, a, b)};
}

Outputs truncate_div(OpCall& call) {
  call.refuse_if(call.e.dtype(call.in()) == DType::kFloat32, "divides floats; use tf.math.floordiv or a cast");
  Emitter& e = call.e;
  const int x = call.in(0);
  const int y = call.in(1);
  if (e.dtype(x) != DType::kInt64) return {e.div(x, y)};
  // DIV has no int64: the quotient that was rounded down, and 1 more where that was away from zero.
  const int quotient = call.builder().node("FLOOR_DIV", {x, y}, call.name());
  const int zero = e.scalar_like(quotient, 0.0);
  const int rest = call.builder().node("FLOOR_MOD", {x, y}, call.name());
  const int negative = e.compare("LESS", quotient, zero);
  const int inexact = e.compare("NOT_EQUAL", rest, zero);
  const int below = call.builder().node("LOGICAL_AND", {negative, inexact}, call.name());
  return {e.add(quotient, e.cast(below, DType::kInt64))};
}

/// x / y, x * log(y), x * log1p(y); 0 where x is.
Outputs xdivy(OpCall& call) {
  Emitter& e = call.e;
  const int x = call.in(0);
  const int zero = e.compare("EQUAL", x, e.scalar_like(x, 0.0));
  const int one = e.scalar_like(x, 1.0);
  const int y = e.select(zero, one, call.in(1));
  const std::string_view op = call.node.op;
  const int result = op == "Xdivy"   ? e.div(x, y)
                     : op == "Xlogy" ? e.mul(x, e.unary("LOG", y))
                                     : e.mul(x, e.unary("LOG", e.add(y, one)));
  return {e.select(zero, e.scalar_like(result, 0.0), result)};
}

Outputs log_1p(OpCall& call) { return {call.e.unary("LOG", call.e.add(call.in(), 1.0))}; }

Outputs exp_m1(OpCall& call) { return {call.e.add(call.e.unary("EXP", call.in()), -1.0)}; }

Outputs tangent(OpCall& call) { return {call.e.div(call.e.unary("SIN", call.in()), call.e.unary("COS", call.in()))}; }

Outputs sinh_or_cosh(OpCall& call) {
  Emitter& e = call.e;
  const int up = e.unary("EXP", call.in());
  const int down = e.unary("EXP", e.unary("NEG", call.in()));
  return {e.mul(call.node.op == "Sinh" ? e.sub(up, down) : e.add(up, down), 0.5)};
}

/// In float32, whatever the input is.
Outputs erf(OpCall& call) {
  Emitter& e = call.e;
  const DType type = e.dtype(call.in());
  const int value = importing::erf(e, e.cast(call.in(), DType::kFloat32));
  return {e.cast(call.node.op == "Erf" ? value : e.sub(e.scalar(1.0F), value), type)};
}

Outputs is_nan(OpCall& call) { return {call.e.compare("NOT_EQUAL", call.in(), call.in())}; }

Outputs is_inf(OpCall& call) {
  const int size = call.e.unary("ABS", call.in());
  return {call.e.compare("EQUAL", size, call.e.scalar(std::numeric_limits<float>::infinity()))};
}

Outputs is_finite(OpCall& call) {
  const int difference = call.e.sub(call.in(), call.in());  // NaN for infinities
  return {call.e.compare("EQUAL", difference, difference)};
}

Outputs clip(OpCall& call) {
  return {call.e.binary("MINIMUM", call.e.binary("MAXIMUM", call.in(0), call.in(1)), call.in(2))};
}

Outputs cumsum(OpCall& call) {
  ops::CumsumAttributes attributes;
  attributes.exclusive = call.attr_bool("exclusive", false);
  attributes.reverse = call.attr_bool("reverse", false);
  return {call.builder().node("CUMSUM", {call.in(), call.in32(1)}, call.name(), attributes)};
}

Outputs arg_min_max(OpCall& call) {
  ops::ArgMinMaxAttributes attributes;
  attributes.output_type = call.attr_type("output_type", DType::kInt64);
  return {
      call.builder().node(call.row.target, {call.in(), call.in32(1)}, call.name(), attributes, attributes.output_type)};
}

Outputs top_k(OpCall& call) {
  ops::NodeSpec spec;
  spec.op = "TOPK_V2";
  spec.inputs = {call.in(), call.in32(1)};
  Dims dims = call.e.dims(call.in());
  require(!dims.empty(), ErrorCode::kInvalidModel, "the input is a scalar");
  dims.back() = -1;
  spec.outputs = {{call.name(), call.e.dtype(call.in()), {}, dims}, {call.name() + ":1", DType::kInt32, {}, dims}};
  Outputs results = call.builder().add(std::move(spec));
  results[1] = call.e.cast(results[1], call.attr_type("index_type", DType::kInt32));
  return results;
}

}  // namespace leadline::saved_model
