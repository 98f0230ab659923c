// SPDX-License-Identifier: Apache-2.0
#include "ops/float_matmul.h"

#include <algorithm>

#include "ops/loops/gemm.h"
#include "ops/loops/matmul_f32.h"

namespace leadline::ops {
namespace {

/// What a product costs besides its multiplications.
constexpr double kProductCost = 256;

/// The workspaces of all threads together, when each does products of its own.
constexpr int64_t kMaxWorkspaces = 16 << 20;

class FloatMatmul final : public Kernel {
 public:
  FloatMatmul(PrepareContext& c, const Products& products, const FloatFinish& finish) : p_(products), finish_(finish) {
    vector_ = p_.m == 1 || p_.n == 1;
    const int64_t threads = c.threads();
    const int64_t bytes = vector_ ? 0 : matmul_f32_workspace_bytes(p_.m, p_.n, p_.k, p_.adj_x);
    // Many products: one per thread at a time. Few, or large ones: the threads share each.
    slots_ = p_.batches >= 2 * threads && threads * bytes <= kMaxWorkspaces ? threads : 1;
    slot_bytes_ = bytes;
    c.request_scratch(slots_ * bytes);
  }

  void run(RunContext& c) override {
    if (slots_ == 1) {
      multiply_all(c, 0, p_.batches, 0);
      return;
    }
    c.pool().for_pieces(slots_, kWholePiece, [&](int64_t begin, int64_t end) {
      for (int64_t slot = begin; slot < end; ++slot) {
        multiply_all(c, p_.batches * slot / slots_, p_.batches * (slot + 1) / slots_, slot);
      }
    });
  }

 private:
  void multiply_all(const RunContext& c, int64_t begin, int64_t end, int64_t slot) const {
    const double cost = static_cast<double>(p_.m * p_.n) * static_cast<double>(p_.k) / 16 + kProductCost;
    for_pieces(end - begin, cost, [&](int64_t first, int64_t last) {
      for (int64_t i = begin + first; i < begin + last; ++i) multiply(c, i, slot);
    });
  }

  /// Uses the pool, which runs on the calling thread alone when that is one of its own.
  void multiply(const RunContext& c, int64_t batch, int64_t slot) const {
    const float* a = c.input(0).as<float>() + p_.lhs_matrix(batch) * p_.m * p_.k;
    const float* b = c.input(1).as<float>() + p_.rhs_matrix(batch) * p_.k * p_.n;
    float* out = c.output(0).mutable_as<float>() + batch * p_.m * p_.n;
    const float* bias = finish_.bias < 0 ? nullptr : c.input(finish_.bias).as<float>();
    if (vector_) {
      if (p_.m == 1) {
        p_.adj_y ? gemv_dots_f32(a, b, p_.k, p_.n, p_.k, out, c.pool())
                 : gemv_rows_f32(a, b, p_.n, p_.n, p_.k, out, c.pool());
      } else {
        p_.adj_x ? gemv_rows_f32(b, a, p_.m, p_.m, p_.k, out, c.pool())
                 : gemv_dots_f32(b, a, p_.k, p_.m, p_.k, out, c.pool());
      }
      finish_vector(bias, out);
    } else {
      matmul_f32({.a = a,
                  .lda = p_.adj_x ? p_.m : p_.k,
                  .a_transposed = p_.adj_x,
                  .b = b,
                  .ldb = p_.adj_y ? p_.k : p_.n,
                  .b_transposed = p_.adj_y,
                  .m = p_.m,
                  .n = p_.n,
                  .k = p_.k,
                  .bias = bias,
                  .c = out,
                  .ldc = p_.n,
                  .lo = finish_.lo,
                  .hi = finish_.hi},
                 c.scratch() + slot * slot_bytes_, c.pool());
    }
  }

  void finish_vector(const float* bias, float* out) const {
    if (bias == nullptr && finish_.lo == FloatFinish().lo && finish_.hi == FloatFinish().hi) return;
    for_pieces(p_.m * p_.n, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const float value = bias == nullptr ? out[i] : out[i] + bias[p_.n == 1 ? 0 : i];
        out[i] = value < finish_.lo ? finish_.lo : value > finish_.hi ? finish_.hi : value;
      }
    });
  }

  Products p_;
  FloatFinish finish_;
  bool vector_ = false;  // a matrix times a vector
  int64_t slots_ = 1;
  int64_t slot_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> make_float_matmul(PrepareContext& c, const Products& products, const FloatFinish& finish) {
  return std::make_unique<FloatMatmul>(c, products, finish);
}

}  // namespace leadline::ops
