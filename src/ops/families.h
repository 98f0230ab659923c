// SPDX-License-Identifier: Apache-2.0
// Declares the registration function of every op family listed in families.inc.
#pragma once

#include "ops/registry.h"

namespace leadline::ops {

#define LEADLINE_OP_FAMILY(family) void register_##family(Registry& registry);
#include "ops/families.inc"
#undef LEADLINE_OP_FAMILY

/// The rest of the format: name, arity and options, no kernel.
void register_named_only(Registry& registry);

}  // namespace leadline::ops
