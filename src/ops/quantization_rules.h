// SPDX-License-Identifier: Apache-2.0
// The kinds of quantization rules that rows of ops choose from. Versions are those of the op that brought a form, as in
// `free_rule({.int8 = 2, .int16 = 3})`; a form without a version does not exist.
#pragma once

#include <cstdint>

#include "ops/op.h"

namespace leadline::ops {

/// Every operand has parameters of its own, found by calibration.
constexpr QuantizationRule free_rule(QuantizationRule::Versions versions) {
  QuantizationRule rule;
  if (versions.int8 != 0) rule.forms |= QuantizationRule::kInt8;
  if (versions.int16 != 0) rule.forms |= QuantizationRule::kInt16;
  rule.versions = versions;
  return rule;
}

/// Values are moved or chosen, not computed: all operands that take part share their parameters.
constexpr QuantizationRule same_scale_rule(QuantizationRule::Versions versions) {
  QuantizationRule rule = free_rule(versions);
  rule.same_scale = true;
  return rule;
}

/// The result has the parameters the integer kernels were made for.
constexpr QuantizationRule fixed_rule(QuantizationRule::Versions versions, QuantizationRule::FixedOutputs output) {
  QuantizationRule rule = free_rule(versions);
  rule.output = output;
  return rule;
}

/// Products of an activation with weights, summed up onto a bias: the row has a contraction. Hybrid kernels and
/// weights through DEQUANTIZE too.
constexpr QuantizationRule weights_rule(QuantizationRule::Versions versions) {
  QuantizationRule rule = free_rule(versions);
  rule.forms |= QuantizationRule::kHybrid | QuantizationRule::kWeightOnly;
  return rule;
}

/// The same rule for an op whose constant inputs may also be int8 weights of float arithmetic.
constexpr QuantizationRule with_hybrid_weights(QuantizationRule rule, uint64_t hybrid_weights) {
  rule.forms |= QuantizationRule::kHybrid | QuantizationRule::kWeightOnly;
  rule.hybrid_weights = hybrid_weights;
  return rule;
}

/// Weights may be int8 while all else is float.
constexpr QuantizationRule hybrid_rule(QuantizationRule::Versions versions, uint64_t hybrid_weights) {
  return with_hybrid_weights(free_rule(versions), hybrid_weights);
}

/// Weights may come from DEQUANTIZE; there are no integer kernels.
constexpr QuantizationRule weight_only_rule() {
  QuantizationRule rule;
  rule.forms = QuantizationRule::kWeightOnly;
  return rule;
}

/// The same rule where constant input `input`, which is not weights, is symmetric.
constexpr QuantizationRule with_symmetric_input(QuantizationRule rule, int input) {
  rule.symmetric_input = input;
  return rule;
}

/// The same rule for an op that copies rows of input `table`.
constexpr QuantizationRule with_table(QuantizationRule rule, int table) {
  rule.table = table;
  return rule;
}

}  // namespace leadline::ops
