// SPDX-License-Identifier: Apache-2.0
// The three functions behind Highway's run-time dispatch. They stand here because loading Highway's own library takes
// 4 ms, as long as loading a model: a benchmark helper in it measures the clock before main. Everything else of Highway
// is in its headers. They are weak: a program that links Highway's library too gets that one's.
#include <hwy/targets.h>

#include <atomic>
#include <cstdlib>
#include <string_view>

namespace hwy {
namespace {

std::atomic<int64_t> targets_for_test{0};

/// LEADLINE_ISA=scalar, sse4, avx2 or avx512 keeps to that instruction set and below it, to measure and to test what
/// other CPUs would do. Other values say nothing.
int64_t limited_by_environment(int64_t targets) {
  const char* limit = std::getenv("LEADLINE_ISA");
  if (limit == nullptr) return targets;
  int64_t best = 0;
  if (std::string_view(limit) == "scalar") return targets & (HWY_EMU128 | HWY_SCALAR);
  if (std::string_view(limit) == "sse4") best = HWY_SSE4;
  if (std::string_view(limit) == "avx2") best = HWY_AVX2;
  if (std::string_view(limit) == "avx512") best = HWY_AVX3;
  return best == 0 ? targets : targets & ~(best - 1);  // better sets are lower bits
}

#if HWY_ARCH_X86

/// The groups of instructions that Highway's targets assume.
int64_t detect() {
  __builtin_cpu_init();
  int64_t targets = HWY_EMU128 | HWY_SCALAR;
  if (!__builtin_cpu_supports("ssse3")) return targets;
  targets |= HWY_SSSE3;
  if (!__builtin_cpu_supports("sse4.1") || !__builtin_cpu_supports("sse4.2") || !__builtin_cpu_supports("aes") ||
      !__builtin_cpu_supports("pclmul")) {
    return targets;
  }
  targets |= HWY_SSE4;
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("f16c") ||
      !__builtin_cpu_supports("bmi") || !__builtin_cpu_supports("bmi2") || !__builtin_cpu_supports("lzcnt")) {
    return targets;
  }
  targets |= HWY_AVX2;
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512vl") ||
      !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512cd")) {
    return targets;
  }
  targets |= HWY_AVX3;
  if (__builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512vbmi") &&
      __builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("avx512bitalg") &&
      __builtin_cpu_supports("avx512vpopcntdq") && __builtin_cpu_supports("gfni") && __builtin_cpu_supports("vaes") &&
      __builtin_cpu_supports("vpclmulqdq")) {
    targets |= HWY_AVX3_DL;
  }
  return targets;
}

#else

/// Elsewhere one target is compiled: the one the compiler was told to assume.
int64_t detect() { return HWY_STATIC_TARGET | HWY_EMU128 | HWY_SCALAR; }

#endif

}  // namespace

[[gnu::weak]] ChosenTarget& GetChosenTarget() {
  static ChosenTarget chosen;
  return chosen;
}

[[gnu::weak]] int64_t SupportedTargets() {
  if (const int64_t forced = targets_for_test.load(); forced != 0) return forced;
  static const int64_t supported = limited_by_environment(detect());
  return supported;
}

[[gnu::weak]] void SetSupportedTargetsForTest(int64_t targets) { targets_for_test.store(targets); }

}  // namespace hwy
