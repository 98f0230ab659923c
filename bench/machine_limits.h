// SPDX-License-Identifier: Apache-2.0
// What one core of this machine can do at most, measured when it is first asked for, with the best instructions that
// Leadline's kernels may use here (LEADLINE_ISA limits both).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace leadline::bench {

/// Multiply-adds in registers, in GMAC/s: of floats; and of 8-bit numbers by what the exact int8 gemm uses (VNNI, or
/// products of 16 bits).
double f32_limit();
double i8_limit();

/// GB/s read plus written by a loop that copies, over `bytes` bytes in all: a small number is a matter of caches.
double copy_limit(int64_t bytes);

/// CPU seconds of this thread.
double cpu_seconds();

/// CPU time of one of many equal calls: a low percentile. Not the least, because a virtual machine takes time that its
/// host stole off the CPU clock of the process that runs when it learns of it: rare calls seem to take no time at all.
/// Short calls are timed in groups, so that reading the clock (half a microsecond) does not count.
class CallTimes {
 public:
  /// `estimate`: about how many seconds a call takes.
  explicit CallTimes(double estimate) : group_(std::max(1, static_cast<int>(1e-4 / std::max(estimate, 1e-8)))) {}
  /// After each call.
  void tick() {
    if (++calls_ < group_) return;
    const double now = cpu_seconds();
    seconds_.push_back((now - before_) / group_);
    before_ = now;
    calls_ = 0;
  }
  /// 0 when there were too few calls to say.
  double seconds() const {
    if (seconds_.empty()) return 0.0;
    std::vector<double> sorted = seconds_;
    std::sort(sorted.begin(), sorted.end());
    return sorted[std::min(std::max<size_t>(1, sorted.size() / 20), sorted.size() - 1)];
  }

 private:
  int group_;
  int calls_ = 0;
  double before_ = cpu_seconds();
  std::vector<double> seconds_;
};

}  // namespace leadline::bench
