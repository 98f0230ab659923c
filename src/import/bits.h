// SPDX-License-Identifier: Apache-2.0
// Logic on the bits of integers, of which the format has exclusive or and the shift to the right.
#pragma once

#include "import/emitter.h"

namespace leadline::importing {

/// Of bool: logic; of int8, uint8, int16 and int32: bit by bit, also where one operand is broadcast. Throws
/// Error(kUnsupported) for other types.
int bitwise_and(Emitter& e, int a, int b);
int bitwise_or(Emitter& e, int a, int b);
int bitwise_not(Emitter& e, int x);
/// int32; what is shifted out is lost.
int left_shift(Emitter& e, int x, int by);

}  // namespace leadline::importing
