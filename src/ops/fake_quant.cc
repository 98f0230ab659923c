// SPDX-License-Identifier: Apache-2.0
// FAKE_QUANT: float32 values as they come back from quantization with the given range and number of bits.
#include "ops/fake_quant.h"

#include <algorithm>
#include <cmath>

#include "ops/common.h"
#include "ops/families.h"

namespace leadline::ops {
namespace {

/// The range moved so that zero is one of its levels.
struct Levels {
  float scale = 0;
  float lo = 0;
  float hi = 0;
};

Levels levels_of(const OpContext& c) {
  const auto& a = c.attributes<FakeQuantAttributes>();
  c.require(a.num_bits >= 1 + (a.narrow_range ? 1 : 0) && a.num_bits <= 16, "num_bits is {}, expected up to 16",
            a.num_bits);
  const float first = a.narrow_range ? 1.0F : 0.0F;
  const auto last = static_cast<float>((1 << a.num_bits) - 1);
  Levels levels;
  levels.scale = (a.max - a.min) / (last - first);
  c.require(std::isfinite(levels.scale) && levels.scale > 0 && std::isfinite(1.0F / levels.scale),
            "the range from {} to {} cannot be divided into levels", a.min, a.max);
  const float zero = std::round(std::clamp(first - a.min / levels.scale, first, last));
  levels.lo = (first - zero) * levels.scale;
  levels.hi = (last - zero) * levels.scale;
  return levels;
}

/// Ties away from zero, for numbers from 0 to 2^23; NaN does not come here.
inline float round_level(float x) {
  const auto whole = static_cast<float>(static_cast<int32_t>(x));
  return whole + (x - whole >= 0.5F ? 1.0F : 0.0F);
}

void infer(InferContext& c) {
  c.require_input_type(0, {DType::kFloat32});
  c.require_output_type(0, {DType::kFloat32});
  levels_of(c);
  c.set_output_shape(0, c.input(0).shape);
}

std::unique_ptr<Kernel> prepare(PrepareContext& c) {
  return make_kernel([levels = levels_of(c), inverse = 1.0F / levels_of(c).scale](RunContext& run) {
    const auto [scale, lo, hi] = levels;
    const float factor = inverse;
    const auto* input = run.input(0).as<float>();
    auto* output = run.output(0).mutable_as<float>();
    run.pool().for_pieces(run.output(0).elements(), 4, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const float at_least = lo < input[i] ? input[i] : lo;  // NaN becomes lo
        const float inside = hi < at_least ? hi : at_least;
        output[i] = round_level((inside - lo) * factor) * scale + lo;
      }
    });
  });
}

}  // namespace

void register_fake_quant(Registry& registry) {
  registry.add({.id = op::kFakeQuant,
                .max_version = 2,
                .min_inputs = 1,
                .max_inputs = 1,
                .required_inputs = 1,
                .options = builtin_options(58),
                .make_attributes = make_attributes<FakeQuantAttributes>,
                .infer = infer,
                .prepare = prepare,
                .sharing = Sharing::kInPlace,
                .types = "f32"});
}

}  // namespace leadline::ops
