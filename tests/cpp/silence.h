// SPDX-License-Identifier: Apache-2.0
// How long work continues without asking whether to continue. Time is that of the thread, which a busy machine does not
// stretch.
#pragma once

#include <time.h>

#include <algorithm>
#include <cstdint>

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
};

}  // namespace leadline::testing
