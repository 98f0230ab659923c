// SPDX-License-Identifier: Apache-2.0
// Copies a block of elements from one strided layout to another. Slices, transposes, broadcasts, tiles,
// reversals and depth/space shuffles are all this copy with different strides.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/thread_pool.h"
#include "leadline/types.h"

namespace leadline::kernels {

/// Tiling needs two axes for each axis of a tensor.
inline constexpr int kMaxCopyRank = 2 * kMaxRank;

/// The block: axes outermost first, strides and first elements counted in elements. Strides may be negative;
/// a `from` stride of 0 repeats. No two elements may have the same place in the destination.
struct StridedCopy {
  struct Axis {
    int64_t size = 0;
    int64_t from = 0;
    int64_t to = 0;
  };

  std::array<Axis, kMaxCopyRank> axes{};
  int rank = 0;
  int64_t from = 0;  // first element
  int64_t to = 0;

  /// Adds an innermost axis; at most kMaxCopyRank.
  void add(int64_t size, int64_t from_stride, int64_t to_stride) {
    axes[static_cast<size_t>(rank++)] = {size, from_stride, to_stride};
  }
  /// Adds an innermost axis whose destination is dense; call pack() when all axes are there.
  void add(int64_t size, int64_t from_stride) { add(size, from_stride, 0); }
  /// Makes the destination dense, row-major over the axes.
  void pack();

  int64_t elements() const;
};

/// Element sizes: 1, 2, 4, 8 or 16 bytes. The layouts must lie inside the memory; from and to must not overlap.
void copy_strided(const StridedCopy& block, int64_t element_bytes, const std::byte* from, std::byte* to,
                  ThreadPool& pool);

/// Fills `count` elements of 1 to 16 bytes with copies of one.
void fill_elements(std::byte* to, int64_t count, const std::byte* element, int64_t element_bytes);

/// Calls visit(from_index) for every element, in row-major order of the axes.
template <typename Visit>
void for_each_source(const StridedCopy& block, const Visit& visit) {
  const int64_t total = block.elements();
  std::array<int64_t, kMaxCopyRank> index{};
  int64_t from = block.from;
  for (int64_t n = 0; n < total; ++n) {
    visit(from);
    for (int d = block.rank - 1; d >= 0; --d) {
      const auto& axis = block.axes[static_cast<size_t>(d)];
      int64_t& i = index[static_cast<size_t>(d)];
      from += axis.from;
      if (++i < axis.size) break;
      from -= axis.from * axis.size;
      i = 0;
    }
  }
}

}  // namespace leadline::kernels
