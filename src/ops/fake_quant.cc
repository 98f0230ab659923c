// SPDX-License-Identifier: Apache-2.0
// FAKE_QUANT: float32 values as they come back from quantization with the given range and number of bits.
#include "ops/fake_quant.h"

#include <algorithm>
#include <cmath>

#include "ops/common.h"
#include "ops/families.h"
#include "ops/quantization_rules.h"

namespace leadline::ops {
namespace {

FakeQuantLevels checked_levels(const OpContext& c) {
  const auto& a = c.attributes<FakeQuantAttributes>();
  c.require(a.num_bits >= 1 + (a.narrow_range ? 1 : 0) && a.num_bits <= 16, "num_bits is {}, expected up to 16",
            a.num_bits);
  const std::optional<FakeQuantLevels> levels = levels_of(a);
  c.require(levels.has_value(), "the range from {} to {} cannot be divided into levels", a.min, a.max);
  return *levels;
}

/// Ties away from zero, for numbers from 0 to 2^23; NaN does not come here.
inline float round_level(float x) {
  const auto whole = static_cast<float>(static_cast<int32_t>(x));
  return whole + (x - whole >= 0.5F ? 1.0F : 0.0F);
}

void infer_fake_quant(InferContext& c) {
  c.require_input_type(0, {DType::kFloat32});
  c.require_output_type(0, {DType::kFloat32});
  checked_levels(c);
  c.set_output_shape(0, c.input(0).shape);
}

std::unique_ptr<Kernel> prepare_fake_quant(PrepareContext& c) {
  return make_kernel([levels = checked_levels(c), inverse = 1.0F / checked_levels(c).scale](RunContext& run) {
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

std::optional<FakeQuantLevels> levels_of(const FakeQuantAttributes& attributes) {
  const float first = attributes.narrow_range ? 1.0F : 0.0F;
  const auto last = static_cast<float>((1 << attributes.num_bits) - 1);
  const float scale = (attributes.max - attributes.min) / (last - first);
  if (!std::isfinite(scale) || !(scale > 0) || !std::isfinite(1.0F / scale)) return {};
  const float zero = std::round(std::clamp(first - attributes.min / scale, first, last));
  return FakeQuantLevels{scale, (first - zero) * scale, (last - zero) * scale};
}

void register_fake_quant(Registry& registry) {
  registry.add({.id = op::kFakeQuant,
                .max_version = 2,
                .min_inputs = 1,
                .max_inputs = 1,
                .required_inputs = 1,
                .options = builtin_options(58),
                .make_attributes = make_attributes<FakeQuantAttributes>,
                .infer = infer_fake_quant,
                .prepare = prepare_fake_quant,
                .sharing = Sharing::kInPlace,
                .quantize = free_rule({.int8 = 1}),  // integers have these levels: nothing is left of the node
                .types = "f32"});
}

}  // namespace leadline::ops
