// SPDX-License-Identifier: Apache-2.0
// Copies a block of elements from one strided layout to another. Slices, transposes, broadcasts, tiles,
// reversals and depth/space shuffles are all this copy with different strides.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/index_range.h"
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

/// A copy in the form it is done in: `points` places, at each of which `run` items lie one after the other.
struct CopyPlan {
  enum class Form : uint8_t {
    kBytes,      ///< a run of bytes that is dense on both sides
    kElements,   ///< elements some distance apart
    kRepeat,     ///< one element again and again
    kTranspose,  ///< columns of a band of up to kCopyTile rows, dense in the source, that become rows
  };
  Form form = Form::kBytes;
  StridedCopy block;           // strides in bytes; without the axes below
  StridedCopy::Axis run_axis;  // of all forms but kBytes
  StridedCopy::Axis row;       // kTranspose
  int64_t element_bytes = 1;
  int64_t points = 0;
  int64_t run = 0;
};

/// Side of a transpose tile: 32 rows of one cache line each stay in the first-level cache.
inline constexpr int64_t kCopyTile = 32;

/// Element sizes: 1, 2, 4, 8 or 16 bytes.
CopyPlan plan_copy(const StridedCopy& block, int64_t element_bytes) noexcept;

/// Copies the items `run` (from a multiple of kCopyTile on) at the points `points`. The layouts must lie inside the
/// memory; from and to must not overlap.
void copy_range(const CopyPlan& plan, const std::byte* from, std::byte* to, IndexRange points, IndexRange run) noexcept;

/// Fills `count` elements of 1 to 16 bytes with copies of one.
void fill_elements(std::byte* to, int64_t count, const std::byte* element, int64_t element_bytes) noexcept;

/// Calls visit(from_index) for elements [begin, end) of a block that has elements, in row-major order of the axes.
template <typename Visit>
void for_each_source(const StridedCopy& block, int64_t begin, int64_t end, const Visit& visit) {
  std::array<int64_t, kMaxCopyRank> index{};
  int64_t from = block.from;
  int64_t rest = begin;
  for (int d = block.rank - 1; d >= 0 && rest > 0; --d) {
    const auto& axis = block.axes[static_cast<size_t>(d)];
    index[static_cast<size_t>(d)] = rest % axis.size;
    from += rest % axis.size * axis.from;
    rest /= axis.size;
  }
  for (int64_t n = begin; n < end; ++n) {
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
