// SPDX-License-Identifier: Apache-2.0
// Declares the registration function of every family of Flex ops listed in families.inc.
#pragma once

#include "ops/registry.h"

namespace leadline::ops {

#define LEADLINE_FLEX_FAMILY(family) void register_##family(Registry& registry);
#include "ops/flex/families.inc"
#undef LEADLINE_FLEX_FAMILY

}  // namespace leadline::ops
