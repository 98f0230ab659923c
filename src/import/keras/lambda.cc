// SPDX-License-Identifier: Apache-2.0
// Calls of TensorFlow functions on tensors of a functional model, as Keras 2 and tf_keras save them: each is an
// operation of keras.ops by another name.
#include <algorithm>

#include "import/keras/layer_functions.h"

namespace leadline::keras {
namespace {

struct KnownFunction {
  std::string_view name;
  std::string_view operation;
};

constexpr KnownFunction kFunctions[] = {
    {"__operators__.add", "Add"},
    {"math.add", "Add"},
    {"math.subtract", "Subtract"},
    {"math.multiply", "Multiply"},
    {"math.divide", "Divide"},
    {"math.truediv", "Divide"},
    {"math.pow", "Power"},
    {"math.maximum", "Maximum"},
    {"math.minimum", "Minimum"},
    {"math.greater", "Greater"},
    {"math.less", "Less"},
    {"math.exp", "Exp"},
    {"math.log", "Log"},
    {"math.sqrt", "Sqrt"},
    {"math.rsqrt", "Rsqrt"},
    {"math.abs", "Abs"},
    {"math.negative", "Negative"},
    {"math.square", "Square"},
    {"math.sigmoid", "Sigmoid"},
    {"math.tanh", "Tanh"},
    {"math.softplus", "Softplus"},
    {"math.reduce_mean", "Mean"},
    {"math.reduce_sum", "Sum"},
    {"math.reduce_max", "Max"},
    {"math.reduce_min", "Min"},
    {"nn.relu", "Relu"},
    {"nn.relu6", "Relu6"},
    {"nn.silu", "Silu"},
    {"nn.gelu", "Gelu"},
    {"nn.elu", "Elu"},
    {"nn.selu", "Selu"},
    {"nn.softmax", "Softmax"},
    {"nn.log_softmax", "LogSoftmax"},
    {"nn.softsign", "Softsign"},
    {"math.sin", "Sin"},
    {"math.cos", "Cos"},
    {"math.floor", "Floor"},
    {"math.ceil", "Ceil"},
    {"math.round", "Round"},
    {"math.sign", "Sign"},
    {"math.erf", "Erf"},
    {"math.log1p", "Log1p"},
    {"math.expm1", "Expm1"},
    {"math.floordiv", "FloorDivide"},
    {"math.floormod", "Mod"},
    {"math.mod", "Mod"},
    {"math.divide_no_nan", "DivideNoNan"},
    {"math.equal", "Equal"},
    {"math.not_equal", "NotEqual"},
    {"math.greater_equal", "GreaterEqual"},
    {"math.less_equal", "LessEqual"},
    {"math.logical_and", "LogicalAnd"},
    {"math.logical_or", "LogicalOr"},
    {"math.logical_not", "LogicalNot"},
    {"math.cumsum", "Cumsum"},
    {"math.top_k", "TopK"},
    {"math.reduce_prod", "Prod"},
    {"math.reduce_any", "Any"},
    {"math.reduce_all", "All"},
    {"math.reduce_variance", "Var"},
    {"math.reduce_std", "Std"},
    {"math.reduce_logsumexp", "Logsumexp"},
    {"nn.leaky_relu", "LeakyRelu"},
    {"nn.sigmoid", "Sigmoid"},
    {"nn.tanh", "Tanh"},
    {"nn.softplus", "Softplus"},
    {"where", "Where"},
    {"split", "Split"},
    {"unstack", "Unstack"},
    {"tile", "Tile"},
    {"repeat", "Repeat"},
    {"gather", "Take"},
    {"one_hot", "OneHot"},
    {"zeros_like", "ZerosLike"},
    {"ones_like", "OnesLike"},
    {"broadcast_to", "BroadcastTo"},
    {"tensordot", "Tensordot"},
    {"pad", "Pad"},
    {"reverse", "Flip"},
    {"roll", "Roll"},
    {"shape", "Shape"},
    {"reshape", "Reshape"},
    {"transpose", "Transpose"},
    {"expand_dims", "ExpandDims"},
    {"squeeze", "Squeeze"},
    {"concat", "Concatenate"},
    {"stack", "Stack"},
    {"cast", "Cast"},
    {"clip_by_value", "Clip"},
    {"linalg.matmul", "Matmul"},
    {"stop_gradient", "StopGradient"},
    {"identity", "Identity"},
    {"__operators__.getitem", "GetItem"},
};

/// Names of arguments, TensorFlow's and those of keras.ops.
constexpr std::pair<std::string_view, std::string_view> kNames[] = {
    {"x", "x1"},
    {"y", "x2"},
    {"shape", "newshape"},
    {"perm", "axes"},
    {"clip_value_min", "x_min"},
    {"clip_value_max", "x_max"},
    {"slice_spec", "key"},
    {"multiples", "repeats"},
    {"depth", "num_classes"},
    {"num_or_size_splits", "indices_or_sections"},
    {"paddings", "pad_width"},
};

}  // namespace

Outputs tensorflow_function(Call& call) {
  std::string name = call.config.text("function", "__operators__.getitem");
  if (name.starts_with("compat.v1.")) name = name.substr(10);
  const auto* function = std::find_if(std::begin(kFunctions), std::end(kFunctions),
                                      [&](const KnownFunction& row) { return row.name == name; });
  call.refuse_if(function == std::end(kFunctions),
                 fmt::format("calls tf.{}, which is not converted; export the model as a SavedModel", printable(name)));
  if (const Argument* sizes = call.arguments.find(1, "num_or_size_splits"); name == "split") {
    call.refuse_if(sizes == nullptr || !sizes->constant || !sizes->constant->is_integer(),
                   "calls tf.split with sizes, which is not converted; split into equal parts or use slices");
  }
  Layer layer = call.layer;
  layer.class_name = function->operation;
  layer.is_operation = true;
  Arguments arguments;
  for (const Argument& argument : call.arguments.positional) arguments.positional.push_back(argument);
  for (const auto& [key, argument] : call.arguments.named) {
    const auto* found = std::find_if(std::begin(kNames), std::end(kNames),
                                     [&, &own = key](const auto& pair) { return pair.first == own; });
    arguments.named.emplace_back(found == std::end(kNames) ? key : std::string(found->second), argument);
  }
  const LayerClass* row = find_operation(layer.class_name);
  require(row != nullptr, ErrorCode::kInternal, "no operation '{}'", layer.class_name);
  Call inner(call.importer, call.e, layer, arguments);
  return row->emit(inner);
}

}  // namespace leadline::keras
