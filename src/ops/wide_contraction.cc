// SPDX-License-Identifier: Apache-2.0
#include "ops/wide_contraction.h"

#include <algorithm>
#include <cmath>

#include "kernels/conv/conv_i16.h"
#include "kernels/gemm/dot_i16.h"
#include "ops/common.h"
#include "ops/loops/conv.h"
#include "ops/loops/depthwise.h"
#include "ops/loops/pack.h"

namespace leadline::ops {
namespace {

using kernels::reference::WideRounding;

/// Calls body(channel, value) for a bias of either type.
template <typename Body>
void for_biases(const Contraction& f, const std::byte* data, const Body& body) {
  for_pieces(f.rule.channels, 2, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      body(i, f.bias_type == DType::kInt64 ? static_cast<double>(reinterpret_cast<const int64_t*>(data)[i])
                                           : static_cast<double>(reinterpret_cast<const int32_t*>(data)[i]));
    }
  });
}

/// The biases and factors of all channels, in packed memory.
class WideScales {
 public:
  WideScales(const Contraction& f, BlockLayout& packed) : f_(f) {
    static_assert(sizeof(double) == sizeof(kernels::Multiplier));
    const int64_t bytes = f_.rule.channels * static_cast<int64_t>(sizeof(double));
    factors_at_ = packed.take(bytes);
    if (f_.wide_rounding == WideRounding::kShortFactor) multipliers_at_ = packed.take(bytes);
    if (!f_.has_bias) return;
    bias_at_ = packed.take(bytes);
    exact_at_ = packed.take(f_.rule.channels);
  }

  void pack(std::byte* packed) const {
    auto* factors = reinterpret_cast<double*>(packed + factors_at_);
    auto* multipliers = reinterpret_cast<kernels::Multiplier*>(packed + multipliers_at_);
    if (f_.wide_rounding == WideRounding::kReal) {
      f_.fill_real_scales(factors);
    } else {
      f_.fill_multipliers(multipliers);
    }
    if (f_.wide_rounding == WideRounding::kShortFactor) {
      for_items(f_.rule.channels, 8, [&](int64_t i) { factors[i] = kernels::wide_factor(multipliers[i]); });
    }
    if (f_.has_bias) pack_bias(packed);
  }

  kernels::WideFinish finish(const std::byte* packed) const {
    const auto* factors = reinterpret_cast<const double*>(packed + factors_at_);
    const auto* multipliers = reinterpret_cast<const kernels::Multiplier*>(packed + multipliers_at_);
    return {.rounding = f_.wide_rounding,
            .bias = f_.has_bias ? reinterpret_cast<const double*>(packed + bias_at_) : nullptr,
            .factor = f_.wide_rounding == WideRounding::kNarrowSum ? nullptr : factors,
            .multiplier = f_.wide_rounding == WideRounding::kReal ? nullptr : multipliers,
            .exact = f_.has_bias ? reinterpret_cast<const uint8_t*>(packed + exact_at_) : nullptr,
            .lo = f_.level_lo,
            .hi = f_.level_hi};
  }

 private:
  void pack_bias(std::byte* packed) const {
    auto* bias = reinterpret_cast<double*>(packed + bias_at_);
    auto* exact = reinterpret_cast<uint8_t*>(packed + exact_at_);
    for_biases(f_, f_.fixed_bias, [&](int64_t i, double value) { bias[i] = value; });
    int64_t large = -kernels::kWidePanel;  // the last channel seen that is
    for_items(f_.rule.channels, 2, [&](int64_t i) {
      const int64_t channel = f_.rule.channels - 1 - i;
      if (std::abs(bias[channel]) > kernels::kWideShortBias) large = channel;
      exact[channel] = large >= channel && large < channel + kernels::kWidePanel ? 1 : 0;
    });
  }

  const Contraction& f_;  // its owner's
  int64_t factors_at_ = 0;
  int64_t multipliers_at_ = 0;  // where the factors are if there are none
  int64_t bias_at_ = 0;
  int64_t exact_at_ = 0;
};

CompactWeights compact(const Contraction& f) {
  return {reinterpret_cast<const uint8_t*>(f.fixed_weights), f.weight_type == DType::kInt4 ? 4 : 2};
}

class WideConv final : public Kernel {
 public:
  WideConv(PrepareContext& c, const Contraction& contraction, const kernels::ConvShape& shape, bool channels_last)
      : f_(contraction), shape_(shape), channels_last_(channels_last), scales_(f_, packed_) {
    filter_at_ = packed_.take(shape_.groups() * kernels::conv_group_bytes_i16(shape_));
    c.request_packed(packed_.size(), channels_last ? "wide.channels_last" : "wide");
    c.request_scratch(c.threads() * kernels::conv_workspace_bytes_i16(shape_));
    c.replaces_input(f_.rule.weights);
  }

  void pack(std::byte* packed) override {
    scales_.pack(packed);
    if (f_.compact_weights()) return pack_groups(compact(f_), packed + filter_at_);
    pack_groups(reinterpret_cast<const int8_t*>(f_.fixed_weights), packed + filter_at_);
  }

  void run(RunContext& c) override {
    if (c.output(0).elements() == 0) return;
    const kernels::ConvI16 conv{.shape = shape_,
                                .input = c.input(0).as<int16_t>(),
                                .filter = c.packed() + filter_at_,
                                .finish = scales_.finish(c.packed()),
                                .output = c.output(0).mutable_as<int16_t>()};
    convolve(conv, c.scratch(), c.pool());
  }

 private:
  template <typename Source>
  void pack_groups(const Source& source, std::byte* packed) const {
    const int64_t n = shape_.group_out_c();
    const int64_t k = shape_.filter_size();
    for_pieces(shape_.groups(), static_cast<double>(n) * static_cast<double>(k) + 64, [&](int64_t begin, int64_t end) {
      for (int64_t group = begin; group < end; ++group) {
        std::byte* matrix = packed + group * kernels::conv_group_bytes_i16(shape_);
        if constexpr (std::is_pointer_v<Source>) {
          if (channels_last_) {
            pack_matrix_i16_kn(source, n, n, k, matrix);
            continue;
          }
        }
        pack_matrix_i16(source + group * n * k, k, n, k, matrix);
      }
    });
  }

  Contraction f_;
  kernels::ConvShape shape_;
  bool channels_last_;
  BlockLayout packed_;
  WideScales scales_;
  int64_t filter_at_ = 0;
};

class WideDepthwise final : public Kernel {
 public:
  WideDepthwise(PrepareContext& c, const Contraction& contraction, const kernels::DepthwiseShape& shape)
      : f_(contraction), shape_(shape), scales_(f_, packed_) {
    if (f_.compact_weights()) {
      filter_at_ = packed_.take(f_.widened_bytes());
      c.replaces_input(f_.rule.weights);
    }
    c.request_packed(packed_.size(), "wide");
  }

  void pack(std::byte* packed) override {
    scales_.pack(packed);
    if (f_.compact_weights()) f_.widen_weights(f_.fixed_weights, packed + filter_at_);
  }

  void run(RunContext& c) override {
    if (c.output(0).elements() == 0) return;
    const std::byte* filter = f_.compact_weights() ? c.packed() + filter_at_ : c.input(f_.rule.weights).data;
    const kernels::DepthwiseI16 conv{.shape = shape_,
                                     .input = c.input(0).as<int16_t>(),
                                     .filter = reinterpret_cast<const int8_t*>(filter),
                                     .finish = scales_.finish(c.packed()),
                                     .output = c.output(0).mutable_as<int16_t>()};
    convolve(conv, c.pool());
  }

 private:
  Contraction f_;
  kernels::DepthwiseShape shape_;
  BlockLayout packed_;
  WideScales scales_;
  int64_t filter_at_ = 0;
};

/// Sums become levels one by one, as in the naive loop.
class Int16Product final : public Kernel {
 public:
  Int16Product(PrepareContext& c, const Contraction& contraction, int64_t m, int64_t n, int64_t k)
      : f_(contraction), m_(m), n_(n), k_(k) {
    c.request_packed(f_.rule.channels * static_cast<int64_t>(sizeof(kernels::Multiplier)), "wide.int16");
  }

  void pack(std::byte* packed) override { f_.fill_multipliers(reinterpret_cast<kernels::Multiplier*>(packed)); }

  void run(RunContext& c) override {
    if (c.output(0).elements() == 0) return;
    const bool wide_bias = f_.bias_type == DType::kInt64;
    const kernels::reference::FinishWide finish{
        .bias32 = f_.has_bias && !wide_bias ? c.input(f_.rule.bias).as<int32_t>() : nullptr,
        .bias64 = f_.has_bias && wide_bias ? c.input(f_.rule.bias).as<int64_t>() : nullptr,
        .multiplier = reinterpret_cast<const kernels::Multiplier*>(c.packed()),
        .rounding = f_.wide_rounding,
        .lo = f_.level_lo,
        .hi = f_.level_hi};
    const auto* input = c.input(f_.rule.activations).as<int16_t>();
    const auto* weights = c.input(f_.rule.weights).as<int16_t>();
    auto* output = c.output(0).mutable_as<int16_t>();
    // A few weights at a time, so that the rows pass by them while they are in the cache.
    const int64_t blocks = (n_ + kBlock - 1) / kBlock;
    const double cost = static_cast<double>(kBlock) * (static_cast<double>(k_) / 8 + 16);
    c.pool().for_pieces(m_ * blocks, cost, [&](int64_t begin, int64_t end) {
      int64_t sums[kBlock];
      for (int64_t i = begin; i < end; ++i) {
        const int64_t unit = i / m_ * kBlock;
        const int64_t row = i % m_;
        const int64_t count = std::min(kBlock, n_ - unit);
        kernels::dots_i16(input + row * k_, weights + unit * k_, k_, count, k_, sums);
        for (int64_t j = 0; j < count; ++j) output[row * n_ + unit + j] = finish(sums[j], row, unit + j);
      }
    });
  }

 private:
  static constexpr int64_t kBlock = 16;
  Contraction f_;
  int64_t m_, n_, k_;
};

}  // namespace

bool has_wide_kernel(const Contraction& f, int64_t depth) {
  if (f.arithmetic != Arithmetic::kWide || f.weight_type == DType::kInt16 || f.weight_zero != 0 || !f.all_fixed() ||
      depth > kernels::kWideMaxDepth) {
    return false;
  }
  bool fits = true;
  if (f.has_bias) {
    for_biases(f, f.fixed_bias, [&](int64_t, double value) { fits &= std::abs(value) <= kernels::kWideMaxBias; });
  }
  return fits;
}

std::unique_ptr<Kernel> make_wide_conv(PrepareContext& c, const Contraction& contraction,
                                       const kernels::ConvShape& shape, bool channels_last) {
  return std::make_unique<WideConv>(c, contraction, shape, channels_last);
}

bool has_int16_product(const Contraction& f, int64_t depth) {
  constexpr int64_t kMostDepth = 1 << 20;  // some tenths of a millisecond: a piece is not cut inside of it
  return f.arithmetic == Arithmetic::kWide && f.weight_type == DType::kInt16 && f.weight_zero == 0 &&
         f.wide_rounding != WideRounding::kReal && depth <= kMostDepth;
}

std::unique_ptr<Kernel> make_int16_product(PrepareContext& c, const Contraction& contraction, int64_t m, int64_t n,
                                           int64_t k) {
  return std::make_unique<Int16Product>(c, contraction, m, n, k);
}

std::unique_ptr<Kernel> make_wide_depthwise(PrepareContext& c, const Contraction& contraction,
                                            const kernels::DepthwiseShape& shape) {
  return std::make_unique<WideDepthwise>(c, contraction, shape);
}

}  // namespace leadline::ops
