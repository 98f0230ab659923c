// SPDX-License-Identifier: Apache-2.0
// One function per op family file; registry.cc calls them all.
#pragma once

#include "ops/registry.h"

namespace leadline::ops {

void register_arithmetic(Registry& registry);    // ADD SUB MUL DIV SQUARED_DIFFERENCE
void register_min_max(Registry& registry);       // MAXIMUM MINIMUM
void register_integer_math(Registry& registry);  // POW FLOOR_DIV FLOOR_MOD
void register_comparison(Registry& registry);    // EQUAL NOT_EQUAL LESS LESS_EQUAL GREATER GREATER_EQUAL
void register_logical(Registry& registry);       // LOGICAL_AND LOGICAL_OR LOGICAL_NOT
void register_unary(Registry& registry);         // ABS NEG EXP LOG SQRT RSQRT SQUARE SIN COS FLOOR CEIL ROUND
void register_activation(
    Registry& registry);  // RELU RELU6 RELU_N1_TO_1 RELU_0_TO_1 LEAKY_RELU PRELU ELU GELU HARD_SWISH LOGISTIC TANH
void register_softmax(Registry& registry);          // SOFTMAX LOG_SOFTMAX
void register_select(Registry& registry);           // SELECT SELECT_V2 WHERE
void register_conv(Registry& registry);             // CONV_2D
void register_depthwise_conv(Registry& registry);   // DEPTHWISE_CONV_2D
void register_transpose_conv(Registry& registry);   // TRANSPOSE_CONV
void register_fully_connected(Registry& registry);  // FULLY_CONNECTED
void register_batch_matmul(Registry& registry);     // BATCH_MATMUL
void register_pooling(Registry& registry);          // AVERAGE_POOL_2D MAX_POOL_2D L2_POOL_2D
void register_reduce(Registry& registry);           // MEAN SUM REDUCE_MAX REDUCE_MIN REDUCE_PROD REDUCE_ANY REDUCE_ALL
void register_arg_min_max(Registry& registry);      // ARG_MAX ARG_MIN
void register_resize(Registry& registry);           // RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR
void register_quantize(Registry& registry);         // QUANTIZE DEQUANTIZE
void register_sequence_lstm(Registry& registry);    // UNIDIRECTIONAL_SEQUENCE_LSTM
void register_lstm(Registry& registry);             // LSTM
void register_bidirectional_lstm(Registry& registry);     // BIDIRECTIONAL_SEQUENCE_LSTM
void register_rnn(Registry& registry);                    // RNN UNIDIRECTIONAL_SEQUENCE_RNN BIDIRECTIONAL_SEQUENCE_RNN
void register_svdf(Registry& registry);                   // SVDF
void register_normalization(Registry& registry);          // L2_NORMALIZATION LOCAL_RESPONSE_NORMALIZATION
void register_detection_postprocess(Registry& registry);  // TFLite_Detection_PostProcess
void register_reshape(Registry& registry);                // RESHAPE SQUEEZE EXPAND_DIMS
void register_transpose(Registry& registry);              // TRANSPOSE
void register_concatenation(Registry& registry);          // CONCATENATION PACK
void register_split(Registry& registry);                  // SPLIT SPLIT_V UNPACK
void register_slice(Registry& registry);                  // SLICE STRIDED_SLICE
void register_gather(Registry& registry);                 // GATHER GATHER_ND
void register_pad(Registry& registry);                    // PAD PADV2 MIRROR_PAD
void register_broadcast(Registry& registry);              // TILE BROADCAST_TO FILL ZEROS_LIKE
void register_shape(Registry& registry);                  // SHAPE RANK RANGE BROADCAST_ARGS
void register_cast(Registry& registry);                   // CAST
void register_one_hot(Registry& registry);                // ONE_HOT
void register_top_k(Registry& registry);                  // TOPK_V2
void register_space_depth(Registry& registry);            // SPACE_TO_DEPTH DEPTH_TO_SPACE
void register_space_batch(Registry& registry);            // SPACE_TO_BATCH_ND BATCH_TO_SPACE_ND
void register_reverse(Registry& registry);                // REVERSE_V2
void register_cumsum(Registry& registry);                 // CUMSUM
void register_variables(Registry& registry);              // VAR_HANDLE READ_VARIABLE ASSIGN_VARIABLE
void register_control_flow(Registry& registry);           // CALL_ONCE IF WHILE
void register_named_only(Registry& registry);             // the rest of the format: name, arity and options, no kernel

}  // namespace leadline::ops
