// SPDX-License-Identifier: Apache-2.0
// Gathers what the filter sees at output pixels into rows of a matrix (im2col), whole or a slice of its columns.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/conv/conv2d.h"

namespace leadline::kernels {

/// What one copy can take: a row of the filter where its taps are neighbours in memory, else a single tap.
struct Im2colUnit {
  explicit Im2colUnit(const ConvShape& s)
      : taps(s.dilation_w == 1 && s.filter_c == s.in_c ? s.filter_w : 1), per_row(s.filter_w / taps) {}
  int64_t taps;     // along x
  int64_t per_row;  // units in a row of the filter
};

/// Writes elements [begin, end) of one unit whose first tap lies at in_x of the input row (null: outside the input).
template <typename T>
T* gather_unit(const ConvShape& s, const T* row, int64_t in_x, int64_t begin, int64_t end, T padding, T* out) {
  // Elements of the unit before `inside` lie left of the input, those from `outside` right of it.
  const int64_t inside = row == nullptr ? end : std::clamp(-in_x * s.filter_c, begin, end);
  const int64_t outside = row == nullptr ? end : std::clamp((s.in_w - in_x) * s.filter_c, inside, end);
  out = std::fill_n(out, inside - begin, padding);
  if (outside > inside) {
    const T* from = row + in_x * s.in_c + inside;
    // Short copies are many where channels are few (the first layer of an image model); a call each would dominate.
    if (outside - inside < 16) {
      for (int64_t i = 0; i < outside - inside; ++i) out[i] = from[i];
      out += outside - inside;
    } else {
      out = std::copy_n(from, outside - inside, out);
    }
  }
  return std::fill_n(out, end - outside, padding);
}

/// Bytes behind the last row that im2col may write: it copies whole blocks.
inline constexpr int64_t kGatherSlack = 16;

/// Copies `rows` rows of `size` elements for each of `count` pixels in blocks of 16 bytes; what a block has too much is
/// overwritten by the next. Blocks == 0: as many as the size takes.
template <int Blocks, typename T>
void gather_blocks(const T* from, int64_t next_pixel, int64_t next_row, int64_t rows, int64_t size, int64_t count,
                   T* out, int64_t out_stride) {
  constexpr int64_t kBlock = 16 / static_cast<int64_t>(sizeof(T));
  for (int64_t pixel = 0; pixel < count; ++pixel, from += next_pixel, out += out_stride) {
    const T* row = from;
    T* to = out;
    for (int64_t y = 0; y < rows; ++y, row += next_row, to += size) {
      if constexpr (Blocks > 0) {
        for (int64_t b = 0; b < Blocks; ++b) std::memcpy(to + b * kBlock, row + b * kBlock, 16);
      } else {
        for (int64_t i = 0; i < size; i += kBlock) std::memcpy(to + i, row + i, 16);
      }
    }
  }
}

/// The pixels whose filter lies inside the input, as long as rows of the filter are neighbours in memory: few
/// instructions each, since the first layer of an image model has many with little to copy.
template <typename T>
class InnerPixels {
 public:
  InnerPixels(const ConvShape& s, const T* input)
      : s_(s),
        input_(input),
        end_(input + s.batch * s.in_h * s.in_w * s.in_c),
        size_(s.filter_w * s.filter_c),
        read_((size_ + kBlock - 1) / kBlock * kBlock),
        last_x_(s.in_w < s.filter_w ? -1 : (s.in_w - s.filter_w + s.pad_left) / s.stride_w) {}

  static bool possible(const ConvShape& s) { return s.dilation_w == 1 && s.filter_c == s.in_c; }

  /// Gathers from pixel (x, y) on, at most `count` and within the row of output; returns how many, perhaps 0.
  int64_t gather(int64_t batch, int64_t y, int64_t x, int64_t count, T* out, int64_t out_stride) const {
    const int64_t in_y = y * s_.stride_h - s_.pad_top;
    const int64_t in_x = x * s_.stride_w - s_.pad_left;
    if (in_x < 0 || x > last_x_ || in_y < 0 || in_y + (s_.filter_h - 1) * s_.dilation_h >= s_.in_h) return 0;
    const int64_t next_row = s_.dilation_h * s_.in_w * s_.in_c;
    const int64_t next_pixel = s_.stride_w * s_.in_c;
    const T* from = input_ + ((batch * s_.in_h + in_y) * s_.in_w + in_x) * s_.in_c;
    // The last block of the last pixel must end inside the input.
    const int64_t room = end_ - from - (s_.filter_h - 1) * next_row - read_;
    if (room < 0) return 0;
    count = std::min({count, last_x_ - x + 1, room / next_pixel + 1});
    const auto run = [&](auto blocks) {
      gather_blocks<blocks>(from, next_pixel, next_row, s_.filter_h, size_, count, out, out_stride);
    };
    switch (read_ / kBlock) {
      case 1:
        run(std::integral_constant<int, 1>{});
        break;
      case 2:
        run(std::integral_constant<int, 2>{});
        break;
      case 3:
        run(std::integral_constant<int, 3>{});
        break;
      default:
        run(std::integral_constant<int, 0>{});
    }
    return count;
  }

 private:
  static constexpr int64_t kBlock = 16 / static_cast<int64_t>(sizeof(T));
  const ConvShape& s_;
  const T* input_;
  const T* end_;
  int64_t size_;    // elements of a row of the filter
  int64_t read_;    // the same in whole blocks
  int64_t last_x_;  // of the pixels that see no padding at the right
};

/// Writes columns [k_begin, k_end) of the im2col rows of pixels [pixel_begin, pixel_end) of one group, `out_stride`
/// elements apart; what lies between two rows becomes anything. kGatherSlack bytes may follow the last row.
/// Pixels are counted over the batch: (batch * out_h + y) * out_w + x. Taps outside the input read as `padding`.
template <typename T>
void im2col(const ConvShape& s, const T* input, int64_t group, int64_t pixel_begin, int64_t pixel_end, int64_t k_begin,
            int64_t k_end, T padding, T* out, int64_t out_stride) {
  const Im2colUnit unit(s);
  const InnerPixels<T> inner(s, input);
  const bool whole_rows = k_begin == 0 && k_end == s.filter_size() && InnerPixels<T>::possible(s);
  const int64_t size = unit.taps * s.filter_c;
  const int64_t first = k_begin / size;
  const int64_t last = (k_end + size - 1) / size;
  int64_t x = pixel_begin % s.out_w;
  int64_t y = pixel_begin / s.out_w % s.out_h;
  int64_t batch = pixel_begin / s.out_w / s.out_h;
  for (int64_t pixel = pixel_begin; pixel < pixel_end;) {
    int64_t done =
        whole_rows ? inner.gather(batch, y, x, std::min(pixel_end - pixel, s.out_w - x), out, out_stride) : 0;
    if (done == 0) {
      const T* image = input + batch * s.in_h * s.in_w * s.in_c + group * s.filter_c;
      int64_t ky = first / unit.per_row;
      int64_t kx = first % unit.per_row;
      T* to = out;
      for (int64_t u = first; u < last; ++u) {
        const int64_t in_y = y * s.stride_h - s.pad_top + ky * s.dilation_h;
        const int64_t in_x = x * s.stride_w - s.pad_left + kx * s.dilation_w;
        const T* row = in_y >= 0 && in_y < s.in_h ? image + in_y * s.in_w * s.in_c : nullptr;
        // The slice may begin and end inside a unit.
        to = gather_unit(s, row, in_x, std::max<int64_t>(k_begin - u * size, 0), std::min(k_end - u * size, size),
                         padding, to);
        if (++kx == unit.per_row) {
          kx = 0;
          ++ky;
        }
      }
      std::fill(to, out + out_stride, padding);
      done = 1;
    }
    pixel += done;
    out += done * out_stride;
    x += done;
    if (x == s.out_w) {
      x = 0;
      if (++y == s.out_h) {
        y = 0;
        ++batch;
      }
    }
  }
}

}  // namespace leadline::kernels
