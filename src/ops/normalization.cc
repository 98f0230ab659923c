// SPDX-License-Identifier: Apache-2.0
// L2_NORMALIZATION (vectors along the last axis to length 1) and LOCAL_RESPONSE_NORMALIZATION.
#include "ops/normalization.h"

#include <algorithm>
#include <cmath>

#include "kernels/quant/fixed_math.h"
#include "ops/common.h"
#include "ops/families.h"
#include "ops/quantization_rules.h"

namespace leadline::ops {
namespace {

/// Calls body(in, out, depth) for every vector along the last axis, in parallel.
template <typename T, typename Body>
void for_each_vector(RunContext& c, double operations, const Body& body) {
  const Shape& shape = c.input(0).shape;
  const int64_t depth = shape[shape.rank() - 1];
  if (shape.elements() == 0) return;
  const T* in = c.input(0).as<T>();
  T* out = c.output(0).mutable_as<T>();
  c.pool().for_pieces(shape.elements() / depth, operations * static_cast<double>(depth),
                      [&](int64_t begin, int64_t end) {
                        for (int64_t i = begin; i < end; ++i) body(in + i * depth, out + i * depth, depth);
                      });
}

void infer_l2(InferContext& c) {
  c.require_input_type(0, {DType::kFloat32, DType::kUInt8, DType::kInt8});
  const DType type = c.input(0).dtype();
  c.require_output_type(0, {type});
  c.require(c.input(0).shape.rank() >= 1, "the input is a scalar, expected at least one dimension");
  const auto activation = c.attributes<L2NormalizationAttributes>().activation;
  c.require(activation == ir::Activation::kNone, "fused activation is {}, expected none", static_cast<int>(activation));
  if (type != DType::kFloat32) {
    c.require_quantized(c.input(0), "input");
    c.require_quantized(c.output(0), "output");
    const Quantization& q = c.output(0).quantization();
    const int32_t zero = type == DType::kUInt8 ? 128 : 0;
    c.require(q.scale0() == 1.0F / 128 && q.zero_point0() == zero,
              "output has scale {} and zero point {}, expected 1/128 and {}", q.scale0(), q.zero_point0(), zero);
  }
  c.set_output_shape(0, c.input(0).shape);
}

/// Results have 7 fractional bits around `out_zero`.
template <typename T>
std::unique_ptr<Kernel> l2_integer_kernel(int32_t in_zero, int32_t out_zero) {
  return make_kernel([=](RunContext& c) {
    for_each_vector<T>(c, 4.0, [&](const T* in, T* out, int64_t depth) {
      int64_t squares = 0;
      for_items(depth, 1, [&](int64_t i) { squares += (in[i] - in_zero) * (in[i] - in_zero); });
      const kernels::Multiplier m = kernels::inverse_sqrt_multiplier(kernels::saturate_i32(squares));
      for_items(depth, 4, [&](int64_t i) {
        const int32_t centred = in[i] - in_zero;
        // TFLite raises the shift for int8 and the value for uint8, which rounds differently.
        const int32_t value = std::is_signed_v<T> ? kernels::multiply(centred, {m.value, m.shift + 7})
                                                  : kernels::multiply(128 * centred, m);
        out[i] = static_cast<T>(
            std::clamp<int32_t>(value + out_zero, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
      });
    });
  });
}

std::unique_ptr<Kernel> prepare_l2(PrepareContext& c) {
  if (c.input(0).dtype() == DType::kFloat32) {
    return make_kernel([](RunContext& run) {
      for_each_vector<float>(run, 4.0, [](const float* in, float* out, int64_t depth) {
        float squares = 0.0F;
        for_items(depth, 4, [&](int64_t i) { squares += in[i] * in[i]; });
        const float length = std::max(std::sqrt(squares), 1e-6F);
        for_items(depth, 1, [&](int64_t i) { out[i] = in[i] / length; });
      });
    });
  }
  const int32_t in_zero = c.input(0).quantization().zero_point0();
  if (c.input(0).dtype() == DType::kInt8) return l2_integer_kernel<int8_t>(in_zero, 0);
  return l2_integer_kernel<uint8_t>(in_zero, 128);
}

void infer_local_response(InferContext& c) {
  c.require_input_type(0, {DType::kFloat32});
  c.require_output_type(0, {DType::kFloat32});
  const Shape& shape = c.input(0).shape;
  c.require(shape.rank() == 4, "input has shape {}, expected 4 dimensions", shape.to_string());
  const int32_t radius = c.attributes<LocalResponseAttributes>().radius;
  c.require(radius >= 0, "radius is {}, expected at least 0", radius);
  c.set_output_shape(0, shape);
}

std::unique_ptr<Kernel> prepare_local_response(PrepareContext& c) {
  const auto& a = c.attributes<LocalResponseAttributes>();
  return make_kernel([radius = int64_t{a.radius}, bias = a.bias, alpha = a.alpha, beta = a.beta](RunContext& run) {
    for_each_vector<float>(run, 32.0, [&](const float* in, float* out, int64_t depth) {
      auto square = [&](int64_t i) { return in[i] * in[i] * alpha; };
      float sum = 0.0F;  // over the channels within the radius, sliding
      for_items(std::min(radius, depth), 4, [&](int64_t i) { sum += square(i); });
      for_items(depth, 32, [&](int64_t i) {
        if (i + radius < depth) sum += square(i + radius);
        out[i] = in[i] * std::pow(bias + sum, -beta);
        if (i >= radius) sum -= square(i - radius);
      });
    });
  });
}

}  // namespace

void register_normalization(Registry& registry) {
  registry.add({.id = op::kL2Normalization,
                .max_version = 2,
                .min_inputs = 1,
                .max_inputs = 1,
                .required_inputs = 1,
                .options = builtin_options(12),
                .make_attributes = make_attributes<L2NormalizationAttributes>,
                .infer = infer_l2,
                .prepare = prepare_l2,
                .quantize = fixed_rule({.int8 = 2}, {.int8 = {1.0F / 128, 0}, .int16 = {}}),
                .types = "f32 u8 i8"});
  registry.add({.id = op::kLocalResponseNormalization,
                .max_version = 1,
                .min_inputs = 1,
                .max_inputs = 1,
                .required_inputs = 1,
                .options = builtin_options(13),
                .make_attributes = make_attributes<LocalResponseAttributes>,
                .infer = infer_local_response,
                .prepare = prepare_local_response,
                .types = "f32"});
}

}  // namespace leadline::ops
