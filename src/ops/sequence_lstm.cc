// SPDX-License-Identifier: Apache-2.0
// UNIDIRECTIONAL_SEQUENCE_LSTM.
#include "ops/families.h"

namespace leadline::ops {

void register_sequence_lstm(Registry&) {}

}  // namespace leadline::ops
