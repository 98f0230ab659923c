// SPDX-License-Identifier: Apache-2.0
// Reduction over any set of axes.
//
// The shape is first folded: axes of size 1 vanish and neighbours of the same kind (kept or reduced) merge, so
// that kept and reduced axes alternate. What is innermost then decides the loop: runs of contiguous values per
// output (rows), or blocks of neighbouring outputs that are accumulated together (columns).
//
// An Op has
//   Part, Acc        a fast accumulator for up to kPartSteps values, and the total;
//   kLanes           independent Parts that may share one row (1 where the order of the values matters);
//   part(), acc()    their start values; step(Part&, value); fold(Acc&, Part).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>

#include "core/index_range.h"

namespace leadline::kernels {

inline constexpr int kReduceMaxRank = 8;
inline constexpr int64_t kReduceBlock = 64;  // outputs accumulated together in the columns loop

/// Axes outside the innermost one, each list outermost first.
struct ReduceAxes {
  std::array<int64_t, kReduceMaxRank> size{};
  std::array<int64_t, kReduceMaxRank> stride{};
  int rank = 0;
  int64_t count = 1;  // product of the sizes

  void add(int64_t n, int64_t step) {
    size[static_cast<size_t>(rank)] = n;
    stride[static_cast<size_t>(rank)] = step;
    ++rank;
    count *= n;
  }
  int64_t offset(int64_t index) const {
    int64_t result = 0;
    for (int i = rank - 1; i > 0; --i) {
      const auto k = static_cast<size_t>(i);
      result += index % size[k] * stride[k];
      index /= size[k];
    }
    return result + index * stride[0];
  }
};

struct ReducePlan {
  bool inner_reduced = false;  // the innermost axis is one of the reduced
  int64_t inner = 1;           // its size
  ReduceAxes kept;             // the other kept axes
  ReduceAxes reduced;          // the other reduced axes
  int64_t reduced_count = 1;   // values per output
};

/// Folds a shape without zeros. `reduce[i]`: axis i is reduced.
inline ReducePlan fold_shape(std::span<const int64_t> dims, std::span<const bool> reduce) {
  std::array<int64_t, kReduceMaxRank> size{};
  std::array<bool, kReduceMaxRank> kind{};
  size_t rank = 0;
  ReducePlan plan;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (reduce[i]) plan.reduced_count *= dims[i];
    if (dims[i] == 1) continue;
    if (rank > 0 && kind[rank - 1] == reduce[i]) {
      size[rank - 1] *= dims[i];
    } else {
      size[rank] = dims[i];
      kind[rank++] = reduce[i];
    }
  }
  if (rank == 0) return plan;
  plan.inner_reduced = kind[rank - 1];
  plan.inner = size[rank - 1];
  std::array<int64_t, kReduceMaxRank> stride{};
  int64_t step = 1;
  for (size_t i = rank; i-- > 0;) {
    stride[i] = step;
    step *= size[i];
  }
  for (size_t i = 0; i + 1 < rank; ++i) (kind[i] ? plan.reduced : plan.kept).add(size[i], stride[i]);
  return plan;
}

/// One output that is reduced range by range.
template <typename Op>
struct RowReduction {
  explicit RowReduction(const Op& op) : acc(op.acc()) {}
  typename Op::Acc acc;
  typename Op::Part parts[Op::kLanes];
};

/// Ranges of a row of values begin at multiples of this, or of any kLanes.
inline constexpr int64_t kReduceGrain = 64;

/// Adds `values` of a row of p.inner. Ranges of a row ascend and cover it.
template <typename T, typename Op>
void reduce_values(const ReducePlan& p, const Op& op, const T* row, IndexRange values,
                   RowReduction<Op>& state) noexcept {
  constexpr int64_t kChunk = Op::kPartSteps * Op::kLanes;
  for (int64_t i = values.begin; i < values.end;) {
    const int64_t first = i / kChunk * kChunk;
    const int64_t stop = std::min(values.end, first + kChunk);
    typename Op::Part parts[Op::kLanes];
    if (i == first) {
      std::fill_n(parts, Op::kLanes, op.part());
    } else {
      std::copy_n(state.parts, Op::kLanes, parts);
    }
    for (; i + Op::kLanes <= stop; i += Op::kLanes) {
      for (int l = 0; l < Op::kLanes; ++l) op.step(parts[l], row[i + l]);
    }
    for (int l = 0; i < stop; ++i, ++l) op.step(parts[l], row[i]);
    if (stop == first + kChunk || stop == p.inner) {
      for (const auto& part : parts) op.fold(state.acc, part);
    } else {
      std::copy_n(parts, Op::kLanes, state.parts);
    }
  }
}

/// Adds whole rows [begin, end) of output `o`.
template <typename T, typename Op>
void reduce_rows_of(const ReducePlan& p, const Op& op, const T* in, int64_t o, int64_t begin, int64_t end,
                    RowReduction<Op>& state) noexcept {
  const T* base = in + p.kept.offset(o);
  for (int64_t r = begin; r < end; ++r) reduce_values(p, op, base + p.reduced.offset(r), {0, p.inner}, state);
}

/// Outputs [begin, end) when the innermost axis is reduced. finish(Acc, output index) stores a result.
template <typename T, typename Op, typename Finish>
void reduce_rows(const ReducePlan& p, const Op& op, const T* in, int64_t begin, int64_t end,
                 const Finish& finish) noexcept {
  for (int64_t o = begin; o < end; ++o) {
    RowReduction<Op> state(op);
    reduce_rows_of(p, op, in, o, 0, p.reduced.count, state);
    finish(state.acc, o);
  }
}

/// A block of outputs that is reduced range by range.
template <typename Op>
struct ColumnReduction {
  explicit ColumnReduction(const Op& op) { std::fill_n(acc, kReduceBlock, op.acc()); }
  typename Op::Acc acc[kReduceBlock];
  typename Op::Part parts[kReduceBlock];
};

/// Adds rows [begin, end) to block `b` of up to kReduceBlock neighbouring outputs. Ranges ascend and cover all rows.
template <typename T, typename Op>
void reduce_columns_of(const ReducePlan& p, const Op& op, const T* in, int64_t b, int64_t begin, int64_t end,
                       ColumnReduction<Op>& state) noexcept {
  const int64_t blocks = (p.inner + kReduceBlock - 1) / kReduceBlock;
  const int64_t c0 = b % blocks * kReduceBlock;
  const int64_t n = std::min(kReduceBlock, p.inner - c0);
  const T* base = in + p.kept.offset(b / blocks) + c0;
  for (int64_t r = begin; r < end;) {
    const int64_t first = r / Op::kPartSteps * Op::kPartSteps;
    const int64_t stop = std::min<int64_t>(end, first + Op::kPartSteps);
    // A copy, so that the compiler knows that no other memory changes with it.
    typename Op::Part parts[kReduceBlock];
    if (r == first) {
      std::fill_n(parts, n, op.part());
    } else {
      std::copy_n(state.parts, n, parts);
    }
    for (; r < stop; ++r) {
      const T* row = base + p.reduced.offset(r);
      for (int64_t c = 0; c < n; ++c) op.step(parts[c], row[c]);
    }
    if (stop == first + Op::kPartSteps || stop == p.reduced.count) {
      for (int64_t c = 0; c < n; ++c) op.fold(state.acc[c], parts[c]);
    } else {
      std::copy_n(parts, n, state.parts);
    }
  }
}

/// Stores the results of block `b`.
template <typename Op, typename Finish>
void finish_columns(const ReducePlan& p, int64_t b, const ColumnReduction<Op>& state, const Finish& finish) noexcept {
  const int64_t blocks = (p.inner + kReduceBlock - 1) / kReduceBlock;
  const int64_t c0 = b % blocks * kReduceBlock;
  const int64_t n = std::min(kReduceBlock, p.inner - c0);
  for (int64_t c = 0; c < n; ++c) finish(state.acc[c], b / blocks * p.inner + c0 + c);
}

/// Blocks [begin, end) of outputs when the innermost axis is kept.
template <typename T, typename Op, typename Finish>
void reduce_columns(const ReducePlan& p, const Op& op, const T* in, int64_t begin, int64_t end,
                    const Finish& finish) noexcept {
  for (int64_t b = begin; b < end; ++b) {
    ColumnReduction<Op> state(op);
    reduce_columns_of(p, op, in, b, 0, p.reduced.count, state);
    finish_columns(p, b, state, finish);
  }
}

/// Integer sums wrap around: they are kept in unsigned numbers.
template <typename T>
struct SumOp {
  static constexpr bool kFloat = std::is_floating_point_v<T>;
  static constexpr bool kSmall = sizeof(T) <= 2;
  using Part = std::conditional_t<kFloat, float, std::conditional_t<kSmall, int32_t, uint64_t>>;
  using Acc = std::conditional_t<kFloat, double, uint64_t>;
  static constexpr int kLanes = kFloat || kSmall ? 16 : 4;
  // Floats: short runs, so that the error does not grow with the size. Small integers: 65535 fit into 32 bits.
  static constexpr int64_t kPartSteps = kFloat ? 128 : 32768;
  static Part part() { return 0; }
  static Acc acc() { return 0; }
  static void step(Part& part, T value) { part += static_cast<Part>(value); }
  static void fold(Acc& acc, Part part) { acc += static_cast<Acc>(part); }
};

template <typename T>
struct ProdOp {
  using Part = std::conditional_t<std::is_floating_point_v<T>, T, uint64_t>;
  using Acc = Part;
  static constexpr int kLanes = 4;
  static constexpr int64_t kPartSteps = int64_t{1} << 32;
  static Part part() { return 1; }
  static Acc acc() { return 1; }
  static void step(Part& part, T value) { part *= static_cast<Part>(value); }
  static void fold(Acc& acc, Part part) { acc *= part; }
};

template <typename T, bool kMax>
struct ExtremeOp {
  using Part = T;
  using Acc = T;
  static constexpr int kLanes = 16;
  static constexpr int64_t kPartSteps = int64_t{1} << 32;
  static T part() { return kMax ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max(); }
  static T acc() { return part(); }
  static void step(T& part, T value) {
    if constexpr (kMax) {
      part = part > value ? part : value;
    } else {
      part = part < value ? part : value;
    }
  }
  static void fold(T& acc, T part) { step(acc, part); }
};

/// Over bytes, of which any other than 0 counts as true.
template <bool kAny>
struct LogicOp {
  using Part = uint8_t;
  using Acc = uint8_t;
  static constexpr int kLanes = 16;
  static constexpr int64_t kPartSteps = int64_t{1} << 32;
  static uint8_t part() { return kAny ? 0 : 1; }
  static uint8_t acc() { return part(); }
  static void step(uint8_t& part, uint8_t value) {
    const uint8_t truth = value != 0 ? 1 : 0;
    part = static_cast<uint8_t>(kAny ? part | truth : part & truth);
  }
  static void fold(uint8_t& acc, uint8_t part) { step(acc, part); }
};

}  // namespace leadline::kernels
