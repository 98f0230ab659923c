// SPDX-License-Identifier: Apache-2.0
#include "ops/loops/conv.h"

#include <algorithm>
#include <type_traits>

#include "kernels/conv/winograd.h"
#include "ops/loops/gemm.h"
#include "ops/loops/split.h"

namespace leadline::ops {
namespace {

using kernels::ConvShape;
using kernels::kGemmColumnGrain;
using kernels::WinogradGrid;

/// Cost of a multiplication, as in loops/gemm.cc.
constexpr double kConvMacCost = 1.0 / 16;
constexpr double kConvMacCost8 = 1.0 / 32;

bool by_winograd(const ConvShape& s) { return s.method != kernels::ConvMethod::kPlain; }

/// Calls pack(filter, part) for ranges of filters, for Winograd's method.
template <typename T, typename Pack>
void pack_winograd(const ConvShape& s, const T* filter, const Pack& pack) {
  constexpr double kCost = 18;  // of the nine values of a filter
  for_boxes<2>({{{{0, s.out_c}, WinogradGrid::kMaxColumns}, {{0, s.in_c}, kernels::kPackDepthGrain}}}, kCost,
               [&](const auto& box) {
                 const T* first = filter + box[0].begin * 9 * s.in_c + box[1].begin;
                 pack(first, kernels::WinogradPack{box[0], box[1], s.in_c});
               });
}

/// Compact ones are widened first, in blocks of 18 KiB.
template <typename Pack>
void pack_winograd(const ConvShape& s, const CompactWeights& filter, const Pack& pack) {
  constexpr int64_t kColumns = WinogradGrid::kMaxColumns;
  constexpr int64_t kDepth = kernels::kPackDepthGrain;
  const int64_t across = (s.in_c + kDepth - 1) / kDepth;
  for_pieces((s.out_c + kColumns - 1) / kColumns * across, 36.0 * kColumns * kDepth, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const IndexRange columns{i / across * kColumns, std::min(s.out_c, (i / across + 1) * kColumns)};
      const IndexRange depth{i % across * kDepth, std::min(s.in_c, (i % across + 1) * kDepth)};
      int8_t wide[kColumns * 9 * kDepth];
      for (int64_t row = 0; row < columns.size() * 9; ++row) {
        (filter + (columns.begin * 9 + row) * s.in_c + depth.begin).unpack(depth.size(), wide + row * kDepth);
      }
      pack(static_cast<const int8_t*>(wide), kernels::WinogradPack{columns, depth, kDepth});
    }
  });
}

/// Packs one matrix a group.
template <typename Filter>
void pack_groups(const ConvShape& s, Filter filter, std::byte* packed, int64_t group_bytes) {
  const int64_t n = s.group_out_c();
  const int64_t k = s.filter_size();
  for_pieces(s.groups(), static_cast<double>(n) * static_cast<double>(k) + 64, [&](int64_t begin, int64_t end) {
    for (int64_t group = begin; group < end; ++group) {
      pack_matrix(filter + group * n * k, k, n, k, packed + group * group_bytes);
    }
  });
}

template <typename Filter>
void pack_f32(const ConvShape& s, Filter filter, std::byte* packed) {
  if (!by_winograd(s)) return pack_groups(s, filter, packed, kernels::conv_group_bytes_f32(s));
  pack_winograd(s, filter,
                [&](const auto* values, const auto& part) { kernels::winograd_pack(s, values, packed, part); });
}

template <typename Filter>
void pack_i8(const ConvShape& s, const Filter& filter, std::byte* packed, int32_t zero_point) {
  if (!by_winograd(s)) return pack_groups(s, filter, packed, kernels::conv_group_bytes_i8(s));
  pack_winograd(s, filter, [&](const auto* values, const auto& part) {
    kernels::winograd_pack(s, values, zero_point, packed, part);
  });
}

/// Pixels and columns of a plain convolution in floats.
void run_part(const kernels::ConvF32& conv, IndexRange pixels, IndexRange columns, std::byte* workspace) {
  const ConvShape& s = conv.shape;
  const double gathers = kernels::conv_gathers(s) ? 1.0 / static_cast<double>(std::max<int64_t>(1, columns.size())) : 0;
  const double cost = (kConvMacCost + gathers) * static_cast<double>(s.groups());
  const BoxAxis depth{{0, s.filter_size()}, kernels::kGemmDepthBlock};
  for_boxes<3>(
      {{{pixels, kernels::conv_pixel_block_f32(s)}, depth, {columns, kGemmColumnGrain}}}, cost,
      [&](const auto& box) { kernels::conv_part(conv, {{0, s.groups()}, box[0], box[2], box[1]}, workspace); });
}

/// The same in 8 bits, where all values of a filter are taken at once; those of enormous filters slice by slice.
template <typename Conv>
void run_part(const Conv& conv, IndexRange pixels, IndexRange columns, std::byte* workspace) {
  const ConvShape& s = conv.shape;
  const IndexRange depth{0, s.filter_size()};
  if (!kernels::conv_is_deep(s)) {
    const double gathers =
        kernels::conv_gathers(s) ? 0.5 / static_cast<double>(std::max<int64_t>(1, columns.size())) : 0;
    const double cost = (kConvMacCost8 + gathers) * static_cast<double>(s.groups()) * static_cast<double>(depth.end);
    return for_boxes<2>(
        {{{pixels, kernels::conv_pixel_block_i8(s)}, {columns, kGemmColumnGrain}}}, cost,
        [&](const auto& box) { kernels::conv_part(conv, {{0, s.groups()}, box[0], box[1], depth}, workspace); });
  }
  for (int64_t group = 0; group < s.groups(); ++group) {
    for (int64_t pixel = pixels.begin; pixel < pixels.end; ++pixel) {
      for (int64_t col = columns.begin; col < columns.end; col += kGemmColumnGrain) {
        kernels::ConvPart part{
            {group, group + 1}, {pixel, pixel + 1}, {col, std::min(columns.end, col + kGemmColumnGrain)}, {}};
        for_slices(depth.end, [&](IndexRange slice) {
          part.depth = slice;
          kernels::conv_part(conv, part, workspace);
        });
      }
    }
  }
}

WinogradGrid grid_of(const kernels::ConvF32& conv) { return kernels::winograd_grid_f32(conv.shape); }
WinogradGrid grid_of(const kernels::ConvI8& conv) { return kernels::winograd_grid_i8(conv.shape); }
WinogradGrid grid_of(const kernels::ConvHybrid& conv) { return kernels::winograd_grid_i8(conv.shape); }

/// Tiles of Winograd's method.
template <typename Conv>
void run_tiles(const Conv& conv, const WinogradGrid& grid, IndexRange tiles, std::byte* workspace) {
  const ConvShape& s = conv.shape;
  const double mac = std::is_same_v<Conv, kernels::ConvF32> ? kConvMacCost : 2 * kConvMacCost8;
  const double cost = mac * static_cast<double>(s.in_c * grid.positions());
  const auto run = [&](IndexRange range) {
    const int64_t block = kernels::winograd_block(grid, range.size());
    for_boxes<2>({{{range, block}, {{0, s.out_c}, WinogradGrid::kMaxColumns}}}, cost,
                 [&](const auto& box) { kernels::winograd_part(conv, {box[0], {0, s.rows()}, box[1]}, workspace); });
  };
  const int64_t image = grid.rows() * grid.columns();
  const double block_cost = cost * static_cast<double>(std::min(grid.block(), image) * s.out_c);
  if (!std::is_same_v<Conv, kernels::ConvHybrid> || block_cost <= kLongPieceCost) return run(tiles);
  // Blocks whose columns are cut must not have tiles of two images, since these are quantized differently.
  for (int64_t begin = tiles.begin; begin < tiles.end;) {
    const int64_t end = std::min(tiles.end, (begin / image + 1) * image);
    run({begin, end});
    begin = end;
  }
}

template <typename Conv>
void run_winograd(const Conv& conv, std::byte* workspace, int64_t workspace_bytes, ThreadPool& pool) {
  const ConvShape& s = conv.shape;
  const WinogradGrid grid = grid_of(conv);
  const GemmSplit split = split_gemm(grid.tiles(), s.out_c, s.in_c * grid.positions(), s.out_c, pool.size());
  pool.for_pieces(split.parts, kWholePiece, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      run_tiles(conv, grid, part_range(grid.tiles(), WinogradGrid::kRows, split.parts, part),
                workspace + part * workspace_bytes);
    }
  });
}

template <typename Conv>
void run_split(const Conv& conv, std::byte* workspace, int64_t workspace_bytes, ThreadPool& pool) {
  const ConvShape& s = conv.shape;
  if (by_winograd(s)) return run_winograd(conv, workspace, workspace_bytes, pool);
  const int64_t pixels = s.rows() * s.out_w;
  const int64_t n = s.group_out_c();
  const double gather = kernels::conv_gathers(s) ? kElementMacs : 0;
  const double least = std::is_same_v<Conv, kernels::ConvF32> ? kMinPartCost : kMinPartCost8;
  const GemmSplit split =
      split_gemm(pixels, n, s.filter_size() * s.groups(), kGemmColumnGrain, pool.size(), gather, least);
  for_parts(pool, split, pixels, n, kGemmColumnGrain, [&](IndexRange rows, IndexRange columns, int64_t part) {
    run_part(conv, rows, columns, workspace + part * workspace_bytes);
  });
}

}  // namespace

void conv_pack(const ConvShape& s, const float* filter, std::byte* packed) { pack_f32(s, filter, packed); }
void conv_pack(const ConvShape& s, const uint16_t* filter, std::byte* packed) { pack_f32(s, filter, packed); }
void conv_pack(const ConvShape& s, const int8_t* filter, std::byte* packed, int32_t zero_point) {
  pack_i8(s, filter, packed, zero_point);
}
void conv_pack(const ConvShape& s, const uint8_t* filter, std::byte* packed, int32_t zero_point) {
  pack_i8(s, filter, packed, zero_point);
}
void conv_pack(const ConvShape& s, const CompactWeights& filter, std::byte* packed, int32_t zero_point) {
  pack_i8(s, filter, packed, zero_point);
}

void convolve(const kernels::ConvF32& conv, std::byte* workspace, ThreadPool& pool) {
  run_split(conv, workspace, kernels::conv_workspace_bytes_f32(conv.shape), pool);
}
void convolve(const kernels::ConvI8& conv, std::byte* workspace, ThreadPool& pool) {
  run_split(conv, workspace, kernels::conv_workspace_bytes_i8(conv.shape), pool);
}
void convolve(const kernels::ConvHybrid& conv, std::byte* workspace, ThreadPool& pool) {
  run_split(conv, workspace, kernels::conv_workspace_bytes_i8(conv.shape), pool);
}

void convolve(const kernels::ConvI16& conv, std::byte* workspace, ThreadPool& pool) {
  const ConvShape& s = conv.shape;
  const int64_t bytes = kernels::conv_workspace_bytes_i16(s);
  const int64_t pixels = s.rows() * s.out_w;
  const int64_t n = s.group_out_c();
  const auto depth = static_cast<double>(s.filter_size());
  const bool gathers = kernels::conv_gathers_i16(s);
  const GemmSplit split =
      split_gemm(pixels, n, s.filter_size() * s.groups(), kernels::kWidePanel, pool.size(), gathers ? kElementMacs : 0);
  for_parts(pool, split, pixels, n, kernels::kWidePanel, [&](IndexRange rows, IndexRange columns, int64_t part) {
    const double gather = gathers ? 1.0 / static_cast<double>(std::max<int64_t>(1, columns.size())) : 0;
    const double cost = ((kConvMacCost + gather) * depth + 2) * static_cast<double>(s.groups());
    for_boxes<2>({{{rows, kernels::conv_pixel_block_i16(s)}, {columns, kernels::kWidePanel}}}, cost,
                 [&](const auto& box) { kernels::conv_part(conv, box[0], box[1], workspace + part * bytes); });
  });
}

void convolve(const kernels::Conv3DF32& conv, std::byte* workspace, ThreadPool& pool) {
  const kernels::Conv3DShape& s = conv.shape;
  const int64_t bytes = kernels::conv3d_workspace_bytes(s);
  const GemmSplit split = split_gemm(s.pixels(), s.out_c, s.filter_size(), kGemmColumnGrain, pool.size(), kElementMacs);
  for_parts(
      pool, split, s.pixels(), s.out_c, kGemmColumnGrain, [&](IndexRange pixels, IndexRange columns, int64_t part) {
        const double gathers = 1.0 / static_cast<double>(std::max<int64_t>(1, columns.size()));
        const BoxAxis depth{{0, s.filter_size()}, kernels::kGemmDepthBlock};
        for_boxes<3>(
            {{{pixels, kernels::kGemmRowBlock}, depth, {columns, kGemmColumnGrain}}}, kConvMacCost + gathers,
            [&](const auto& box) { kernels::conv3d_part(conv, box[0], box[2], box[1], workspace + part * bytes); });
      });
}

}  // namespace leadline::ops
