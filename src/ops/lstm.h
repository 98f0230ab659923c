// SPDX-License-Identifier: Apache-2.0
// Attributes of LSTM and BIDIRECTIONAL_SEQUENCE_LSTM.
#pragma once

#include "ir/attributes.h"

namespace leadline::ops {

enum class LstmKernel : int8_t { kFull = 0, kBasic = 1 };

struct LstmAttributes : ir::AttributeSet<LstmAttributes> {
  ir::Activation activation = ir::Activation::kNone;
  float cell_clip = 0.0F;
  float proj_clip = 0.0F;
  LstmKernel kernel_type = LstmKernel::kFull;
  bool asymmetric_quantize_inputs = false;
  void fields(ir::FieldVisitor& v) {
    v.choice("fused_activation_function", activation, ir::kActivationCount);
    v.field("cell_clip", cell_clip);
    v.field("proj_clip", proj_clip);
    v.choice("kernel_type", kernel_type, 2);
    v.field("asymmetric_quantize_inputs", asymmetric_quantize_inputs);
  }
};

struct BidirectionalLstmAttributes : ir::AttributeSet<BidirectionalLstmAttributes> {
  ir::Activation activation = ir::Activation::kNone;
  float cell_clip = 0.0F;
  float proj_clip = 0.0F;
  bool merge_outputs = false;
  bool time_major = true;
  bool asymmetric_quantize_inputs = false;
  void fields(ir::FieldVisitor& v) {
    v.choice("fused_activation_function", activation, ir::kActivationCount);
    v.field("cell_clip", cell_clip);
    v.field("proj_clip", proj_clip);
    v.field("merge_outputs", merge_outputs);
    v.field("time_major", time_major);
    v.field("asymmetric_quantize_inputs", asymmetric_quantize_inputs);
  }
};

}  // namespace leadline::ops
