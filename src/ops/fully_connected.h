// SPDX-License-Identifier: Apache-2.0
// Attributes of FULLY_CONNECTED.
#pragma once

#include "ir/attributes.h"

namespace leadline::ops {

/// Layout of the weights. Shuffled ones, of a kernel for ARM, are blocks of 4 rows and 16 columns, one row of a block
/// after the other and the blocks of a row of blocks in order; their bytes are the levels less 128, as int8.
enum class WeightsFormat : int8_t { kDefault = 0, kShuffled4x16Int8 = 1 };

struct FullyConnectedAttributes : ir::AttributeSet<FullyConnectedAttributes> {
  ir::Activation activation = ir::Activation::kNone;
  WeightsFormat weights_format = WeightsFormat::kDefault;
  bool keep_num_dims = false;
  // Only for dynamic range that LiteRT does not leave to XNNPACK, which always does.
  bool asymmetric_quantize_inputs = false;
  DType quantized_bias_type = DType::kFloat32;  // float32: not set
  void fields(ir::FieldVisitor& v) {
    v.choice("fused_activation_function", activation, ir::kActivationCount);
    v.choice("weights_format", weights_format, 2);
    v.field("keep_num_dims", keep_num_dims);
    v.field("asymmetric_quantize_inputs", asymmetric_quantize_inputs);
    v.choice("quantized_bias_type", quantized_bias_type);
  }
};

}  // namespace leadline::ops
