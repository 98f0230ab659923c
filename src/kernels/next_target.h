// SPDX-License-Identifier: Apache-2.0
// For all_targets.h alone: sets Highway's macros for HWY_TARGET, whose ops are precompiled, and lets headers that are
// compiled once per instruction set be included once more; Highway's own (named here) were included for it already.
#ifdef HWY_TARGET_TOGGLE
#undef HWY_TARGET_TOGGLE
#define HWY_HIGHWAY_PER_TARGET
#define HIGHWAY_HWY_CONTRIB_MATH_MATH_INL_H_
#else
#define HWY_TARGET_TOGGLE
#undef HWY_HIGHWAY_PER_TARGET
#undef HIGHWAY_HWY_CONTRIB_MATH_MATH_INL_H_
#endif
#include <hwy/ops/set_macros-inl.h>
