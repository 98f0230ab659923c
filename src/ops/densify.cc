// SPDX-License-Identifier: Apache-2.0
// DENSIFY: the dense form of a sparse constant. Every sparse constant is dense by the time an op sees it, so there is
// nothing left to do: the result is a view.
#include <cstring>

#include "ops/families.h"
#include "ops/movement.h"

namespace leadline::ops {
namespace {

void infer_densify(InferContext& c) {
  require_movable(c, c.input(0), {});
  require_same_type(c, c.input(0), c.output(0));
  c.require(c.input(0).value->sparsity != nullptr, "input '{}' is not a sparse constant", c.input(0).value->name);
  c.set_output_shape(0, c.input(0).shape);
}

std::unique_ptr<Kernel> prepare_densify(PrepareContext&) {
  return make_kernel([](RunContext& run) {
    const TensorView& in = run.input(0);
    const TensorView& out = run.output(0);
    if (out.data != in.data && out.bytes > 0) copy_bytes(out.data, in.data, out.bytes);
  });
}

}  // namespace

void register_densify(Registry& registry) {
  registry.add({.id = op::kDensify,
                .min_inputs = 1,
                .max_inputs = 1,
                .required_inputs = 1,
                .options = builtin_options(99),
                .infer = infer_densify,
                .prepare = prepare_densify,
                .sharing = Sharing::kView,
                .densifies = true,
                .types = "any but strings and sub-byte"});
}

}  // namespace leadline::ops
