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
              {.id = op::kLogicalAnd,
               .options = builtin_options(62),
               .infer = infer_two,
               .prepare = prepare_and,
               .result_type = DType::kBool,
               .types = "bool"},
              {.id = op::kLogicalOr,
               .options = builtin_options(60),
               .infer = infer_two,
               .prepare = prepare_or,
               .result_type = DType::kBool,
               .types = "bool"},
          });
  add_ops(registry, 1, Sharing::kInPlace,
          {{.id = op::kLogicalNot,
            .options = builtin_options(63),
            .infer = infer_one,
            .prepare = prepare_not,
            .result_type = DType::kBool,
            .types = "bool"}});
}

}  // namespace leadline::ops
