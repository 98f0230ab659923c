// SPDX-License-Identifier: Apache-2.0
// Right-hand sides of products in the layout of the gemm, packed in pieces. Integers of fewer than 8 bits are widened
// block by block on the way, in a buffer of fixed size.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/quant/unpack.h"

namespace leadline::ops {

/// Weights of 4 or 2 bits, from number `first` on. Moves like a pointer.
struct CompactWeights {
  const uint8_t* bytes = nullptr;
  int bits = 4;
  int64_t first = 0;

  CompactWeights operator+(int64_t count) const { return {bytes, bits, first + count}; }
  /// `count` of them as int8.
  void unpack(int64_t count, int8_t* target) const noexcept {
    bits == 4 ? kernels::unpack_signed<4>(bytes, first, count, target)
              : kernels::unpack_signed<2>(bytes, first, count, target);
  }
};

/// Packs B given as [N,K], rows `ldb` elements apart, as kernels::pack_f32() and its kin do. uint16_t are the bits of
/// float16; uint8_t are stored minus 128.
void pack_matrix(const float* b, int64_t ldb, int64_t n, int64_t k, std::byte* packed);
void pack_matrix(const uint16_t* b, int64_t ldb, int64_t n, int64_t k, std::byte* packed);
void pack_matrix(const int8_t* b, int64_t ldb, int64_t n, int64_t k, std::byte* packed);
void pack_matrix(const uint8_t* b, int64_t ldb, int64_t n, int64_t k, std::byte* packed);
void pack_matrix(const CompactWeights& b, int64_t ldb, int64_t n, int64_t k, std::byte* packed);

/// Packs B given as [K,N], rows `ldb` elements apart.
void pack_matrix_kn(const float* b, int64_t ldb, int64_t n, int64_t k, std::byte* packed);
void pack_matrix_kn(const int8_t* b, int64_t ldb, int64_t n, int64_t k, std::byte* packed);
void pack_matrix_kn(const CompactWeights& b, int64_t ldb, int64_t n, int64_t k, std::byte* packed);

/// As kernels::pack_i16() does; `ldb` values from row to row.
void pack_matrix_i16(const int8_t* b, int64_t ldb, int64_t n, int64_t k, std::byte* packed);
void pack_matrix_i16(const CompactWeights& b, int64_t ldb, int64_t n, int64_t k, std::byte* packed);
void pack_matrix_i16_kn(const int8_t* b, int64_t ldb, int64_t n, int64_t k, std::byte* packed);

}  // namespace leadline::ops
