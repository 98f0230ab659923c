// SPDX-License-Identifier: Apache-2.0
// Strided copies of the kernels, cut into pieces and split over threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/thread_pool.h"
#include "kernels/movement/strided_copy.h"

namespace leadline::ops {

/// Element sizes: 1, 2, 4, 8 or 16 bytes. The layouts must lie inside the memory; from and to must not overlap.
void copy_strided(const kernels::StridedCopy& block, int64_t element_bytes, const std::byte* from, std::byte* to,
                  ThreadPool& pool);

/// Fills `count` elements of 1 to 16 bytes with copies of one, on the calling thread.
inline void fill_elements(std::byte* to, int64_t count, const std::byte* element, int64_t element_bytes) {
  for_pieces(count, kByteCost * static_cast<double>(element_bytes), [&](int64_t begin, int64_t end) {
    kernels::fill_elements(to + begin * element_bytes, end - begin, element, element_bytes);
  });
}

/// Calls visit(from_index) for every element of a block, in row-major order of the axes; `cost` is that of a call.
template <typename Visit>
void for_each_source(const kernels::StridedCopy& block, double cost, const Visit& visit) {
  for_pieces(block.elements(), cost,
             [&](int64_t begin, int64_t end) { kernels::for_each_source(block, begin, end, visit); });
}

}  // namespace leadline::ops
