// SPDX-License-Identifier: Apache-2.0
// Values for the inputs of a model of which nothing is known: ordinary ones, extremes, and what no op expects.
#pragma once

#include "leadline/interpreter.h"
#include "random.h"

namespace leadline::fuzz {

/// The same values for the same inputs and state of `random`.
void fill_inputs(Interpreter& interpreter, Random random);
/// A shape near to `shape`, or not.
Shape odd_shape(const Shape& shape, Random& random);

}  // namespace leadline::fuzz
