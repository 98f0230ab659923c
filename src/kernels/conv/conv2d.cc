// SPDX-License-Identifier: Apache-2.0
// Convolution over the packed gemms: chunks of output pixels are gathered, multiplied and written group by group.
#include "kernels/conv/conv2d.h"

#include <algorithm>
#include <type_traits>

#include "core/buffer.h"
#include "core/cancel.h"
#include "kernels/conv/im2col.h"
#include "kernels/conv/winograd.h"
#include "kernels/gemm/gemm_f32.h"
#include "kernels/gemm/gemm_i8.h"
#include "kernels/gemm/split.h"

namespace leadline::kernels {
namespace {

// A chunk of float pixels: one block of rows of the gemm times one block of its k, so that the gathered slice (96 KiB)
// is read from the second-level cache. A multiple of kGemmTileRows.
constexpr int64_t kChunkPixels = 96;
constexpr int64_t kChunkDepth = 256;

// 8-bit pixels are gathered whole, because their sums have no place between slices; as many as fit this.
constexpr int64_t kChunkBytesI8 = 192 * 1024;

int64_t chunk_pixels_i8(const ConvShape& s) {
  return std::clamp(kChunkBytesI8 / s.filter_size() / kGemmTileRows * kGemmTileRows, kGemmTileRows, kChunkPixels);
}

/// Elements from one gathered 8-bit pixel to the next: whole words, which the gemm can read where they are.
int64_t gathered_stride_i8(const ConvShape& s) { return (s.filter_size() + 3) / 4 * 4; }
int64_t gathered_bytes_i8(const ConvShape& s) {
  return align_up(chunk_pixels_i8(s) * gathered_stride_i8(s) + kGatherSlack);
}

/// Whether the input is already the matrix.
bool in_place(const ConvShape& s) {
  return s.filter_h == 1 && s.filter_w == 1 && s.stride_h == 1 && s.stride_w == 1 && s.pad_top == 0 &&
         s.pad_left == 0 && s.in_h == s.out_h && s.in_w == s.out_w;
}

int64_t group_bytes_f32(const ConvShape& s) { return align_up(packed_bytes_f32(s.group_out_c(), s.filter_size())); }
int64_t group_bytes_i8(const ConvShape& s) { return align_up(packed_bytes_i8(s.group_out_c(), s.filter_size())); }

template <typename T, typename Pack>
void pack_groups(const ConvShape& s, const T* filter, std::byte* packed, int64_t group_bytes, Pack pack) {
  const int64_t n = s.group_out_c();
  const int64_t k = s.filter_size();
  for (int64_t group = 0; group < s.groups(); ++group) {
    pack(filter + group * n * k, k, n, k, packed + group * group_bytes);
  }
}

/// A rectangle of the output matrix [pixels, channels of each group].
struct Part {
  int64_t pixel_begin = 0, pixel_end = 0;
  int64_t col_begin = 0, col_end = 0;
};

void run_part(const ConvF32& conv, const Part& part, std::byte* workspace) {
  const ConvShape& s = conv.shape;
  auto* gathered = reinterpret_cast<float*>(workspace);
  GemmF32 g;
  g.n = s.group_out_c();
  g.k = s.filter_size();
  g.ldc = s.out_c;
  g.lo = conv.lo;
  g.hi = conv.hi;
  for (int64_t group = 0; group < s.groups(); ++group) {
    g.b = conv.filter + group * group_bytes_f32(s);
    g.bias = conv.bias == nullptr ? nullptr : conv.bias + group * g.n;
    if (in_place(s)) {
      g.m = s.rows() * s.out_w;
      g.a = conv.input + group * s.filter_c;
      g.lda = s.in_c;
      g.c = conv.output + group * g.n;
      gemm_f32_range(g, part.pixel_begin, part.pixel_end, part.col_begin, part.col_end);
      continue;
    }
    for (int64_t pixel = part.pixel_begin; pixel < part.pixel_end; pixel += kChunkPixels) {
      g.m = std::min(kChunkPixels, part.pixel_end - pixel);
      g.a = gathered;
      g.c = conv.output + pixel * s.out_c + group * g.n;
      for (int64_t k0 = 0; k0 < g.k; k0 += kChunkDepth) {
        const int64_t k1 = std::min(g.k, k0 + kChunkDepth);
        g.lda = k1 - k0;
        check_cancelled();
        im2col(s, conv.input, group, pixel, pixel + g.m, k0, k1, 0.0F, gathered, g.lda);
        gemm_f32_slice(g, 0, g.m, part.col_begin, part.col_end, k0, k1);
      }
    }
  }
}

/// What the two 8-bit convolutions share; Output is a gemm output stage whose `c`, `scale` and `bias` are those of the
/// first pixel and channel. All pixels of `part` have the same zero point.
template <typename T, typename Output, typename Element>
void run_part_i8(const ConvShape& s, const T* input, const Output& whole, Element* output, const GemmI8& common,
                 const std::byte* filter, const Part& part, std::byte* workspace) {
  GemmI8 g = common;
  Output out = whole;
  g.n = s.group_out_c();
  g.k = s.filter_size();
  out.ldc = s.out_c;
  auto* gathered = reinterpret_cast<T*>(workspace);
  std::byte* gemm_workspace = workspace + (in_place(s) ? 0 : gathered_bytes_i8(s));
  const int64_t chunk = in_place(s) ? std::max<int64_t>(part.pixel_end - part.pixel_begin, 1) : chunk_pixels_i8(s);
  for (int64_t group = 0; group < s.groups(); ++group) {
    g.b = filter + group * group_bytes_i8(s);
    g.bias = common.bias == nullptr ? nullptr : common.bias + group * g.n;
    out.scale = whole.scale + group * g.n;
    if constexpr (requires { out.row_scale; }) out.bias = whole.bias == nullptr ? nullptr : whole.bias + group * g.n;
    for (int64_t pixel = part.pixel_begin; pixel < part.pixel_end; pixel += chunk) {
      check_cancelled();
      g.m = std::min(chunk, part.pixel_end - pixel);
      out.c = output + pixel * s.out_c + group * g.n;
      if (in_place(s)) {
        g.a = input + pixel * s.in_c + group * s.filter_c;
        g.lda = s.in_c;
      } else {
        g.a = gathered;
        g.lda = gathered_stride_i8(s);
        g.a_slack = true;
        im2col(s, input, group, pixel, pixel + g.m, 0, g.k, static_cast<T>(g.a_zero_point), gathered, g.lda);
      }
      gemm_i8_range(g, out, 0, g.m, part.col_begin, part.col_end, gemm_workspace);
    }
  }
}

void run_part(const ConvI8& conv, const Part& part, std::byte* workspace) {
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

void run_part(const ConvHybrid& conv, const Part& part, std::byte* workspace) {
  const int64_t image = conv.shape.out_h * conv.shape.out_w;
  // Scales and zero points change from one batch item to the next, so no chunk may span two.
  for (int64_t pixel = part.pixel_begin; pixel < part.pixel_end;) {
    const int64_t batch = pixel / image;
    const Part item{pixel, std::min(part.pixel_end, (batch + 1) * image), part.col_begin, part.col_end};
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
    pixel = item.pixel_end;
  }
}

bool by_winograd(const ConvShape& s) { return s.method != ConvMethod::kPlain; }

WinogradGrid winograd_grid(const ConvF32& conv) { return winograd_grid_f32(conv.shape); }
WinogradGrid winograd_grid(const ConvI8& conv) { return winograd_grid_i8(conv.shape); }
WinogradGrid winograd_grid(const ConvHybrid& conv) { return winograd_grid_i8(conv.shape); }

void run_part(const ConvF32& conv, const WinogradPart& part, std::byte* workspace) {
  winograd_f32(conv, part, workspace);
}
void run_part(const ConvI8& conv, const WinogradPart& part, std::byte* workspace) {
  winograd_i8(conv, part, workspace);
}
void run_part(const ConvHybrid& conv, const WinogradPart& part, std::byte* workspace) {
  const WinogradGrid grid = winograd_grid_i8(conv.shape);
  const int64_t image = grid.rows() * grid.columns();
  WinogradPart item = part;
  for (; item.tile_begin < part.tile_end; item.tile_begin = item.tile_end) {
    item.tile_end = std::min(part.tile_end, (item.tile_begin / image + 1) * image);
    winograd_hybrid(conv, item, workspace);
  }
}

/// All tiles that have a row of output in the band.
template <typename Conv>
void run_winograd_band(const Conv& conv, int64_t row_begin, int64_t row_end, std::byte* workspace) {
  if (row_begin >= row_end) return;
  const ConvShape& s = conv.shape;
  const WinogradGrid grid = winograd_grid(conv);
  const auto tile_row = [&](int64_t row) { return row / s.out_h * grid.rows() + row % s.out_h / grid.side(); };
  run_part(conv,
           WinogradPart{tile_row(row_begin) * grid.columns(), (tile_row(row_end - 1) + 1) * grid.columns(), row_begin,
                        row_end},
           workspace);
}

template <typename Conv>
void run_winograd(const Conv& conv, std::byte* workspace, int64_t workspace_bytes, ThreadPool& pool) {
  const ConvShape& s = conv.shape;
  const WinogradGrid grid = winograd_grid(conv);
  const GemmSplit split = split_gemm(grid.tiles(), s.out_c, s.in_c * grid.positions(), s.out_c, pool.size());
  pool.parallel_for(split.parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) {
      const PartRange range = part_range(grid.tiles(), WinogradGrid::kRows, split.parts, index);
      run_part(conv, WinogradPart{range.begin, range.end, 0, s.rows()}, workspace + index * workspace_bytes);
    }
  });
}

template <typename Conv>
void run_band(const Conv& conv, int64_t row_begin, int64_t row_end, std::byte* workspace) {
  const ConvShape& s = conv.shape;
  if (by_winograd(s)) return run_winograd_band(conv, row_begin, row_end, workspace);
  run_part(conv, Part{row_begin * s.out_w, row_end * s.out_w, 0, s.group_out_c()}, workspace);
}

template <typename Conv>
void run_split(const Conv& conv, std::byte* workspace, int64_t workspace_bytes, ThreadPool& pool) {
  const ConvShape& s = conv.shape;
  if (by_winograd(s)) return run_winograd(conv, workspace, workspace_bytes, pool);
  const int64_t pixels = s.rows() * s.out_w;
  const int64_t n = s.group_out_c();
  const double gather = in_place(s) ? 0 : kElementMacs;
  const double least = std::is_same_v<Conv, ConvF32> ? kMinPartCost : kMinPartCost8;
  const GemmSplit split =
      split_gemm(pixels, n, s.filter_size() * s.groups(), kGemmColumnGrain, pool.size(), gather, least);
  pool.parallel_for(split.parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) {
      Part part{0, pixels, 0, n};
      if (split.by_rows) {
        const PartRange range = part_range(pixels, kGemmTileRows, split.parts, index);
        part.pixel_begin = range.begin;
        part.pixel_end = range.end;
      } else {
        const PartRange range = part_range(n, kGemmColumnGrain, split.parts, index);
        part.col_begin = range.begin;
        part.col_end = range.end;
      }
      run_part(conv, part, workspace + index * workspace_bytes);
    }
  });
}

}  // namespace

int64_t conv_packed_bytes_f32(const ConvShape& s) {
  return by_winograd(s) ? winograd_grid_f32(s).packed_bytes(s.out_c) : s.groups() * group_bytes_f32(s);
}
int64_t conv_packed_bytes_i8(const ConvShape& s) {
  return by_winograd(s) ? winograd_grid_i8(s).packed_bytes(s.out_c) : s.groups() * group_bytes_i8(s);
}

void conv_pack_f32(const ConvShape& s, const float* filter, std::byte* packed) {
  if (by_winograd(s)) return winograd_pack(s, filter, packed);
  pack_groups(s, filter, packed, group_bytes_f32(s), pack_f32);
}
void conv_pack_f32_from_f16(const ConvShape& s, const uint16_t* filter, std::byte* packed) {
  if (by_winograd(s)) return winograd_pack_from_f16(s, filter, packed);
  pack_groups(s, filter, packed, group_bytes_f32(s), pack_f32_from_f16);
}
void conv_pack_i8(const ConvShape& s, const int8_t* filter, std::byte* packed, int32_t zero_point) {
  if (by_winograd(s)) return winograd_pack(s, filter, zero_point, packed);
  pack_groups(s, filter, packed, group_bytes_i8(s), pack_i8);
}
void conv_pack_u8(const ConvShape& s, const uint8_t* filter, std::byte* packed, int32_t zero_point) {
  if (by_winograd(s)) return winograd_pack(s, filter, zero_point, packed);
  pack_groups(s, filter, packed, group_bytes_i8(s), pack_u8);
}

int64_t conv_workspace_bytes_f32(const ConvShape& s) {
  if (by_winograd(s)) return winograd_grid_f32(s).workspace_bytes();
  if (in_place(s)) return 0;
  const int64_t pixels = std::min(kChunkPixels, s.rows() * s.out_w);
  return align_up(pixels * std::min(kChunkDepth, s.filter_size()) * static_cast<int64_t>(sizeof(float)) + kGatherSlack);
}

int64_t conv_workspace_bytes_i8(const ConvShape& s) {
  if (by_winograd(s)) return winograd_grid_i8(s).workspace_bytes();
  const int64_t pixels = s.rows() * s.out_w;
  if (in_place(s)) return gemm_i8_workspace_bytes(pixels, s.filter_size());
  const int64_t chunk = chunk_pixels_i8(s);
  return gathered_bytes_i8(s) + gemm_i8_workspace_bytes(std::min(chunk, pixels), s.filter_size());
}

void conv_f32_band(const ConvF32& conv, int64_t row_begin, int64_t row_end, std::byte* workspace) {
  run_band(conv, row_begin, row_end, workspace);
}
void conv_i8_band(const ConvI8& conv, int64_t row_begin, int64_t row_end, std::byte* workspace) {
  run_band(conv, row_begin, row_end, workspace);
}
void conv_hybrid_band(const ConvHybrid& conv, int64_t row_begin, int64_t row_end, std::byte* workspace) {
  run_band(conv, row_begin, row_end, workspace);
}

void conv_f32(const ConvF32& conv, std::byte* workspace, ThreadPool& pool) {
  run_split(conv, workspace, conv_workspace_bytes_f32(conv.shape), pool);
}
void conv_i8(const ConvI8& conv, std::byte* workspace, ThreadPool& pool) {
  run_split(conv, workspace, conv_workspace_bytes_i8(conv.shape), pool);
}
void conv_hybrid(const ConvHybrid& conv, std::byte* workspace, ThreadPool& pool) {
  run_split(conv, workspace, conv_workspace_bytes_i8(conv.shape), pool);
}

}  // namespace leadline::kernels
