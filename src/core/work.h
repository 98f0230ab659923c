// SPDX-License-Identifier: Apache-2.0
// The one place where long loops are cut: for_pieces() divides items into pieces by what they cost and asks the limits
// of the thread between pieces whether to continue (core/cancel.h). ThreadPool::for_pieces() does the same on many
// threads. Kernels know nothing of this. They take ranges and cannot fail; their callers get the ranges here.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/cancel.h"
#include "core/index_range.h"
#include "core/progress.h"

namespace leadline {

/// Costs are counted in simple operations: an addition, a comparison, a value that is copied, or one instruction on a
/// vector of them. One takes a nanosecond or less. A piece has about this many.
inline constexpr double kPieceCost = 1 << 18;

/// What for_boxes() does in one piece rather than cut it along another axis: some milliseconds where memory is slow.
inline constexpr double kLongPieceCost = 1 << 20;

/// The cost of an item that is a piece of its own, and worth a thread.
inline constexpr double kWholePiece = std::numeric_limits<double>::infinity();

/// Bytes that cost as much as one simple operation when they are copied.
inline constexpr double kByteCost = 1.0 / 16;

/// Items of `cost` each that make a piece: all of them where there is no limit to ask.
inline int64_t items_in_piece(int64_t count, double cost) {
  if (!(cost * static_cast<double>(count) > kPieceCost) || current_limit == nullptr) return count;
  return std::max<int64_t>(1, static_cast<int64_t>(kPieceCost / cost));
}

/// Calls body(begin, end) for [0, count) piece by piece, in order, on the calling thread. Throws what a limit or the
/// body throws. A body that returns false ends the loop. Results must not depend on the pieces.
template <typename Body>
void for_pieces(int64_t count, double cost, const Body& body) {
  const int64_t piece = items_in_piece(count, cost);
  for (int64_t begin = 0; begin < count; begin += piece) {
    if (begin > 0) check_cancelled();
    const int64_t end = count - begin < piece ? count : begin + piece;
    if constexpr (std::is_same_v<decltype(body(begin, end)), bool>) {
      if (!body(begin, end)) return;
    } else {
      body(begin, end);
    }
  }
}

/// Calls body(i) for i in [0, count), in pieces as above; a body that returns false ends the loop.
template <typename Body>
void for_items(int64_t count, double cost, const Body& body) {
  for_pieces(count, cost, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if constexpr (std::is_same_v<decltype(body(i)), bool>) {
        if (!body(i)) return false;
      } else {
        body(i);
      }
    }
    return true;
  });
}

/// Calls body() until it returns false, in pieces as above; `cost` is that of a call.
template <typename Body>
void repeat_while(double cost, const Body& body) {
  for_items(std::numeric_limits<int64_t>::max(), cost, [&](int64_t) { return body(); });
}

/// for_pieces(); `progress` is told of every piece. Items are the unit it counts.
template <typename Body>
void for_pieces(int64_t count, double cost, ProgressCounter& progress, const Body& body) {
  for_pieces(count, cost, [&](int64_t begin, int64_t end) {
    body(begin, end);
    progress.add(end - begin);
  });
}

inline void copy_bytes(std::byte* to, const std::byte* from, int64_t bytes) {
  for_pieces(bytes, kByteCost, [&](int64_t begin, int64_t end) {
    std::memcpy(to + begin, from + begin, static_cast<size_t>(end - begin));
  });
}

inline void fill_bytes(std::byte* to, std::byte value, int64_t bytes) {
  for_pieces(bytes, kByteCost, [&](int64_t begin, int64_t end) {
    std::memset(to + begin, static_cast<int>(value), static_cast<size_t>(end - begin));
  });
}

/// One axis of a box of work. Pieces begin at multiples of `unit` from its begin.
struct BoxAxis {
  IndexRange range;
  int64_t unit = 1;
};

namespace work_detail {

/// `cost` is that of a cell of this axis and those after it, over the whole of the box along the axes before it.
/// `first` until the body was called: no limit is asked before the first piece.
template <size_t At, size_t N, typename Body>
void cut_axis(const std::array<BoxAxis, N>& axes, double cost, std::array<IndexRange, N>& box, bool& first,
              const Body& body) {
  const auto& [range, unit] = axes[At];
  double unit_cost = cost * static_cast<double>(unit);
  for (size_t i = At + 1; i < N; ++i) unit_cost *= static_cast<double>(axes[i].range.size());
  if constexpr (At + 1 < N) {
    if (unit_cost > kLongPieceCost) {
      for (int64_t begin = range.begin; begin < range.end; begin += unit) {
        box[At] = {begin, std::min(range.end, begin + unit)};
        cut_axis<At + 1>(axes, cost * static_cast<double>(unit), box, first, body);
      }
      box[At] = range;
      return;
    }
  }
  const int64_t units = (range.size() + unit - 1) / unit;
  const int64_t step = items_in_piece(units, unit_cost) * unit;
  for (int64_t begin = range.begin; begin < range.end; begin += step) {
    box[At] = {begin, range.end - begin < step ? range.end : begin + step};
    if (!first) check_cancelled();
    first = false;
    body(box);
  }
  box[At] = range;
}

}  // namespace work_detail

/// Calls body(ranges) for boxes that make up the product of all axes, in order, the last axis running fastest; `cost`
/// is that of one cell. Cuts the first axis into pieces; where one unit of it is too long for a piece, the next one
/// too. An axis after the first may be empty: the body is called once then.
template <size_t N, typename Body>
void for_boxes(const std::array<BoxAxis, N>& axes, double cost, const Body& body) {
  std::array<IndexRange, N> box;
  double total = cost;
  for (size_t i = 0; i < N; ++i) {
    box[i] = axes[i].range;
    total *= static_cast<double>(box[i].size());
  }
  if (box[0].size() <= 0) return;
  if (!(total > kPieceCost) || current_limit == nullptr) return body(box);
  bool first = true;
  work_detail::cut_axis<0>(axes, cost, box, first, body);
}

}  // namespace leadline
