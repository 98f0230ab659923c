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
  add_ops(registry, 2, Sharing::kInPlace,
          {
              {"LOGICAL_AND", 86, 1, {1, 62}, infer_two, prepare_and, "bool"},
              {"LOGICAL_OR", 84, 1, {1, 60}, infer_two, prepare_or, "bool"},
          });
  add_ops(registry, 1, Sharing::kInPlace, {{"LOGICAL_NOT", 87, 1, {1, 63}, infer_one, prepare_not, "bool"}});
}

}  // namespace leadline::ops
