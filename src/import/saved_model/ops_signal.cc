// SPDX-License-Identifier: Apache-2.0
// Fourier transforms of real signals, and the rounding of training for quantization.
#include <cmath>
#include <cstring>

#include "import/saved_model/op_functions.h"
#include "ops/fake_quant.h"

namespace leadline::saved_model {
namespace {

constexpr int64_t kMaxLength = 1 << 24;

/// The last axis cut or filled with zeros.
int with_length(OpCall& call, int x, int64_t length) {
  Emitter& e = call.e;
  const int last = e.rank(x) - 1;
  const int64_t size = e.dims(x).back();
  call.refuse_if(size < 0, "transforms a signal of unknown length");
  if (size > length) return e.slice(x, last, 0, length);
  std::vector<std::pair<int64_t, int64_t>> pads(static_cast<size_t>(last) + 1);
  pads.back().second = length - size;
  return e.pad(x, pads);
}

std::vector<float> floats_of(OpCall& call, size_t i) {
  const auto bytes = call.builder().known(call.in(i));
  if (!bytes || call.e.dtype(call.in(i)) != DType::kFloat32) {
    call.unsupported("has a range that is not constant; save the model after training");
  }
  std::vector<float> values(bytes->size() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), bytes->data(), values.size() * sizeof(float));
  return values;
}

void check_bits(int64_t bits) { require(bits >= 2 && bits <= 16, kBad, "it has {} bits, expected 2 to 16", bits); }

}  // namespace

Outputs rfft_2d(OpCall& call) {
  require(call.e.rank(call.in()) >= 2, kBad, "the input has rank {}, expected at least 2", call.e.rank(call.in()));
  Dims dims = call.e.dims(call.in());
  dims[dims.size() - 1] = dims[dims.size() - 2] = -1;
  return {call.sized("RFFT2D", {call.in(0), call.in32(1)}, DType::kComplex64, dims)};
}

/// As rows of one: the transform along an axis of one element changes nothing.
Outputs rfft(OpCall& call) {
  Emitter& e = call.e;
  require(e.rank(call.in()) >= 1, kBad, "the input is a scalar");
  const int64_t length = call.integer(1, "a length");
  require(length >= 1 && length <= kMaxLength, kBad, "the length is {}, expected 1 to {}", length, kMaxLength);
  const int x = with_length(call, call.in(), length);
  const int rank = e.rank(x);
  const int rows = e.expand_dims(x, rank - 1);
  const int y = call.builder().node("RFFT2D", {rows, e.ints({1, small(length)})}, call.name(), DType::kComplex64);
  return {e.squeeze(y, rank - 1)};
}

Outputs fake_quant(OpCall& call) {
  ops::FakeQuantAttributes a;
  const bool variables = call.node.op == "FakeQuantWithMinMaxVars";
  const auto limit = [&](size_t i, const char* name, float otherwise) {
    if (!variables) return call.attr_float(name, otherwise);
    const std::vector<float> values = floats_of(call, i);
    require(values.size() == 1, kBad, "a limit has {} values, expected one", values.size());
    return values[0];
  };
  a.min = limit(1, "min", -6.0F);
  a.max = limit(2, "max", 6.0F);
  a.num_bits = small(call.attr_int("num_bits", 8));
  a.narrow_range = call.attr_bool("narrow_range", false);
  check_bits(a.num_bits);
  return {call.builder().node("FAKE_QUANT", {call.in()}, call.name(), a)};
}

/// Each channel has a range of its own, moved so that 0 is one of its levels.
Outputs fake_quant_channels(OpCall& call) {
  Emitter& e = call.e;
  const std::vector<float> least = floats_of(call, 1);
  const std::vector<float> most = floats_of(call, 2);
  require(least.size() == most.size(), kBad, "there are {} minima and {} maxima", least.size(), most.size());
  const int64_t bits = call.attr_int("num_bits", 8);
  check_bits(bits);
  const float lowest = call.attr_bool("narrow_range", false) ? 1.0F : 0.0F;
  const auto highest = static_cast<float>((int64_t{1} << bits) - 1);
  std::vector<float> from;
  std::vector<float> to;
  std::vector<float> step;
  for (size_t i = 0; i < least.size(); ++i) {
    require(std::isfinite(least[i]) && std::isfinite(most[i]) && least[i] < most[i], kBad, "a range is [{}, {}]",
            least[i], most[i]);
    const float scale = (most[i] - least[i]) / (highest - lowest);
    const float zero = std::min(std::max(std::round(lowest - least[i] / scale), lowest), highest);
    step.push_back(scale);
    from.push_back((lowest - zero) * scale);
    to.push_back((highest - zero) * scale);
  }
  const int origin = e.floats(from);
  const int steps = e.floats(step);
  const int inside = e.binary("MINIMUM", e.binary("MAXIMUM", call.in(), origin), e.floats(to));
  const int level = e.unary("FLOOR", e.add(e.div(e.sub(inside, origin), steps), 0.5));
  return {e.add(e.mul(level, steps), origin)};
}

}  // namespace leadline::saved_model
