// SPDX-License-Identifier: Apache-2.0
// What kernel tests share: aligned memory, reproducible values, and a run on every instruction set this CPU has.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <random>
#include <type_traits>
#include <vector>

#ifndef HWY_WANT_AVX3_DL
#define HWY_WANT_AVX3_DL
#endif
#include "kernels/simd_targets.h"
// After the choice of targets.
#include <hwy/highway.h>
#include <hwy/targets.h>

namespace leadline::kernels {

/// Calls body() once for each instruction set, best first, with dispatch limited to it and those below it
/// (a file that was not compiled for it uses the next). Packed data does not survive from one call to the next.
template <typename Body>
void for_each_target(const Body& body) {
  const std::vector<int64_t> targets = hwy::SupportedAndGeneratedTargets();
  for (const int64_t target : targets) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(~(target - 1));
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    body();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

/// Bytes aligned to a cache line, of exactly the size asked for, so that sanitizers see an overrun.
class TestBytes {
 public:
  explicit TestBytes(int64_t bytes)
      : data_(static_cast<std::byte*>(::operator new(static_cast<size_t>(bytes), kLine))) {}
  std::byte* data() const { return data_.get(); }

 private:
  static constexpr std::align_val_t kLine{64};
  struct Free {
    void operator()(std::byte* data) const { ::operator delete(data, kLine); }
  };
  std::unique_ptr<std::byte, Free> data_;
};

/// `count` values, uniform in [lo, hi].
template <typename T>
std::vector<T> random_values(int64_t count, double lo, double hi, std::mt19937& random) {
  std::vector<T> values(static_cast<size_t>(count));
  for (T& value : values) {
    if constexpr (std::is_floating_point_v<T>) {
      value = std::uniform_real_distribution<T>(static_cast<T>(lo), static_cast<T>(hi))(random);
    } else {
      value = static_cast<T>(std::uniform_int_distribution<int>(static_cast<int>(lo), static_cast<int>(hi))(random));
    }
  }
  return values;
}

/// clamp(round_half_even(float(acc) * scale) + zero_point, lo, hi): the rule of every requantizing kernel.
inline int32_t requantize(int32_t acc, float scale, int32_t zero_point, int32_t lo, int32_t hi) {
  const double rounded = std::nearbyint(static_cast<double>(static_cast<float>(acc) * scale));
  return static_cast<int32_t>(std::min<double>(hi, std::max<double>(lo, rounded + zero_point)));
}

}  // namespace leadline::kernels
