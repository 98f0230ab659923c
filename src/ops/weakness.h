// SPDX-License-Identifier: Apache-2.0
// Ops that lose more than others when their operands are rounded to 8 bits, whatever the model.
#pragma once

#include <string_view>

#include "ir/op_id.h"

namespace leadline::ops {

/// Why; empty for other ops.
std::string_view weakness_of(ir::OpId op);

}  // namespace leadline::ops
