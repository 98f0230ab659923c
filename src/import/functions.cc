// SPDX-License-Identifier: Apache-2.0
#include "import/functions.h"

namespace leadline::importing {

// x * P(x * x) / Q(x * x), a rational fit for |x| < 4, where erf reaches 1 in float32.
int erf(Emitter& e, int x) {
  const int bounded = e.binary("MINIMUM", e.binary("MAXIMUM", x, e.scalar(-4.0F)), e.scalar(4.0F));
  const int square = e.mul(bounded, bounded);
  const auto polynomial = [&](const std::vector<double>& factors) {
    int sum = e.add(e.mul(square, factors[0]), factors[1]);
    for (size_t i = 2; i < factors.size(); ++i) sum = e.add(e.mul(sum, square), factors[i]);
    return sum;
  };
  const int over =
      polynomial({-2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05,
                  -7.34990630326855e-04, -2.95459980854025e-03, -1.60960333262415e-02});
  const int under = polynomial({-1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03,
                                -7.37332916720468e-03, -1.42647390514189e-02});
  return e.div(e.mul(bounded, over), under);
}

int softplus(Emitter& e, int x) {
  const int small = e.unary("EXP", e.unary("NEG", e.unary("ABS", x)));
  return e.add(e.unary("RELU", x), e.unary("LOG", e.add(small, 1.0)));
}

int scaled_elu(Emitter& e, int x, double alpha, double scale) {
  if (alpha == 1.0) return scale == 1.0 ? e.unary("ELU", x) : e.mul(e.unary("ELU", x), scale);
  const int negative = e.unary("ELU", e.binary("MINIMUM", x, e.scalar_like(x, 0.0)));
  return e.add(e.mul(e.unary("RELU", x), scale), e.mul(negative, alpha * scale));
}

int selu(Emitter& e, int x) { return scaled_elu(e, x, 1.6732632423543772, 1.0507009873554805); }

int unary(Emitter& e, std::string_view op, int x) {
  if (e.dtype(x) == DType::kInt64 && op == "ABS") return e.binary("MAXIMUM", x, e.unary("NEG", x));
  if (e.dtype(x) == DType::kInt64 && op == "SIGN") {
    return e.binary("MAXIMUM", e.binary("MINIMUM", x, e.scalar_like(x, 1.0)), e.scalar_like(x, -1.0));
  }
  return e.unary(std::string(op).c_str(), x);
}

int squared_difference(Emitter& e, int a, int b) {
  if (e.dtype(a) != DType::kInt64) return e.binary("SQUARED_DIFFERENCE", a, b);
  const int difference = e.sub(a, b);
  return e.mul(difference, difference);
}

}  // namespace leadline::importing
