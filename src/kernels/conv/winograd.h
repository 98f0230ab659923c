// SPDX-License-Identifier: Apache-2.0
// Winograd's F(2x2,3x3) and F(4x4,3x3) for 3x3 filters with stride 1: input tiles and filters are transformed,
// multiplied position by position as matrices over the channels, and transformed back, with 2.25 or 4 times fewer
// products. Integers: exact as long as sums keep to a bound; the bits are those of the plain kernel. Floats: rounded
// elsewhere than the plain kernel (the error is below 1e-5 of the output's range), but with the same bits whatever the
// band or thread.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/buffer.h"
#include "kernels/conv/conv2d.h"

namespace leadline::kernels {

/// The tiles of an output and the memory of the transformed matrices. Sizes are the same on every CPU.
class WinogradGrid {
 public:
  /// `element_bytes` of a transformed input: 4 for float, 2 for int16.
  WinogradGrid(const ConvShape& s, int64_t element_bytes)
      : side_(s.method == ConvMethod::kWinograd4 ? 4 : 2),
        rows_((s.out_h + side_ - 1) / side_),
        columns_((s.out_w + side_ - 1) / side_),
        tiles_(s.batch * rows_ * columns_),
        depth_(element_bytes == 2 ? (s.in_c + 1) / 2 * 2 : s.in_c),
        element_bytes_(element_bytes) {
    // Transformed tiles stay in the second-level cache while all filters pass by once.
    constexpr int64_t kBlockBytes = 384 * 1024;
    const int64_t fit = kBlockBytes / (positions() * depth_ * element_bytes_);
    block_ = std::min(std::clamp<int64_t>(fit, kRows, 96), tiles_ + kRows - 1) / kRows * kRows;
  }

  static constexpr int64_t kRows = 6;         // of the register tile
  static constexpr int64_t kMaxColumns = 32;  // of a panel of filters on any CPU

  int64_t side() const { return side_; }
  int64_t positions() const { return (side_ + 2) * (side_ + 2); }
  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  int64_t tiles() const { return tiles_; }
  /// Channels of a transformed tile; int16 go in pairs, the odd one's partner is anything, times a weight of 0.
  int64_t depth() const { return depth_; }
  /// Tiles transformed at a time.
  int64_t block() const { return block_; }
  /// Elements from one position to the next; one cache line more than needed, because otherwise equal elements of all
  /// positions would compete for a few lines of the cache.
  int64_t input_stride() const { return block_ * depth_ + 64 / element_bytes_; }
  int64_t sums_stride() const { return block_ * kMaxColumns + 16; }

  int64_t sums_offset() const { return align_up(positions() * input_stride() * element_bytes_); }
  int64_t padding_offset() const { return sums_offset() + align_up(positions() * sums_stride() * 4); }
  int64_t workspace_bytes() const { return padding_offset() + align_up((depth_ + 64) * element_bytes_); }
  int64_t packed_bytes(int64_t out_c) const {
    return align_up(positions() * depth_ * ((out_c + 15) / 16 * 16) * element_bytes_);
  }

 private:
  int64_t side_;
  int64_t rows_;
  int64_t columns_;
  int64_t tiles_;
  int64_t depth_;
  int64_t element_bytes_;
  int64_t block_ = kRows;
};

inline WinogradGrid winograd_grid_f32(const ConvShape& s) { return {s, 4}; }
inline WinogradGrid winograd_grid_i8(const ConvShape& s) { return {s, 2}; }

/// Transforms and packs filters [out_c, 3, 3, in_c], a range of out_c (from a multiple of kMaxColumns on) and of in_c
/// (from a multiple of kPackDepthGrain on); s.method says for which tile. The filters given are those of the range:
/// [columns, 3, 3, stride], the first channel that of the range.
struct WinogradPack {
  IndexRange columns;
  IndexRange depth;
  int64_t stride = 0;
};
void winograd_pack(const ConvShape& s, const float* filter, std::byte* packed, const WinogradPack& part) noexcept;
void winograd_pack(const ConvShape& s, const uint16_t* filter, std::byte* packed, const WinogradPack& part) noexcept;
/// `zero_point` is taken off here.
void winograd_pack(const ConvShape& s, const int8_t* filter, int32_t zero_point, std::byte* packed,
                   const WinogradPack& part) noexcept;
void winograd_pack(const ConvShape& s, const uint8_t* filter, int32_t zero_point, std::byte* packed,
                   const WinogradPack& part) noexcept;

/// Whether the integers of a method other than kPlain are exact with such filters, whatever the input.
bool winograd_is_exact(const ConvShape& s, ConvMethod method, const FilterBounds& filter) noexcept;

/// Which outputs to compute: tiles counted over the batch, of those the rows of output `rows`, and the channels
/// `columns` (from a multiple of kMaxColumns on). Where columns do not begin at 0, the tiles are at most one block, and
/// the call before had the same tiles and workspace: what they see is there, transformed.
struct WinogradPart {
  IndexRange tiles;
  IndexRange rows;
  IndexRange columns;
};

/// Tiles of the blocks that this many tiles are divided into, about equal ones of at most grid.block().
int64_t winograd_block(const WinogradGrid& grid, int64_t tiles) noexcept;

/// Computes a part with one thread's workspace.
void winograd_part(const ConvF32& conv, const WinogradPart& part, std::byte* workspace) noexcept;
void winograd_part(const ConvI8& conv, const WinogradPart& part, std::byte* workspace) noexcept;
void winograd_part(const ConvHybrid& conv, const WinogradPart& part, std::byte* workspace) noexcept;

}  // namespace leadline::kernels
