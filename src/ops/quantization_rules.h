// SPDX-License-Identifier: Apache-2.0
// The kinds of quantization rules that rows of ops choose from. `version8` and `version16` are the versions of the op
// that brought the form; 0: there is none.
#pragma once

#include <cstdint>

#include "ops/op.h"

namespace leadline::ops {

constexpr uint8_t integer_forms(int version8, int version16) {
  return static_cast<uint8_t>((version8 != 0 ? QuantizationRule::kInt8 : 0) |
                              (version16 != 0 ? QuantizationRule::kInt16 : 0));
}

/// Every operand has parameters of its own, found by calibration.
constexpr QuantizationRule free_rule(int version8, int version16) {
  QuantizationRule rule;
  rule.forms = integer_forms(version8, version16);
  rule.version8 = version8;
  rule.version16 = version16;
  return rule;
}

/// Values are moved or chosen, not computed: all operands that take part share their parameters.
constexpr QuantizationRule same_scale_rule(int version8, int version16) {
  QuantizationRule rule = free_rule(version8, version16);
  rule.same_scale = true;
  return rule;
}

/// The result has the parameters the integer kernels were made for.
constexpr QuantizationRule fixed_rule(int version8, FixedParameters output8, int version16, FixedParameters output16) {
  QuantizationRule rule = free_rule(version8, version16);
  rule.output8 = output8;
  rule.output16 = output16;
  return rule;
}

/// Products of the activation `data` with `weights`, summed up onto `bias`. Hybrid kernels and widened weights too.
constexpr QuantizationRule weights_rule(int data, int weights, int weights_axis, int bias, int version8,
                                        int version16) {
  QuantizationRule rule = free_rule(version8, version16);
  rule.forms |= QuantizationRule::kHybrid | QuantizationRule::kWeightOnly;
  rule.data = data;
  rule.weights = weights;
  rule.weights_axis = weights_axis;
  rule.bias = bias;
  return rule;
}

/// The same rule where constant input `input` is symmetric, with zero point 0.
constexpr QuantizationRule with_symmetric_input(QuantizationRule rule, int input) {
  rule.weights = input;
  return rule;
}

/// The same rule for an op whose constant inputs may also be int8 weights of float arithmetic.
constexpr QuantizationRule with_hybrid_weights(QuantizationRule rule, uint64_t hybrid_weights) {
  rule.forms |= QuantizationRule::kHybrid | QuantizationRule::kWeightOnly;
  rule.hybrid_weights = hybrid_weights;
  return rule;
}

/// Weights may be int8 while all else is float.
constexpr QuantizationRule hybrid_rule(uint64_t hybrid_weights) { return with_hybrid_weights({}, hybrid_weights); }

}  // namespace leadline::ops
