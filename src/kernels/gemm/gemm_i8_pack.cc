// SPDX-License-Identifier: Apache-2.0
// Packs the right-hand side of the 8-bit gemm (layout_i8.h): panels of two vectors of columns, groups of k side by
// side.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "kernels/gemm/gemm_i8.h"
#include "kernels/gemm/layout_i8.h"
#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm/gemm_i8_pack.cc"
#ifndef HWY_WANT_AVX3_DL
#define HWY_WANT_AVX3_DL
#endif
#include "kernels/all_targets.h"
#include "kernels/gemm/dot_i8-inl.h"

HWY_BEFORE_NAMESPACE();
namespace leadline::kernels {
namespace HWY_NAMESPACE {
namespace {

constexpr int64_t kLanes = HWY_LANES(int32_t);
constexpr int64_t kPanel = 2 * kLanes;

/// The sums of these columns, zeros before their first k.
int32_t* begin_sums(int64_t n, std::byte* packed, IndexRange columns, IndexRange depth) {
  auto* sums = reinterpret_cast<int32_t*>(packed);
  const int64_t end = columns.end < n ? columns.end : panels_offset(n) / static_cast<int64_t>(sizeof(int32_t));
  if (depth.begin == 0) std::fill(sums + columns.begin, sums + end, 0);
  return sums;
}

void pack_kn(const int8_t* b, int64_t ldb, int64_t n, int64_t k, std::byte* packed, IndexRange columns,
             IndexRange depth) {
  int32_t* sums = begin_sums(n, packed, columns, depth);
  const int64_t padded = round_up(k, kGroup);
  for (int64_t col = columns.begin; col < columns.end; col += kPanel) {
    const int64_t width = n - col > kLanes ? kPanel : kLanes;
    auto* out = reinterpret_cast<int8_t*>(packed + panels_offset(n)) + col * padded + depth.begin * width;
    for (int64_t k0 = depth.begin; k0 < depth.end; k0 += kGroup) {
      for (int64_t j = 0; j < width; ++j) {
        for (int64_t i = k0; i < k0 + kGroup; ++i) {
          const int8_t value = col + j < n && i < k ? b[(i - depth.begin) * ldb + col - columns.begin + j] : int8_t{0};
          if (col + j < n) sums[col + j] += value;
          *out++ = value;
        }
      }
    }
  }
}

/// `count` groups of a row to their places in a panel, `stride` bytes apart.
HWY_INLINE void pack_groups(const uint8_t* row, int64_t count, uint8_t flip, int64_t stride, uint8_t* out) {
  using Word = std::conditional_t<kGroup == 4, uint32_t, uint16_t>;
  const auto flips = static_cast<Word>(flip * static_cast<Word>(0x01010101U));
  for (int64_t i = 0; i < count; ++i, row += kGroup, out += stride) {
    Word word;
    std::memcpy(&word, row, kGroup);
    word = static_cast<Word>(word ^ flips);
    std::memcpy(out, &word, kGroup);
  }
}

/// Rows of bytes, each exclusive-ored with `flip` (0x80 takes 128 off unsigned ones). A cache line of each row at a
/// time: then what is written stays in the cache until it is complete.
void pack_rows(const uint8_t* b, int64_t ldb, int64_t n, int64_t k, uint8_t flip, std::byte* packed, IndexRange columns,
               IndexRange depth) {
  constexpr int64_t kLine = 64 / kGroup;
  static_assert(kPackDepthGrain % kGroup == 0);
  int32_t* sums = begin_sums(n, packed, columns, depth);
  const int64_t padded = round_up(k, kGroup);
  const int64_t first = depth.begin / kGroup;
  const int64_t whole = depth.end / kGroup;
  for (int64_t col = columns.begin; col < columns.end; col += kPanel) {
    const int64_t width = n - col > kLanes ? kPanel : kLanes;
    const int64_t used = std::min(width, n - col);
    const int64_t stride = width * kGroup;
    auto* panel = reinterpret_cast<uint8_t*>(packed + panels_offset(n)) + col * padded;
    if (used < width) {
      std::memset(panel + first * stride, 0,
                  static_cast<size_t>((round_up(depth.end, kGroup) / kGroup - first) * stride));
    }
    for (int64_t i = first; i < whole; i += kLine) {
      for (int64_t j = 0; j < used; ++j) {
        pack_groups(b + (col - columns.begin + j) * ldb + (i - first) * kGroup, std::min(kLine, whole - i), flip,
                    stride, panel + i * stride + j * kGroup);
      }
    }
    for (int64_t j = 0; j < used; ++j) {
      const uint8_t* row = b + (col - columns.begin + j) * ldb;
      const int64_t sum = unsigned_sum(row, depth.size(), flip ^ 0x80) - 128 * depth.size();
      sums[col + j] += static_cast<int32_t>(sum);
      for (int64_t g = whole * kGroup; g < round_up(depth.end, kGroup); ++g) {
        panel[whole * stride + j * kGroup + g % kGroup] = g < k ? row[g - depth.begin] ^ flip : 0;
      }
    }
  }
}

void pack_nk(const int8_t* b, int64_t ldb, int64_t n, int64_t k, std::byte* packed, IndexRange columns,
             IndexRange depth) {
  pack_rows(reinterpret_cast<const uint8_t*>(b), ldb, n, k, 0, packed, columns, depth);
}

void pack_nk_u8(const uint8_t* b, int64_t ldb, int64_t n, int64_t k, std::byte* packed, IndexRange columns,
                IndexRange depth) {
  pack_rows(b, ldb, n, k, 0x80, packed, columns, depth);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace leadline::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace leadline::kernels {
namespace {

HWY_EXPORT(pack_nk);
HWY_EXPORT(pack_nk_u8);
HWY_EXPORT(pack_kn);

}  // namespace

int64_t packed_bytes_i8(int64_t n, int64_t k) noexcept { return panels_offset(n) + round_up(n, 16) * round_up(k, 4); }

void pack_i8(const int8_t* b, int64_t ldb, int64_t n, int64_t k, std::byte* packed, IndexRange columns,
             IndexRange depth) noexcept {
  HWY_DYNAMIC_DISPATCH(pack_nk)(b, ldb, n, k, packed, columns, depth);
}
void pack_u8(const uint8_t* b, int64_t ldb, int64_t n, int64_t k, std::byte* packed, IndexRange columns,
             IndexRange depth) noexcept {
  HWY_DYNAMIC_DISPATCH(pack_nk_u8)(b, ldb, n, k, packed, columns, depth);
}
void pack_i8_kn(const int8_t* b, int64_t ldb, int64_t n, int64_t k, std::byte* packed, IndexRange columns,
                IndexRange depth) noexcept {
  HWY_DYNAMIC_DISPATCH(pack_kn)(b, ldb, n, k, packed, columns, depth);
}

}  // namespace leadline::kernels
#endif  // HWY_ONCE
