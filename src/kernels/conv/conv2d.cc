// SPDX-License-Identifier: Apache-2.0
// Convolution over the packed gemms: chunks of output pixels are gathered, multiplied and written group by group.
#include "kernels/conv/conv2d.h"

#include <algorithm>
#include <type_traits>

#include "core/buffer.h"
#include "kernels/conv/im2col.h"
#include "kernels/conv/winograd.h"
#include "kernels/gemm/gemm_f32.h"
#include "kernels/gemm/gemm_i8.h"

namespace leadline::kernels {
namespace {

// A chunk of float pixels: one block of rows of the gemm times one block of its k, so that the gathered slice (96 KiB)
// is read from the second-level cache. A multiple of kGemmTileRows.
constexpr int64_t kChunkPixels = kGemmRowBlock;
constexpr int64_t kChunkDepth = kGemmDepthBlock;

// 8-bit pixels are gathered whole, because their sums have no place between slices; as many as fit this.
constexpr int64_t kChunkBytesI8 = 192 * 1024;

int64_t chunk_pixels_i8(const ConvShape& s) {
  if (conv_is_deep(s)) return 1;
  return std::clamp(kChunkBytesI8 / s.filter_size() / kGemmTileRows * kGemmTileRows, kGemmTileRows, kChunkPixels);
}

/// Elements from one gathered 8-bit pixel to the next: whole words, which the gemm can read where they are.
int64_t gathered_stride_i8(const ConvShape& s) {
  return (std::min(s.filter_size(), conv_is_deep(s) ? kGemmDeepSlice : s.filter_size()) + 3) / 4 * 4;
}
int64_t gathered_bytes_i8(const ConvShape& s) {
  return align_up(chunk_pixels_i8(s) * gathered_stride_i8(s) + kGatherSlack);
}

/// Whether the input is already the matrix.
bool in_place(const ConvShape& s) {
  return s.filter_h == 1 && s.filter_w == 1 && s.stride_h == 1 && s.stride_w == 1 && s.pad_top == 0 &&
         s.pad_left == 0 && s.in_h == s.out_h && s.in_w == s.out_w;
}

void run_part(const ConvF32& conv, const ConvPart& part, std::byte* workspace) {
  const ConvShape& s = conv.shape;
  auto* gathered = reinterpret_cast<float*>(workspace);
  const auto [col_begin, col_end] = part.columns;
  GemmF32 g;
  g.n = s.group_out_c();
  g.k = s.filter_size();
  g.ldc = s.out_c;
  g.lo = conv.lo;
  g.hi = conv.hi;
  for (int64_t group = part.groups.begin; group < part.groups.end; ++group) {
    g.b = conv.filter + group * conv_group_bytes_f32(s);
    g.bias = conv.bias == nullptr ? nullptr : conv.bias + group * g.n;
    if (in_place(s)) {
      g.m = s.rows() * s.out_w;
      g.a = conv.input + group * s.filter_c + part.depth.begin;
      g.lda = s.in_c;
      g.c = conv.output + group * g.n;
      gemm_f32_slice(g, part.pixels.begin, part.pixels.end, col_begin, col_end, part.depth.begin, part.depth.end);
      continue;
    }
    for (int64_t pixel = part.pixels.begin; pixel < part.pixels.end; pixel += kChunkPixels) {
      g.m = std::min(kChunkPixels, part.pixels.end - pixel);
      g.a = gathered;
      g.c = conv.output + pixel * s.out_c + group * g.n;
      for (int64_t k0 = part.depth.begin; k0 < part.depth.end; k0 += kChunkDepth) {
        const int64_t k1 = std::min(part.depth.end, k0 + kChunkDepth);
        g.lda = k1 - k0;
        im2col(s, conv.input, group, pixel, pixel + g.m, k0, k1, 0.0F, gathered, g.lda);
        gemm_f32_slice(g, 0, g.m, col_begin, col_end, k0, k1);
      }
    }
  }
}

/// What the two 8-bit convolutions share; Output is a gemm output stage whose `c`, `scale` and `bias` are those of the
/// first pixel and channel. All pixels of `part` have the same zero point.
template <typename T, typename Output, typename Element>
void run_part_i8(const ConvShape& s, const T* input, const Output& whole, Element* output, const GemmI8& common,
                 const std::byte* filter, const ConvPart& part, std::byte* workspace) {
  GemmI8 g = common;
  Output out = whole;
  g.n = s.group_out_c();
  g.k = s.filter_size();
  out.ldc = s.out_c;
  auto* gathered = reinterpret_cast<T*>(workspace);
  std::byte* gemm_workspace = workspace + (in_place(s) ? 0 : gathered_bytes_i8(s));
  const bool deep = conv_is_deep(s);
  const int64_t chunk = in_place(s) ? std::max<int64_t>(part.pixels.size(), 1) : chunk_pixels_i8(s);
  for (int64_t group = part.groups.begin; group < part.groups.end; ++group) {
    g.b = filter + group * conv_group_bytes_i8(s);
    g.bias = common.bias == nullptr ? nullptr : common.bias + group * g.n;
    out.scale = whole.scale + group * g.n;
    if constexpr (requires { out.row_scale; }) out.bias = whole.bias == nullptr ? nullptr : whole.bias + group * g.n;
    for (int64_t pixel = part.pixels.begin; pixel < part.pixels.end; pixel += chunk) {
      g.m = std::min(chunk, part.pixels.end - pixel);
      out.c = output + pixel * s.out_c + group * g.n;
      if (in_place(s)) {
        g.a = input + pixel * s.in_c + group * s.filter_c + part.depth.begin;
        g.lda = s.in_c;
      } else {
        g.a = gathered;
        g.lda = deep ? part.depth.size() : gathered_stride_i8(s);
        g.a_slack = true;
        im2col(s, input, group, pixel, pixel + g.m, part.depth.begin, part.depth.end, static_cast<T>(g.a_zero_point),
               gathered, g.lda);
      }
      if (deep) {
        gemm_i8_deep(g, out, {0, part.columns, part.depth}, gemm_workspace);
      } else {
        gemm_i8_range(g, out, 0, g.m, part.columns.begin, part.columns.end, gemm_workspace);
      }
    }
  }
}

void run_part(const ConvI8& conv, const ConvPart& part, std::byte* workspace) {
  GemmI8 g;
  g.a_unsigned = conv.input_unsigned;
  g.a_zero_point = conv.input_zero_point;
  g.b_zero_point = conv.filter_zero_point;
  g.bias = conv.bias;
  RequantizedOutput out;
  out.c_unsigned = conv.output_unsigned;
  out.scale = conv.scale;
  out.zero_point = conv.output_zero_point;
  out.lo = conv.lo;
  out.hi = conv.hi;
  // Only the addresses of output elements matter here, and they are one byte either way.
  auto* output = static_cast<int8_t*>(conv.output);
  if (conv.input_unsigned) {
    run_part_i8(conv.shape, static_cast<const uint8_t*>(conv.input), out, output, g, conv.filter, part, workspace);
  } else {
    run_part_i8(conv.shape, static_cast<const int8_t*>(conv.input), out, output, g, conv.filter, part, workspace);
  }
}

void run_part(const ConvHybrid& conv, const ConvPart& part, std::byte* workspace) {
  const int64_t image = conv.shape.out_h * conv.shape.out_w;
  // Scales and zero points change from one batch item to the next, so no chunk may span two.
  for (int64_t pixel = part.pixels.begin; pixel < part.pixels.end;) {
    const int64_t batch = pixel / image;
    ConvPart item = part;
    item.pixels = {pixel, std::min(part.pixels.end, (batch + 1) * image)};
    GemmI8 g;
    g.a_zero_point = conv.input_zero_point == nullptr ? 0 : conv.input_zero_point[batch];
    DequantizedOutput out;
    out.row_scale = conv.input_scale + batch;
    out.row_scale_stride = 0;
    out.scale = conv.scale;
    out.bias = conv.bias;
    out.lo = conv.lo;
    out.hi = conv.hi;
    run_part_i8(conv.shape, conv.input, out, conv.output, g, conv.filter, item, workspace);
    pixel = item.pixels.end;
  }
}

bool by_winograd(const ConvShape& s) { return s.method != ConvMethod::kPlain; }

WinogradGrid winograd_grid(const ConvF32& conv) { return winograd_grid_f32(conv.shape); }
WinogradGrid winograd_grid(const ConvI8& conv) { return winograd_grid_i8(conv.shape); }
WinogradGrid winograd_grid(const ConvHybrid& conv) { return winograd_grid_i8(conv.shape); }

template <typename Conv>
void run_band(const Conv& conv, int64_t row_begin, int64_t row_end, std::byte* workspace) {
  const ConvShape& s = conv.shape;
  if (row_begin >= row_end) return;
  if (by_winograd(s)) {
    // All tiles that have a row of output in the band.
    const WinogradGrid grid = winograd_grid(conv);
    const auto tile_row = [&](int64_t row) { return row / s.out_h * grid.rows() + row % s.out_h / grid.side(); };
    const IndexRange tiles{tile_row(row_begin) * grid.columns(), (tile_row(row_end - 1) + 1) * grid.columns()};
    return winograd_part(conv, {tiles, {row_begin, row_end}, {0, s.out_c}}, workspace);
  }
  run_part(conv,
           {{0, s.groups()}, {row_begin * s.out_w, row_end * s.out_w}, {0, s.group_out_c()}, {0, s.filter_size()}},
           workspace);
}

}  // namespace

int64_t conv_group_bytes_f32(const ConvShape& s) noexcept {
  return align_up(packed_bytes_f32(s.group_out_c(), s.filter_size()));
}
int64_t conv_group_bytes_i8(const ConvShape& s) noexcept {
  return align_up(packed_bytes_i8(s.group_out_c(), s.filter_size()));
}
int64_t conv_packed_bytes_f32(const ConvShape& s) noexcept {
  return by_winograd(s) ? winograd_grid_f32(s).packed_bytes(s.out_c) : s.groups() * conv_group_bytes_f32(s);
}
int64_t conv_packed_bytes_i8(const ConvShape& s) noexcept {
  return by_winograd(s) ? winograd_grid_i8(s).packed_bytes(s.out_c) : s.groups() * conv_group_bytes_i8(s);
}

bool conv_is_deep(const ConvShape& s) noexcept { return s.filter_size() > kGemmMaxDepth; }
bool conv_gathers(const ConvShape& s) noexcept { return !in_place(s); }
int64_t conv_pixel_block_f32(const ConvShape& /*s*/) noexcept { return kChunkPixels; }
int64_t conv_pixel_block_i8(const ConvShape& s) noexcept {
  return in_place(s) ? gemm_i8_row_block(s.filter_size()) : chunk_pixels_i8(s);
}

int64_t conv_workspace_bytes_f32(const ConvShape& s) noexcept {
  if (by_winograd(s)) return winograd_grid_f32(s).workspace_bytes();
  if (in_place(s)) return 0;
  const int64_t pixels = std::min(kChunkPixels, s.rows() * s.out_w);
  return align_up(pixels * std::min(kChunkDepth, s.filter_size()) * static_cast<int64_t>(sizeof(float)) + kGatherSlack);
}

int64_t conv_workspace_bytes_i8(const ConvShape& s) noexcept {
  if (by_winograd(s)) return winograd_grid_i8(s).workspace_bytes();
  const int64_t pixels = s.rows() * s.out_w;
  if (in_place(s)) return gemm_i8_workspace_bytes(pixels, s.filter_size());
  const int64_t chunk = chunk_pixels_i8(s);
  return gathered_bytes_i8(s) + gemm_i8_workspace_bytes(std::min(chunk, pixels), s.filter_size());
}

void conv_part(const ConvF32& conv, const ConvPart& part, std::byte* workspace) noexcept {
  run_part(conv, part, workspace);
}
void conv_part(const ConvI8& conv, const ConvPart& part, std::byte* workspace) noexcept {
  run_part(conv, part, workspace);
}
void conv_part(const ConvHybrid& conv, const ConvPart& part, std::byte* workspace) noexcept {
  run_part(conv, part, workspace);
}

void conv_band(const ConvF32& conv, int64_t row_begin, int64_t row_end, std::byte* workspace) noexcept {
  run_band(conv, row_begin, row_end, workspace);
}
void conv_band(const ConvI8& conv, int64_t row_begin, int64_t row_end, std::byte* workspace) noexcept {
  run_band(conv, row_begin, row_end, workspace);
}
void conv_band(const ConvHybrid& conv, int64_t row_begin, int64_t row_end, std::byte* workspace) noexcept {
  run_band(conv, row_begin, row_end, workspace);
}

}  // namespace leadline::kernels
