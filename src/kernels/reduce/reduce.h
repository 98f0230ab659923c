// SPDX-License-Identifier: Apache-2.0
// Reduction over any set of axes.
//
// The shape is first folded: axes of size 1 vanish and neighbours of the same kind (kept or reduced) merge, so
// that kept and reduced axes alternate. What is innermost then decides the loop: runs of contiguous values per
// output (rows), or blocks of neighbouring outputs that are accumulated together (columns).
//
// An Op gives
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

#include "core/cancel.h"

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

/// Folds a shape without zeros. `reduce[i]` tells whether axis i is reduced.
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

/// Values between two questions whether to go on; a multiple of all kLanes.
inline constexpr int64_t kReducePiece = int64_t{1} << 18;

/// Outputs [begin, end) when the innermost axis is reduced. finish(Acc, output index) stores a result.
template <typename T, typename Op, typename Finish>
void reduce_rows(const ReducePlan& p, const Op& op, const T* in, int64_t begin, int64_t end, const Finish& finish) {
  PacedCheck check;
  for (int64_t o = begin; o < end; ++o) {
    const T* base = in + p.kept.offset(o);
    auto acc = op.acc();
    for (int64_t r = 0; r < p.reduced.count; ++r) {
      const T* row = base + p.reduced.offset(r);
      for (int64_t k = 0; k < p.inner; k += Op::kPartSteps * Op::kLanes) {
        const int64_t n = std::min<int64_t>(p.inner - k, Op::kPartSteps * Op::kLanes);
        typename Op::Part parts[Op::kLanes];
        std::fill_n(parts, Op::kLanes, op.part());
        int64_t i = 0;
        while (i + Op::kLanes <= n) {
          const int64_t stop = std::min<int64_t>(n, i + kReducePiece);
          check.count(stop - i);
          for (; i + Op::kLanes <= stop; i += Op::kLanes) {
            for (int l = 0; l < Op::kLanes; ++l) op.step(parts[l], row[k + i + l]);
          }
        }
        for (int l = 0; i < n; ++i, ++l) op.step(parts[l], row[k + i]);
        for (const auto& part : parts) op.fold(acc, part);
      }
    }
    finish(acc, o);
  }
}

/// Blocks [begin, end) of up to kReduceBlock neighbouring outputs when the innermost axis is kept.
template <typename T, typename Op, typename Finish>
void reduce_columns(const ReducePlan& p, const Op& op, const T* in, int64_t begin, int64_t end, const Finish& finish) {
  const int64_t blocks = (p.inner + kReduceBlock - 1) / kReduceBlock;
  PacedCheck check;
  for (int64_t b = begin; b < end; ++b) {
    const int64_t c0 = b % blocks * kReduceBlock;
    const int64_t n = std::min(kReduceBlock, p.inner - c0);
    const T* base = in + p.kept.offset(b / blocks) + c0;
    typename Op::Acc acc[kReduceBlock];
    std::fill_n(acc, n, op.acc());
    for (int64_t r0 = 0; r0 < p.reduced.count; r0 += Op::kPartSteps) {
      const int64_t r1 = std::min<int64_t>(p.reduced.count, r0 + Op::kPartSteps);
      typename Op::Part parts[kReduceBlock];
      std::fill_n(parts, n, op.part());
      for (int64_t r = r0; r < r1; ++r) {
        check.count(n);
        const T* row = base + p.reduced.offset(r);
        for (int64_t c = 0; c < n; ++c) op.step(parts[c], row[c]);
      }
      for (int64_t c = 0; c < n; ++c) op.fold(acc[c], parts[c]);
    }
    for (int64_t c = 0; c < n; ++c) finish(acc[c], b / blocks * p.inner + c0 + c);
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
