// SPDX-License-Identifier: Apache-2.0
// How long work continues without asking whether to continue. Time is that of the thread, which other programs do not
// stretch; but the system's own work for it (a page fault that waits for memory to be freed) counts, now and then.
#pragma once

#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>

#include "leadline/work_limit.h"

namespace leadline::testing {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr double kLongestSilenceMs = 2000;  // sanitizers cost a factor of ten and more
inline constexpr double kMeanSilenceMs = 300;
#else
inline constexpr double kLongestSilenceMs = 60;
inline constexpr double kMeanSilenceMs = 10;
#endif

inline double thread_ms() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

/// The longest time without a question.
struct Silence {
  double begin = thread_ms();
  double last = begin;
  double longest = 0;
  int64_t asked = 0;

  void look() {
    const double now = thread_ms();
    longest = std::max(longest, now - last);
    last = now;
  }
  RunCheck check() {
    return [this] {
      ++asked;
      look();
    };
  }
  bool asked_in_time() const { return longest < kLongestSilenceMs; }
  bool asked_often() const { return static_cast<double>(asked) * kMeanSilenceMs >= std::floor(last - begin); }
};

/// The first of up to three measurements that is as it should be, or the last: work that does not ask does not ask each
/// time, a machine that is short of memory slows one run and not the next, whose pages are there.
template <typename Measure>
Silence measured_silence(Measure measure) {
  Silence silence = measure();
  for (int again = 0; again < 2 && !(silence.asked_in_time() && silence.asked_often()); ++again) silence = measure();
  return silence;
}

/// Says what was measured, and expects it to be as it should.
inline void expect_questions(const std::string& what, const Silence& silence) {
  std::printf("%-36s %7.1f ms, asked %6lld times, silent for %5.1f ms at most\n", what.c_str(),
              silence.last - silence.begin, static_cast<long long>(silence.asked), silence.longest);
  EXPECT_TRUE(silence.asked_in_time()) << what << " was silent for " << silence.longest << " ms";
  EXPECT_TRUE(silence.asked_often()) << what << " asked too seldom: " << silence.asked << " times in "
                                     << silence.last - silence.begin << " ms";
}

}  // namespace leadline::testing
