// SPDX-License-Identifier: Apache-2.0
#include "machine_limits.h"

#include <time.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <vector>

#define HWY_WANT_AVX3_DL
#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "machine_limits.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/gemm/dot_i8-inl.h"

HWY_BEFORE_NAMESPACE();
namespace leadline::bench {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
namespace dot = leadline::kernels::HWY_NAMESPACE;

// Twelve sums hide the latency of four cycles on two ports; each is named because g++ keeps arrays in memory.
#define LEADLINE_TWELVE(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)

/// Makes the compiler believe that the value changed: equal products would be computed once.
template <class T>
HWY_INLINE void hide(T& value) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR
  asm volatile("" : "+x"(value.raw));
#else
  asm volatile("" : "+m"(value));
#endif
}

/// Multiply-adds of `rounds` rounds, and their sum so that they cannot be left out.
int64_t float_rounds(int64_t rounds, volatile float* sink) {
  const hn::ScalableTag<float> d;
  const auto a = hn::Set(d, *sink);
  const auto b = hn::Set(d, 0.5F);
#define LEADLINE_SUM(i) auto s##i = hn::Set(d, static_cast<float>(i));
  LEADLINE_TWELVE(LEADLINE_SUM)
#undef LEADLINE_SUM
  for (int64_t r = 0; r < rounds; ++r) {
#define LEADLINE_STEP(i) s##i = hn::MulAdd(a, b, s##i);
    LEADLINE_TWELVE(LEADLINE_STEP)
#undef LEADLINE_STEP
  }
  auto sum = hn::Zero(d);
#define LEADLINE_ADD(i) sum = hn::Add(sum, s##i);
  LEADLINE_TWELVE(LEADLINE_ADD)
#undef LEADLINE_ADD
  *sink = hn::GetLane(hn::SumOfLanes(d, sum));
  return rounds * 12 * static_cast<int64_t>(hn::Lanes(d));
}

int64_t byte_rounds(int64_t rounds, volatile float* sink) {
  HWY_ALIGN int8_t weights[HWY_MAX_BYTES] = {};
  int32_t word = static_cast<int32_t>(*sink);
  auto a = dot::broadcast_a(&word);
  auto b = dot::load_b(weights);
  hide(b);  // or the products are known to be zero
#define LEADLINE_SUM(i) auto s##i = dot::zero_sum();
  LEADLINE_TWELVE(LEADLINE_SUM)
#undef LEADLINE_SUM
  for (int64_t r = 0; r < rounds; ++r) {
#define LEADLINE_STEP(i)                       \
  s##i = dot::multiply_accumulate(a, b, s##i); \
  hide(a);
    LEADLINE_TWELVE(LEADLINE_STEP)
#undef LEADLINE_STEP
  }
  const dot::D32 d;
  auto sum = hn::Zero(d);
#define LEADLINE_ADD(i) sum = hn::Add(sum, dot::total(s##i));
  LEADLINE_TWELVE(LEADLINE_ADD)
#undef LEADLINE_ADD
  *sink = static_cast<float>(hn::GetLane(sum));
  return rounds * 12 * static_cast<int64_t>(hn::Lanes(d)) * dot::kGroup;
}

#undef LEADLINE_TWELVE

void copy(const float* from, float* to, int64_t count) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i + lanes <= count; i += lanes) hn::StoreU(hn::LoadU(d, from + i), d, to + i);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace leadline::bench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace leadline::bench {
namespace {

HWY_EXPORT(float_rounds);
HWY_EXPORT(byte_rounds);
HWY_EXPORT(copy);

/// The rate of the better batches of many short ones, in units of work per nanosecond; not of the best one, for the
/// reason CallTimes has. `work(n)` does n rounds and says how much that was.
template <typename Work>
double good_rate(const Work& work) {
  int64_t rounds = 1;
  std::vector<double> rates;
  while (rates.size() < 24) {
    const double start = cpu_seconds();
    const auto done = static_cast<double>(work(rounds));
    const double taken = cpu_seconds() - start;
    if (taken < 0.002) {
      rounds *= 2;
      continue;
    }
    rates.push_back(done / taken * 1e-9);
  }
  std::sort(rates.begin(), rates.end());
  return rates[rates.size() * 7 / 8];
}

}  // namespace

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double f32_limit() {
  static const double limit = good_rate([](int64_t rounds) {
    static volatile float sink = 1.0F;
    return HWY_DYNAMIC_DISPATCH(float_rounds)(rounds, &sink);
  });
  return limit;
}

double i8_limit() {
  static const double limit = good_rate([](int64_t rounds) {
    static volatile float sink = 1.0F;
    return HWY_DYNAMIC_DISPATCH(byte_rounds)(rounds, &sink);
  });
  return limit;
}

double copy_limit(int64_t bytes) {
  static std::map<int64_t, double> known;
  const auto [found, added] = known.try_emplace(bytes);
  if (added) {
    const int64_t count = std::max<int64_t>(bytes / 8, 64);
    // Whole cache lines, as the planner assigns them to tensors.
    std::vector<float> memory(static_cast<size_t>(2 * count + 48), 1.0F);
    const auto aligned = (reinterpret_cast<uintptr_t>(memory.data()) + 63) / 64 * 64;
    float* from = reinterpret_cast<float*>(aligned);
    float* to = from + (count + 15) / 16 * 16;
    found->second = good_rate([&](int64_t rounds) {
      for (int64_t r = 0; r < rounds; ++r) HWY_DYNAMIC_DISPATCH(copy)(from, to, count);
      return rounds * count * 8;
    });
  }
  return found->second;
}

}  // namespace leadline::bench
#endif  // HWY_ONCE
