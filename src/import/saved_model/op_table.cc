// SPDX-License-Identifier: Apache-2.0
// Which function expresses which op of TensorFlow.
#include <unordered_map>

#include "import/saved_model/op_functions.h"
#include "import/saved_model/op_rows.h"

namespace leadline::saved_model {
namespace {

using enum VariableUse;

constexpr OpRow kRows[] = {
    // clang-format off
    // Arithmetic.
    {"Abs", unary, "ABS"}, {"Ceil", unary, "CEIL"}, {"Cos", unary, "COS"}, {"Exp", unary, "EXP"},
    {"Floor", unary, "FLOOR"}, {"Log", unary, "LOG"}, {"LogicalNot", unary, "LOGICAL_NOT"}, {"Neg", unary, "NEG"},
    {"Rint", unary, "ROUND"}, {"Round", unary, "ROUND"}, {"Rsqrt", unary, "RSQRT"}, {"Sign", unary, "SIGN"},
    {"Sin", unary, "SIN"}, {"Sqrt", unary, "SQRT"}, {"Square", square}, {"Tanh", unary, "TANH"},
    {"Sigmoid", unary, "LOGISTIC"}, {"Relu", unary, "RELU"}, {"Relu6", unary, "RELU6"}, {"Elu", unary, "ELU"},
    {"LogSoftmax", unary, "LOG_SOFTMAX"},
    {"Add", binary, "ADD"}, {"AddV2", binary, "ADD"}, {"Sub", binary, "SUB"}, {"Mul", mul, "MUL"},
    {"RealDiv", binary, "DIV"}, {"Div", binary, "DIV"}, {"Maximum", binary, "MAXIMUM"},
    {"Minimum", binary, "MINIMUM"}, {"Pow", binary, "POW"}, {"SquaredDifference", binary, "SQUARED_DIFFERENCE"},
    {"FloorDiv", binary, "FLOOR_DIV"}, {"FloorMod", binary, "FLOOR_MOD"}, {"Atan2", binary, "ATAN2"},
    {"LogicalAnd", binary, "LOGICAL_AND"}, {"LogicalOr", binary, "LOGICAL_OR"}, {"BitwiseXor", binary, "BITWISE_XOR"},
    {"RightShift", binary, "RIGHT_SHIFT"}, {"BitwiseAnd", bit_logic}, {"BitwiseOr", bit_logic}, {"Invert", bit_logic},
    {"LeftShift", bit_logic}, {"TruncateDiv", truncate_div},
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
    {"ScaleAndTranslate", scale_and_translate},
    {"Conv3DBackpropInputV2", conv_3d_transpose}, {"LRN", local_response},
    {"SoftmaxCrossEntropyWithLogits", cross_entropy}, {"SparseSoftmaxCrossEntropyWithLogits", cross_entropy},
    // Movement.
    {"Identity", identity}, {"Snapshot", identity}, {"StopGradient", identity}, {"PreventGradient", identity},
    {"EnsureShape", [](OpCall& call) -> Outputs { return {call.in()}; }},
    {"Reshape", reshape}, {"Squeeze", squeeze}, {"ExpandDims", expand_dims}, {"Transpose", transpose},
    {"ConcatV2", concat_v2}, {"Concat", concat_v2}, {"Pack", pack}, {"Unpack", unpack}, {"Split", split},
    {"SplitV", split_v}, {"StridedSlice", strided_slice}, {"Slice", same_rank, "SLICE"}, {"Pad", same_rank, "PAD"},
    {"TensorStridedSliceUpdate", tensor_slice_update},
    {"PadV2", same_rank, "PADV2"}, {"MirrorPad", mirror_pad}, {"Tile", same_rank, "TILE"},
    {"BroadcastTo", to_shape, "BROADCAST_TO"}, {"Range", range},
    {"SpaceToBatchND", with_int32, "SPACE_TO_BATCH_ND"}, {"BatchToSpaceND", with_int32, "BATCH_TO_SPACE_ND"},
    {"SpaceToDepth", block_size, "SPACE_TO_DEPTH"}, {"DepthToSpace", block_size, "DEPTH_TO_SPACE"},
    {"ReverseV2", reverse}, {"ReverseSequence", reverse_sequence},
    // Indices, shapes, types.
    {"Gather", gather}, {"GatherV2", gather}, {"ResourceGather", resource_gather}, {"GatherNd", same_type, "GATHER_ND"},
    {"ResourceGatherNd", same_type, "GATHER_ND"}, {"OneHot", one_hot}, {"Select", select, "SELECT"},
    {"SelectV2", select, "SELECT_V2"}, {"Where", where}, {"Fill", fill}, {"Shape", shape}, {"ShapeN", shape_n},
    {"VariableShape", shape}, {"Rank", rank}, {"Size", size}, {"Cast", cast}, {"ZerosLike", zeros_like},
    {"OnesLike", ones_like}, {"ScatterNd", scatter_nd}, {"TensorScatterUpdate", tensor_scatter_update},
    {"TensorScatterAdd", tensor_scatter_update, "ADD"}, {"TensorScatterSub", tensor_scatter_update, "SUB"},
    {"BroadcastArgs", same_type, "BROADCAST_ARGS"},
    // Matrices by their diagonals, parts chosen by data, random numbers.
    {"MatrixBandPart", band_part}, {"MatrixDiag", matrix_diag}, {"MatrixDiagV2", matrix_diag},
    {"MatrixDiagV3", matrix_diag}, {"MatrixSetDiag", matrix_set_diag}, {"MatrixSetDiagV2", matrix_set_diag},
    {"MatrixSetDiagV3", matrix_set_diag}, {"MatrixDiagPart", matrix_diag_part},
    {"MatrixDiagPartV2", matrix_diag_part}, {"MatrixDiagPartV3", matrix_diag_part},
    {"SegmentSum", segment, "SEGMENT_SUM"}, {"UnsortedSegmentSum", segment, "UNSORTED_SEGMENT_SUM"},
    {"UnsortedSegmentMax", segment, "UNSORTED_SEGMENT_MAX"}, {"UnsortedSegmentMin", segment, "UNSORTED_SEGMENT_MIN"},
    {"UnsortedSegmentProd", segment, "UNSORTED_SEGMENT_PROD"}, {"NonMaxSuppressionV2", non_max_suppression},
    {"NonMaxSuppressionV3", non_max_suppression}, {"NonMaxSuppressionV4", non_max_suppression},
    {"NonMaxSuppressionV5", non_max_suppression}, {"Unique", unique}, {"SparseToDense", sparse_to_dense},
    {"DynamicStitch", dynamic_stitch}, {"ParallelDynamicStitch", dynamic_stitch},
    {"RaggedTensorToTensor", ragged_to_tensor}, {"InvertPermutation", invert_permutation}, {"Roll", roll}, {"Bucketize", bucketize}, {"Bitcast", bitcast},
    {"RandomUniform", random, "RANDOM_UNIFORM"}, {"RandomStandardNormal", random, "RANDOM_STANDARD_NORMAL"},
    {"Multinomial", multinomial},
    // Signals and quantization.
    {"RFFT2D", rfft_2d}, {"RFFT", rfft}, {"Complex", complex_op}, {"ComplexAbs", complex_part_of, "COMPLEX_ABS"},
    {"Real", complex_part_of, "REAL"}, {"Imag", complex_part_of, "IMAG"}, {"Angle", complex_part_of},
    {"Conj", complex_part_of}, {"FFT", fourier}, {"FFT2D", fourier}, {"FFT3D", fourier}, {"IFFT", fourier},
    {"IFFT2D", fourier}, {"IFFT3D", fourier}, {"IRFFT", inverse_real_fourier}, {"IRFFT2D", inverse_real_fourier},
    {"IRFFT3D", inverse_real_fourier},
    {"FakeQuantWithMinMaxArgs", fake_quant}, {"FakeQuantWithMinMaxVars", fake_quant},
    {"FakeQuantWithMinMaxVarsPerChannel", fake_quant_channels},
    // Lists of tensors.
    {"TensorListReserve", list_reserve}, {"EmptyTensorList", list_empty}, {"TensorListFromTensor", list_from_tensor},
    {"TensorListGetItem", list_get}, {"TensorListSetItem", list_set}, {"TensorListStack", list_stack},
    {"TensorListLength", list_length}, {"TensorListPushBack", list_push}, {"TensorListPopBack", list_pop},
    {"TensorListResize", list_resize}, {"TensorListGather", list_gather}, {"TensorListScatter", list_scatter},
    {"TensorListScatterV2", list_scatter}, {"TensorListScatterIntoExistingList", list_scatter},
    {"TensorListConcat", list_concat}, {"TensorListConcatV2", list_concat},
    {"TensorListElementShape", list_element_shape},
    // Tables.
    {"HashTableV2", hash_table}, {"HashTable", hash_table}, {"LookupTableFindV2", table_find},
    {"LookupTableFind", table_find}, {"LookupTableSizeV2", table_size}, {"LookupTableSize", table_size},
    // Variables that change.
    {"VarHandleOp", variable_handle, "", kHandle}, {"ReadVariableOp", read_variable, "", kHandle},
    {"AssignVariableOp", assign_variable, "", kWrite}, {"AssignAddVariableOp", update_variable, "ADD", kWrite},
    {"AssignSubVariableOp", update_variable, "SUB", kWrite},
    {"ResourceScatterUpdate", scatter_into_variable, "", kWrite},
    {"ResourceScatterAdd", scatter_into_variable, "ADD", kWrite},
    {"ResourceScatterSub", scatter_into_variable, "SUB", kWrite},
    {"ResourceScatterNdUpdate", scatter_into_variable, "", kWrite},
    {"ResourceScatterNdAdd", scatter_into_variable, "ADD", kWrite},
    {"ResourceScatterNdSub", scatter_into_variable, "SUB", kWrite},
    {"ResourceStridedSliceAssign", slice_into_variable, "", kWrite},
    // Control flow.
    {"While", while_loop}, {"StatelessWhile", while_loop}, {"If", if_else}, {"StatelessIf", if_else},
    {"Case", switch_case}, {"StatelessCase", switch_case},
    // clang-format on
};

}  // namespace

std::span<const OpRow> op_rows() { return kRows; }

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
