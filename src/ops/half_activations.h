// SPDX-License-Identifier: Apache-2.0
// float16 activations on the float32 kernels of an op: widened into scratch before, rounded after.
#pragma once

#include <cstdint>
#include <memory>

#include "ops/op.h"

namespace leadline::ops {

using InferFunction = void (*)(InferContext&);
using PrepareFunction = std::unique_ptr<Kernel> (*)(PrepareContext&);

/// True when the first of the inputs `activations` (bit i: input i) and output 0 are float16.
bool has_half_activations(const OpContext& c, uint32_t activations);

/// What `infer` says about the node when those inputs and its outputs are float32.
void infer_widened(InferContext& c, uint32_t activations, InferFunction infer);

/// The kernel of `prepare` for the node with float32 in place of float16. `prepare` must not read the contents of the
/// inputs `activations`. At most 4 inputs and one output.
std::unique_ptr<Kernel> prepare_widened(PrepareContext& c, uint32_t activations, PrepareFunction prepare);

/// An op's own functions, and the same for float16: AlsoHalf<infer, prepare>::infer for its row.
template <InferFunction own_infer, PrepareFunction own_prepare, uint32_t activations = 1>
struct AlsoHalf {
  static void infer(InferContext& c) {
    has_half_activations(c, activations) ? infer_widened(c, activations, own_infer) : own_infer(c);
  }
  static std::unique_ptr<Kernel> prepare(PrepareContext& c) {
    return has_half_activations(c, activations) ? prepare_widened(c, activations, own_prepare) : own_prepare(c);
  }
};

}  // namespace leadline::ops
