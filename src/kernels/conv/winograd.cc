// SPDX-License-Identifier: Apache-2.0
// Which convolutions Winograd computes: the one place that says so.
//
// The rule compares costs, in products of the plain kernel:
//   plain     pixels * (9 * in_c * out_c + gather * 9 * in_c)                               + byte * packed bytes
//   Winograd  tiles * (positions * in_c * out_c * product + input * in_c + output * out_c)  + byte * packed bytes
// Transformed filters are larger (float: 1.8 times for tiles of 2, 4 times for tiles of 4; int8: 3.6 and 8). `byte` is
// what a byte of them costs: it is read from memory in each run (about 20 GB/s on the machines we know) and stays
// resident for good; together we count it as if it were read at 8 GB/s. So Winograd takes layers where many tiles share
// a filter (in ResNet50 those of 56, 28 and 14 pixels) and leaves the others (7 pixels).
// The constants are fits to bench/conv_bench.cc on Zen 4 and hold roughly elsewhere.
#include "kernels/conv/winograd.h"

#include <hwy/targets.h>

#include <limits>

namespace leadline::kernels {
namespace {

bool three_by_three(const ConvShape& s) {
  return s.filter_h == 3 && s.filter_w == 3 && s.stride_h == 1 && s.stride_w == 1 && s.dilation_h == 1 &&
         s.dilation_w == 1 && s.groups() == 1 && s.rows() > 0 && s.out_w > 0;
}

ConvShape with(ConvShape s, ConvMethod method) {
  s.method = method;
  return s;
}

// Filters are padded to whole vectors in both methods.
double padded(int64_t channels) { return static_cast<double>((channels + 7) / 8 * 8); }

struct PlainCosts {
  double gather;
  double byte;
};

double plain_cost(const ConvShape& s, const PlainCosts& costs, int64_t bytes) {
  const double patch = 9.0 * static_cast<double>(s.in_c);
  return static_cast<double>(s.rows() * s.out_w) * patch * (padded(s.out_c) + costs.gather) +
         costs.byte * static_cast<double>(bytes);
}

struct WinogradCosts {
  double product;
  double input;
  double output;
  double byte;
};

double winograd_cost(const ConvShape& s, const WinogradGrid& grid, const WinogradCosts& costs) {
  const auto in_c = static_cast<double>(s.in_c);
  const double out_c = padded(s.out_c);
  const double tile =
      static_cast<double>(grid.positions()) * in_c * out_c * costs.product + costs.input * in_c + costs.output * out_c;
  return static_cast<double>(grid.tiles()) * tile + costs.byte * static_cast<double>(grid.packed_bytes(s.out_c));
}

// What must be gained at least, because the estimate is rough.
constexpr double kGain = 1.1;

}  // namespace

ConvMethod conv_method_f32(const ConvShape& s) noexcept {
  // Converters to dynamic range leave weights of fewer than 1024 elements as floats. What such a layer rounds
  // differently, the next one, which quantizes its input, may turn into whole steps; so these stay plain.
  constexpr int64_t kFewWeights = 1024;
  if (!three_by_three(s) || s.out_c * s.filter_size() < kFewWeights) return ConvMethod::kPlain;
  constexpr double kByte = 6.5;  // 52 GMAC/s over 8 GB/s
  const auto cost = [&](ConvMethod method, double input, double output) {
    const ConvShape shape = with(s, method);
    return winograd_cost(shape, winograd_grid_f32(shape), {1, input, output, kByte});
  };
  const double plain = plain_cost(s, {2, kByte}, conv_packed_bytes_f32(with(s, ConvMethod::kPlain))) / kGain;
  const double two = cost(ConvMethod::kWinograd2, 50, 40);
  const double four = cost(ConvMethod::kWinograd4, 240, 160);
  if (std::min(two, four) >= plain) return ConvMethod::kPlain;
  return four < two ? ConvMethod::kWinograd4 : ConvMethod::kWinograd2;
}

bool winograd_is_exact(const ConvShape& s, ConvMethod method, const FilterBounds& filter) noexcept {
  constexpr int64_t kInput = 255;
  // winograd_i8.cc: what is left of 32 bits when the factor 4, or 64, is taken off.
  if (method == ConvMethod::kWinograd4) return filter.sum <= ((int64_t{1} << 25) - 1) / kInput;
  return s.filter_size() <= ((int64_t{1} << 29) - 1) / (kInput * std::max(filter.value, 1));
}

int64_t winograd_block(const WinogradGrid& grid, int64_t tiles) noexcept {
  constexpr int64_t kRows = WinogradGrid::kRows;
  if (tiles <= 0) return kRows;
  const int64_t blocks = (tiles + grid.block() - 1) / grid.block();
  const int64_t each = (tiles + blocks - 1) / blocks;
  return std::min(grid.block(), (each + kRows - 1) / kRows * kRows);
}

ConvMethod conv_method_i8(const ConvShape& s, const FilterBounds& filter) noexcept {
  if (!three_by_three(s)) return ConvMethod::kPlain;
  // With VNNI the plain kernel multiplies 8-bit values, twice as many at a time; elsewhere both multiply int16.
  const bool vnni = (hwy::SupportedTargets() & HWY_AVX3_DL) != 0;
  const double byte = vnni ? 25 : 10;  // 200 or 80 GMAC/s over 8 GB/s
  const auto cost = [&](ConvMethod method, double input, double output) {
    if (!winograd_is_exact(s, method, filter)) return std::numeric_limits<double>::infinity();
    const ConvShape shape = with(s, method);
    return winograd_cost(shape, winograd_grid_i8(shape), {vnni ? 2.2 : 1.1, input, output, byte});
  };
  const double plain =
      plain_cost(s, {vnni ? 12.0 : 5.0, byte}, conv_packed_bytes_i8(with(s, ConvMethod::kPlain))) / kGain;
  const double two = cost(ConvMethod::kWinograd2, 45, 90);
  const double four = cost(ConvMethod::kWinograd4, 500, 700);
  if (std::min(two, four) >= plain) return ConvMethod::kPlain;
  return four < two ? ConvMethod::kWinograd4 : ConvMethod::kWinograd2;
}

}  // namespace leadline::kernels
