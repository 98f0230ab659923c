// SPDX-License-Identifier: Apache-2.0
// A range of items, rows, columns: what kernels are given to do.
#pragma once

#include <cstdint>

namespace leadline {

/// [begin, end).
struct IndexRange {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const noexcept { return end - begin; }
};

}  // namespace leadline
