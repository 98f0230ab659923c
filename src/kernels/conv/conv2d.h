// SPDX-License-Identifier: Apache-2.0
// 2-D convolution, NHWC input, OHWI filters, as a packed matrix product over output pixels.
// Pixels are gathered (im2col) into a bounded workspace; a 1x1 filter with stride 1 reads the input in place.
// Invariant: an output has the same bits whatever the band of rows or the number of threads it is computed in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "core/index_range.h"

namespace leadline::kernels {

/// How a convolution is computed; filters are packed for one of these.
enum class ConvMethod : uint8_t {
  kPlain,      ///< a matrix product over output pixels
  kWinograd2,  ///< 3x3, stride 1: in tiles of 2x2 outputs (winograd.h)
  kWinograd4,  ///< the same in tiles of 4x4 outputs
};

/// Geometry. The caller has checked it: sizes are positive (batch and output may be 0), in_c == groups * filter_c,
/// groups divides out_c, element counts fit int64. Taps outside the input read as padding.
struct ConvShape {
  int64_t batch = 1;
  int64_t in_h = 1, in_w = 1, in_c = 1;
  int64_t out_h = 1, out_w = 1, out_c = 1;
  int64_t filter_h = 1, filter_w = 1, filter_c = 1;
  int64_t stride_h = 1, stride_w = 1;
  int64_t dilation_h = 1, dilation_w = 1;
  int64_t pad_top = 0, pad_left = 0;
  ConvMethod method = ConvMethod::kPlain;  // other than kPlain only where conv_method_*() says so

  int64_t groups() const { return in_c / filter_c; }
  int64_t group_out_c() const { return out_c / groups(); }
  int64_t filter_size() const { return filter_h * filter_w * filter_c; }
  /// Rows of output over the whole batch: the unit in which bands are counted.
  int64_t rows() const { return batch * out_h; }
};

/// The fastest method for these sizes on this CPU. Winograd's integers have the bits of the plain method; its floats
/// are rounded elsewhere (winograd.h).
ConvMethod conv_method_f32(const ConvShape& s) noexcept;
/// What bounds the sums of an 8-bit convolution: of filter values minus their zero point, the largest magnitude and,
/// for any one filter, the sum of magnitudes.
struct FilterBounds {
  int32_t value = 128;
  int64_t sum = 0;
};
ConvMethod conv_method_i8(const ConvShape& s, const FilterBounds& filter) noexcept;

/// Bytes of packed filters for s.method: one packed matrix a group.
int64_t conv_packed_bytes_f32(const ConvShape& s) noexcept;
int64_t conv_packed_bytes_i8(const ConvShape& s) noexcept;
/// Bytes of one group's matrix, for the plain method. It is packed by the gemm's functions: [group_out_c, filter_size].
int64_t conv_group_bytes_f32(const ConvShape& s) noexcept;
int64_t conv_group_bytes_i8(const ConvShape& s) noexcept;

/// Bytes of workspace one thread needs; at most a few hundred KiB for any but enormous filters. A multiple of
/// kAlignment.
int64_t conv_workspace_bytes_f32(const ConvShape& s) noexcept;
int64_t conv_workspace_bytes_i8(const ConvShape& s) noexcept;

/// float32 convolution. `output` does not overlap anything else.
struct ConvF32 {
  ConvShape shape;
  const float* input = nullptr;
  const std::byte* filter = nullptr;  // from conv_pack_f32*
  const float* bias = nullptr;        // out_c values, or null
  float* output = nullptr;
  float lo = -std::numeric_limits<float>::infinity();
  float hi = std::numeric_limits<float>::infinity();
};

/// 8-bit convolution with exact sums, requantized as RequantizedOutput of gemm_i8.h says. Padding reads as the input's
/// zero point.
struct ConvI8 {
  ConvShape shape;
  const void* input = nullptr;
  bool input_unsigned = false;
  int32_t input_zero_point = 0;
  const std::byte* filter = nullptr;  // from conv_pack_i8 or conv_pack_u8
  int32_t filter_zero_point = 0;      // of the values as packed
  const int32_t* bias = nullptr;      // out_c values, or null
  void* output = nullptr;
  bool output_unsigned = false;
  const float* scale = nullptr;  // out_c values: input scale * filter scale / output scale
  int32_t output_zero_point = 0;
  int32_t lo = -128;
  int32_t hi = 127;
};

/// Hybrid convolution: int8 activations with one scale (and zero point) for each batch item, int8 filters, float out.
struct ConvHybrid {
  ConvShape shape;
  const int8_t* input = nullptr;
  const float* input_scale = nullptr;         // batch values
  const int32_t* input_zero_point = nullptr;  // batch values, or null for zeros
  const std::byte* filter = nullptr;          // from conv_pack_i8
  const float* scale = nullptr;               // out_c values: filter scales
  const float* bias = nullptr;                // out_c values, or null
  float* output = nullptr;
  float lo = -std::numeric_limits<float>::infinity();
  float hi = std::numeric_limits<float>::infinity();
};

/// What one call computes, by the plain method: groups, output pixels counted over the batch, and of these the channels
/// `columns` of each group. `depth` is a range of the filter's values: calls over ascending ranges that cover
/// [0, filter_size()), with the same workspace, give the bits of one call. Columns begin at multiples of
/// kGemmColumnGrain.
/// 8-bit filters take all of `depth` at once, unless conv_is_deep(): those take one group, one pixel, at most
/// kGemmColumnGrain columns and kGemmDeepSlice values.
struct ConvPart {
  IndexRange groups;
  IndexRange pixels;
  IndexRange columns;
  IndexRange depth;
};
bool conv_is_deep(const ConvShape& s) noexcept;
/// Pixels that are gathered at a time, and depth: parts cut at multiples of these cost no more than whole ones.
int64_t conv_pixel_block_f32(const ConvShape& s) noexcept;
int64_t conv_pixel_block_i8(const ConvShape& s) noexcept;
/// Whether pixels are gathered before they are multiplied.
bool conv_gathers(const ConvShape& s) noexcept;

/// Computes a part on the calling thread. Disjoint parts may run at the same time, each with its own workspace.
void conv_part(const ConvF32& conv, const ConvPart& part, std::byte* workspace) noexcept;
void conv_part(const ConvI8& conv, const ConvPart& part, std::byte* workspace) noexcept;
void conv_part(const ConvHybrid& conv, const ConvPart& part, std::byte* workspace) noexcept;

/// Computes output rows [row_begin, row_end) of shape.rows(), by either method.
void conv_band(const ConvF32& conv, int64_t row_begin, int64_t row_end, std::byte* workspace) noexcept;
void conv_band(const ConvI8& conv, int64_t row_begin, int64_t row_end, std::byte* workspace) noexcept;
void conv_band(const ConvHybrid& conv, int64_t row_begin, int64_t row_end, std::byte* workspace) noexcept;

}  // namespace leadline::kernels
