// SPDX-License-Identifier: Apache-2.0
#include "ops/loops/quantize_rows.h"

#include <algorithm>
#include <array>

namespace leadline::ops {
namespace {

using kernels::RowPlan;
using kernels::RowRange;
using kernels::RowRule;

/// Of a value: it is read twice, in vectors.
constexpr double kValueCost = 0.25;

/// Values a thread should have at least.
constexpr int64_t kMinPart = 16384;

/// Values of a row that is quantized in one piece.
constexpr int64_t kLongRow = int64_t{1} << 20;

RowRange find_range(const float* values, int64_t count) {
  RowRange range;
  for_pieces(count, kValueCost, [&](int64_t begin, int64_t end) {
    range = kernels::join(range, kernels::row_range(values + begin, end - begin));
  });
  return range;
}

RowPlan quantize_with(RowRule rule, const float* values, int64_t count, int8_t* quantized) {
  const RowPlan plan = kernels::plan_row(rule, find_range(values, count));
  for_pieces(count, kValueCost, [&](int64_t begin, int64_t end) {
    kernels::write_levels(values + begin, end - begin, plan, quantized + begin);
  });
  return plan;
}

/// One long row, cut between the threads.
RowPlan quantize_long_row(RowRule rule, const float* values, int64_t count, int8_t* quantized, ThreadPool& pool) {
  std::array<RowRange, 256> ranges;  // the pool has at most as many threads
  const int64_t parts = std::clamp<int64_t>(count / kMinPart, 1, std::min<int64_t>(pool.size(), 256));
  pool.for_pieces(parts, kWholePiece, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t from = count * i / parts;
      ranges[static_cast<size_t>(i)] = find_range(values + from, count * (i + 1) / parts - from);
    }
  });
  RowRange whole;
  for (int64_t i = 0; i < parts; ++i) whole = kernels::join(whole, ranges[static_cast<size_t>(i)]);
  const RowPlan plan = kernels::plan_row(rule, whole);
  pool.for_pieces(count, 2 * kValueCost, [&](int64_t begin, int64_t end) {
    kernels::write_levels(values + begin, end - begin, plan, quantized + begin);
  });
  return plan;
}

}  // namespace

void quantize_rows(const float* values, int64_t rows, int64_t size, int8_t* quantized,
                   kernels::RowParameters parameters, ThreadPool& pool, RowRule rule) {
  const auto keep = [&](int64_t i, const RowPlan& plan) {
    parameters.scale[i] = plan.scale;
    parameters.zero_point[i] = plan.zero_point;
  };
  if (rows < pool.size() && size >= 2 * kMinPart) {
    for (int64_t i = 0; i < rows; ++i) {
      keep(i, quantize_long_row(rule, values + i * size, size, quantized + i * size, pool));
    }
    return;
  }
  pool.for_pieces(rows, 2 * kValueCost * static_cast<double>(size) + 8, [&](int64_t begin, int64_t end) {
    if (size <= kLongRow) return kernels::quantize_rows(values, {begin, end}, size, quantized, parameters, rule);
    for (int64_t i = begin; i < end; ++i) keep(i, quantize_with(rule, values + i * size, size, quantized + i * size));
  });
}

kernels::RowQuantization quantize_row(const float* values, int64_t count, int8_t* quantized, RowRule rule) {
  const RowPlan plan = quantize_with(rule, values, count, quantized);
  return {plan.scale, plan.zero_point};
}

}  // namespace leadline::ops
