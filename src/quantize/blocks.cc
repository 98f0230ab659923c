// SPDX-License-Identifier: Apache-2.0
// Weights in blocks, each with a scale of its own.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "core/cancel.h"
#include "core/error.h"
#include "core/half.h"
#include "quantize/float_reading.h"
#include "quantize/rounding.h"

namespace leadline::quantize {
namespace {

constexpr LevelRange kRange{-7, 7};

/// The scales of blocks, or the weights themselves in multiples of them.
class BlockSource final : public ir::PlannedSource {
 public:
  BlockSource(FloatConstant constant, int64_t size, bool scales, const Rounding& rounding)
      : constant_(std::move(constant)), size_(size), scales_(scales), rounding_(rounding) {
    columns_ = constant_.shape[constant_.shape.rank() - 1];
    rows_ = constant_.elements() / columns_;
    rounding_.output_axis = 0;  // the rows
  }
  int64_t bytes() const override {
    return scales_ ? constant_.elements() / size_ * int64_t{sizeof(uint16_t)} : constant_.elements() / 2;
  }
  int64_t extra_bytes() const override {
    return reading_bytes(constant_) + RowRounder::bytes(rounding_, columns_) + 12 * columns_;
  }
  void read(std::span<std::byte> out) const override {
    RowRounder rounder(rounding_, rows_, columns_);
    std::vector<float> weights(static_cast<size_t>(columns_));
    std::vector<float> scales(weights.size());
    std::vector<int32_t> levels(weights.size());
    with_floats(constant_, [&](const std::byte* floats) {
      PacedCheck check;
      for (int64_t row = 0; row < rows_; ++row) {
        check.count(64 * columns_);
        std::memcpy(weights.data(), floats + row * columns_ * int64_t{sizeof(float)}, weights.size() * sizeof(float));
        const std::span<const float> costs = rounder.costs(row);
        for (int64_t begin = 0; begin < columns_; begin += size_) {
          const auto block =
              std::span<const float>(weights).subspan(static_cast<size_t>(begin), static_cast<size_t>(size_));
          const uint16_t scale =
              scale_of(block, costs.empty() ? costs : costs.subspan(static_cast<size_t>(begin), block.size()));
          std::fill_n(scales.begin() + begin, size_, half_to_float(scale));
          if (!scales_) continue;
          std::memcpy(out.data() + (row * columns_ + begin) / size_ * int64_t{sizeof scale}, &scale, sizeof scale);
        }
        if (scales_) continue;
        rounder.round(row, weights, scales, 0, kRange, levels);
        for (size_t i = 0; i < levels.size(); i += 2) {
          const auto halves = (static_cast<unsigned>(levels[i]) & 0xFU) | (static_cast<unsigned>(levels[i + 1]) & 0xFU)
                                                                              << 4;
          out[(static_cast<size_t>(row * columns_) + i) / 2] = static_cast<std::byte>(halves);
        }
      }
    });
  }

 private:
  /// As float16 with the 7 bits of bfloat16, which XNNPACK makes of it. What is rounded to zero there is the smallest
  /// that it has, and what is too large its largest.
  static uint16_t half_scale(float scale) {
    constexpr float kLargest = 65280.0F;
    constexpr float kSmallest = 0x1p-24F;
    return float_to_half(bfloat16_to_float(float_to_bfloat16(std::clamp(scale, kSmallest, kLargest))));
  }

  uint16_t scale_of(std::span<const float> weights, std::span<const float> costs) const {
    float most = 0.0F;
    for (const float weight : weights) most = std::max(most, std::fabs(weight));
    const float whole = most / static_cast<float>(kRange.high);
    if (rounding_.method == WeightRounding::kNearest) return half_scale(whole);
    uint16_t best = 0;
    double least = 0.0;
    for (const float factor : scale_factors()) {
      const uint16_t tried = half_scale(whole * factor);
      const float scale = half_to_float(tried);
      double sum = 0.0;
      for (size_t i = 0; i < weights.size(); ++i) {
        const float level =
            std::clamp(std::round(weights[i] / scale), static_cast<float>(kRange.low), static_cast<float>(kRange.high));
        const auto error = static_cast<double>(weights[i] - level * scale);
        sum += error * error * (costs.empty() ? 1.0 : static_cast<double>(costs[i]));
      }
      if (best != 0 && sum >= least) continue;
      best = tried;
      least = sum;
    }
    return best;
  }

  FloatConstant constant_;
  int64_t size_;
  bool scales_;
  Rounding rounding_;
  int64_t columns_ = 0;
  int64_t rows_ = 0;
};

ir::Source checked_blocks(FloatConstant constant, int64_t size, bool scales, const Rounding& rounding) {
  const Shape& shape = constant.shape;
  require(size > 0 && size % 2 == 0 && shape.rank() > 0 && shape[shape.rank() - 1] > 0 &&
              shape[shape.rank() - 1] % size == 0,
          ErrorCode::kInternal, "shape {} does not divide into blocks of {}", shape.to_string(), size);
  return std::make_shared<BlockSource>(std::move(constant), size, scales, rounding);
}

}  // namespace

ir::Source block_source(FloatConstant constant, int64_t size, const Rounding& rounding) {
  return checked_blocks(std::move(constant), size, false, rounding);
}

ir::Source block_scales_source(FloatConstant constant, int64_t size, const Rounding& rounding) {
  return checked_blocks(std::move(constant), size, true, rounding);
}

}  // namespace leadline::quantize
