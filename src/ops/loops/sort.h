// SPDX-License-Identifier: Apache-2.0
// Sorting in pieces: long ranges are partitioned step by step until std::sort takes the rest in one piece.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "core/work.h"

namespace leadline::ops {

/// What std::sort does in one piece: some milliseconds.
inline constexpr int64_t kSortAtOnce = int64_t{1} << 16;

namespace sort_detail {

/// Steps that a comparison takes at most, where it reads memory at random.
inline constexpr double kStepCost = 8;

/// For ranges that do not divide well.
template <typename T, typename Less>
void heap_sort(T* values, int64_t count, const Less& less) {
  for_items(count, 2 * kStepCost, [&](int64_t i) { std::push_heap(values, values + i + 1, less); });
  for_items(count, 16 * kStepCost, [&](int64_t i) { std::pop_heap(values, values + count - i, less); });
}

/// Divides at a value of the range: no value before the result is greater than one from it on.
template <typename T, typename Less>
int64_t partition(T* values, int64_t count, const Less& less) {
  T sample[] = {values[count / 8], values[count / 2], values[count - count / 8]};
  std::sort(std::begin(sample), std::end(sample), less);
  const T pivot = sample[1];
  int64_t i = 0;
  int64_t j = count - 1;
  for_items(count + 2, kStepCost, [&](int64_t) {
    if (less(values[i], pivot)) {
      ++i;
    } else if (less(pivot, values[j])) {
      --j;
    } else if (i <= j) {
      std::swap(values[i++], values[j--]);
    }
    return i <= j;
  });
  return i;
}

template <typename T, typename Less>
void sort_part(T* values, int64_t count, const Less& less, int levels) {
  while (count > kSortAtOnce) {
    if (levels-- == 0) return heap_sort(values, count, less);
    // Of three different values one is greater and one less than the middle one: both parts have some.
    const int64_t middle = partition(values, count, less);
    sort_part(values + middle, count - middle, less, levels);
    count = middle;
  }
  std::sort(values, values + count, less);
}

}  // namespace sort_detail

/// Sorts by `less`, a strict order without ties, on the calling thread.
template <typename T, typename Less>
void sort_in_pieces(T* values, int64_t count, const Less& less) {
  constexpr int kLevels = 64;  // twice the binary logarithm of any count
  sort_detail::sort_part(values, count, less, kLevels);
}

}  // namespace leadline::ops
