// SPDX-License-Identifier: Apache-2.0
// Operations of keras.ops that compute: functions of one or two tensors, reductions, order, products.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "import/einsum.h"
#include "import/functions.h"
#include "import/keras/operations.h"
#include "ops/arg_min_max.h"
#include "ops/bucketize.h"
#include "ops/one_hot.h"

namespace leadline::keras {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

int real(Call& call) { return call.e.cast(call.x(), DType::kFloat32); }

/// Functions of one real number.
using UnaryFunction = int (*)(Emitter&, int);
template <UnaryFunction F>
Outputs function(Call& call) {
  return {F(call.e, real(call))};
}

int square(Emitter& e, int x) { return e.mul(x, x); }
int constant_like(Emitter& e, int x, double value) { return e.add(e.mul(x, 0.0), value); }  // ATAN2 does not broadcast
int arctan(Emitter& e, int x) { return e.binary("ATAN2", x, constant_like(e, x, 1.0)); }
int beside(Emitter& e, int x) { return e.unary("SQRT", e.sub(e.scalar(1.0F), square(e, x))); }
int arcsin(Emitter& e, int x) { return e.binary("ATAN2", x, beside(e, x)); }
int arccos(Emitter& e, int x) { return e.binary("ATAN2", beside(e, x), x); }
int arcsinh(Emitter& e, int x) {
  const int size = e.unary("ABS", x);
  return e.mul(e.unary("SIGN", x), e.unary("LOG", e.add(size, e.unary("SQRT", e.add(square(e, x), 1.0)))));
}
int arccosh(Emitter& e, int x) { return e.unary("LOG", e.add(x, e.unary("SQRT", e.add(square(e, x), -1.0)))); }
int arctanh(Emitter& e, int x) { return e.mul(e.unary("LOG", e.div(e.add(x, 1.0), e.sub(e.scalar(1.0F), x))), 0.5); }
int sinh_(Emitter& e, int x) { return e.mul(e.sub(e.unary("EXP", x), e.unary("EXP", e.unary("NEG", x))), 0.5); }
int cosh_(Emitter& e, int x) { return e.mul(e.add(e.unary("EXP", x), e.unary("EXP", e.unary("NEG", x))), 0.5); }
int tangent(Emitter& e, int x) { return e.div(e.unary("SIN", x), e.unary("COS", x)); }
int cbrt_(Emitter& e, int x) {
  return e.mul(e.unary("SIGN", x), e.binary("POW", e.unary("ABS", x), e.scalar(static_cast<float>(1.0 / 3.0))));
}
int exp2_(Emitter& e, int x) { return e.unary("EXP", e.mul(x, std::numbers::ln2)); }
int expm1_(Emitter& e, int x) { return e.add(e.unary("EXP", x), -1.0); }
int log1p_(Emitter& e, int x) { return e.unary("LOG", e.add(x, 1.0)); }
int log2_(Emitter& e, int x) { return e.mul(e.unary("LOG", x), 1.0 / std::numbers::ln2); }
int log10_(Emitter& e, int x) { return e.mul(e.unary("LOG", x), 1.0 / std::numbers::ln10); }
int deg2rad(Emitter& e, int x) { return e.mul(x, std::numbers::pi / 180.0); }
int rad2deg(Emitter& e, int x) { return e.mul(x, 180.0 / std::numbers::pi); }
int reciprocal(Emitter& e, int x) { return e.div(e.scalar(1.0F), x); }
int truncated(Emitter& e, int x) { return e.mul(e.unary("SIGN", x), e.unary("FLOOR", e.unary("ABS", x))); }
int is_infinite(Emitter& e, int x) { return e.compare("EQUAL", e.unary("ABS", x), e.scalar_like(x, kInfinity)); }
int is_finite(Emitter& e, int x) { return e.compare("LESS", e.unary("ABS", x), e.scalar_like(x, kInfinity)); }
int is_nan(Emitter& e, int x) { return e.compare("NOT_EQUAL", x, x); }
int is_positive_infinity(Emitter& e, int x) { return e.compare("EQUAL", x, e.scalar_like(x, kInfinity)); }
int is_negative_infinity(Emitter& e, int x) { return e.compare("EQUAL", x, e.scalar_like(x, -kInfinity)); }
int is_negative(Emitter& e, int x) { return e.compare("LESS", x, e.scalar_like(x, 0.0)); }
int sinc(Emitter& e, int x) {
  const int turn = e.mul(x, std::numbers::pi);
  const int zero = e.compare("EQUAL", turn, e.scalar(0.0F));
  return e.select(zero, e.scalar(1.0F), e.div(e.unary("SIN", turn), e.select(zero, e.scalar(1.0F), turn)));
}

int erfc(Emitter& e, int x) { return e.sub(e.scalar(1.0F), erf(e, x)); }

/// Functions of two numbers.
using Function2 = int (*)(Emitter&, int, int);
template <Function2 F, bool Real = true>
Outputs function2(Call& call) {
  auto [a, b] = operands(call, "x1", "x2");
  if (Real) {
    a = call.e.cast(a, DType::kFloat32);
    b = call.e.cast(b, DType::kFloat32);
  }
  return {F(call.e, a, b)};
}

int arctan2(Emitter& e, int a, int b) {  // both in the sizes of the result
  const int zero = e.add(e.mul(a, 0.0), e.mul(b, 0.0));
  return e.binary("ATAN2", e.add(a, zero), e.add(b, zero));
}
int hypot_(Emitter& e, int a, int b) { return e.unary("SQRT", e.add(square(e, a), square(e, b))); }
int fmod_(Emitter& e, int a, int b) { return e.sub(a, e.mul(truncated(e, e.div(a, b)), b)); }
int log_add_exp(Emitter& e, int a, int b) {
  const int far = e.unary("EXP", e.unary("NEG", e.unary("ABS", e.sub(a, b))));
  return e.add(e.binary("MAXIMUM", a, b), log1p_(e, far));
}
int log_add_exp2(Emitter& e, int a, int b) {
  const int sum = log_add_exp(e, e.mul(a, std::numbers::ln2), e.mul(b, std::numbers::ln2));
  return e.mul(sum, 1.0 / std::numbers::ln2);
}
int divide_no_nan(Emitter& e, int a, int b) {
  const int zero = e.compare("EQUAL", b, e.scalar(0.0F));
  return e.select(zero, e.scalar(0.0F), e.div(a, e.select(zero, e.scalar(1.0F), b)));
}
int heaviside(Emitter& e, int a, int b) {
  const int positive = e.cast(e.compare("GREATER", a, e.scalar(0.0F)), DType::kFloat32);
  return e.select(e.compare("EQUAL", a, e.scalar(0.0F)), e.mul(b, 1.0), positive);
}
int ldexp_(Emitter& e, int a, int b) { return e.mul(a, exp2_(e, b)); }
int logical_xor(Emitter& e, int a, int b) {
  return e.compare("NOT_EQUAL", e.cast(a, DType::kBool), e.cast(b, DType::kBool));
}

Outputs is_close(Call& call) {
  Emitter& e = call.e;
  auto [a, b] = operands(call, "x1", "x2");
  const auto rtol = setting(call, 2, "rtol");
  const auto atol = setting(call, 3, "atol");
  const int bound = e.add(e.mul(e.unary("ABS", b), rtol ? rtol->number() : 1e-5), atol ? atol->number() : 1e-8);
  return {e.compare("LESS_EQUAL", e.unary("ABS", e.sub(a, b)), bound)};
}

Outputs nan_to_num(Call& call) {
  Emitter& e = call.e;
  int x = real(call);
  const double most = std::numeric_limits<float>::max();
  const auto number = [&](size_t position, const char* name, double otherwise) {
    const auto found = setting(call, position, name);
    return e.scalar(static_cast<float>(found ? found->number() : otherwise));
  };
  const int nan = is_nan(e, x);
  x = e.select(is_positive_infinity(e, x), number(2, "posinf", most), x);
  x = e.select(is_negative_infinity(e, x), number(3, "neginf", -most), x);
  return {e.select(nan, number(1, "nan", 0.0), x)};
}

Outputs round_op(Call& call) {
  const int64_t decimals = integer_setting(call, 1, "decimals", 0);
  if (decimals == 0) return {call.e.unary("ROUND", call.x())};
  require(std::abs(decimals) <= 30, kBad, "rounded to {} decimals, expected -30 to 30", decimals);
  const double scale = std::pow(10.0, static_cast<double>(decimals));
  return {call.e.mul(call.e.unary("ROUND", call.e.mul(real(call), scale)), 1.0 / scale)};
}

// Reductions.

struct Reduction {
  int x;
  std::vector<int32_t> axes;
  bool keep;
};

Reduction read_reduction(Call& call) {
  return {real(call), axes_setting(call, 1, "axis"), flag_setting(call, 2, "keepdims")};
}

int variance(Emitter& e, const Reduction& r) {
  const int centered = e.sub(r.x, e.reduce("MEAN", r.x, r.axes, true));
  return e.reduce("MEAN", square(e, centered), r.axes, r.keep);
}

Outputs var_op(Call& call) { return {variance(call.e, read_reduction(call))}; }
Outputs std_op(Call& call) { return {call.e.unary("SQRT", variance(call.e, read_reduction(call)))}; }
Outputs moments(Call& call) {
  const Reduction r{real(call), axes_setting(call, 1, "axes"), flag_setting(call, 2, "keepdims")};
  return {call.e.reduce("MEAN", r.x, r.axes, r.keep), variance(call.e, r)};
}
Outputs ptp(Call& call) {
  const Reduction r = read_reduction(call);
  Emitter& e = call.e;
  return {e.sub(e.reduce("REDUCE_MAX", r.x, r.axes, r.keep), e.reduce("REDUCE_MIN", r.x, r.axes, r.keep))};
}
Outputs log_sum_exp(Call& call) {
  const Reduction r = read_reduction(call);
  Emitter& e = call.e;
  const int top = e.reduce("REDUCE_MAX", r.x, r.axes, true);
  const int sum = e.reduce("SUM", e.unary("EXP", e.sub(r.x, top)), r.axes, r.keep);
  return {e.add(e.unary("LOG", sum), r.keep ? top : e.reduce("REDUCE_MAX", r.x, r.axes, false))};
}
Outputs count_nonzero(Call& call) {
  Emitter& e = call.e;
  const int hit =
      e.dtype(call.x()) == DType::kBool ? call.x() : e.compare("NOT_EQUAL", call.x(), e.scalar_like(call.x(), 0.0));
  return {e.reduce("SUM", e.cast(hit, DType::kInt32), axes_setting(call, 1, "axis"), false)};
}
Outputs average_op(Call& call) {
  Emitter& e = call.e;
  const Argument* weights = call.arguments.find(1, "weights");
  const std::vector<int32_t> axes = axes_setting(call, SIZE_MAX, "axis");
  const int x = real(call);
  if (weights == nullptr) return {e.reduce("MEAN", x, axes, false)};
  int w = e.cast(operand(call, 1, "weights", x), DType::kFloat32);
  if (e.rank(w) == 1 && e.rank(x) > 1 && axes.size() == 1) {
    Dims target(static_cast<size_t>(e.rank(x) - axes[0]), 1);
    target[0] = e.dims(w)[0];
    w = e.reshape(w, target);
  }
  const int spread = e.add(w, e.mul(x, 0.0));
  return {e.div(e.reduce("SUM", e.mul(x, w), axes, false), e.reduce("SUM", spread, axes, false))};
}

template <const char* const& Op>
Outputs without_nan(Call& call) {
  const Reduction r = read_reduction(call);
  Emitter& e = call.e;
  const std::string_view op = Op;
  const double neutral = op == "REDUCE_MAX" ? -kInfinity : op == "REDUCE_MIN" ? kInfinity : op == "REDUCE_PROD" ? 1 : 0;
  const int nan = is_nan(e, r.x);
  const int kept = e.select(nan, e.scalar_like(r.x, neutral), r.x);
  if (op != "MEAN") return {e.reduce(Op, kept, r.axes, r.keep)};
  const int count = e.reduce("SUM", e.cast(e.unary("LOGICAL_NOT", nan), DType::kFloat32), r.axes, r.keep);
  return {e.div(e.reduce("SUM", kept, r.axes, r.keep), count)};
}
constexpr const char* kSumOp = "SUM";
constexpr const char* kMeanOp = "MEAN";
constexpr const char* kProdOp = "REDUCE_PROD";
constexpr const char* kMax = "REDUCE_MAX";
constexpr const char* kMin = "REDUCE_MIN";

Outputs norm(Call& call) {
  Emitter& e = call.e;
  const Reduction r{real(call), axes_setting(call, 2, "axis"), flag_setting(call, 3, "keepdims")};
  const auto order = setting(call, 1, "ord");
  const int size = e.unary("ABS", r.x);
  const bool text = order && order->is_text();
  double n = 2.0;
  if (order && order->is_number()) n = order->number();
  if (text && order->text() == "inf") n = kInfinity;
  call.refuse_if((text && order->text() != "fro" && n == 2.0) || (r.axes.size() > 1 && order && !text),
                 "is a norm of matrices that is not converted; use the Frobenius norm or one of vectors");
  if (n == 1.0) return {e.reduce("SUM", size, r.axes, r.keep)};
  if (std::isinf(n)) return {e.reduce(n > 0 ? "REDUCE_MAX" : "REDUCE_MIN", size, r.axes, r.keep)};
  if (n == 2.0) return {e.unary("SQRT", e.reduce("SUM", square(e, r.x), r.axes, r.keep))};
  call.refuse_if(n == 0.0, "counts with ord=0, which is not converted; use keras.ops.count_nonzero");
  const int sum = e.reduce("SUM", e.binary("POW", size, e.scalar(static_cast<float>(n))), r.axes, r.keep);
  return {e.binary("POW", sum, e.scalar(static_cast<float>(1.0 / n)))};
}

Outputs normalize(Call& call) {
  Emitter& e = call.e;
  const auto order = setting(call, 2, "order");
  call.refuse_if(order && order->number() != 2.0, "normalizes by another norm than 2, which is not converted");
  const auto axis = setting(call, 1, "axis");
  const std::vector<int32_t> axes = e.axes(call.x(), axis ? axis->integers() : std::vector<int64_t>{-1});
  const auto epsilon = setting(call, 3, "epsilon");
  const double least = epsilon ? epsilon->number() : 1e-12;
  const int sum = e.reduce("SUM", square(e, real(call)), axes, true);
  return {e.mul(real(call), e.unary("RSQRT", e.binary("MAXIMUM", sum, e.scalar(static_cast<float>(least)))))};
}

// Order.

std::vector<int> swapped(Emitter& e, int x, int axis) {
  std::vector<int> order;
  for (int i = 0; i < e.rank(x); ++i) order.push_back(i);
  if (!order.empty()) std::swap(order[static_cast<size_t>(axis)], order.back());
  return order;
}

template <bool Max>
Outputs arg_extreme(Call& call) {
  Emitter& e = call.e;
  int x = call.x();
  const auto axis = setting(call, 1, "axis");
  int where = 0;
  if (axis) {
    where = e.axis(x, axis->integer());
  } else {
    x = e.reshape(x, {-1});
  }
  ops::ArgMinMaxAttributes a;
  a.output_type = DType::kInt32;
  const int y = e.builder().node(Max ? "ARG_MAX" : "ARG_MIN", {x, e.integer(where)}, e.name("arg"), a, DType::kInt32);
  return {axis && flag_setting(call, 2, "keepdims") ? e.expand_dims(y, where) : y};
}

std::pair<int, int> top(Emitter& e, int x, int64_t count) {
  require(count > 0 && count <= INT32_MAX, ErrorCode::kUnsupported,
          "sorts an axis of unknown size, which is not converted; fix its size");
  ops::NodeSpec spec;
  spec.op = "TOPK_V2";
  spec.inputs = {x, e.integer(static_cast<int32_t>(count))};
  spec.outputs = {{e.name("values"), e.dtype(x)}, {e.name("indices"), DType::kInt32}};
  const std::vector<int> made = e.builder().add(std::move(spec));
  return {made[0], made[1]};
}

Outputs top_k(Call& call) {
  const auto [values, indices] = top(call.e, call.x(), integer_setting(call, 1, "k", 1));
  return {values, indices};
}

/// Ascending: the largest of the negated come first.
template <bool Indices>
Outputs sort(Call& call) {
  Emitter& e = call.e;
  int x = call.x();
  const auto named = setting(call, 1, "axis");
  if (!named && Indices && !call.config.has("axis")) x = e.reshape(x, {-1});
  const int axis = e.axis(x, named ? named->integer() : -1);
  const std::vector<int> order = swapped(e, x, axis);
  const int turned = e.transpose(x, order);
  const auto [values, indices] = top(e, e.unary("NEG", turned), e.dims(turned).back());
  return {e.transpose(Indices ? indices : e.unary("NEG", values), order)};
}

Outputs cumsum(Call& call) {
  Emitter& e = call.e;
  const auto axis = setting(call, 1, "axis");
  const int x = axis ? call.x() : e.reshape(call.x(), {-1});
  const int where = axis ? e.axis(x, axis->integer()) : 0;
  return {e.builder().node("CUMSUM", {x, e.integer(where)}, e.name("Cumsum"))};
}

Outputs digitize(Call& call) {
  Emitter& e = call.e;
  const auto bins = setting(call, 1, "bins");
  call.refuse_if(!bins, "has bins that are not constant, which is not converted");
  ops::BucketizeAttributes a;
  const Config list = bins->is_object() ? bins->get("config").get("value") : *bins;
  for (const double b : list.numbers(1 << 20)) a.boundaries.push_back(static_cast<float>(b));
  return {e.builder().node("BUCKETIZE", {real(call)}, e.name("Bucketize"), a, DType::kInt32)};
}

int one_hot_of(Call& call, int x, int64_t axis) {
  Emitter& e = call.e;
  const int64_t classes = integer_setting(call, 1, "num_classes", 0);
  require(classes > 0 && classes <= INT32_MAX, kBad, "the number of classes is {}, expected 1 to {}", classes,
          INT32_MAX);
  const auto name = setting(call, SIZE_MAX, "dtype");
  const auto type = name ? dtype_from_name(name->text()) : DType::kFloat32;
  require(type.has_value(), ErrorCode::kUnsupported, "the type of the result is unknown");
  ops::OneHotAttributes a;
  a.axis = static_cast<int32_t>(std::clamp<int64_t>(axis, -1, 100));
  const int hot = e.builder().node(
      "ONE_HOT", {e.cast(x, DType::kInt32), e.integer(static_cast<int32_t>(classes)), e.scalar(1.0F), e.scalar(0.0F)},
      e.name("OneHot"), a, DType::kFloat32);
  return e.cast(hot, *type);
}

Outputs one_hot(Call& call) {
  int64_t axis = integer_setting(call, 2, "axis", -1);
  if (axis < -1) axis += call.e.rank(call.x()) + 1;
  require(axis >= -1 && axis <= call.e.rank(call.x()), kBad, "the axis is {}, expected -1 to {}", axis,
          call.e.rank(call.x()));
  return {one_hot_of(call, call.x(), axis)};
}

Outputs multi_hot(Call& call) {
  const int hot = one_hot_of(call, call.x(), integer_setting(call, 2, "axis", -1) == -1 ? -1 : 100);
  return {call.e.reduce("REDUCE_MAX", hot, {call.e.rank(call.x()) > 1 ? 1 : 0}, false)};
}

template <const char* const& Op>
Outputs segment(Call& call) {
  Emitter& e = call.e;
  const Argument* ids = call.arguments.find(1, "segment_ids");
  const auto count = setting(call, 2, "num_segments");
  call.refuse_if(!count, "has an unknown number of segments, which is not converted; give num_segments");
  require(ids != nullptr && ids->tensor >= 0, ErrorCode::kUnsupported, "the ids of segments must be a tensor");
  require(count->integer() > 0 && count->integer() <= INT32_MAX, kBad, "the number of segments is {}, expected 1 to {}",
          count->integer(), INT32_MAX);
  const int number = e.integer(static_cast<int32_t>(count->integer()));
  return {e.builder().node(Op, {call.x(), e.cast(ids->tensor, DType::kInt32), number}, e.name("segments"))};
}
constexpr const char* kSegmentSum = "UNSORTED_SEGMENT_SUM";
constexpr const char* kSegmentMax = "UNSORTED_SEGMENT_MAX";
constexpr const char* kSegmentMin = "UNSORTED_SEGMENT_MIN";
constexpr const char* kSegmentProd = "UNSORTED_SEGMENT_PROD";

// Products.

std::string letters(int count, char first) {
  std::string result;
  for (int i = 0; i < count; ++i) result += static_cast<char>(first + i);
  return result;
}

Outputs matmul_op(Call& call) {
  Emitter& e = call.e;
  auto [a, b] = operands(call, "x1", "x2");
  const int rank_a = e.rank(a);
  const int rank_b = e.rank(b);
  require(rank_a >= 1 && rank_b >= 1, kBad, "a product of tensors of rank {} and {}, expected 1 or more", rank_a,
          rank_b);
  if (rank_a >= 2 && rank_b >= 2) return {e.matmul(a, b)};
  if (rank_a == 1 && rank_b == 1) return {e.reduce("SUM", e.mul(a, b), {0}, false)};
  if (rank_a == 1) return {e.squeeze(e.matmul(e.expand_dims(a, 0), b), rank_b - 2)};
  return {e.squeeze(e.matmul(a, e.expand_dims(b, 1)), rank_a - 1)};
}

/// Sums over the axes of both; the others follow each other.
int contract(Call& call, int a, int b, const std::vector<int>& axes_a, const std::vector<int>& axes_b) {
  require(axes_a.size() == axes_b.size() && call.e.rank(a) <= 8 && call.e.rank(b) <= 8, kBad,
          "{} axes are multiplied with {}", axes_a.size(), axes_b.size());
  std::string left = letters(call.e.rank(a), 'a');
  std::string right = letters(call.e.rank(b), 'A');
  std::string result = left + right;
  for (size_t i = 0; i < axes_a.size(); ++i) {
    char& other = right[static_cast<size_t>(axes_b[i])];
    const char own = left[static_cast<size_t>(axes_a[i])];
    std::erase(result, own);
    std::erase(result, other);
    other = own;
  }
  return importing::einsum(call.e, left + "," + right + "->" + result, {a, b});
}

Outputs dot_op(Call& call) {
  Emitter& e = call.e;
  const auto [a, b] = operands(call, "x1", "x2");
  if (e.rank(a) == 0 || e.rank(b) == 0) return {e.mul(a, b)};
  return {contract(call, a, b, {e.rank(a) - 1}, {e.rank(b) == 1 ? 0 : e.rank(b) - 2})};
}
Outputs inner_op(Call& call) {
  Emitter& e = call.e;
  const auto [a, b] = operands(call, "x1", "x2");
  if (e.rank(a) == 0 || e.rank(b) == 0) return {e.mul(a, b)};
  return {contract(call, a, b, {e.rank(a) - 1}, {e.rank(b) - 1})};
}
Outputs outer_op(Call& call) {
  Emitter& e = call.e;
  const auto [a, b] = operands(call, "x1", "x2");
  return {e.mul(e.reshape(a, {-1, 1}), e.reshape(b, {1, -1}))};
}
Outputs vdot(Call& call) {
  Emitter& e = call.e;
  const auto [a, b] = operands(call, "x1", "x2");
  return {e.reduce("SUM", e.mul(e.reshape(a, {-1}), e.reshape(b, {-1})), {0}, false)};
}
Outputs tensordot(Call& call) {
  Emitter& e = call.e;
  const auto [a, b] = operands(call, "x1", "x2");
  std::vector<int> left;
  std::vector<int> right;
  const auto axes = setting(call, 2, "axes");
  if (!axes || axes->is_integer()) {
    const auto count = static_cast<int>(std::clamp<int64_t>(axes ? axes->integer() : 2, 0, 100));
    require(count <= e.rank(a) && count <= e.rank(b), kBad, "{} axes are multiplied of tensors of rank {} and {}",
            count, e.rank(a), e.rank(b));
    for (int i = 0; i < count; ++i) {
      left.push_back(e.rank(a) - count + i);
      right.push_back(i);
    }
  } else {
    for (const int64_t axis : axes->at(0).integers()) left.push_back(e.axis(a, axis));
    for (const int64_t axis : axes->at(1).integers()) right.push_back(e.axis(b, axis));
  }
  return {contract(call, a, b, left, right)};
}
Outputs einsum_op(Call& call) {
  std::vector<int> tensors;
  for (size_t i = 0; i < call.arguments.positional.size(); ++i) {
    tensors.push_back(operand(call, i, "operands", call.x()));
  }
  return {importing::einsum(call.e, call.config.text("subscripts"), tensors)};
}

Outputs layer_norm(Call& call) {
  Emitter& e = call.e;
  const bool rms = call.layer.class_name == "RMSNorm" || flag_setting(call, SIZE_MAX, "rms_scaling");
  const auto axis = setting(call, SIZE_MAX, "axis");
  const std::vector<int32_t> axes = e.axes(call.x(), axis ? axis->integers() : std::vector<int64_t>{-1});
  const auto epsilon = setting(call, SIZE_MAX, "epsilon");
  const int x = real(call);
  const int centered = rms ? x : e.sub(x, e.reduce("MEAN", x, axes, true));
  const int spread = e.add(e.reduce("MEAN", square(e, centered), axes, true), epsilon ? epsilon->number() : 1e-7);
  int y = e.mul(centered, e.unary("RSQRT", spread));
  const char* scale = call.layer.class_name == "RMSNorm" ? "scale" : "gamma";
  if (call.arguments.find(1, scale) != nullptr) y = e.mul(y, operand(call, 1, scale, y));
  if (call.arguments.find(2, "beta") != nullptr) y = e.add(y, operand(call, 2, "beta", y));
  return {y};
}

constexpr LayerClass kMathOperations[] = {
    {"Arctan", function<arctan>},
    {"Arcsin", function<arcsin>},
    {"Arccos", function<arccos>},
    {"Arcsinh", function<arcsinh>},
    {"Arccosh", function<arccosh>},
    {"Arctanh", function<arctanh>},
    {"Sinh", function<sinh_>},
    {"Cosh", function<cosh_>},
    {"Tan", function<tangent>},
    {"Cbrt", function<cbrt_>},
    {"Exp2", function<exp2_>},
    {"Expm1", function<expm1_>},
    {"Log1p", function<log1p_>},
    {"Log2", function<log2_>},
    {"Log10", function<log10_>},
    {"Deg2rad", function<deg2rad>},
    {"Rad2deg", function<rad2deg>},
    {"Reciprocal", function<reciprocal>},
    {"Trunc", function<truncated>},
    {"Isinf", function<is_infinite>},
    {"Isfinite", function<is_finite>},
    {"Isnan", function<is_nan>},
    {"Isposinf", function<is_positive_infinity>},
    {"Isneginf", function<is_negative_infinity>},
    {"Signbit", function<is_negative>},
    {"Sinc", function<sinc>},
    {"Erf", function<importing::erf>},
    {"Erfc", function<erfc>},
    {"Arctan2", function2<arctan2>},
    {"Hypot", function2<hypot_>},
    {"Fmod", function2<fmod_>},
    {"Logaddexp", function2<log_add_exp>},
    {"Logaddexp2", function2<log_add_exp2>},
    {"DivideNoNan", function2<divide_no_nan>},
    {"Heaviside", function2<heaviside>},
    {"Ldexp", function2<ldexp_>},
    {"LogicalXor", function2<logical_xor, false>},
    {"Isclose", is_close},
    {"NanToNum", nan_to_num},
    {"Round", round_op},
    {"Var", var_op},
    {"Std", std_op},
    {"Moments", moments},
    {"Ptp", ptp},
    {"Logsumexp", log_sum_exp},
    {"CountNonzero", count_nonzero},
    {"Average", average_op},
    {"Nansum", without_nan<kSumOp>},
    {"Nanmean", without_nan<kMeanOp>},
    {"Nanprod", without_nan<kProdOp>},
    {"Nanmax", without_nan<kMax>},
    {"Nanmin", without_nan<kMin>},
    {"Norm", norm},
    {"Normalize", normalize},
    {"Argmax", arg_extreme<true>},
    {"Argmin", arg_extreme<false>},
    {"TopK", top_k},
    {"Sort", sort<false>},
    {"Argsort", sort<true>},
    {"Cumsum", cumsum},
    {"Digitize", digitize},
    {"OneHot", one_hot},
    {"MultiHot", multi_hot},
    {"SegmentSum", segment<kSegmentSum>},
    {"SegmentMax", segment<kSegmentMax>},
    {"SegmentMin", segment<kSegmentMin>},
    {"SegmentProd", segment<kSegmentProd>},
    {"Matmul", matmul_op},
    {"Dot", dot_op},
    {"Inner", inner_op},
    {"Outer", outer_op},
    {"Vdot", vdot},
    {"Tensordot", tensordot},
    {"Einsum", einsum_op},
    {"LayerNorm", layer_norm},
    {"RMSNorm", layer_norm},
};

}  // namespace

std::span<const LayerClass> math_operations() { return kMathOperations; }

}  // namespace leadline::keras
