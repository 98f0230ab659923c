// SPDX-License-Identifier: Apache-2.0
// The strided copy: axes are merged until the inner loop is a memcpy, a strided run or a blocked 2-D transpose.
#include "kernels/movement/strided_copy.h"

#include <algorithm>
#include <cstring>

namespace leadline::kernels {
namespace {

using Axis = StridedCopy::Axis;

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

template <int kBytes>
void copy_run(const std::byte* from, std::byte* to, IndexRange run, int64_t from_step, int64_t to_step) {
  for (int64_t i = run.begin; i < run.end; ++i) std::memcpy(to + i * to_step, from + i * from_step, kBytes);
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

template <int kBytes>
void copy_points(const CopyPlan& p, const std::byte* from, std::byte* to, IndexRange points, IndexRange run) {
  const auto over_points = [&](const auto& visit) {
    walk(p.block.axes.data(), p.block.rank, points.begin, points.end, visit);
  };
  switch (p.form) {
    case CopyPlan::Form::kBytes:
      return over_points([&](int64_t, int64_t at_from, int64_t at_to) {
        std::memcpy(to + at_to + run.begin, from + at_from + run.begin, static_cast<size_t>(run.size()));
      });
    case CopyPlan::Form::kElements:
      return over_points([&](int64_t, int64_t at_from, int64_t at_to) {
        copy_run<kBytes>(from + at_from, to + at_to, run, p.run_axis.from, p.run_axis.to);
      });
    case CopyPlan::Form::kRepeat:
      return over_points([&](int64_t, int64_t at_from, int64_t at_to) {
        fill_elements(to + at_to + run.begin * kBytes, run.size(), from + at_from, kBytes);
      });
    case CopyPlan::Form::kTranspose: {
      const int64_t bands = (p.row.size + kCopyTile - 1) / kCopyTile;
      return over_points([&](int64_t number, int64_t at_from, int64_t at_to) {
        const int64_t rows = std::min(kCopyTile, p.row.size - number % bands * kCopyTile);
        for (int64_t c = run.begin; c < run.end; c += kCopyTile) {
          copy_tile<kBytes>(from + at_from + c * p.run_axis.from, to + at_to + c * kBytes, rows,
                            std::min(kCopyTile, run.end - c), p.run_axis.from, p.row.to);
        }
      });
    }
  }
}

/// The axis that is dense in the source, where the innermost one is dense in the destination; -1: none.
int dense_row(const StridedCopy& block, const Axis& inner, int64_t element_bytes) {
  if (inner.to != element_bytes || inner.from == 0) return -1;
  for (int d = 0; d + 1 < block.rank; ++d) {
    const Axis& axis = block.axes[static_cast<size_t>(d)];
    if (axis.from == element_bytes && axis.size >= 4) return d;
  }
  return -1;
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

CopyPlan plan_copy(const StridedCopy& block, int64_t element_bytes) noexcept {
  CopyPlan p;
  if (block.elements() == 0) return p;
  p.block = merged(block, element_bytes);
  StridedCopy& b = p.block;
  // A run that is dense on both sides acts as one larger element.
  if (b.rank > 0) {
    const Axis& inner = b.axes[static_cast<size_t>(b.rank - 1)];
    if (inner.from == element_bytes && inner.to == element_bytes) {
      element_bytes *= inner.size;
      --b.rank;
    }
  }
  const bool small = element_bytes <= 16 && (element_bytes & (element_bytes - 1)) == 0;
  if (b.rank == 0 || !small) {
    p.run = element_bytes;
  } else {
    const Axis inner = b.axes[static_cast<size_t>(b.rank - 1)];
    const int row_axis = dense_row(b, inner, element_bytes);
    p.element_bytes = element_bytes;
    p.run_axis = inner;
    p.run = inner.size;
    --b.rank;
    if (row_axis >= 0) {
      p.form = CopyPlan::Form::kTranspose;
      p.row = b.axes[static_cast<size_t>(row_axis)];
      std::copy(b.axes.begin() + row_axis + 1, b.axes.begin() + b.rank, b.axes.begin() + row_axis);
      --b.rank;
      b.add((p.row.size + kCopyTile - 1) / kCopyTile, kCopyTile * p.row.from, kCopyTile * p.row.to);
    } else {
      p.form = inner.from == 0 && inner.to == element_bytes ? CopyPlan::Form::kRepeat : CopyPlan::Form::kElements;
    }
  }
  p.points = points(b.axes.data(), b.rank);
  return p;
}

void copy_range(const CopyPlan& plan, const std::byte* from, std::byte* to, IndexRange points,
                IndexRange run) noexcept {
  from += plan.block.from;
  to += plan.block.to;
  switch (plan.element_bytes) {
    case 1:
      return copy_points<1>(plan, from, to, points, run);
    case 2:
      return copy_points<2>(plan, from, to, points, run);
    case 4:
      return copy_points<4>(plan, from, to, points, run);
    case 8:
      return copy_points<8>(plan, from, to, points, run);
    default:
      return copy_points<16>(plan, from, to, points, run);
  }
}

void fill_elements(std::byte* to, int64_t count, const std::byte* element, int64_t element_bytes) noexcept {
  if (count <= 0) return;
  const bool uniform = std::all_of(element, element + element_bytes, [&](std::byte b) { return b == *element; });
  const int64_t total = count * element_bytes;
  if (uniform) {
    std::memset(to, std::to_integer<int>(*element), static_cast<size_t>(total));
    return;
  }
  // Doubling: every copy is a large memcpy, of what is in the cache.
  constexpr int64_t kMost = 256 * 1024;
  std::memcpy(to, element, static_cast<size_t>(element_bytes));
  for (int64_t done = element_bytes; done < total;) {
    const int64_t step = std::min({done, total - done, kMost / element_bytes * element_bytes});
    std::memcpy(to + done, to, static_cast<size_t>(step));
    done += step;
  }
}

}  // namespace leadline::kernels
