// SPDX-License-Identifier: Apache-2.0
// Functions of one tensor that no op computes, expressed in ops that there are.
#pragma once

#include "import/emitter.h"

namespace leadline::importing {

/// Within about 1e-7 of erf(x), also relative to it.
int erf(Emitter& e, int x);
/// log(1 + exp(x)) without overflow.
int softplus(Emitter& e, int x);
/// scale * x where x > 0, scale * alpha * (exp(x) - 1) elsewhere.
int scaled_elu(Emitter& e, int x, double alpha, double scale);
int selu(Emitter& e, int x);

}  // namespace leadline::importing
