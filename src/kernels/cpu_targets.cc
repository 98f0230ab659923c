// SPDX-License-Identifier: Apache-2.0
// The three functions behind Highway's run-time dispatch. They stand here because loading Highway's own library takes
// 4 ms, as long as loading a model: a benchmark helper in it measures the clock before main. Everything else of Highway
// is in its headers. They are weak: a program that links Highway's library too gets that one's.
#include <hwy/targets.h>

#include <atomic>
#include <cstdlib>
#include <string_view>

#include "core/cpu_features.h"

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
  const leadline::CpuFeatures cpu;
  int64_t targets = HWY_EMU128 | HWY_SCALAR;
  if (!cpu.ssse3()) return targets;
  targets |= HWY_SSSE3;
  if (!cpu.sse4_and_crypto()) return targets;
  targets |= HWY_SSE4;
  if (!cpu.avx2_and_bits()) return targets;
  targets |= HWY_AVX2;
  if (!cpu.avx512()) return targets;
  targets |= HWY_AVX3;
  if (cpu.avx512_vnni()) targets |= HWY_AVX3_DL;
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
