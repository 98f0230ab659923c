// SPDX-License-Identifier: Apache-2.0
#include "ops/loops/pack.h"

#include <algorithm>

#include "core/work.h"
#include "kernels/gemm/gemm_f32.h"
#include "kernels/gemm/gemm_i16.h"
#include "kernels/gemm/gemm_i8.h"

namespace leadline::ops {
namespace {

/// Calls pack(columns, depth) for ranges that the kernels' pack functions take.
template <typename Pack>
void for_ranges(int64_t n, int64_t k, const Pack& pack) {
  for_boxes<2>({{{{0, n}, kernels::kGemmColumnGrain}, {{0, k}, kernels::kPackDepthGrain}}}, 0.5,
               [&](const auto& box) { pack(box[0], box[1]); });
}

template <typename T>
using Pack = void (*)(const T*, int64_t, int64_t, int64_t, std::byte*, IndexRange, IndexRange) noexcept;

template <typename T>
void pack_rows(Pack<T> pack, const T* b, int64_t ldb, int64_t n, int64_t k, std::byte* packed) {
  for_ranges(n, k, [&](IndexRange columns, IndexRange depth) {
    pack(b + columns.begin * ldb + depth.begin, ldb, n, k, packed, columns, depth);
  });
}

template <typename T>
void pack_columns(Pack<T> pack, const T* b, int64_t ldb, int64_t n, int64_t k, std::byte* packed) {
  for_ranges(n, k, [&](IndexRange columns, IndexRange depth) {
    pack(b + depth.begin * ldb + columns.begin, ldb, n, k, packed, columns, depth);
  });
}

/// A block that is widened at a time: 16 KiB.
constexpr int64_t kPieceColumns = kernels::kGemmColumnGrain;
constexpr int64_t kPieceDepth = 512;

/// Calls body(columns, depth) for blocks, those of the same columns one after the other.
template <typename Body>
void for_blocks(int64_t n, int64_t k, const Body& body) {
  const int64_t across = std::max<int64_t>(1, (k + kPieceDepth - 1) / kPieceDepth);
  for_pieces((n + kPieceColumns - 1) / kPieceColumns * across, 2.0 * kPieceColumns * kPieceDepth,
             [&](int64_t begin, int64_t end) {
               for (int64_t i = begin; i < end; ++i) {
                 const int64_t col = i / across * kPieceColumns;
                 const int64_t first = i % across * kPieceDepth;
                 body(IndexRange{col, std::min(n, col + kPieceColumns)},
                      IndexRange{first, std::min(k, first + kPieceDepth)});
               }
             });
}

}  // namespace

void pack_matrix(const float* b, int64_t ldb, int64_t n, int64_t k, std::byte* packed) {
  pack_rows<float>(kernels::pack_f32, b, ldb, n, k, packed);
}
void pack_matrix(const uint16_t* b, int64_t ldb, int64_t n, int64_t k, std::byte* packed) {
  pack_rows<uint16_t>(kernels::pack_f32_from_f16, b, ldb, n, k, packed);
}
void pack_matrix(const int8_t* b, int64_t ldb, int64_t n, int64_t k, std::byte* packed) {
  pack_rows<int8_t>(kernels::pack_i8, b, ldb, n, k, packed);
}
void pack_matrix(const uint8_t* b, int64_t ldb, int64_t n, int64_t k, std::byte* packed) {
  pack_rows<uint8_t>(kernels::pack_u8, b, ldb, n, k, packed);
}
void pack_matrix(const CompactWeights& b, int64_t ldb, int64_t n, int64_t k, std::byte* packed) {
  for_blocks(n, k, [&](IndexRange columns, IndexRange depth) {
    int8_t wide[kPieceColumns * kPieceDepth];
    for (int64_t col = columns.begin; col < columns.end; ++col) {
      (b + col * ldb + depth.begin).unpack(depth.size(), wide + (col - columns.begin) * kPieceDepth);
    }
    kernels::pack_i8(wide, kPieceDepth, n, k, packed, columns, depth);
  });
}

void pack_matrix_kn(const float* b, int64_t ldb, int64_t n, int64_t k, std::byte* packed) {
  pack_columns<float>(kernels::pack_f32_kn, b, ldb, n, k, packed);
}
void pack_matrix_kn(const int8_t* b, int64_t ldb, int64_t n, int64_t k, std::byte* packed) {
  pack_columns<int8_t>(kernels::pack_i8_kn, b, ldb, n, k, packed);
}
void pack_matrix_kn(const CompactWeights& b, int64_t ldb, int64_t n, int64_t k, std::byte* packed) {
  for_blocks(n, k, [&](IndexRange columns, IndexRange depth) {
    int8_t wide[kPieceColumns * kPieceDepth];
    for (int64_t i = depth.begin; i < depth.end; ++i) {
      (b + i * ldb + columns.begin).unpack(columns.size(), wide + (i - depth.begin) * kPieceColumns);
    }
    kernels::pack_i8_kn(wide, kPieceColumns, n, k, packed, columns, depth);
  });
}

void pack_matrix_i16(const int8_t* b, int64_t ldb, int64_t n, int64_t k, std::byte* packed) {
  for_ranges(n, k, [&](IndexRange columns, IndexRange depth) {
    kernels::pack_i16(b + columns.begin * ldb + depth.begin, {ldb, 1}, n, k, packed, columns, depth);
  });
}
void pack_matrix_i16(const CompactWeights& b, int64_t ldb, int64_t n, int64_t k, std::byte* packed) {
  for_blocks(n, k, [&](IndexRange columns, IndexRange depth) {
    int8_t wide[kPieceColumns * kPieceDepth];
    for (int64_t col = columns.begin; col < columns.end; ++col) {
      (b + col * ldb + depth.begin).unpack(depth.size(), wide + (col - columns.begin) * kPieceDepth);
    }
    kernels::pack_i16(wide, {kPieceDepth, 1}, n, k, packed, columns, depth);
  });
}
void pack_matrix_i16_kn(const int8_t* b, int64_t ldb, int64_t n, int64_t k, std::byte* packed) {
  for_ranges(n, k, [&](IndexRange columns, IndexRange depth) {
    kernels::pack_i16(b + depth.begin * ldb + columns.begin, {1, ldb}, n, k, packed, columns, depth);
  });
}

}  // namespace leadline::ops
