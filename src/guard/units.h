// SPDX-License-Identifier: Apache-2.0
// Bytes and nanoseconds in which limits are written.
#pragma once

#include <cstdint>

namespace leadline::guard {

inline constexpr int64_t kKiB = int64_t{1} << 10;
inline constexpr int64_t kMiB = int64_t{1} << 20;
inline constexpr int64_t kSecond = 1'000'000'000;

}  // namespace leadline::guard
