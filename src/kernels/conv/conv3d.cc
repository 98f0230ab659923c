// SPDX-License-Identifier: Apache-2.0
// Chunks of pixels are gathered into rows of a matrix, a slice of the filter at a time, and multiplied.
#include "kernels/conv/conv3d.h"

#include <algorithm>

#include "core/buffer.h"
#include "kernels/conv/im2col.h"
#include "kernels/gemm/gemm_f32.h"

namespace leadline::kernels {
namespace {

// As for convolution over two axes: the gathered slice (96 KiB) stays in the second-level cache.
constexpr int64_t kChunkPixels = kGemmRowBlock;
constexpr int64_t kChunkDepth = kGemmDepthBlock;

bool in_place(const Conv3DShape& s) { return s.d.identity() && s.h.identity() && s.w.identity(); }

/// First element of the input that tap `k` sees from output `at`; may lie outside.
int64_t seen(const ConvAxis& axis, int64_t at, int64_t k) { return at * axis.stride - axis.pad + k * axis.dilation; }
bool inside(const ConvAxis& axis, int64_t at) { return at >= 0 && at < axis.input; }

/// Writes columns [k_begin, k_end) of the rows of pixels [pixel_begin, pixel_end), densely; zero outside the input.
void im2col_3d(const Conv3DShape& s, const float* input, int64_t pixel_begin, int64_t pixel_end, int64_t k_begin,
               int64_t k_end, float* out) {
  ConvShape row_shape;  // what gather_unit reads
  row_shape.in_w = s.w.input;
  row_shape.in_c = s.in_c;
  row_shape.filter_c = s.in_c;
  // One copy takes a row of the filter where its taps are neighbours in memory, else a single tap.
  const int64_t taps = s.w.dilation == 1 ? s.w.filter : 1;
  const int64_t per_row = s.w.filter / taps;
  const int64_t size = taps * s.in_c;
  const int64_t first = k_begin / size;
  const int64_t last = (k_end + size - 1) / size;
  for (int64_t pixel = pixel_begin; pixel < pixel_end; ++pixel) {
    const int64_t x = pixel % s.w.output;
    const int64_t y = pixel / s.w.output % s.h.output;
    const int64_t z = pixel / s.w.output / s.h.output % s.d.output;
    const int64_t batch = pixel / s.w.output / s.h.output / s.d.output;
    for (int64_t unit = first; unit < last; ++unit) {
      const int64_t filter_row = unit / per_row;
      const int64_t in_z = seen(s.d, z, filter_row / s.h.filter);
      const int64_t in_y = seen(s.h, y, filter_row % s.h.filter);
      const float* row = nullptr;
      if (inside(s.d, in_z) && inside(s.h, in_y)) {
        row = input + ((batch * s.d.input + in_z) * s.h.input + in_y) * s.w.input * s.in_c;
      }
      // The slice may begin and end inside a unit.
      out = gather_unit(row_shape, row, seen(s.w, x, unit % per_row), std::max<int64_t>(k_begin - unit * size, 0),
                        std::min(k_end - unit * size, size), 0.0F, out);
    }
  }
}

}  // namespace

int64_t conv3d_workspace_bytes(const Conv3DShape& s) noexcept {
  if (in_place(s)) return 0;
  const int64_t floats = std::min(kChunkPixels, s.pixels()) * std::min(kChunkDepth, s.filter_size());
  return align_up(floats * static_cast<int64_t>(sizeof(float)));
}

void conv3d_part(const Conv3DF32& conv, IndexRange pixels, IndexRange columns, IndexRange depth,
                 std::byte* workspace) noexcept {
  const Conv3DShape& s = conv.shape;
  GemmF32 g;
  g.b = conv.filter;
  g.n = s.out_c;
  g.k = s.filter_size();
  g.bias = conv.bias;
  g.ldc = s.out_c;
  g.lo = conv.lo;
  g.hi = conv.hi;
  if (in_place(s)) {
    g.a = conv.input + depth.begin;
    g.lda = s.in_c;
    g.m = s.pixels();
    g.c = conv.output;
    return gemm_f32_slice(g, pixels.begin, pixels.end, columns.begin, columns.end, depth.begin, depth.end);
  }
  auto* gathered = reinterpret_cast<float*>(workspace);
  g.a = gathered;
  for (int64_t pixel = pixels.begin; pixel < pixels.end; pixel += kChunkPixels) {
    g.m = std::min(kChunkPixels, pixels.end - pixel);
    g.c = conv.output + pixel * s.out_c;
    for (int64_t k0 = depth.begin; k0 < depth.end; k0 += kChunkDepth) {
      const int64_t k1 = std::min(depth.end, k0 + kChunkDepth);
      g.lda = k1 - k0;
      im2col_3d(s, conv.input, pixel, pixel + g.m, k0, k1, gathered);
      gemm_f32_slice(g, 0, g.m, columns.begin, columns.end, k0, k1);
    }
  }
}

}  // namespace leadline::kernels
