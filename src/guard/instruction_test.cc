// SPDX-License-Identifier: Apache-2.0
#include "guard/instruction.h"

#include <gtest/gtest.h>

#include <vector>

namespace leadline::guard {
namespace {

struct Case {
  std::vector<unsigned char> bytes;
  const char* name;
};

TEST(Instruction, OfX86) {
  const Case cases[] = {
      {{0x62, 0xF1, 0x7C, 0x48, 0x58, 0xC1}, "AVX-512"},       // vaddps zmm0, zmm0, zmm1
      {{0x62, 0xF5, 0x7C, 0x48, 0x58, 0xC1}, "AVX-512 FP16"},  // vaddph zmm0, zmm0, zmm1
      {{0xC5, 0xFC, 0x58, 0xC1}, "AVX"},                       // vaddps ymm0, ymm0, ymm1
      {{0xC5, 0xFD, 0xFE, 0xC1}, "AVX2"},                      // vpaddd ymm0, ymm0, ymm1
      {{0xC5, 0xF9, 0xFE, 0xC1}, "AVX"},                       // vpaddd xmm0, xmm0, xmm1
      {{0xC4, 0xE2, 0x7D, 0x58, 0xC0}, "AVX2"},                // vpbroadcastd ymm0, xmm0
      {{0xC4, 0xE2, 0x75, 0xB8, 0xC2}, "FMA"},                 // vfmadd231ps ymm0, ymm1, ymm2
      {{0xC4, 0xE2, 0x7D, 0x13, 0xC0}, "F16C"},                // vcvtph2ps ymm0, xmm0
      {{0xC4, 0xE2, 0xF8, 0xF2, 0xC1}, "BMI1"},                // andn rax, rax, rcx
      {{0xC4, 0xE2, 0xF1, 0xF7, 0xC0}, "BMI2"},                // shlx rax, rax, rcx
      {{0xC4, 0xE2, 0x75, 0x50, 0xC2}, "AVX-VNNI"},            // vpdpbusd ymm0, ymm1, ymm2
      {{0xF3, 0x48, 0x0F, 0xB8, 0xC0}, "POPCNT"},              // popcnt rax, rax
      {{0x66, 0x0F, 0x38, 0x40, 0xC1}, "SSE4.1"},              // pmulld xmm0, xmm1
      {{0x66, 0x0F, 0x38, 0x00, 0xC1}, "SSSE3"},               // pshufb xmm0, xmm1
      {{0xF2, 0x0F, 0x38, 0xF0, 0xC0}, "SSE4.2"},              // crc32 eax, al
      {{0x0F, 0x0B}, "trap"},                                  // ud2
      {{0x90}, ""},
      {{}, ""},
      {{0xC4, 0xE2}, ""},
      {{0x66}, ""},
  };
  for (const Case& one : cases) EXPECT_EQ(classify_x86(one.bytes).name, one.name);
}

TEST(Instruction, OfAarch64) {
  EXPECT_EQ(classify_aarch64({}).name, "");
  const std::vector<unsigned char> udf = {0, 0, 0, 0};
  EXPECT_EQ(classify_aarch64(udf).name, "trap");
  const std::vector<unsigned char> ptrue = {0xE0, 0xE3, 0x18, 0x25};  // ptrue p0.b
  EXPECT_EQ(classify_aarch64(ptrue).flag, "sve");
  const std::vector<unsigned char> sdot = {0x20, 0x94, 0x82, 0x4E};  // sdot v0.4s, v1.16b, v2.16b
  EXPECT_EQ(classify_aarch64(sdot).flag, "asimddp");
  const std::vector<unsigned char> nop = {0x1F, 0x20, 0x03, 0xD5};
  EXPECT_EQ(classify_aarch64(nop).name, "");
}

}  // namespace
}  // namespace leadline::guard
