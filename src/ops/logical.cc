// SPDX-License-Identifier: Apache-2.0
// LOGICAL_AND, LOGICAL_OR, LOGICAL_NOT on bool. A byte that is not 0 is true; results are 0 or 1.
#include "ops/elementwise.h"
#include "ops/families.h"

namespace leadline::ops {
namespace {

void infer_two(InferContext& c) { infer_binary(c, {DType::kBool}); }
void infer_one(InferContext& c) { infer_unary(c, {DType::kBool}); }

// Bytes, because files and callers may hold any value in a bool tensor.
std::unique_ptr<Kernel> prepare_and(PrepareContext& c) {
  return binary_kernel<uint8_t, uint8_t>(c, [](uint8_t a, uint8_t b) { return (a != 0) & (b != 0); });
}

std::unique_ptr<Kernel> prepare_or(PrepareContext& c) {
  return binary_kernel<uint8_t, uint8_t>(c, [](uint8_t a, uint8_t b) { return (a | b) != 0; });
}

std::unique_ptr<Kernel> prepare_not(PrepareContext&) {
  return unary_kernel<uint8_t>([](uint8_t a) { return a == 0; });
}

}  // namespace

void register_logical(Registry& registry) {
  registry.add({.name = "LOGICAL_AND", .code = 86, .min_inputs = 2, .max_inputs = 2, .required_inputs = 2,
                .options = {1, 62}, .infer = infer_two, .prepare = prepare_and, .sharing = Sharing::kInPlace,
                .types = "bool"});
  registry.add({.name = "LOGICAL_OR", .code = 84, .min_inputs = 2, .max_inputs = 2, .required_inputs = 2,
                .options = {1, 60}, .infer = infer_two, .prepare = prepare_or, .sharing = Sharing::kInPlace,
                .types = "bool"});
  registry.add({.name = "LOGICAL_NOT", .code = 87, .min_inputs = 1, .max_inputs = 1, .required_inputs = 1,
                .options = {1, 63}, .infer = infer_one, .prepare = prepare_not, .sharing = Sharing::kInPlace,
                .types = "bool"});
}

}  // namespace leadline::ops
