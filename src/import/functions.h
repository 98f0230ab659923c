// SPDX-License-Identifier: Apache-2.0
// Functions of one tensor that no op computes, expressed in ops that there are.
#pragma once

#include <string_view>

#include "import/emitter.h"

namespace leadline::importing {

/// Within about 1e-7 of erf(x), also relative to it.
int erf(Emitter& e, int x);
/// log(1 + exp(x)) without overflow.
int softplus(Emitter& e, int x);
/// scale * x where x > 0, scale * alpha * (exp(x) - 1) elsewhere.
int scaled_elu(Emitter& e, int x, double alpha, double scale);
int selu(Emitter& e, int x);
/// `op` is ABS, SIGN or another op of one operand. Of int64, which LiteRT has no ABS and SIGN for, in ops that it has.
int unary(Emitter& e, std::string_view op, int x);
/// (a - b) * (a - b); LiteRT's op for it does not take int64.
int squared_difference(Emitter& e, int a, int b);

}  // namespace leadline::importing
