// SPDX-License-Identifier: Apache-2.0
// REAL, IMAG, COMPLEX_ABS: a real number from each complex one, in the same precision.
#include <cmath>
#include <complex>

#include "ops/common.h"
#include "ops/families.h"

namespace leadline::ops {
namespace {

void infer_complex(InferContext& c) {
  c.require_input_type(0, {DType::kComplex64, DType::kComplex128});
  c.require_output_type(0, {c.input(0).dtype() == DType::kComplex64 ? DType::kFloat32 : DType::kFloat64});
  c.set_output_shape(0, c.input(0).shape);
}

struct Real {
  template <typename T>
  T operator()(T re, T /*im*/) const {
    return re;
  }
};
struct Imaginary {
  template <typename T>
  T operator()(T /*re*/, T im) const {
    return im;
  }
};
struct Absolute {
  template <typename T>
  T operator()(T re, T im) const {
    return std::hypot(re, im);
  }
};

template <typename Function, typename T>
std::unique_ptr<Kernel> make_complex_kernel() {
  return make_kernel([](RunContext& run) {
    const auto* input = run.input(0).as<std::complex<T>>();
    T* output = run.output(0).mutable_as<T>();
    run.pool().for_pieces(run.output(0).elements(), 4, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) output[i] = Function()(input[i].real(), input[i].imag());
    });
  });
}

template <typename Function>
std::unique_ptr<Kernel> prepare_complex(PrepareContext& c) {
  if (c.input(0).dtype() == DType::kComplex64) return make_complex_kernel<Function, float>();
  return make_complex_kernel<Function, double>();
}

template <typename Function>
OpDef complex_op(const ir::OpId& id) {
  return {.id = id,
          .min_inputs = 1,
          .max_inputs = 1,
          .required_inputs = 1,
          .infer = infer_complex,
          .prepare = prepare_complex<Function>,
          .types = "c64 c128"};
}

}  // namespace

void register_complex(Registry& registry) {
  registry.add(complex_op<Imaginary>(op::kImag));
  registry.add(complex_op<Real>(op::kReal));
  registry.add(complex_op<Absolute>(op::kComplexAbs));
}

}  // namespace leadline::ops
