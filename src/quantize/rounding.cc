// SPDX-License-Identifier: Apache-2.0
#include "quantize/rounding.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/cancel.h"
#include "kernels/statistics/products.h"
#include "quantize/float_reading.h"
#include "quantize/gram.h"
#include "quantize/rotation.h"

namespace leadline::quantize {
namespace {

/// Finer where 8 bits have their best scale, coarser where 4 and 2 bits do.
constexpr std::array<float, 16> kFactors{1.0F,  0.98F, 0.95F, 0.92F, 0.89F, 0.86F, 0.82F, 0.78F,
                                         0.74F, 0.7F,  0.65F, 0.6F,  0.54F, 0.48F, 0.4F,  0.3F};
/// Where samples do not say what weights are multiplied with: values with a mean, whose square is this part of their
/// variance (half of it behind a RELU, more in pictures), so that errors of one sign add up.
constexpr double kSquaredMean = 0.5;
/// Of the mean square of a column, added to each: samples leave some directions of a wide layer unseen.
constexpr float kDamping = 0.01F;
constexpr int kMostSweeps = 8;
/// A weight moves when it has to move further than this: no rounding error moves it back and forth.
constexpr float kMove = 0.5F + 1e-3F;

float nearest(float weight, float scale, int64_t zero, LevelRange range) {
  const float level = std::round(weight / scale) + static_cast<float>(zero);
  return std::clamp(level, static_cast<float>(range.low), static_cast<float>(range.high));
}

float nearest_error(float weight, float scale, int64_t zero, LevelRange range) {
  return weight - scale * (nearest(weight, scale, zero, range) - static_cast<float>(zero));
}

/// One row, the elements with index `row` along the middle axis.
void gather(const std::byte* floats, const SliceView& view, int64_t row, std::span<float> out) {
  for (int64_t o = 0; o < view.outer; ++o) {
    std::memcpy(out.data() + o * view.inner,
                floats + (o * view.slices + row) * view.inner * static_cast<int64_t>(sizeof(float)),
                static_cast<size_t>(view.inner) * sizeof(float));
  }
}

bool takes_rows(const Rounding& rounding, int axis) {
  return rounding.method == WeightRounding::kComq && rounding.output_axis >= 0 &&
         (axis < 0 || axis == rounding.output_axis);
}

class DescendedSource final : public ir::PlannedSource {
 public:
  DescendedSource(FloatConstant constant, LevelRule rule)
      : constant_(std::move(constant)),
        rule_(std::move(rule)),
        view_(slice_view(constant_.shape, rule_.rounding.output_axis)) {
    const int64_t high = (int64_t{1} << (dtype_bits(rule_.type) - 1)) - 1;
    range_ = {rule_.narrow ? -high : ~high, high};
  }
  int64_t bytes() const override { return (constant_.elements() * dtype_bits(rule_.type) + 7) / 8; }
  int64_t extra_bytes() const override {
    const int64_t columns = view_.outer * view_.inner;
    return reading_bytes(constant_) + RowRounder::bytes(rule_.rounding, columns) + 8 * columns;
  }
  void read(std::span<std::byte> out) const override {
    if (out.empty()) return;
    const auto columns = static_cast<size_t>(view_.outer * view_.inner);
    RowRounder rounder(rule_.rounding, view_.slices, view_.outer * view_.inner);
    std::vector<float> weights(columns);
    std::vector<int32_t> levels(columns);
    const bool packed = dtype_bits(rule_.type) < 8;
    if (packed) std::fill(out.begin(), out.end(), std::byte{0});
    with_floats(constant_, [&](const std::byte* floats) {
      for (int64_t row = 0; row < view_.slices; ++row) {
        gather(floats, view_, row, weights);
        const size_t slice = rule_.quantization.per_channel() ? static_cast<size_t>(row) : 0;
        rounder.round(row, weights, {&rule_.quantization.scale[slice], 1}, rule_.quantization.zero_point[slice], range_,
                      levels);
        for (int64_t o = 0; o < view_.outer; ++o) {
          const int64_t begin = (o * view_.slices + row) * view_.inner;
          for (int64_t k = 0; k < view_.inner; ++k) {
            const int32_t level = levels[static_cast<size_t>(o * view_.inner + k)];
            const int64_t at = begin + k;
            if (packed) {
              put_packed(out, rule_.type, at, level);
            } else {
              out[static_cast<size_t>(at)] = static_cast<std::byte>(level);
            }
          }
        }
      }
    });
  }

 private:
  FloatConstant constant_;
  LevelRule rule_;
  SliceView view_;
  LevelRange range_;
};

}  // namespace

std::span<const float> scale_factors() { return kFactors; }

RowRounder::RowRounder(const Rounding& rounding, int64_t rows, int64_t columns)
    : rounding_(rounding), columns_(columns) {
  const GramMatrix* gram = rounding.method == WeightRounding::kComq ? rounding.gram : nullptr;
  if (gram == nullptr || gram->sums.empty() || gram->columns != columns || rows % gram->groups != 0) return;
  gram_ = gram;
  rows_per_group_ = rows / gram->groups;
  full_ = !gram->diagonal();
  products_.resize(static_cast<size_t>(full_ ? columns * columns : columns));
  costs_.resize(static_cast<size_t>(columns));
  errors_.resize(static_cast<size_t>(columns));
  changes_.resize(static_cast<size_t>(columns));
}

int64_t RowRounder::bytes(const Rounding& rounding, int64_t columns) {
  if (rounding.method != WeightRounding::kComq) return 0;
  const int64_t products = columns > kMostGramColumns ? columns : columns * columns;
  return (products + 3 * columns) * static_cast<int64_t>(sizeof(float));
}

void RowRounder::go_to(int64_t row) {
  if (gram_ == nullptr || row / rows_per_group_ == group_) return;
  group_ = row / rows_per_group_;
  any_products_ = gram_->expand(group_, products_);
  if (!any_products_) return;
  if (rounding_.rotation > 1) rotate_products();
  float mean = 0.0F;
  const int64_t step = full_ ? columns_ + 1 : 1;
  for (int64_t i = 0; i < columns_; ++i) mean += products_[static_cast<size_t>(i * step)];
  mean /= static_cast<float>(columns_);
  for (int64_t i = 0; i < columns_; ++i) {
    float& cost = products_[static_cast<size_t>(i * step)];
    cost += kDamping * mean;
    costs_[static_cast<size_t>(i)] = cost;
  }
}

void RowRounder::rotate_products() {
  const int64_t size = rounding_.rotation;
  if (!full_) {  // of a sum of many columns little is known but its mean
    for (int64_t begin = 0; begin < columns_; begin += size) {
      float sum = 0.0F;
      for (int64_t i = begin; i < begin + size; ++i) sum += products_[static_cast<size_t>(i)];
      std::fill_n(products_.begin() + begin, size, sum / static_cast<float>(size));
    }
    return;
  }
  for (int twice = 0; twice < 2; ++twice) {
    for (int64_t at = 0; at < columns_ * columns_; at += size) rotate(products_.data() + at, size);
    for (int64_t i = 0; i < columns_; ++i) {
      for (int64_t j = 0; j < i; ++j) {
        std::swap(products_[static_cast<size_t>(i * columns_ + j)], products_[static_cast<size_t>(j * columns_ + i)]);
      }
    }
  }
}

std::span<const float> RowRounder::costs(int64_t row) {
  go_to(row);
  return any_products_ ? std::span<const float>(costs_) : std::span<const float>();
}

void RowRounder::multiply(std::span<const float> errors) {
  std::fill(changes_.begin(), changes_.end(), 0.0F);
  for (int64_t i = 0; i < columns_; ++i) {
    const float error = errors[static_cast<size_t>(i)];
    if (error != 0.0F) kernels::add_scaled(error, products_.data() + i * columns_, columns_, changes_.data());
  }
}

void RowRounder::add_errors(int64_t row, std::span<const float> weights, float scale, int64_t zero, LevelRange range,
                            std::span<const float> factors, std::span<double> errors) {
  go_to(row);
  PacedCheck check;
  for (size_t f = 0; f < factors.size(); ++f) {
    const float tried = scale * factors[f];
    if (!(tried > 0.0F)) continue;
    double sum = 0.0;
    if (!any_products_) {
      for (const float weight : weights) {
        const auto error = static_cast<double>(nearest_error(weight, tried, zero, range));
        sum += error * error;
      }
    } else {
      check.count(full_ ? columns_ * columns_ / 8 : columns_);
      for (size_t i = 0; i < weights.size(); ++i) errors_[i] = nearest_error(weights[i], tried, zero, range);
      if (full_) multiply(errors_);
      for (size_t i = 0; i < weights.size(); ++i) {
        const float cost = full_ ? changes_[i] : errors_[i] * costs_[i];
        sum += static_cast<double>(errors_[i]) * static_cast<double>(cost);
      }
    }
    errors[f] += sum;
  }
}

void RowRounder::round(int64_t row, std::span<const float> weights, std::span<const float> scales, int64_t zero,
                       LevelRange range, std::span<int32_t> levels) {
  go_to(row);
  const auto scale_of = [&](size_t i) { return scales[scales.size() == 1 ? 0 : i]; };
  for (size_t i = 0; i < weights.size(); ++i) {
    levels[i] = static_cast<int32_t>(nearest(weights[i], scale_of(i), zero, range));
  }
  if (!any_products_ || !full_) return;
  for (size_t i = 0; i < weights.size(); ++i) {
    errors_[i] = weights[i] - scale_of(i) * static_cast<float>(levels[i] - zero);
  }
  multiply(errors_);
  PacedCheck check;
  for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
    bool moved = false;
    for (size_t i = 0; i < weights.size(); ++i) {
      const float scale = scale_of(i);
      const float wanted = changes_[i] / (costs_[i] * scale);  // levels to go
      if (!(std::fabs(wanted) > kMove)) continue;
      const float target = std::clamp(static_cast<float>(levels[i]) + std::round(wanted), static_cast<float>(range.low),
                                      static_cast<float>(range.high));
      const auto level = static_cast<int32_t>(target);
      if (level == levels[i]) continue;
      check.count(columns_);
      kernels::add_scaled(-scale * static_cast<float>(level - levels[i]),
                          products_.data() + static_cast<int64_t>(i) * columns_, columns_, changes_.data());
      levels[i] = level;
      moved = true;
    }
    if (!moved) break;
  }
}

void fit_scales(const FloatConstant& constant, int axis, LevelRange range, const Rounding& rounding,
                std::span<float> scales, std::span<const int64_t> zeros) {
  if (rounding.method == WeightRounding::kNearest || rounding.planned || constant.elements() == 0) return;
  constexpr size_t kTried = kFactors.size();
  std::vector<double> errors(scales.size() * kTried, 0.0);
  const auto zero_of = [&](size_t slice) { return zeros.empty() ? 0 : zeros[slice]; };
  const bool by_rows = takes_rows(rounding, axis);
  const SliceView view = slice_view(constant.shape, by_rows ? rounding.output_axis : axis);
  with_floats(constant, [&](const std::byte* floats) {
    PacedCheck check;
    if (by_rows) {
      RowRounder rounder(rounding, view.slices, view.outer * view.inner);
      std::vector<float> weights(static_cast<size_t>(view.outer * view.inner));
      for (int64_t row = 0; row < view.slices; ++row) {
        gather(floats, view, row, weights);
        check.count(static_cast<int64_t>(kTried * weights.size()));
        const size_t slice = axis < 0 ? 0 : static_cast<size_t>(row);
        rounder.add_errors(row, weights, scales[slice], zero_of(slice), range, kFactors,
                           std::span(errors).subspan(slice * kTried, kTried));
      }
      return;
    }
    // Rotation gathers a mean in the first value of each piece.
    const bool by_channel = axis >= 0 && axis == rounding.output_axis;
    const double in_first = rounding.rotation > 1 ? std::sqrt(static_cast<double>(rounding.rotation)) : 1.0;
    std::vector<double> shifts(by_channel ? errors.size() : 0, 0.0);
    int64_t i = 0;
    for (int64_t o = 0; o < view.outer; ++o) {
      for (int64_t s = 0; s < view.slices; ++s) {
        const auto slice = static_cast<size_t>(s);
        check.count(static_cast<int64_t>(kTried) * 4 * view.inner);
        for (int64_t k = 0; k < view.inner; ++k, ++i) {
          const float weight = load(floats, i);
          const bool is_first = k % rounding.rotation == 0;
          const double mean = is_first ? in_first : 0.0;
          // Means of pieces differ, so that errors there do not cancel.
          const double cost = is_first && rounding.rotation > 1 ? 1.0 + in_first * in_first : 1.0;
          for (size_t f = 0; f < kTried; ++f) {
            const auto error =
                static_cast<double>(nearest_error(weight, scales[slice] * kFactors[f], zero_of(slice), range));
            errors[slice * kTried + f] += error * error * cost;
            if (by_channel) shifts[slice * kTried + f] += error * mean;
          }
        }
      }
    }
    for (size_t f = 0; f < shifts.size(); ++f) errors[f] += kSquaredMean * shifts[f] * shifts[f];
  });
  for (size_t slice = 0; slice < scales.size(); ++slice) {
    const auto begin = errors.begin() + static_cast<std::ptrdiff_t>(slice * kTried);
    const float scale = scales[slice] * kFactors[static_cast<size_t>(std::min_element(begin, begin + kTried) - begin)];
    if (scale > 0.0F) scales[slice] = scale;
  }
}

int64_t fitting_bytes(const Rounding& rounding, const Shape& weights) {
  if (!takes_rows(rounding, -1) || weights.elements() == 0) return 0;
  const int64_t columns = weights.elements() / weights[rounding.output_axis];
  return RowRounder::bytes(rounding, columns) + columns * static_cast<int64_t>(sizeof(float));
}

ir::Source descended_source(FloatConstant constant, LevelRule rule) {
  return std::make_shared<DescendedSource>(std::move(constant), std::move(rule));
}

}  // namespace leadline::quantize
