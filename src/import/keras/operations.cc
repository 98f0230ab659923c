// SPDX-License-Identifier: Apache-2.0
#include "import/keras/operations.h"

#include <algorithm>
#include <cmath>

#include "import/functions.h"
#include "ops/concatenation.h"

namespace leadline::keras {
namespace {

template <const char* const& Op>
Outputs binary(Call& call) {
  auto [a, b] = operands(call, "x1", "x2");
  Emitter& e = call.e;
  const std::string_view op = Op;
  const bool compares = op == "LESS" || op == "LESS_EQUAL" || op == "GREATER" || op == "GREATER_EQUAL" ||
                        op == "EQUAL" || op == "NOT_EQUAL";
  const bool logical = op == "LOGICAL_AND" || op == "LOGICAL_OR";
  const bool arithmetic = !compares && !logical && e.dtype(a) == DType::kBool;
  const bool real = (op == "DIV" || op == "POW") && e.dtype(a) != DType::kFloat32;
  if (logical || arithmetic || real) {
    const DType type = logical ? DType::kBool : real ? DType::kFloat32 : DType::kInt32;
    a = e.cast(a, type);
    b = e.cast(b, type);
  }
  return {compares ? e.compare(Op, a, b) : e.binary(Op, a, b)};
}

template <const char* const& Op>
Outputs unary(Call& call) {
  return {importing::unary(call.e, Op, call.x())};
}

template <const char* const& Op>
Outputs reduction(Call& call) {
  Emitter& e = call.e;
  const std::string_view op = Op;
  int x = call.x();
  const bool logical = op == "REDUCE_ANY" || op == "REDUCE_ALL";
  if (logical) x = e.cast(x, DType::kBool);
  if (!logical && e.dtype(x) == DType::kBool) x = e.cast(x, op == "MEAN" ? DType::kFloat32 : DType::kInt32);
  if (op == "MEAN") x = e.cast(x, DType::kFloat32);
  int y = e.reduce(Op, x, axes_setting(call, 1, "axis"), flag_setting(call, 2, "keepdims"));
  if (const auto initial = setting(call, 3, "initial"); initial && initial->is_number()) {
    y = e.binary(op == "REDUCE_MAX" ? "MAXIMUM" : "MINIMUM", y, e.scalar_like(y, initial->number()));
  }
  return {y};
}

#define LEADLINE_OP(name, text) constexpr const char* name = text
LEADLINE_OP(kAdd, "ADD");
LEADLINE_OP(kSub, "SUB");
LEADLINE_OP(kMul, "MUL");
LEADLINE_OP(kDiv, "DIV");
LEADLINE_OP(kPow, "POW");
LEADLINE_OP(kFloorDiv, "FLOOR_DIV");
LEADLINE_OP(kFloorMod, "FLOOR_MOD");
LEADLINE_OP(kMaximum, "MAXIMUM");
LEADLINE_OP(kMinimum, "MINIMUM");
LEADLINE_OP(kLess, "LESS");
LEADLINE_OP(kLessEqual, "LESS_EQUAL");
LEADLINE_OP(kGreater, "GREATER");
LEADLINE_OP(kGreaterEqual, "GREATER_EQUAL");
LEADLINE_OP(kEqual, "EQUAL");
LEADLINE_OP(kNotEqual, "NOT_EQUAL");
LEADLINE_OP(kExp, "EXP");
LEADLINE_OP(kLog, "LOG");
LEADLINE_OP(kSqrt, "SQRT");
LEADLINE_OP(kRsqrt, "RSQRT");
LEADLINE_OP(kSin, "SIN");
LEADLINE_OP(kCos, "COS");
LEADLINE_OP(kAbs, "ABS");
LEADLINE_OP(kNeg, "NEG");
LEADLINE_OP(kFloor, "FLOOR");
LEADLINE_OP(kCeil, "CEIL");
LEADLINE_OP(kSign, "SIGN");
LEADLINE_OP(kLogicalNot, "LOGICAL_NOT");
LEADLINE_OP(kLogicalAnd, "LOGICAL_AND");
LEADLINE_OP(kLogicalOr, "LOGICAL_OR");
LEADLINE_OP(kMean, "MEAN");
LEADLINE_OP(kSum, "SUM");
LEADLINE_OP(kProd, "REDUCE_PROD");
LEADLINE_OP(kReduceMax, "REDUCE_MAX");
LEADLINE_OP(kReduceMin, "REDUCE_MIN");
LEADLINE_OP(kAny, "REDUCE_ANY");
LEADLINE_OP(kAll, "REDUCE_ALL");
#undef LEADLINE_OP

Outputs squared_input(Call& call) { return {call.e.mul(call.x(), call.x())}; }

Outputs concatenate(Call& call) {
  const auto axis = setting(call, 1, "axis");
  return {call.e.concat(call.inputs, call.e.axis(call.x(), axis ? axis->integer() : 0))};
}

Outputs stack(Call& call) {
  const auto setting_axis = setting(call, 1, "axis");
  int64_t axis = setting_axis ? setting_axis->integer() : 0;
  const int rank = call.e.rank(call.x()) + 1;
  require(axis >= -rank && axis < rank, kBad, "axis {} of a tensor of rank {}", axis, rank);
  ops::PackAttributes a;
  a.axis = static_cast<int32_t>(axis < 0 ? axis + rank : axis);
  a.values_count = static_cast<int32_t>(call.inputs.size());
  return {call.e.builder().node("PACK", call.inputs, call.e.name("stack"), a)};
}

/// Sizes may be tensors: what TensorFlow's functions make of tf.shape.
Outputs reshape_op(Call& call) {
  Emitter& e = call.e;
  if (const int sizes = computed_sizes(call, 1, "newshape"); sizes >= 0) {
    const int y = e.builder().node("RESHAPE", {call.x(), sizes}, e.name("Reshape"));
    const Dims dims = e.dims(y);
    return {Emitter::is_target(dims) ? e.reshape(call.x(), dims) : y};
  }
  const auto shape = setting(call, 1, "newshape");
  require(shape.has_value(), kBad, "the new shape is missing");
  Dims target;
  if (shape->is_integer()) {
    target.push_back(shape->integer());
  } else {
    for (const Config& item : shape->items()) target.push_back(item.is_null() ? -1 : item.integer());
  }
  return {e.reshape(call.x(), target)};
}

Outputs transpose_op(Call& call) {
  Emitter& e = call.e;
  std::vector<int> order;
  if (const auto axes = setting(call, 1, "axes")) {
    for (const int64_t axis : axes->integers()) order.push_back(e.axis(call.x(), axis));
  } else {
    for (int axis = e.rank(call.x()); axis-- > 0;) order.push_back(axis);
  }
  return {e.transpose(call.x(), order)};
}

Outputs expand_dims_op(Call& call) {
  const auto found = setting(call, 1, "axis");
  std::vector<int64_t> list = found ? found->integers() : std::vector<int64_t>{0};
  int x = call.x();
  const int rank = call.e.rank(x) + static_cast<int>(list.size());
  for (int64_t& axis : list) {
    require(axis >= -rank && axis < rank, kBad, "axis {} of a tensor of rank {}", axis, rank);
    if (axis < 0) axis += rank;
  }
  std::sort(list.begin(), list.end());
  for (const int64_t axis : list) x = call.e.expand_dims(x, static_cast<int>(axis));
  return {x};
}

Outputs squeeze_op(Call& call) {
  Emitter& e = call.e;
  int x = call.x();
  std::vector<int32_t> axes;
  if (const auto found = setting(call, 1, "axis")) {
    axes = e.axes(x, found->integers());
  } else {
    for (int i = 0; i < e.rank(x); ++i) {
      if (e.dims(x)[static_cast<size_t>(i)] == 1) axes.push_back(i);
    }
  }
  std::reverse(axes.begin(), axes.end());
  for (const int32_t axis : axes) x = e.squeeze(x, axis);
  return {x};
}

Outputs clip_op(Call& call) {
  Emitter& e = call.e;
  int x = call.x();
  const auto bound = [&](size_t position, const char* name, const char* op) {
    const Argument* given = call.arguments.find(position, name);
    if (given != nullptr && given->tensor >= 0) {
      x = e.binary(op, x, e.cast(given->tensor, e.dtype(x)));
    } else if (const auto number = setting(call, position, name)) {
      x = e.binary(op, x, e.scalar_like(x, number->number()));
    }
  };
  bound(1, "x_min", "MAXIMUM");
  bound(2, "x_max", "MINIMUM");
  return {x};
}

Outputs cast_op(Call& call) {
  const auto name = setting(call, 1, "dtype");
  const auto type = name ? dtype_from_name(name->text()) : std::nullopt;
  require(type.has_value(), ErrorCode::kUnsupported, "casts to an unknown type");
  return {call.e.cast(call.x(), *type)};
}

/// To the type that is named, if one is.
Outputs convert_op(Call& call) { return setting(call, 1, "dtype") ? cast_op(call) : Outputs{call.x()}; }

Outputs split_op(Call& call) {
  const auto parts = setting(call, 1, "indices_or_sections");
  const auto axis = setting(call, 2, "axis");
  require(parts.has_value(), kBad, "the number of parts is missing");
  Emitter& e = call.e;
  const int where = e.axis(call.x(), axis ? axis->integer() : 0);
  if (parts->is_integer()) {
    require(parts->integer() > 0 && parts->integer() <= 4096, kBad, "split into {} parts, expected 1 to 4096",
            parts->integer());
    return e.split(call.x(), where, static_cast<int>(parts->integer()));
  }
  Outputs result;
  int64_t from = 0;
  for (const int64_t to : parts->integers()) {
    result.push_back(e.slice(call.x(), where, from, to));
    from = to;
  }
  result.push_back(e.slice(call.x(), where, from, INT64_MAX));
  return result;
}

/// x[a, b:c, ..., None] with constants.
Outputs get_item(Call& call) {
  Emitter& e = call.e;
  const Argument* key = call.arguments.find(1, "key");
  require(key != nullptr && key->constant.has_value() && call.inputs.size() == 1, ErrorCode::kUnsupported,
          "an index is not constant, which is not converted");
  std::vector<Config> items;
  if (key->constant->is_list()) {
    items = key->constant->items();
  } else {
    items = {*key->constant};
  }
  const auto is = [](const Config& c, std::string_view what) {
    return c.is_object() && c.text("class_name", "") == what;
  };
  // Keras 2 writes slices without a class.
  const auto is_slice = [&](const Config& c) { return is(c, "__slice__") || (c.is_object() && !c.has("class_name")); };
  const auto is_dots = [&](const Config& c) { return is(c, "__ellipsis__") || (c.is_text() && c.text() == "..."); };
  const auto takes = [&](const Config& c) { return !c.is_null() && !is_dots(c); };
  const auto used = std::count_if(items.begin(), items.end(), takes);
  int x = call.x();
  int axis = 0;
  for (const Config& item : items) {
    if (is_dots(item)) {
      axis += e.rank(call.x()) - static_cast<int>(used);
    } else if (item.is_null()) {
      x = e.expand_dims(x, axis++);
    } else if (item.is_integer()) {
      require(axis < e.rank(x), kBad, "there are more indices than axes");
      x = e.take(x, axis, item.integer());
    } else {
      if (!is_slice(item)) item.wrong("an index or a slice");
      require(axis < e.rank(x), kBad, "there are more indices than axes");
      const Config range = item.find("config").value_or(item);
      const int64_t step = range.integer("step", 1);
      require(step != 0 && step > INT32_MIN && step <= INT32_MAX, kBad,
              "a slice has step {}, expected another than 0 that fits 32 bits", step);
      if (step == -1 && !range.has("start") && !range.has("stop")) {
        x = e.reverse(x, axis++);
        continue;
      }
      require(step > 0, ErrorCode::kUnsupported,
              "a slice with step {} is not converted; reverse the whole axis with [::-1] first", step);
      if (range.has("start") || range.has("stop") || step != 1) {
        x = e.slice(x, axis, range.integer("start", 0), range.integer("stop", INT64_MAX), step);
      }
      ++axis;
    }
  }
  return {x};
}

constexpr LayerClass kOperations[] = {
    {"Add", binary<kAdd>},
    {"Subtract", binary<kSub>},
    {"Multiply", binary<kMul>},
    {"Divide", binary<kDiv>},
    {"TrueDivide", binary<kDiv>},
    {"Power", binary<kPow>},
    {"FloorDivide", binary<kFloorDiv>},
    {"Mod", binary<kFloorMod>},
    {"Maximum", binary<kMaximum>},
    {"Minimum", binary<kMinimum>},
    {"Less", binary<kLess>},
    {"LessEqual", binary<kLessEqual>},
    {"Greater", binary<kGreater>},
    {"GreaterEqual", binary<kGreaterEqual>},
    {"Equal", binary<kEqual>},
    {"NotEqual", binary<kNotEqual>},
    {"LogicalAnd", binary<kLogicalAnd>},
    {"LogicalOr", binary<kLogicalOr>},
    {"LogicalNot", unary<kLogicalNot>},
    {"Exp", unary<kExp>},
    {"Log", unary<kLog>},
    {"Sqrt", unary<kSqrt>},
    {"Rsqrt", unary<kRsqrt>},
    {"Sin", unary<kSin>},
    {"Cos", unary<kCos>},
    {"Abs", unary<kAbs>},
    {"Absolute", unary<kAbs>},
    {"Negative", unary<kNeg>},
    {"Floor", unary<kFloor>},
    {"Ceil", unary<kCeil>},
    {"Sign", unary<kSign>},
    {"Square", squared_input},
    {"Mean", reduction<kMean>},
    {"Sum", reduction<kSum>},
    {"Prod", reduction<kProd>},
    {"Max", reduction<kReduceMax>},
    {"Min", reduction<kReduceMin>},
    {"Any", reduction<kAny>},
    {"All", reduction<kAll>},
    {"Concatenate", concatenate},
    {"Stack", stack},
    {"Reshape", reshape_op},
    {"Transpose", transpose_op},
    {"ExpandDims", expand_dims_op},
    {"Squeeze", squeeze_op},
    {"Clip", clip_op},
    {"Cast", cast_op},
    {"Split", split_op},
    {"GetItem", get_item},
    {"Identity", identity},
    {"StopGradient", identity},
    {"Copy", identity},
    {"Relu", named_activation},
    {"Relu6", named_activation},
    {"Sigmoid", named_activation},
    {"Tanh", named_activation},
    {"Softplus", named_activation},
    {"Softsign", named_activation},
    {"Silu", named_activation},
    {"LogSigmoid", named_activation},
    {"LeakyRelu", named_activation},
    {"HardSigmoid", named_activation},
    {"HardSilu", named_activation},
    {"HardTanh", named_activation},
    {"TanhShrink", named_activation},
    {"SoftShrink", named_activation},
    {"HardShrink", named_activation},
    {"Elu", named_activation},
    {"Celu", named_activation},
    {"Selu", named_activation},
    {"Gelu", named_activation},
    {"Softmax", named_activation},
    {"LogSoftmax", named_activation},
    {"SparseSigmoid", named_activation},
    {"SparsePlus", named_activation},
    {"Squareplus", named_activation},
    {"Glu", named_activation},
    {"Threshold", named_activation},
    {"Sparsemax", named_activation},
    {"Amax", reduction<kReduceMax>},
    {"Amin", reduction<kReduceMin>},
    {"Fabs", unary<kAbs>},
    {"Fmax", binary<kMaximum>},
    {"Fmin", binary<kMinimum>},
    {"Conjugate", identity},
    {"Conj", identity},
    {"Real", identity},
    {"ConvertToTensor", convert_op},
    {"Array", convert_op},
    {"SaturateCast", cast_op},
};

}  // namespace

std::optional<Config> setting(const Call& call, size_t position, std::string_view name) {
  if (const Argument* found = call.arguments.find(position, name); found != nullptr && found->constant) {
    return found->constant;
  }
  return call.config.find(name);
}

int64_t integer_setting(const Call& call, size_t position, std::string_view name, int64_t otherwise) {
  const auto found = setting(call, position, name);
  return found ? found->integer() : otherwise;
}

std::vector<int32_t> axes_setting(Call& call, size_t position, std::string_view name) {
  std::vector<int64_t> list;
  if (const auto axis = setting(call, position, name)) {
    list = axis->integers();
  } else {
    for (int i = 0; i < call.e.rank(call.x()); ++i) list.push_back(i);
  }
  return call.e.axes(call.x(), list);
}

bool flag_setting(const Call& call, size_t position, std::string_view name) {
  const auto found = setting(call, position, name);
  return found && found->boolean();
}

std::pair<int, int> operands(Call& call, std::string_view first, std::string_view second) {
  const Argument* a = call.arguments.find(0, first);
  const Argument* b = call.arguments.find(1, second);
  require(a != nullptr && b != nullptr, kBad, "the operation needs two operands");
  const int like = a->tensor >= 0 ? a->tensor : b->tensor;
  require(like >= 0, kBad, "no operand is a tensor");
  Emitter& e = call.e;
  int x = operand(call, 0, first, like);
  int y = operand(call, 1, second, like);
  if (e.dtype(x) == e.dtype(y)) return {x, y};
  // Integers become what the other is, bools always.
  const auto rank_of = [](DType t) {
    return t == DType::kBool ? 0 : t == DType::kFloat32 ? 3 : t == DType::kInt64 ? 2 : 1;
  };
  const DType type = rank_of(e.dtype(x)) > rank_of(e.dtype(y)) ? e.dtype(x) : e.dtype(y);
  return {e.cast(x, type), e.cast(y, type)};
}

int operand(Call& call, size_t index, std::string_view name, int like) {
  const Argument* found = call.arguments.find(index, name);
  require(found != nullptr, kBad, "operand '{}' is missing", name);
  if (found->tensor >= 0) return found->tensor;
  require(found->constant.has_value(), kBad, "operand '{}' is neither a tensor nor a constant", name);
  Emitter& e = call.e;
  const Config& value = *found->constant;
  if (value.is_number()) {
    const bool fraction = !value.is_integer() && e.dtype(like) != DType::kFloat32;
    return fraction ? e.scalar(static_cast<float>(value.number())) : e.scalar_like(like, value.number());
  }
  // Arrays are saved as {"class_name": "__tensor__" or "__numpy__", "config": {"value": ..., "dtype": ...}}.
  const Config list = value.is_object() ? value.get("config").get("value") : value;
  if (list.is_number()) return e.scalar_like(like, list.number());
  Dims dims;
  for (Config at = list; at.is_list() && dims.size() < kMaxRank; at = at.at(0)) {
    dims.push_back(static_cast<int64_t>(at.size()));
    if (at.size() == 0) break;
  }
  const std::vector<double> numbers = list.numbers(1 << 20);
  const bool whole = std::all_of(numbers.begin(), numbers.end(), [](double n) { return n == std::nearbyint(n); });
  const std::string named = value.is_object() ? value.get("config").text("dtype", "") : "";
  if (e.dtype(like) != DType::kFloat32 && whole && !named.starts_with("float")) {
    std::vector<int32_t> integers;
    for (const double n : numbers) {
      require(n >= INT32_MIN && n <= INT32_MAX, ErrorCode::kUnsupported,
              "an array has the number {}, which does not fit 32 bits", n);
      integers.push_back(static_cast<int32_t>(n));
    }
    return e.builder().constant(e.name("Const"), DType::kInt32, dims, integers);
  }
  return e.floats(std::vector<float>(numbers.begin(), numbers.end()), dims);
}

int computed_sizes(Call& call, size_t position, std::string_view name) {
  Emitter& e = call.e;
  const Argument* given = call.arguments.find(position, name);
  if (given == nullptr) return -1;
  if (given->tensor >= 0) {
    const int sizes = e.cast(given->tensor, DType::kInt32);
    return e.rank(sizes) == 0 ? e.reshape(sizes, {1}) : sizes;
  }
  const auto is_tensor = [](const Argument& item) { return item.tensor >= 0; };
  if (!given->is_list || std::none_of(given->list.begin(), given->list.end(), is_tensor)) return -1;
  std::vector<int> parts;
  for (const Argument& item : given->list) {
    if (item.tensor >= 0) {
      parts.push_back(e.reshape(e.cast(item.tensor, DType::kInt32), {1}));
      continue;
    }
    require(item.constant.has_value(), kBad, "a size is neither a number nor a tensor");
    const int64_t size = item.constant->is_null() ? -1 : item.constant->integer();
    require(size >= -1 && size <= INT32_MAX, kBad, "a size is {}, expected -1 to {}", size, INT32_MAX);
    parts.push_back(e.ints({static_cast<int32_t>(size)}));
  }
  return e.concat(parts, 0);
}

const LayerClass* find_operation(std::string_view class_name) {
  const std::span<const LayerClass> tables[] = {kOperations, math_operations(), shape_operations(), nn_operations(),
                                                traced_operations()};
  for (const auto& table : tables) {
    const auto it =
        std::find_if(table.begin(), table.end(), [&](const LayerClass& row) { return row.name == class_name; });
    if (it != table.end()) return &*it;
  }
  return nullptr;
}

}  // namespace leadline::keras
