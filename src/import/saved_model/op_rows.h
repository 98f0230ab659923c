// SPDX-License-Identifier: Apache-2.0
// All rows of the table of ops, for tests and lists.
#pragma once

#include <span>

#include "import/saved_model/op_call.h"

namespace leadline::saved_model {

std::span<const OpRow> op_rows();

}  // namespace leadline::saved_model
