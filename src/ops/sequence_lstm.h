// SPDX-License-Identifier: Apache-2.0
// Attributes of UNIDIRECTIONAL_SEQUENCE_LSTM.
#pragma once

#include "ir/attributes.h"

namespace leadline::ops {

struct SequenceLstmAttributes : ir::AttributeSet<SequenceLstmAttributes> {
  ir::Activation activation = ir::Activation::kNone;
  float cell_clip = 0.0F;
  float proj_clip = 0.0F;
  bool time_major = false;
  bool asymmetric_quantize_inputs = false;
  bool diagonal_recurrent_tensors = false;
  void fields(ir::FieldVisitor& v) {
    v.choice("fused_activation_function", activation, ir::kActivationCount);
    v.field("cell_clip", cell_clip);
    v.field("proj_clip", proj_clip);
    v.field("time_major", time_major);
    v.field("asymmetric_quantize_inputs", asymmetric_quantize_inputs);
    v.field("diagonal_recurrent_tensors", diagonal_recurrent_tensors);
  }
};

}  // namespace leadline::ops
