// SPDX-License-Identifier: Apache-2.0
#include "core/cpu_features.h"

#include <gtest/gtest.h>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)

namespace leadline {
namespace {

TEST(CpuFeatures, AreThoseThatTheCompilersRuntimeFinds) {
  __builtin_cpu_init();
  const CpuFeatures cpu;
  EXPECT_EQ(cpu.ssse3(), __builtin_cpu_supports("ssse3") != 0);
  EXPECT_EQ(cpu.sse42(), __builtin_cpu_supports("sse4.2") != 0);
  EXPECT_EQ(cpu.sse4_and_crypto(), __builtin_cpu_supports("sse4.1") && __builtin_cpu_supports("sse4.2") &&
                                       __builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul"));
  EXPECT_EQ(cpu.avx2_and_bits(), __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                                     __builtin_cpu_supports("f16c") && __builtin_cpu_supports("bmi") &&
                                     __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("lzcnt"));
  EXPECT_EQ(cpu.avx512(), __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                              __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
                              __builtin_cpu_supports("avx512cd"));
  EXPECT_EQ(cpu.avx512_vnni(), __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512vbmi") &&
                                   __builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("avx512bitalg") &&
                                   __builtin_cpu_supports("avx512vpopcntdq") && __builtin_cpu_supports("gfni") &&
                                   __builtin_cpu_supports("vaes") && __builtin_cpu_supports("vpclmulqdq"));
}

}  // namespace
}  // namespace leadline

#endif
