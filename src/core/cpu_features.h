// SPDX-License-Identifier: Apache-2.0
// What an x86-64 CPU and its system can do. The compilers' __builtin_cpu_supports() needs a part of their runtime
// library that clang of other packagers comes without.
#pragma once

#if defined(__x86_64__)

#include <cpuid.h>

#include <cstdint>

namespace leadline {

/// Bits of CPUID; those whose registers the system does not keep are zero.
class CpuFeatures {
 public:
  CpuFeatures() noexcept {
    uint32_t eax = 0;
    uint32_t ebx = 0;
    uint32_t edx = 0;
    if (__get_cpuid(1, &eax, &ebx, &basic_, &edx) == 0) return;
    __get_cpuid_count(7, 0, &eax, &extended_b_, &extended_c_, &edx);
    __get_cpuid(0x80000001U, &eax, &ebx, &amd_, &edx);
    constexpr uint32_t kOsxsave = 1U << 27;
    const uint32_t kept = (basic_ & kOsxsave) != 0 ? kept_registers() : 0;
    constexpr uint32_t kYmm = 0x6;
    constexpr uint32_t kZmm = 0xE6;
    if ((kept & kYmm) != kYmm) {
      basic_ &= ~(kFma | kF16c);
      extended_b_ &= ~kAvx2;
      extended_c_ &= ~(kVaes | kVpclmulqdq);
    }
    if ((kept & kZmm) != kZmm) {
      extended_b_ &= ~(kAvx512f | kAvx512dq | kAvx512cd | kAvx512bw | kAvx512vl);
      extended_c_ &= ~(kAvx512vbmi | kAvx512vbmi2 | kAvx512vnni | kAvx512bitalg | kAvx512vpopcntdq);
    }
  }

  bool ssse3() const noexcept { return (basic_ & kSsse3) != 0; }
  bool sse42() const noexcept { return (basic_ & kSse42) != 0; }
  /// SSE 4.1 and 4.2, AES and carry-less multiplication.
  bool sse4_and_crypto() const noexcept { return has_all(basic_, kSse41 | kSse42 | kAes | kPclmul); }
  /// AVX2 with FMA, F16C, BMI 1 and 2, LZCNT.
  bool avx2_and_bits() const noexcept {
    return has_all(basic_, kFma | kF16c) && has_all(extended_b_, kAvx2 | kBmi | kBmi2) && has_all(amd_, kLzcnt);
  }
  /// AVX-512 F, VL, DQ, BW, CD.
  bool avx512() const noexcept {
    return has_all(extended_b_, kAvx512f | kAvx512vl | kAvx512dq | kAvx512bw | kAvx512cd);
  }
  /// VNNI, VBMI 1 and 2, BITALG, VPOPCNTDQ, GFNI, VAES, VPCLMULQDQ.
  bool avx512_vnni() const noexcept {
    return has_all(extended_c_, kAvx512vnni | kAvx512vbmi | kAvx512vbmi2 | kAvx512bitalg | kAvx512vpopcntdq | kGfni |
                                    kVaes | kVpclmulqdq);
  }

 private:
  // Leaf 1, ECX.
  static constexpr uint32_t kPclmul = 1U << 1, kSsse3 = 1U << 9, kFma = 1U << 12, kSse41 = 1U << 19, kSse42 = 1U << 20,
                            kAes = 1U << 25, kF16c = 1U << 29;
  // Leaf 7, EBX.
  static constexpr uint32_t kBmi = 1U << 3, kAvx2 = 1U << 5, kBmi2 = 1U << 8, kAvx512f = 1U << 16, kAvx512dq = 1U << 17,
                            kAvx512cd = 1U << 28, kAvx512bw = 1U << 30, kAvx512vl = 1U << 31;
  // Leaf 7, ECX.
  static constexpr uint32_t kAvx512vbmi = 1U << 1, kAvx512vbmi2 = 1U << 6, kGfni = 1U << 8, kVaes = 1U << 9,
                            kVpclmulqdq = 1U << 10, kAvx512vnni = 1U << 11, kAvx512bitalg = 1U << 12,
                            kAvx512vpopcntdq = 1U << 14;
  // Leaf 0x80000001, ECX.
  static constexpr uint32_t kLzcnt = 1U << 5;

  static bool has_all(uint32_t bits, uint32_t wanted) noexcept { return (bits & wanted) == wanted; }
  static uint32_t kept_registers() noexcept {
    uint32_t low = 0;
    uint32_t high = 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
  }

  uint32_t basic_ = 0;
  uint32_t extended_b_ = 0;
  uint32_t extended_c_ = 0;
  uint32_t amd_ = 0;
};

}  // namespace leadline

#endif
