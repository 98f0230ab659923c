// SPDX-License-Identifier: Apache-2.0
// STABLEHLO_PAD: padding at the edges and between elements; negative edges crop what lies there, gaps included.
#include "ops/stablehlo_pad.h"

#include <algorithm>
#include <limits>

#include "ops/families.h"
#include "ops/movement.h"

namespace leadline::ops {
namespace {

/// The output's shape, and which block of the input lands where in it.
struct Placement {
  Shape shape;
  kernels::StridedCopy block;
};

/// One axis: elements [first, last) of the input stay; element i lands at low + i * step.
struct KeptRange {
  int64_t first = 0;
  int64_t last = 0;
};

KeptRange kept(int64_t size, int64_t step, int64_t low, int64_t output) {
  const auto round_up = [step](int64_t n) { return n <= 0 ? 0 : (n + step - 1) / step; };
  const int64_t first = round_up(-low);
  return {first, std::max(first, std::min(size, round_up(output - low)))};
}

Placement placement_of(const OpContext& c) {
  const auto& a = c.attributes<StablehloPadAttributes>();
  const Shape& input = c.input(0).shape;
  const auto rank = static_cast<size_t>(input.rank());
  constexpr int64_t kMaxExtent = std::numeric_limits<int32_t>::max();
  std::vector<int64_t> dims(rank);
  for (size_t d = 0; d < rank; ++d) {
    const int64_t size = input[static_cast<int>(d)];
    const int64_t low = a.edge_low[d];
    const int64_t high = a.edge_high[d];
    c.require(a.interior[d] >= 0 && a.interior[d] <= kMaxExtent, "interior padding {} of axis {} is outside 0 to {}",
              a.interior[d], d, kMaxExtent);
    c.require(std::max(low, high) <= kMaxExtent && std::min(low, high) >= -kMaxExtent,
              "edge padding {} and {} of axis {} is too large", low, high, d);
    dims[d] = size + checked_multiply(c, std::max<int64_t>(size - 1, 0), a.interior[d]) + low + high;
    c.require(dims[d] <= kMaxExtent, "axis {} of size {} grows to {}", d, size, dims[d]);
  }
  Placement result;
  // As TFLite has it: when one axis vanishes, the result has no extent along any.
  if (std::any_of(dims.begin(), dims.end(), [](int64_t n) { return n <= 0; })) dims.assign(rank, 0);
  result.shape = checked_shape(c, dims);
  const auto elements = result.shape.checked_elements();
  c.require(elements.has_value(), "the result of shape {} is too large", result.shape.to_string());
  const std::vector<int64_t> from = element_strides(input);
  const std::vector<int64_t> to = element_strides(result.shape);
  for (size_t d = 0; d < rank; ++d) {
    const int64_t step = a.interior[d] + 1;
    const KeptRange range = kept(input[static_cast<int>(d)], step, a.edge_low[d], dims[d]);
    const int64_t count = range.last - range.first;
    result.block.add(count, from[d], count > 1 ? to[d] * step : 0);
    if (count == 0) continue;
    result.block.from += range.first * from[d];
    result.block.to += (a.edge_low[d] + range.first * step) * to[d];
  }
  return result;
}

void infer_stablehlo_pad(InferContext& c) {
  const auto& a = c.attributes<StablehloPadAttributes>();
  const auto rank = static_cast<size_t>(c.input(0).shape.rank());
  require_movable(c, c.input(0), {});
  require_same_type(c, c.input(0), c.input(1));
  require_same_type(c, c.input(0), c.output(0));
  require_elements(c, 1, 1);
  c.require(a.edge_low.size() == rank && a.edge_high.size() == rank && a.interior.size() == rank,
            "paddings have {}, {} and {} entries, the input rank {}", a.edge_low.size(), a.edge_high.size(),
            a.interior.size(), rank);
  c.set_output_shape(0, placement_of(c).shape);
}

std::unique_ptr<Kernel> prepare_stablehlo_pad(PrepareContext& c) {
  return make_kernel([block = placement_of(c).block](RunContext& run) {
    const TensorView& out = run.output(0);
    const int64_t bytes = element_bytes(out.dtype);
    if (out.bytes == 0) return;
    fill_elements(out.data, out.elements(), run.input(1).data, bytes);
    if (block.elements() > 0) copy_strided(block, bytes, run.input(0).data, out.data, run.pool());
  });
}

}  // namespace

void register_stablehlo_pad(Registry& registry) {
  registry.add({.id = op::kStablehloPad,
                .min_inputs = 2,
                .max_inputs = 2,
                .required_inputs = 2,
                .options = builtin_options_2(10),
                .make_attributes = make_attributes<StablehloPadAttributes>,
                .infer = infer_stablehlo_pad,
                .prepare = prepare_stablehlo_pad,
                .types = "any but strings and sub-byte"});
}

}  // namespace leadline::ops
