// SPDX-License-Identifier: Apache-2.0
// Which function expresses which op of TensorFlow.
#include <unordered_map>

#include "import/saved_model/op_functions.h"

namespace leadline::saved_model {
namespace {

constexpr OpRow kRows[] = {
    // clang-format off
    // Arithmetic.
    {"Abs", unary, "ABS"}, {"Ceil", unary, "CEIL"}, {"Cos", unary, "COS"}, {"Exp", unary, "EXP"},
    {"Floor", unary, "FLOOR"}, {"Log", unary, "LOG"}, {"LogicalNot", unary, "LOGICAL_NOT"}, {"Neg", unary, "NEG"},
    {"Rint", unary, "ROUND"}, {"Round", unary, "ROUND"}, {"Rsqrt", unary, "RSQRT"}, {"Sign", unary, "SIGN"},
    {"Sin", unary, "SIN"}, {"Sqrt", unary, "SQRT"}, {"Square", unary, "SQUARE"}, {"Tanh", unary, "TANH"},
    {"Sigmoid", unary, "LOGISTIC"}, {"Relu", unary, "RELU"}, {"Relu6", unary, "RELU6"}, {"Elu", unary, "ELU"},
    {"LogSoftmax", unary, "LOG_SOFTMAX"},
    {"Add", binary, "ADD"}, {"AddV2", binary, "ADD"}, {"Sub", binary, "SUB"}, {"Mul", mul, "MUL"},
    {"RealDiv", binary, "DIV"}, {"Div", binary, "DIV"}, {"Maximum", binary, "MAXIMUM"},
    {"Minimum", binary, "MINIMUM"}, {"Pow", binary, "POW"}, {"SquaredDifference", binary, "SQUARED_DIFFERENCE"},
    {"FloorDiv", binary, "FLOOR_DIV"}, {"FloorMod", binary, "FLOOR_MOD"}, {"Atan2", binary, "ATAN2"},
    {"LogicalAnd", binary, "LOGICAL_AND"}, {"LogicalOr", binary, "LOGICAL_OR"}, {"BitwiseXor", binary, "BITWISE_XOR"},
    {"RightShift", binary, "RIGHT_SHIFT"}, {"TruncateDiv", truncate_div},
    {"AddN", add_n}, {"AccumulateNV2", add_n}, {"Reciprocal", reciprocal}, {"Inv", reciprocal},
    {"DivNoNan", div_no_nan}, {"MulNoNan", multiply_no_nan}, {"Xdivy", xdivy}, {"Xlogy", xdivy}, {"Xlog1py", xdivy},
    {"Log1p", log_1p}, {"Expm1", exp_m1}, {"Tan", tangent}, {"Sinh", sinh_or_cosh}, {"Cosh", sinh_or_cosh},
    {"Erf", erf}, {"Erfc", erf}, {"IsNan", is_nan}, {"IsInf", is_inf}, {"IsFinite", is_finite},
    {"ClipByValue", clip}, {"Cumsum", cumsum}, {"ApproximateEqual", approximate_equal},
    // Comparisons.
    {"Equal", comparison, "EQUAL"}, {"NotEqual", comparison, "NOT_EQUAL"}, {"Less", comparison, "LESS"},
    {"LessEqual", comparison, "LESS_EQUAL"}, {"Greater", comparison, "GREATER"},
    {"GreaterEqual", comparison, "GREATER_EQUAL"},
    // Reductions.
    {"Mean", reduction, "MEAN"}, {"Sum", reduction, "SUM"}, {"Max", reduction, "REDUCE_MAX"},
    {"Min", reduction, "REDUCE_MIN"}, {"Prod", reduction, "REDUCE_PROD"}, {"Any", reduction, "REDUCE_ANY"},
    {"All", reduction, "REDUCE_ALL"}, {"ArgMax", arg_min_max, "ARG_MAX"}, {"ArgMin", arg_min_max, "ARG_MIN"},
    {"TopKV2", top_k}, {"L2Loss", l2_loss},
    // Matrices.
    {"MatMul", matmul}, {"BatchMatMul", batch_matmul}, {"BatchMatMulV2", batch_matmul},
    {"BatchMatMulV3", batch_matmul}, {"Einsum", einsum},
    // Networks.
    {"Conv2D", conv_2d}, {"Conv2DBackpropInput", conv_2d_transpose}, {"Conv3D", conv_3d},
    {"DepthwiseConv2dNative", depthwise_conv}, {"BiasAdd", bias_add}, {"BiasAddV1", bias_add},
    {"FusedBatchNorm", batch_norm}, {"FusedBatchNormV2", batch_norm}, {"FusedBatchNormV3", batch_norm},
    {"MaxPool", pool, "MAX_POOL_2D"}, {"AvgPool", pool, "AVERAGE_POOL_2D"}, {"LeakyRelu", leaky_relu},
    {"Selu", selu}, {"Softplus", softplus}, {"Softsign", softsign}, {"Softmax", softmax},
    {"ResizeBilinear", resize_bilinear}, {"ResizeNearestNeighbor", resize_nearest},
    // Movement.
    {"Identity", identity}, {"Snapshot", identity}, {"StopGradient", identity}, {"PreventGradient", identity},
    {"EnsureShape", [](OpCall& call) -> Outputs { return {call.in()}; }},
    {"Reshape", reshape}, {"Squeeze", squeeze}, {"ExpandDims", expand_dims}, {"Transpose", transpose},
    {"ConcatV2", concat_v2}, {"Concat", concat_v2}, {"Pack", pack}, {"Unpack", unpack}, {"Split", split},
    {"SplitV", split_v}, {"StridedSlice", strided_slice}, {"Slice", same_type, "SLICE"}, {"Pad", same_type, "PAD"},
    {"PadV2", same_type, "PADV2"}, {"MirrorPad", mirror_pad}, {"Tile", same_type, "TILE"},
    {"BroadcastTo", same_type, "BROADCAST_TO"}, {"Range", same_type, "RANGE"},
    {"SpaceToBatchND", with_int32, "SPACE_TO_BATCH_ND"}, {"BatchToSpaceND", with_int32, "BATCH_TO_SPACE_ND"},
    {"SpaceToDepth", block_size, "SPACE_TO_DEPTH"}, {"DepthToSpace", block_size, "DEPTH_TO_SPACE"},
    {"ReverseV2", reverse}, {"ReverseSequence", reverse_sequence},
    // Indices, shapes, types.
    {"Gather", gather}, {"GatherV2", gather}, {"ResourceGather", resource_gather}, {"GatherNd", same_type, "GATHER_ND"},
    {"ResourceGatherNd", same_type, "GATHER_ND"}, {"OneHot", one_hot}, {"Select", select, "SELECT"},
    {"SelectV2", select, "SELECT_V2"}, {"Where", where}, {"Fill", fill}, {"Shape", shape}, {"ShapeN", shape_n},
    {"VariableShape", shape}, {"Rank", rank}, {"Size", size}, {"Cast", cast}, {"ZerosLike", zeros_like},
    {"OnesLike", ones_like}, {"ScatterNd", scatter_nd}, {"TensorScatterUpdate", tensor_scatter_update},
    {"TensorScatterAdd", tensor_scatter_update}, {"TensorScatterSub", tensor_scatter_update},
    {"BroadcastArgs", same_type, "BROADCAST_ARGS"},
    // Control flow.
    {"While", while_loop}, {"StatelessWhile", while_loop}, {"If", if_else}, {"StatelessIf", if_else},
    {"Case", switch_case}, {"StatelessCase", switch_case},
    // clang-format on
};

}  // namespace

const OpRow* find_op(std::string_view op) {
  static const std::unordered_map<std::string_view, const OpRow*> kByName = [] {
    std::unordered_map<std::string_view, const OpRow*> map;
    for (const OpRow& row : kRows) map.emplace(row.op, &row);
    return map;
  }();
  const auto it = kByName.find(op);
  return it == kByName.end() ? nullptr : it->second;
}

}  // namespace leadline::saved_model
