// SPDX-License-Identifier: Apache-2.0
// Highway for a file that is compiled once per instruction set: here HWY_TARGET_INCLUDE, the file itself, is included
// for every set but the baseline, which is the rest of the file. Highway's own headers do it, unless Highway is
// precompiled (precompiled_simd.h): then its ops are there for all sets, which is most of what compiling a small kernel
// takes.
#ifndef LEADLINE_KERNELS_ALL_TARGETS
#define LEADLINE_KERNELS_ALL_TARGETS

#ifndef LEADLINE_PRECOMPILED_SIMD
#include <hwy/foreach_target.h>
#else

#undef HWY_TARGET_TOGGLE
#define HWY_TARGET_TOGGLE  // next_target.h takes it away for the first set, as in Highway
#undef HWY_ONCE
#define HWY_ONCE 0

#if (HWY_TARGETS & HWY_SSE4) && HWY_STATIC_TARGET != HWY_SSE4
#undef HWY_TARGET
#define HWY_TARGET HWY_SSE4
#include "kernels/next_target.h"
#include HWY_TARGET_INCLUDE
#endif

#if (HWY_TARGETS & HWY_AVX2) && HWY_STATIC_TARGET != HWY_AVX2
#undef HWY_TARGET
#define HWY_TARGET HWY_AVX2
#include "kernels/next_target.h"
#include HWY_TARGET_INCLUDE
#endif

#if (HWY_TARGETS & HWY_AVX3) && HWY_STATIC_TARGET != HWY_AVX3
#undef HWY_TARGET
#define HWY_TARGET HWY_AVX3
#include "kernels/next_target.h"
#include HWY_TARGET_INCLUDE
#endif

#ifdef HWY_WANT_AVX3_DL
#if (HWY_TARGETS & HWY_AVX3_DL) && HWY_STATIC_TARGET != HWY_AVX3_DL
#undef HWY_TARGET
#define HWY_TARGET HWY_AVX3_DL
#include "kernels/next_target.h"
#include HWY_TARGET_INCLUDE
#endif
#elif (HWY_TARGETS & HWY_AVX3_DL) && HWY_STATIC_TARGET != HWY_AVX3_DL
// Highway was precompiled with it, so tables of functions have a place for it.
#undef HWY_CHOOSE_AVX3_DL
#define HWY_CHOOSE_AVX3_DL(FUNC_NAME) &N_AVX3::FUNC_NAME
#endif

#undef HWY_ONCE
#define HWY_ONCE 1
#undef HWY_TARGET
#define HWY_TARGET HWY_STATIC_TARGET
#include "kernels/next_target.h"

#endif  // LEADLINE_PRECOMPILED_SIMD
#endif  // LEADLINE_KERNELS_ALL_TARGETS

#include <hwy/highway.h>  // once per set
