// SPDX-License-Identifier: Apache-2.0
#include "ops/weakness.h"

#include "ops/op_ids.h"

namespace leadline::ops {

std::string_view weakness_of(ir::OpId op) {
  if (op == op::kDiv) return "small divisors, of which rounding leaves few, make its largest results";
  if (ir::is_one_of(op, {op::kExp, op::kPow})) {
    return "its results spread over more powers of ten than 8 bits can tell apart";
  }
  if (ir::is_one_of(op, {op::kLog, op::kSqrt, op::kRsqrt})) {
    return "it is steepest near 0, where rounding leaves few values to tell apart";
  }
  return {};
}

}  // namespace leadline::ops
