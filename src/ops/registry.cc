// SPDX-License-Identifier: Apache-2.0
#include "ops/registry.h"

#include "ops/families.h"

namespace leadline::ops {

void Registry::add(OpDef row) {
  if (row.code == ir::kCustomOp) {
    customs_.insert_or_assign(std::string(row.name), row);
  } else {
    builtins_.insert_or_assign(row.code, row);
  }
}

const OpDef* Registry::find(ir::OpCode code, std::string_view custom_name) const {
  if (code == ir::kCustomOp) {
    const auto it = customs_.find(custom_name);
    return it == customs_.end() ? nullptr : &it->second;
  }
  const auto it = builtins_.find(code);
  return it == builtins_.end() ? nullptr : &it->second;
}

const Registry& registry() {
  static const Registry instance = [] {
    Registry all;
    register_named_only(all);
    register_arithmetic(all);
    register_min_max(all);
    register_integer_math(all);
    register_comparison(all);
    register_logical(all);
    register_unary(all);
    register_activation(all);
    register_softmax(all);
    register_select(all);
    register_conv(all);
    register_depthwise_conv(all);
    register_transpose_conv(all);
    register_fully_connected(all);
    register_batch_matmul(all);
    register_pooling(all);
    register_reduce(all);
    register_arg_min_max(all);
    register_resize(all);
    register_quantize(all);
    register_sequence_lstm(all);
    register_lstm(all);
    register_bidirectional_lstm(all);
    register_rnn(all);
    register_svdf(all);
    register_normalization(all);
    register_detection_postprocess(all);
    register_reshape(all);
    register_transpose(all);
    register_concatenation(all);
    register_split(all);
    register_slice(all);
    register_gather(all);
    register_pad(all);
    register_broadcast(all);
    register_shape(all);
    register_cast(all);
    register_one_hot(all);
    register_top_k(all);
    register_space_depth(all);
    register_space_batch(all);
    register_reverse(all);
    register_cumsum(all);
    register_variables(all);
    register_control_flow(all);
    return all;
  }();
  return instance;
}

}  // namespace leadline::ops
