// SPDX-License-Identifier: Apache-2.0
#include "ops/loops/depthwise.h"

#include <type_traits>

namespace leadline::ops {
namespace {

/// Taps of one output that are added at once: some milliseconds.
constexpr int64_t kManyTaps = int64_t{1} << 22;

/// What a multiplication costs, in the vectors of the fast kernels and in plain loops.
double mac_cost(const kernels::DepthwiseShape& s) {
  const bool fast = s.multiplier == 1 && s.taps() <= kernels::kMaxTaps && s.in_c >= 8;
  return fast ? 1.0 / 8 : 1.5;
}

/// Outputs one by one, a range of taps after the other.
template <typename Conv>
void run_taps(const Conv& conv, ThreadPool& pool) {
  using Sum = std::conditional_t<std::is_same_v<Conv, kernels::DepthwiseF32>, float, int32_t>;
  const kernels::DepthwiseShape& s = conv.shape;
  pool.for_pieces(s.rows() * s.out_w * s.out_c(), kWholePiece, [&](int64_t begin, int64_t end) {
    for (int64_t output = begin; output < end; ++output) {
      Sum sum = 0;
      for_pieces(s.taps(), mac_cost(s),
                 [&](int64_t from, int64_t to) { kernels::depthwise_taps(conv, output, {from, to}, sum); });
    }
  });
}

template <typename Conv>
void run(const Conv& conv, ThreadPool& pool) {
  const kernels::DepthwiseShape& s = conv.shape;
  if (s.taps() > kManyTaps) return run_taps(conv, pool);
  constexpr int64_t kRows = 2;  // of output that 8-bit kernels compute together
  constexpr int64_t kColumns = 64;
  split_depthwise(s, pool, [&](const kernels::DepthwisePart& part) {
    for_boxes<3>({{{part.rows, kRows}, {part.columns, kColumns}, {part.channels, 4 * kernels::kChannelUnit}}},
                 mac_cost(s) * static_cast<double>(s.taps()),
                 [&](const auto& box) { kernels::depthwise_part(conv, {box[0], box[1], box[2]}); });
  });
}

}  // namespace

void convolve(const kernels::DepthwiseF32& conv, ThreadPool& pool) { run(conv, pool); }
void convolve(const kernels::DepthwiseI8& conv, ThreadPool& pool) { run(conv, pool); }
void convolve(const kernels::DepthwiseHybrid& conv, ThreadPool& pool) { run(conv, pool); }

void convolve(const kernels::DepthwiseI16& conv, ThreadPool& pool) {
  const kernels::DepthwiseShape& s = conv.shape;
  split_depthwise(s, pool, [&](const kernels::DepthwisePart& part) {
    for_boxes<3>({{{part.rows}, {part.columns}, {part.channels, kernels::kWidePanel}}},
                 static_cast<double>(s.taps()) / 4 + 1,
                 [&](const auto& box) { kernels::depthwise_part(conv, {box[0], box[1], box[2]}); });
  });
}

}  // namespace leadline::ops
