// SPDX-License-Identifier: Apache-2.0
// The strided copy: axes are merged until the inner loop is a memcpy, a strided run or a blocked 2-D transpose.
#include "kernels/movement/strided_copy.h"

#include <algorithm>
#include <cstring>

#include "core/cancel.h"

namespace leadline::kernels {
namespace {

using Axis = StridedCopy::Axis;

/// Bytes one thread should at least have to move.
constexpr int64_t kGrainBytes = 64 * 1024;
/// Side of a transpose tile: 32 rows of one cache line each stay in the first-level cache.
constexpr int64_t kTile = 32;

/// The block with strides in bytes, without axes of size 1, and with axes that step together merged.
StridedCopy merged(const StridedCopy& block, int64_t element_bytes) {
  StridedCopy result;
  result.from = block.from * element_bytes;
  result.to = block.to * element_bytes;
  for (int d = 0; d < block.rank; ++d) {
    const Axis& source = block.axes[static_cast<size_t>(d)];
    if (source.size == 1) continue;
    const Axis axis = {source.size, source.from * element_bytes, source.to * element_bytes};
    if (result.rank > 0) {
      Axis& outer = result.axes[static_cast<size_t>(result.rank - 1)];
      if (outer.from == axis.from * axis.size && outer.to == axis.to * axis.size) {
        outer = {outer.size * axis.size, axis.from, axis.to};
        continue;
      }
    }
    result.add(axis.size, axis.from, axis.to);
  }
  return result;
}

/// Calls visit(number, from, to) for the points [begin, end) of the axes, numbered row-major; offsets in bytes.
template <typename Visit>
void walk(const Axis* axes, int rank, int64_t begin, int64_t end, const Visit& visit) {
  std::array<int64_t, kMaxCopyRank> index{};
  int64_t from = 0;
  int64_t to = 0;
  int64_t rest = begin;
  for (int d = rank - 1; d >= 0; --d) {
    const int64_t i = rest % axes[d].size;
    rest /= axes[d].size;
    index[static_cast<size_t>(d)] = i;
    from += i * axes[d].from;
    to += i * axes[d].to;
  }
  for (int64_t n = begin; n < end; ++n) {
    visit(n, from, to);
    for (int d = rank - 1; d >= 0; --d) {
      from += axes[d].from;
      to += axes[d].to;
      if (++index[static_cast<size_t>(d)] < axes[d].size) break;
      from -= axes[d].from * axes[d].size;
      to -= axes[d].to * axes[d].size;
      index[static_cast<size_t>(d)] = 0;
    }
  }
}

int64_t points(const Axis* axes, int rank) {
  int64_t count = 1;
  for (int d = 0; d < rank; ++d) count *= axes[d].size;
  return count;
}

int64_t grain(int64_t bytes_each) { return std::max<int64_t>(1, kGrainBytes / std::max<int64_t>(1, bytes_each)); }

template <int kBytes>
void copy_run(const std::byte* from, std::byte* to, int64_t count, int64_t from_step, int64_t to_step) {
  in_pieces(count, PacedCheck::kEvery, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) std::memcpy(to + i * to_step, from + i * from_step, kBytes);
  });
}

/// A tile of a transpose: rows are contiguous in the source, columns in the destination.
template <int kBytes>
void copy_tile(const std::byte* from, std::byte* to, int64_t rows, int64_t columns, int64_t from_step,
               int64_t to_step) {
  for (int64_t r = 0; r < rows; ++r) {
    const std::byte* source = from + r * kBytes;
    std::byte* target = to + r * to_step;
    for (int64_t c = 0; c < columns; ++c) std::memcpy(target + c * kBytes, source + c * from_step, kBytes);
  }
}

/// The innermost axis is dense in the destination and some other axis is dense in the source.
template <int kBytes>
void copy_transposed(StridedCopy block, int row_axis, const std::byte* from, std::byte* to, ThreadPool& pool) {
  const Axis column = block.axes[static_cast<size_t>(block.rank - 1)];
  const Axis row = block.axes[static_cast<size_t>(row_axis)];
  std::copy(block.axes.begin() + row_axis + 1, block.axes.begin() + block.rank - 1, block.axes.begin() + row_axis);
  block.rank -= 2;
  const int64_t bands = (row.size + kTile - 1) / kTile;
  block.add(bands, kTile * row.from, kTile * row.to);
  const int64_t count = points(block.axes.data(), block.rank);
  pool.parallel_for(count, grain(kTile * column.size * kBytes), [&](int64_t begin, int64_t end) {
    PacedCheck check;
    walk(block.axes.data(), block.rank, begin, end, [&](int64_t number, int64_t at_from, int64_t at_to) {
      const int64_t rows = std::min(kTile, row.size - number % bands * kTile);
      for (int64_t c = 0; c < column.size; c += kTile) {
        check.count(kTile * kTile);
        copy_tile<kBytes>(from + at_from + c * column.from, to + at_to + c * kBytes, rows,
                          std::min(kTile, column.size - c), column.from, row.to);
      }
    });
  });
}

template <int kBytes>
void copy_elements(const StridedCopy& block, const std::byte* from, std::byte* to, ThreadPool& pool) {
  if (block.rank == 0) {
    std::memcpy(to, from, kBytes);
    return;
  }
  const Axis inner = block.axes[static_cast<size_t>(block.rank - 1)];
  if (inner.to == kBytes && inner.from != 0) {
    for (int d = 0; d + 1 < block.rank; ++d) {
      const Axis& axis = block.axes[static_cast<size_t>(d)];
      if (axis.from == kBytes && axis.size >= 4) {
        copy_transposed<kBytes>(block, d, from, to, pool);
        return;
      }
    }
  }
  const int64_t count = points(block.axes.data(), block.rank - 1);
  pool.parallel_for(count, grain(inner.size * kBytes), [&](int64_t begin, int64_t end) {
    walk(block.axes.data(), block.rank - 1, begin, end, [&](int64_t, int64_t at_from, int64_t at_to) {
      if (inner.from == 0 && inner.to == kBytes) {
        fill_elements(to + at_to, inner.size, from + at_from, kBytes);
      } else {
        copy_run<kBytes>(from + at_from, to + at_to, inner.size, inner.from, inner.to);
      }
    });
  });
}

void copy_rows(const StridedCopy& block, int64_t row_bytes, const std::byte* from, std::byte* to, ThreadPool& pool) {
  const int64_t count = points(block.axes.data(), block.rank);
  pool.parallel_for(count, grain(row_bytes), [&](int64_t begin, int64_t end) {
    walk(block.axes.data(), block.rank, begin, end,
         [&](int64_t, int64_t at_from, int64_t at_to) { copy_bytes(to + at_to, from + at_from, row_bytes); });
  });
}

}  // namespace

void StridedCopy::pack() {
  if (elements() == 0) return;  // the other sizes need not fit into one product
  int64_t stride = 1;
  for (int d = rank - 1; d >= 0; --d) {
    axes[static_cast<size_t>(d)].to = stride;
    stride *= axes[static_cast<size_t>(d)].size;
  }
}

int64_t StridedCopy::elements() const {
  const bool empty = std::any_of(axes.begin(), axes.begin() + rank, [](const Axis& axis) { return axis.size == 0; });
  return empty ? 0 : points(axes.data(), rank);
}

void copy_strided(const StridedCopy& block, int64_t element_bytes, const std::byte* from, std::byte* to,
                  ThreadPool& pool) {
  if (block.elements() == 0) return;
  StridedCopy b = merged(block, element_bytes);
  from += b.from;
  to += b.to;
  // A run that is dense on both sides acts as one larger element.
  if (b.rank > 0) {
    const Axis& inner = b.axes[static_cast<size_t>(b.rank - 1)];
    if (inner.from == element_bytes && inner.to == element_bytes) {
      element_bytes *= inner.size;
      --b.rank;
    }
  }
  switch (element_bytes) {
    case 1:
      return copy_elements<1>(b, from, to, pool);
    case 2:
      return copy_elements<2>(b, from, to, pool);
    case 4:
      return copy_elements<4>(b, from, to, pool);
    case 8:
      return copy_elements<8>(b, from, to, pool);
    case 16:
      return copy_elements<16>(b, from, to, pool);
    default:
      return copy_rows(b, element_bytes, from, to, pool);
  }
}

void fill_elements(std::byte* to, int64_t count, const std::byte* element, int64_t element_bytes) {
  if (count <= 0) return;
  const bool uniform = std::all_of(element, element + element_bytes, [&](std::byte b) { return b == *element; });
  if (uniform) {
    fill_bytes(to, *element, count * element_bytes);
    return;
  }
  // Doubling: every copy is a large memcpy, of what is in the cache.
  const int64_t total = count * element_bytes;
  std::memcpy(to, element, static_cast<size_t>(element_bytes));
  for (int64_t done = element_bytes; done < total;) {
    const int64_t step = std::min({done, total - done, kCopyPiece / element_bytes * element_bytes});
    check_cancelled();
    std::memcpy(to + done, to, static_cast<size_t>(step));
    done += step;
  }
}

}  // namespace leadline::kernels
