// SPDX-License-Identifier: Apache-2.0
// The instruction sets every fast kernel is compiled for; include before any Highway header.
// x86: baseline, SSE4, AVX2, AVX-512 (and AVX-512 VNNI where a file asks with HWY_WANT_AVX3_DL); Arm: NEON.
#pragma once

// SSSE3 serves only CPUs older than 2008, and the SVE targets have vectors whose size is not known when compiling,
// which the register tiles need; both would only lengthen the build. Highway expands this macro where its own
// names are known.
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#endif

// For sets of instructions that differ in little: whether the AVX-512 of this file was compiled before its VNNI form,
// which then takes from it what is the same.
#define LEADLINE_SHARES_AVX512 \
  (HWY_TARGET == HWY_AVX3_DL && (HWY_TARGETS & HWY_AVX3) != 0 && HWY_STATIC_TARGET != HWY_AVX3)
