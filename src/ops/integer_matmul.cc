// SPDX-License-Identifier: Apache-2.0
#include "ops/integer_matmul.h"

#include <algorithm>

#include "kernels/gemm/gemm_i8.h"
#include "ops/contraction.h"
#include "ops/loops/gemm.h"
#include "ops/loops/pack.h"
#include "ops/loops/quantize_rows.h"
#include "ops/loops/split.h"

namespace leadline::ops {
namespace {

/// Packed right-hand columns of all threads together.
constexpr int64_t kPackedBytes = 8 << 20;
/// Left-hand rows that one thread has transposed or quantized at a time.
constexpr int64_t kThreadRowBytes = 256 << 10;

/// [rows, columns] of a matrix with `ld` columns become rows of the target.
template <typename T>
void transpose(const T* source, int64_t ld, int64_t rows, int64_t columns, T* target) {
  constexpr int64_t kGroup = 16;
  for_boxes<2>({{{{0, rows}, kGroup}, {{0, columns}}}}, 1, [&](const auto& box) {
    for (int64_t i0 = box[0].begin; i0 < box[0].end; i0 += kGroup) {
      const int64_t i1 = std::min(box[0].end, i0 + kGroup);
      for (int64_t j = box[1].begin; j < box[1].end; ++j) {
        for (int64_t i = i0; i < i1; ++i) target[j * rows + i] = source[i * ld + j];
      }
    }
  });
}

/// What may be multiplied at once: right-hand columns that are packed together.
struct ColumnBlock {
  const std::byte* packed = nullptr;
  int64_t begin = 0;
  int64_t count = 0;
};

class IntegerMatmul final : public Kernel {
 public:
  IntegerMatmul(PrepareContext& c, const Products& products)
      : p_(products),
        hybrid_(c.input(0).dtype() == DType::kFloat32),
        fixed_rhs_(fixed_input(c, 1, 0) ? c.input(1).data : nullptr),
        threads_(c.threads()) {
    choose_blocks();
    block_bytes_ = align_up(kernels::packed_bytes_i8(columns_, p_.k));
    if (fixed_rhs_ != nullptr) {
      c.request_packed(p_.rhs_matrices * block_bytes_, "gemm");
      c.replaces_input(1);
    }
    by_batch_ = blocks_ == 1 && p_.batches >= 2 * threads_ && threads_ * block_bytes_ <= 2 * kPackedBytes;
    const bool prepares = hybrid_ || p_.adj_x;
    const int64_t fitting =
        kThreadRowBytes / std::max<int64_t>(p_.k, 1) / kernels::kGemmTileRows * kernels::kGemmTileRows;
    band_ = prepares ? std::min(p_.m, std::max(fitting, kernels::kGemmTileRows)) : p_.m;
    BlockLayout slot;
    workspace_at_ = slot.take(kernels::gemm_i8_workspace_bytes(band_, p_.k));
    if (prepares) rows_at_ = slot.take(band_ * p_.k);
    if (hybrid_) {
      scales_at_ = slot.take(band_ * 4);
      zeros_at_ = slot.take(band_ * 4);
      if (p_.adj_x) floats_at_ = slot.take(band_ * p_.k * 4);
    }
    slot_bytes_ = slot.size();
    BlockLayout scratch;
    factors_at_ = scratch.take(p_.n * 4);
    slots_at_ = scratch.take(threads_ * slot_bytes_);
    if (fixed_rhs_ == nullptr) packed_at_ = scratch.take((by_batch_ || blocks_ > 1 ? threads_ : 1) * block_bytes_);
    c.request_scratch(scratch.size());
  }

  void pack(std::byte* packed) override {
    if (fixed_rhs_ == nullptr) return;
    for_pieces(p_.rhs_matrices, static_cast<double>(p_.n) * static_cast<double>(p_.k) + 64,
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   pack_columns(fixed_rhs_, i, 0, p_.n, packed + i * block_bytes_);
                 }
               });
  }

  void run(RunContext& c) override {
    fill_factors(c);
    if (by_batch_) {
      c.pool().for_pieces(threads_, kWholePiece, [&](int64_t begin, int64_t end) {
        for (int64_t slot = begin; slot < end; ++slot) {
          const IndexRange part = part_range(p_.batches, 1, threads_, slot);
          for_pieces(part.size(), product_cost(), [&](int64_t first, int64_t last) {
            for (int64_t i = part.begin + first; i < part.begin + last; ++i) {
              multiply(c, i, block(c, i, 0, slot), {0, p_.m}, {0, p_.n}, slot);
            }
          });
        }
      });
      return;
    }
    for_pieces(p_.batches, product_cost(), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) blocks_ == 1 ? share_block(c, i) : share_columns(c, i);
    });
  }

 private:
  double product_cost() const {
    return static_cast<double>(p_.m * p_.n + p_.m + p_.n) * static_cast<double>(p_.k) / 32 + 256;
  }

  /// Blocks of columns that all threads hold at the same time; as many for each thread.
  void choose_blocks() {
    const int64_t grain = kernels::kGemmColumnGrain;
    const int64_t fitting = kPackedBytes / threads_ / std::max<int64_t>(p_.k, 1) / grain * grain;
    columns_ = p_.n;
    if (fixed_rhs_ != nullptr || p_.n * p_.k <= kPackedBytes / threads_) return;
    const int64_t wanted = (p_.n + std::max(fitting, grain) - 1) / std::max(fitting, grain);
    const int64_t even = (wanted + threads_ - 1) / threads_ * threads_;
    columns_ = std::min(p_.n, ((p_.n + even - 1) / even + grain - 1) / grain * grain);
    blocks_ = (p_.n + columns_ - 1) / columns_;
  }

  void pack_columns(const std::byte* rhs, int64_t matrix, int64_t begin, int64_t count, std::byte* target) const {
    const int8_t* from = reinterpret_cast<const int8_t*>(rhs) + matrix * p_.n * p_.k;
    p_.adj_y ? pack_matrix(from + begin * p_.k, p_.k, count, p_.k, target)
             : pack_matrix_kn(from + begin, p_.n, count, p_.k, target);
  }

  /// Block number `index` of a product's right-hand columns, packed now into memory `slot` unless it was ahead.
  ColumnBlock block(const RunContext& c, int64_t batch, int64_t index, int64_t slot) const {
    const int64_t matrix = p_.rhs_matrix(batch);
    if (fixed_rhs_ != nullptr) return {c.packed() + matrix * block_bytes_, 0, p_.n};
    std::byte* target = c.scratch() + packed_at_ + slot * block_bytes_;
    const ColumnBlock block{target, index * columns_, std::min(columns_, p_.n - index * columns_)};
    pack_columns(c.input(1).data, matrix, block.begin, block.count, target);
    return block;
  }

  /// One block for all: the threads share its rows or columns.
  void share_block(const RunContext& c, int64_t batch) const {
    const ColumnBlock columns = block(c, batch, 0, 0);
    const GemmSplit split =
        split_gemm(p_.m, p_.n, p_.k, kernels::kGemmColumnGrain, static_cast<int>(threads_), 0, kMinPartCost8);
    for_parts(c.pool(), split, p_.m, p_.n, kernels::kGemmColumnGrain,
              [&](IndexRange rows, IndexRange cols, int64_t part) { multiply(c, batch, columns, rows, cols, part); });
  }

  /// Blocks of their own: each thread packs one and multiplies all rows by it.
  void share_columns(const RunContext& c, int64_t batch) const {
    c.pool().for_pieces(threads_, kWholePiece, [&](int64_t begin, int64_t end) {
      for (int64_t slot = begin; slot < end; ++slot) {
        for (int64_t index = slot; index < blocks_; index += threads_) {
          const ColumnBlock columns = block(c, batch, index, slot);
          multiply(c, batch, columns, {0, p_.m}, {0, columns.count}, slot);
        }
      }
    });
  }

  void fill_factors(const RunContext& c) const {
    if (c.output(0).dtype == DType::kInt32) return;
    const Quantization& rhs = *c.input(1).quantization;
    auto* factors = reinterpret_cast<float*>(c.scratch() + factors_at_);
    for_pieces(p_.n, 8, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const float scale = rhs.scale[rhs.per_channel() ? static_cast<size_t>(i) : 0];
        factors[i] = hybrid_ ? scale
                             : static_cast<float>(kernels::scale_ratio(c.input(0).quantization->scale0(), scale,
                                                                       c.output(0).quantization->scale0()));
      }
    });
  }

  kernels::RowParameters row_parameters(const std::byte* slot) const {
    return {reinterpret_cast<float*>(const_cast<std::byte*>(slot) + scales_at_),
            reinterpret_cast<int32_t*>(const_cast<std::byte*>(slot) + zeros_at_)};
  }

  /// Rows [row, row + count) of a left-hand matrix as the gemm reads them.
  const int8_t* rows_of(const RunContext& c, int64_t matrix, int64_t row, int64_t count, std::byte* slot) const {
    const int64_t first = matrix * p_.m * p_.k + (p_.adj_x ? row : row * p_.k);
    auto* target = reinterpret_cast<int8_t*>(slot + rows_at_);
    if (hybrid_) {
      const float* values = c.input(0).as<float>() + first;
      if (p_.adj_x) {
        auto* floats = reinterpret_cast<float*>(slot + floats_at_);
        transpose(values, p_.m, p_.k, count, floats);
        values = floats;
      }
      quantize_rows(values, count, p_.k, target, row_parameters(slot), c.pool());
      return target;
    }
    if (!p_.adj_x) return c.input(0).as<int8_t>() + first;
    transpose(c.input(0).as<int8_t>() + first, p_.m, p_.k, count, target);
    return target;
  }

  /// Rows times columns (of the block) of one product, on the calling thread.
  void multiply(const RunContext& c, int64_t batch, const ColumnBlock& columns, IndexRange rows, IndexRange cols,
                int64_t slot_index) const {
    std::byte* slot = c.scratch() + slots_at_ + slot_index * slot_bytes_;
    const double row_cost = static_cast<double>(cols.size()) * static_cast<double>(p_.k) / 32;
    for_boxes<1>({{{rows, band_}}}, row_cost, [&](const auto& box) {
      for (int64_t row = box[0].begin; row < box[0].end; row += band_) {
        multiply_band(c, batch, columns, {row, std::min(box[0].end, row + band_)}, cols, slot);
      }
    });
  }

  /// The same for at most band_ rows.
  void multiply_band(const RunContext& c, int64_t batch, const ColumnBlock& columns, IndexRange rows, IndexRange cols,
                     std::byte* slot) const {
    const auto* factors = reinterpret_cast<const float*>(c.scratch() + factors_at_) + columns.begin;
    kernels::GemmI8 g{.a = rows_of(c, p_.lhs_matrix(batch), rows.begin, rows.size(), slot),
                      .lda = p_.k,
                      .m = rows.size(),
                      .b = columns.packed,
                      .n = columns.count,
                      .k = p_.k};
    const int64_t out = (batch * p_.m + rows.begin) * p_.n + columns.begin;
    const auto finish = [&](const auto& output) { ops::multiply(g, output, {0, g.m}, cols, slot + workspace_at_); };
    if (hybrid_) {
      g.a_row_zero_points = row_parameters(slot).zero_point;
      finish(kernels::DequantizedOutput{.c = c.output(0).mutable_as<float>() + out,
                                        .ldc = p_.n,
                                        .row_scale = row_parameters(slot).scale,
                                        .scale = factors});
    } else if (c.output(0).dtype == DType::kInt32) {
      finish(kernels::AccumulatorOutput{.c = c.output(0).mutable_as<int32_t>() + out, .ldc = p_.n});
    } else {
      g.a_zero_point = c.input(0).quantization->zero_point0();
      g.b_zero_point = c.input(1).quantization->zero_point0();
      finish(kernels::RequantizedOutput{.c = c.output(0).mutable_as<int8_t>() + out,
                                        .ldc = p_.n,
                                        .scale = factors,
                                        .zero_point = c.output(0).quantization->zero_point0()});
    }
  }

  Products p_;
  bool hybrid_;
  const std::byte* fixed_rhs_;  // null: packed in every run
  int64_t threads_;
  bool by_batch_ = false;    // many products: one per thread at a time
  int64_t columns_ = 0;      // of a packed block
  int64_t blocks_ = 1;       // of one right-hand matrix
  int64_t block_bytes_ = 0;  // packed
  int64_t band_ = 0;         // left-hand rows that are prepared at a time
  int64_t slot_bytes_ = 0;   // scratch of one thread
  int64_t workspace_at_ = 0, rows_at_ = 0, scales_at_ = 0, zeros_at_ = 0, floats_at_ = 0;  // in a slot
  int64_t factors_at_ = 0, slots_at_ = 0, packed_at_ = 0;                                  // in scratch
};

}  // namespace

std::unique_ptr<Kernel> make_integer_matmul(PrepareContext& c, const Products& products) {
  return std::make_unique<IntegerMatmul>(c, products);
}

}  // namespace leadline::ops
