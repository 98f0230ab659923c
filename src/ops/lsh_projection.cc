// SPDX-License-Identifier: Apache-2.0
// LSH_PROJECTION: a bit for every seed, the sign of the weighted sum of the hashes of seed and item over all items; one
// by one (dense), or those of a hash function as one number (sparse).
#include "ops/lsh_projection.h"

#include <cstring>

#include "kernels/hash/fingerprint.h"
#include "ops/common.h"
#include "ops/families.h"
#include "ops/movement.h"

namespace leadline::ops {
namespace lsh_projection {
namespace {

enum Input { kSeeds = 0, kItems = 1, kWeights = 2 };

void infer_lsh(InferContext& c) {
  c.require_input_type(kSeeds, {DType::kFloat32});
  c.require_output_type(0, {DType::kInt32});
  const Shape& seeds = c.input(kSeeds).shape;
  const Shape& items = c.input(kItems).shape;
  c.require(seeds.rank() == 2 && seeds[1] <= 32, "the seeds have shape {}, expected rank 2 and at most 32 bits",
            seeds.to_string());
  c.require(items.rank() >= 1 && items[0] >= 1, "the items have shape {}, expected at least one", items.to_string());
  if (c.has_input(kWeights)) {
    c.require_input_type(kWeights, {DType::kFloat32});
    c.require(c.input(kWeights).shape == Shape{items[0]}, "the weights have shape {}, expected [{}], one for each item",
              c.input(kWeights).shape.to_string(), items[0]);
  }
  const LshProjectionType type = c.attributes<LshProjectionAttributes>().type;
  c.require(type != LshProjectionType::kUnknown, "it is neither sparse nor dense");
  c.set_output_shape(0, {type == LshProjectionType::kSparse ? seeds[0] : checked_multiply(c, seeds[0], seeds[1])});
  // An item's hashed bytes are an equal part of the tensor's, strings included; their size is in the data.
  if (c.input(kItems).dtype() == DType::kString && !c.known(kItems)) c.defer();
}

uint64_t hash_of(std::span<const std::byte> key) {
  if (key.size() <= 64) return kernels::fingerprint64(key);
  kernels::LongFingerprint hash(key);
  for_pieces(hash.blocks(), 16, [&](int64_t begin, int64_t end) { hash.add({begin, end}); });
  return hash.value();
}

int sign_bit(const RunContext& run, float seed, std::span<std::byte> key) {
  const TensorView& items = run.input(kItems);
  const float* weights = run.has_input(kWeights) ? run.input(kWeights).as<float>() : nullptr;
  const size_t item_bytes = key.size() - sizeof(seed);
  std::memcpy(key.data(), &seed, sizeof(seed));
  double score = 0.0;
  for_items(items.shape[0], static_cast<double>(64 + static_cast<int64_t>(item_bytes)), [&](int64_t i) {
    copy_bytes(key.data() + sizeof(seed), items.data + i * static_cast<int64_t>(item_bytes),
               static_cast<int64_t>(item_bytes));
    const auto value = static_cast<double>(static_cast<int64_t>(hash_of(key)));
    score += weights == nullptr ? value : static_cast<double>(weights[i]) * value;
  });
  return score > 0.0 ? 1 : 0;
}

std::unique_ptr<Kernel> prepare_lsh(PrepareContext& c) {
  const bool sparse = c.attributes<LshProjectionAttributes>().type == LshProjectionType::kSparse;
  const Operand& items = c.input(kItems);
  const int64_t bytes =
      items.dtype() == DType::kString ? items.bytes : storage_bytes(items.dtype(), items.shape).value_or(0);
  const int64_t key_bytes = static_cast<int64_t>(sizeof(float)) + bytes / items.shape[0];
  c.request_scratch(key_bytes);
  return make_kernel([=](RunContext& run) {
    const std::span<std::byte> key(run.scratch(), static_cast<size_t>(key_bytes));
    const Shape& shape = run.input(kSeeds).shape;
    const float* seed = run.input(kSeeds).as<float>();
    auto* out = run.output(0).mutable_as<int32_t>();
    const double bit_cost = static_cast<double>(run.input(kItems).shape[0]) * static_cast<double>(64 + key_bytes);
    for_items(shape[0], bit_cost * static_cast<double>(shape[1]), [&](int64_t h) {
      uint32_t signature = 0;
      for_items(shape[1], bit_cost, [&](int64_t b) {
        const int bit = sign_bit(run, seed[h * shape[1] + b], key);
        signature = (signature << 1) | static_cast<uint32_t>(bit);
        if (!sparse) out[h * shape[1] + b] = bit;
      });
      // Signatures of different functions are kept apart by an offset; 32 bits leave no room for one, and TFLite's then
      // comes from a shift by 32 that x86 takes as none.
      const uint64_t offset = static_cast<uint64_t>(h) << (shape[1] % 32);
      if (sparse) out[h] = static_cast<int32_t>(signature + static_cast<uint32_t>(offset));
    });
  });
}

}  // namespace
}  // namespace lsh_projection

void register_lsh_projection(Registry& registry) {
  using namespace lsh_projection;
  registry.add({.id = op::kLshProjection,
                .min_inputs = 2,
                .max_inputs = 3,
                .required_inputs = 2,
                .options = builtin_options(4),
                .make_attributes = make_attributes<LshProjectionAttributes>,
                .infer = infer_lsh,
                .prepare = prepare_lsh,
                .types = "any"});
}

}  // namespace leadline::ops
