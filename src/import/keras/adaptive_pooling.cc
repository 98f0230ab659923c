// SPDX-License-Identifier: Apache-2.0
// Adaptive pooling: windows that cover an axis whatever its size, cell i of n from floor(i * size / n) to
// ceil((i + 1) * size / n). Even ones are common pooling; others are done axis by axis.
#include <algorithm>

#include "import/keras/spatial.h"

namespace leadline::keras {
namespace {

int64_t first_of(int64_t cell, int64_t size, int64_t cells) { return cell * size / cells; }
int64_t end_of(int64_t cell, int64_t size, int64_t cells) { return ((cell + 1) * size + cells - 1) / cells; }

/// A product with the matrix that takes the means.
int average_axis(Emitter& e, int x, int axis, int64_t cells) {
  const int64_t size = e.dims(x)[static_cast<size_t>(axis)];
  std::vector<float> matrix(static_cast<size_t>(cells * size), 0.0F);
  for (int64_t cell = 0; cell < cells; ++cell) {
    const int64_t from = first_of(cell, size, cells);
    const int64_t to = end_of(cell, size, cells);
    for (int64_t i = from; i < to; ++i) {
      matrix[static_cast<size_t>(cell * size + i)] = 1.0F / static_cast<float>(to - from);
    }
  }
  std::vector<int> swap;
  for (int i = 0; i < e.rank(x); ++i) swap.push_back(i);
  std::swap(swap[static_cast<size_t>(axis)], swap.back());
  return e.transpose(e.fully_connected(e.transpose(x, swap), e.floats(matrix, {cells, size}), ir::kAbsent), swap);
}

/// All cells with the width of the widest, elements repeated, then the largest of each.
int max_axis(Emitter& e, int x, int axis, int64_t cells) {
  const int64_t size = e.dims(x)[static_cast<size_t>(axis)];
  int64_t width = 0;
  for (int64_t cell = 0; cell < cells; ++cell) {
    width = std::max(width, end_of(cell, size, cells) - first_of(cell, size, cells));
  }
  std::vector<int32_t> indices;
  for (int64_t cell = 0; cell < cells; ++cell) {
    for (int64_t i = 0; i < width; ++i) {
      indices.push_back(static_cast<int32_t>(std::min(first_of(cell, size, cells) + i, end_of(cell, size, cells) - 1)));
    }
  }
  const int table = e.builder().constant(e.name("cells"), DType::kInt32, {cells, width}, indices);
  return e.reduce("REDUCE_MAX", e.gather(x, table, axis), {axis + 1}, false);
}

Outputs adaptive_pool(Call& call, bool average) {
  const auto axes = static_cast<size_t>(std::max(call.e.rank(call.x()) - 2, 0));
  require(axes >= 1 && axes <= 3, kBad, "the input has rank {}, expected 3 to 5", axes + 2);
  const std::vector<int64_t> cells = call.config.integers("output_size", axes, -1);
  return {with_channels_last(call, [&](int x) {
    Emitter& e = call.e;
    const Dims dims = e.dims(x);
    Window w;
    for (size_t i = 0; i < axes; ++i) {
      const int64_t size = dims[i + 1];
      call.refuse_if(size <= 0, "has an input of unknown size, which is not converted; fix the size of the input");
      require(cells[i] > 0 && cells[i] <= (1 << 20) && size * cells[i] <= (1 << 26), kBad, "{} cells over {}", cells[i],
              size);
      const bool even = size % cells[i] == 0;
      w.sizes.push_back(even ? size / cells[i] : 1);
    }
    w.strides = w.sizes;
    int y = x;
    if (std::any_of(w.sizes.begin(), w.sizes.end(), [](int64_t n) { return n != 1; })) {
      y = pool_window(e, average ? "AVERAGE_POOL_2D" : "MAX_POOL_2D", x, w);
    }
    for (size_t i = 0; i < axes; ++i) {
      if (dims[i + 1] % cells[i] == 0) continue;
      const int axis = static_cast<int>(i) + 1;
      y = average ? average_axis(e, y, axis, cells[i]) : max_axis(e, y, axis, cells[i]);
    }
    return y;
  })};
}

}  // namespace

Outputs adaptive_average_pooling(Call& call) { return adaptive_pool(call, true); }
Outputs adaptive_max_pooling(Call& call) { return adaptive_pool(call, false); }

}  // namespace leadline::keras
