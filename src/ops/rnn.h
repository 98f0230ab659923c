// SPDX-License-Identifier: Apache-2.0
// Attributes of RNN, UNIDIRECTIONAL_SEQUENCE_RNN and BIDIRECTIONAL_SEQUENCE_RNN.
#pragma once

#include "ir/attributes.h"

namespace leadline::ops {

struct RnnAttributes : ir::AttributeSet<RnnAttributes> {
  ir::Activation activation = ir::Activation::kNone;
  bool asymmetric_quantize_inputs = false;
  void fields(ir::FieldVisitor& v) {
    v.choice("fused_activation_function", activation, ir::kActivationCount);
    v.field("asymmetric_quantize_inputs", asymmetric_quantize_inputs);
  }
};

struct SequenceRnnAttributes : ir::AttributeSet<SequenceRnnAttributes> {
  bool time_major = false;
  ir::Activation activation = ir::Activation::kNone;
  bool asymmetric_quantize_inputs = false;
  void fields(ir::FieldVisitor& v) {
    v.field("time_major", time_major);
    v.choice("fused_activation_function", activation, ir::kActivationCount);
    v.field("asymmetric_quantize_inputs", asymmetric_quantize_inputs);
  }
};

struct BidirectionalRnnAttributes : ir::AttributeSet<BidirectionalRnnAttributes> {
  bool time_major = false;
  ir::Activation activation = ir::Activation::kNone;
  bool merge_outputs = false;
  bool asymmetric_quantize_inputs = false;
  void fields(ir::FieldVisitor& v) {
    v.field("time_major", time_major);
    v.choice("fused_activation_function", activation, ir::kActivationCount);
    v.field("merge_outputs", merge_outputs);
    v.field("asymmetric_quantize_inputs", asymmetric_quantize_inputs);
  }
};

}  // namespace leadline::ops
