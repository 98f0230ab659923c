// SPDX-License-Identifier: Apache-2.0
// The precompiled header of kernels (cmake/Library.cmake): Highway's ops for every instruction set. Parsing them takes
// three seconds, more than most kernels. Only all_targets.h knows of it; without it, each kernel includes Highway.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "kernels/simd_targets.h"

#define HWY_WANT_AVX3_DL
#include <hwy/detect_targets.h>

// Other releases of Highway have more sets, which all_targets.h would leave out: kernels include those by themselves.
#if (HWY_TARGETS & ~(HWY_SSE4 | HWY_AVX2 | HWY_AVX3 | HWY_AVX3_DL | HWY_STATIC_TARGET)) == 0
#define LEADLINE_PRECOMPILED_SIMD
#define HWY_TARGET_INCLUDE <hwy/contrib/math/math-inl.h>
#include <hwy/foreach_target.h>
#include HWY_TARGET_INCLUDE
#endif

#undef HWY_WANT_AVX3_DL
