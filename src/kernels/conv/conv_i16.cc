// SPDX-License-Identifier: Apache-2.0
#include "kernels/conv/conv_i16.h"

#include <algorithm>

#include "core/buffer.h"
#include "kernels/conv/im2col.h"

namespace leadline::kernels {
namespace {

// Gathered pixels and a few panels of filters stay in the second-level cache.
constexpr int64_t kChunkBytes = 128 * 1024;

/// Elements from one gathered pixel to the next: whole pairs.
int64_t gathered_stride(const ConvShape& s) { return (s.filter_size() + 1) / 2 * 2; }

WideFinish finish_of_group(const WideFinish& whole, int64_t channel) {
  WideFinish finish = whole;
  if (finish.bias != nullptr) finish.bias += channel;
  if (finish.factor != nullptr) finish.factor += channel;
  if (finish.multiplier != nullptr) finish.multiplier += channel;
  if (finish.exact != nullptr) finish.exact += channel;
  return finish;
}

}  // namespace

bool conv_gathers_i16(const ConvShape& s) noexcept {
  // Rows of an odd number of values would be read beyond their end.
  return conv_gathers(s) || s.filter_c % 2 != 0;
}

int64_t conv_group_bytes_i16(const ConvShape& s) noexcept {
  return align_up(packed_bytes_i16(s.group_out_c(), s.filter_size()));
}

int64_t conv_pixel_block_i16(const ConvShape& s) noexcept {
  const int64_t fitting = kChunkBytes / (2 * gathered_stride(s)) / kWideRows * kWideRows;
  return std::clamp<int64_t>(fitting, kWideRows, 16 * kWideRows);
}

int64_t conv_workspace_bytes_i16(const ConvShape& s) noexcept {
  if (!conv_gathers_i16(s)) return 0;
  const int64_t pixels = std::min(conv_pixel_block_i16(s), s.rows() * s.out_w);
  return align_up(pixels * gathered_stride(s) * static_cast<int64_t>(sizeof(int16_t)) + kGatherSlack);
}

void conv_part(const ConvI16& conv, IndexRange pixels, IndexRange columns, std::byte* workspace) noexcept {
  const ConvShape& s = conv.shape;
  const bool gathers = conv_gathers_i16(s);
  auto* gathered = reinterpret_cast<int16_t*>(workspace);
  const int64_t chunk = gathers ? conv_pixel_block_i16(s) : std::max<int64_t>(pixels.size(), 1);
  GemmI16 g;
  g.n = s.group_out_c();
  g.k = s.filter_size();
  g.ldc = s.out_c;
  for (int64_t group = 0; group < s.groups(); ++group) {
    g.b = conv.filter + group * conv_group_bytes_i16(s);
    g.finish = finish_of_group(conv.finish, group * g.n);
    for (int64_t pixel = pixels.begin; pixel < pixels.end; pixel += chunk) {
      g.m = std::min(chunk, pixels.end - pixel);
      g.c = conv.output + pixel * s.out_c + group * g.n;
      if (gathers) {
        g.a = gathered;
        g.lda = gathered_stride(s);
        im2col(s, conv.input, group, pixel, pixel + g.m, 0, g.k, int16_t{0}, gathered, g.lda);
      } else {
        g.a = conv.input + pixel * s.in_c + group * s.filter_c;
        g.lda = s.in_c;
      }
      gemm_i16_range(g, {0, g.m}, columns);
    }
  }
}

}  // namespace leadline::kernels
