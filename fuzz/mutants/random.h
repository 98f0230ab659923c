// SPDX-License-Identifier: Apache-2.0
// Random numbers that are the same on every machine: splitmix64.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace leadline::fuzz {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  /// An independent stream: the same for the same seed and number.
  Random(uint64_t seed, uint64_t number) : state_(seed * 0x9E3779B97F4A7C15U + number) {
    next();
    state_ ^= next();
  }

  uint64_t next() {
    state_ += 0x9E3779B97F4A7C15U;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
  }
  /// 0 to count - 1; 0 when count is 0.
  size_t below(size_t count) { return count == 0 ? 0 : static_cast<size_t>(next() % count); }
  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(below(static_cast<size_t>(high - low) + 1));
  }
  /// True once in `times`.
  bool once_in(size_t times) { return below(times) == 0; }
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  template <typename T>
  const T& pick(const std::vector<T>& items) {
    return items[below(items.size())];
  }
  template <typename T>
  T pick(std::initializer_list<T> items) {
    return items.begin()[below(items.size())];
  }

 private:
  uint64_t state_;
};

}  // namespace leadline::fuzz
