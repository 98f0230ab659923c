// SPDX-License-Identifier: Apache-2.0
// RANDOM_UNIFORM, RANDOM_STANDARD_NORMAL, MULTINOMIAL, STABLEHLO_RNG_BIT_GENERATOR.
//
// Seeding: each of the first three has a Philox stream whose key is `seed` and whose counter starts at `seed2` * 2^64.
// Of each the lower 32 bits count, with their sign, as in TFLite. If both are then 0, both are drawn from the system's
// entropy instead, so that every interpreter has other numbers. With seeds, the numbers are TFLite's: bit for bit, as
// long as the C library's logarithm, sine, cosine and exponential are the same. The stream continues from run to run
// and starts again when an interpreter plans for other input shapes. STABLEHLO_RNG_BIT_GENERATOR has no state of its
// own: it is in its operands.
#include "ops/random.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "kernels/random/philox.h"
#include "ops/families.h"
#include "ops/movement.h"
#include "ops/resources.h"

namespace leadline::ops {
namespace {

using kernels::Philox;

uint64_t entropy() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

std::shared_ptr<Philox> generator_of(const PrepareContext& c) {
  const auto& a = c.attributes<RandomAttributes>();
  std::shared_ptr<Philox>& held = c.host().resources().generator(c.node());
  if (held == nullptr) {
    const int64_t seed = static_cast<int32_t>(a.seed);
    const int64_t seed2 = static_cast<int32_t>(a.seed2);
    const bool seeded = seed != 0 || seed2 != 0;
    held = std::make_shared<Philox>(seeded ? static_cast<uint64_t>(seed) : entropy(),
                                    seeded ? static_cast<uint64_t>(seed2) : entropy());
  }
  return held;
}

/// 23 bits as a number in [0, 1): the fraction of a float between 1 and 2.
float unit_float(uint32_t bits) { return std::bit_cast<float>(0x3F800000U | (bits & 0x7FFFFFU)) - 1.0F; }
/// 52 bits as a number in [0, 1).
double unit_double(uint32_t high, uint32_t low) {
  const uint64_t fraction = (static_cast<uint64_t>(high & 0xFFFFFU) << 32) | low;
  return std::bit_cast<double>((uint64_t{1023} << 52) | fraction) - 1.0;
}

// RANDOM_UNIFORM, RANDOM_STANDARD_NORMAL

void infer_random(InferContext& c) {
  c.require_input_type(0, {DType::kInt32});
  c.require_output_type(0, {DType::kFloat32});
  c.require(c.input(0).shape.rank() == 1, "the output shape is given as a tensor of shape {}, expected rank 1",
            c.input(0).shape.to_string());
  if (!c.known(0)) return c.defer();
  const auto dims = c.input(0).values<int32_t>();
  c.set_output_shape(0, checked_shape(c, std::vector<int64_t>(dims.begin(), dims.end())));
}

/// Fills `out` with blocks of four numbers; the last block may be used in part.
template <typename Convert>
void fill_blocks(Philox& generator, const TensorView& out, const Convert& convert) {
  auto* to = out.mutable_as<float>();
  const int64_t count = out.elements();
  for_items((count + 3) / 4, 64, [&](int64_t i) {
    const std::array<float, 4> block = convert(generator.next());
    std::copy_n(block.begin(), std::min<int64_t>(4, count - 4 * i), to + 4 * i);
  });
}

std::array<float, 4> uniform_block(const std::array<uint32_t, 4>& bits) {
  return {unit_float(bits[0]), unit_float(bits[1]), unit_float(bits[2]), unit_float(bits[3])};
}

/// Box and Muller's transform of two pairs of uniform numbers.
std::array<float, 4> normal_block(const std::array<uint32_t, 4>& bits) {
  constexpr float kSmallest = 1.0e-7F;  // keeps the logarithm finite
  constexpr double kTurn = 6.283185307179586;
  std::array<float, 4> result{};
  for (size_t i = 0; i < 4; i += 2) {
    const float radius = std::sqrt(-2.0F * std::log(std::max(unit_float(bits[i]), kSmallest)));
    const auto angle = static_cast<float>(kTurn * static_cast<double>(unit_float(bits[i + 1])));
    result[i] = std::sin(angle) * radius;
    result[i + 1] = std::cos(angle) * radius;
  }
  return result;
}

std::unique_ptr<Kernel> prepare_uniform(PrepareContext& c) {
  return make_kernel(
      [generator = generator_of(c)](RunContext& run) { fill_blocks(*generator, run.output(0), uniform_block); });
}

std::unique_ptr<Kernel> prepare_normal(PrepareContext& c) {
  return make_kernel(
      [generator = generator_of(c)](RunContext& run) { fill_blocks(*generator, run.output(0), normal_block); });
}

// MULTINOMIAL

enum MultinomialInput { kLogits = 0, kSamples = 1 };

void infer_multinomial(InferContext& c) {
  c.require_input_type(kLogits, {DType::kFloat32});
  c.require_input_type(kSamples, {DType::kInt32});
  c.require_output_type(0, {DType::kInt32, DType::kInt64});
  const Shape& logits = c.input(kLogits).shape;
  c.require(logits.rank() == 2 && logits[1] > 0, "the logits have shape {}, expected rank 2 and at least one class",
            logits.to_string());
  c.require(c.input(kSamples).shape.rank() == 0, "the number of samples has shape {}, expected one number",
            c.input(kSamples).shape.to_string());
  if (!c.known(kSamples)) return c.defer();
  const int64_t samples = c.input(kSamples).values<int32_t>()[0];
  c.require(samples >= 0, "the number of samples is {}, expected 0 or more", samples);
  c.set_output_shape(0, {logits[0], samples});
}

/// Running sums of the classes' odds; logits that are not finite have none.
double cumulate(std::span<const float> logits, double* sums) {
  float largest = std::numeric_limits<float>::lowest();
  const auto count = static_cast<int64_t>(logits.size());
  for_items(count, 2, [&](int64_t i) {
    const float logit = logits[static_cast<size_t>(i)];
    if (std::isfinite(logit)) largest = std::max(largest, logit);
  });
  double total = 0.0;
  for_items(count, 16, [&](int64_t i) {
    const float logit = logits[static_cast<size_t>(i)];
    if (std::isfinite(logit)) total += std::exp(static_cast<double>(logit) - static_cast<double>(largest));
    sums[i] = total;
  });
  return total;
}

template <typename Index>
void sample_classes(const RunContext& run, Philox& generator) {
  const TensorView& logits = run.input(kLogits);
  const auto classes = static_cast<size_t>(logits.shape[1]);
  const int64_t batches = logits.shape[0];
  const int64_t samples = run.output(0).shape[1];
  auto* out = run.output(0).mutable_as<Index>();
  double* sums = run.scratch_as<double>();
  // As in TensorFlow a run reserves 512 blocks for every sample, rounded up to four, and uses half a block of them.
  Philox draws = generator;
  generator.skip(static_cast<uint64_t>(batches) * ((static_cast<uint64_t>(samples) + 3) / 4 * 4) * 512);
  std::array<uint32_t, 4> bits{};
  size_t used = bits.size();
  const double row_cost = 18 * static_cast<double>(classes) + 64 * static_cast<double>(samples);
  for_items(batches, row_cost, [&](int64_t b) {
    const double total = cumulate({logits.as<float>() + b * logits.shape[1], classes}, sums);
    for_items(samples, 64, [&](int64_t s) {
      if (used == bits.size()) {
        bits = draws.next();
        used = 0;
      }
      const double drawn = unit_double(bits[used], bits[used + 1]) * total;
      used += 2;
      out[b * samples + s] = static_cast<Index>(std::upper_bound(sums, sums + classes, drawn) - sums);
    });
  });
}

std::unique_ptr<Kernel> prepare_multinomial(PrepareContext& c) {
  c.request_scratch(checked_multiply(c, c.input(kLogits).shape[1], sizeof(double)));
  const bool wide = c.output(0).dtype() == DType::kInt64;
  return make_kernel([wide, generator = generator_of(c)](RunContext& run) {
    wide ? sample_classes<int64_t>(run, *generator) : sample_classes<int32_t>(run, *generator);
  });
}

// STABLEHLO_RNG_BIT_GENERATOR

enum BitsOutput { kNewState = 0, kBits = 1 };

void infer_bits(InferContext& c) {
  c.require_input_type(0, {DType::kUInt64});
  c.require_output_type(kNewState, {DType::kUInt64});
  c.require_output_type(kBits, {DType::kInt32, DType::kInt64, DType::kUInt32, DType::kUInt64});
  const Shape& state = c.input(0).shape;
  const bool threefry = c.attributes<RngBitGeneratorAttributes>().algorithm == RngAlgorithm::kThreefry;
  c.require(state == Shape{2} || (!threefry && state == Shape{3}), "the state has shape {}, expected [2]{}",
            state.to_string(), threefry ? "" : " or [3]");
  c.set_output_shape(kNewState, state);
  c.set_output_shape(kBits, c.output(kBits).value->shape);
}

/// Blocks of `block(counter)` for one counter after the other. Only its first 64 bits count.
template <size_t N, typename Block>
void generate(const TensorView& out, std::array<uint32_t, N>& counter, const Block& block) {
  constexpr int64_t kBlock = sizeof(counter);
  for_items((out.bytes + kBlock - 1) / kBlock, 32, [&](int64_t i) {
    const std::array<uint32_t, N> bits = block(counter);
    const int64_t size = std::min(out.bytes - i * kBlock, kBlock);
    std::memcpy(out.data + i * kBlock, bits.data(), static_cast<size_t>(size));
    if (++counter[0] == 0) ++counter[1];
  });
}

void run_bits(const RunContext& run, RngAlgorithm algorithm) {
  const TensorView& state = run.input(0);
  const TensorView& bits = run.output(kBits);
  std::array<uint32_t, 6> words{};  // key, counter, and the counter's upper half, which is the key where it is absent
  std::memcpy(words.data(), state.data, static_cast<size_t>(state.bytes));
  const std::array<uint32_t, 2> key = {words[0], words[1]};
  if (algorithm == RngAlgorithm::kThreefry) {
    std::array<uint32_t, 2> counter = {words[2], words[3]};
    generate(bits, counter, [&](const auto& at) { return kernels::threefry2x32(key, at); });
    std::copy(counter.begin(), counter.end(), words.begin() + 2);
  } else {
    const size_t upper = state.shape[0] == 3 ? 4 : 0;
    std::array<uint32_t, 4> counter = {words[2], words[3], words[upper], words[upper + 1]};
    generate(bits, counter, [&](const auto& at) { return kernels::philox4x32(key, at); });
    std::copy_n(counter.begin(), 2, words.begin() + 2);
  }
  std::memcpy(run.output(kNewState).data, words.data(), static_cast<size_t>(state.bytes));
}

std::unique_ptr<Kernel> prepare_bits(PrepareContext& c) {
  const RngAlgorithm algorithm = c.attributes<RngBitGeneratorAttributes>().algorithm;
  return make_kernel([algorithm](RunContext& run) { run_bits(run, algorithm); });
}

}  // namespace

void register_random(Registry& registry) {
  registry.add({.id = op::kRandomStandardNormal,
                .min_inputs = 1,
                .max_inputs = 1,
                .required_inputs = 1,
                .options = builtin_options(114),
                .make_attributes = make_attributes<RandomAttributes>,
                .infer = infer_random,
                .prepare = prepare_normal,
                .pure = false,
                .types = "f32"});
  registry.add({.id = op::kRandomUniform,
                .min_inputs = 1,
                .max_inputs = 1,
                .required_inputs = 1,
                .options = builtin_options(114),
                .make_attributes = make_attributes<RandomAttributes>,
                .infer = infer_random,
                .prepare = prepare_uniform,
                .pure = false,
                .types = "f32"});
  registry.add({.id = op::kMultinomial,
                .min_inputs = 2,
                .max_inputs = 2,
                .required_inputs = 2,
                .options = builtin_options(114),
                .make_attributes = make_attributes<RandomAttributes>,
                .infer = infer_multinomial,
                .prepare = prepare_multinomial,
                .pure = false,
                .types = "f32 to i32 i64"});
  registry.add({.id = op::kStablehloRngBitGenerator,
                .min_inputs = 1,
                .max_inputs = 1,
                .required_inputs = 1,
                .min_outputs = 2,
                .max_outputs = 2,
                .options = builtin_options_2(19),
                .make_attributes = make_attributes<RngBitGeneratorAttributes>,
                .infer = infer_bits,
                .prepare = prepare_bits,
                .types = "i32 u32 i64 u64"});
}

}  // namespace leadline::ops
