// SPDX-License-Identifier: Apache-2.0
// Layers that move elements, and those that do nothing at inference.
#include <algorithm>
#include <numeric>

#include "core/join.h"
#include "import/keras/spatial.h"

namespace leadline::keras {
namespace {

int64_t known_product(const Dims& dims, size_t from) {
  int64_t product = 1;
  for (size_t i = from; i < dims.size(); ++i) {
    if (dims[i] < 0) return -1;
    require(!__builtin_mul_overflow(product, dims[i], &product), kBad, "the shape has more than 2^63 elements");
  }
  return product;
}

/// (before, after) of each spatial axis from an int, a list of ints, or a list of pairs.
std::vector<std::pair<int64_t, int64_t>> borders_of_axes(Call& call, const char* key, size_t axes) {
  const Config value = call.config.get(key);
  std::vector<std::pair<int64_t, int64_t>> result;
  if (value.is_integer()) return std::vector<std::pair<int64_t, int64_t>>(axes, {value.integer(), value.integer()});
  if (axes == 1 && value.size() == 2 && value.at(0).is_integer()) {
    return {{value.at(0).integer(), value.at(1).integer()}};
  }
  for (const Config& item : value.items()) {
    const std::vector<int64_t> pair = item.integers();
    if (pair.empty() || pair.size() > 2) item.wrong("two integers");
    result.emplace_back(pair.front(), pair.back());
  }
  if (result.size() != axes) value.wrong(fmt::format("{} pairs", axes));
  return result;
}

size_t spatial_axes(Call& call) {
  const int rank = call.e.rank(call.x());
  require(rank >= 3 && rank <= 5, ErrorCode::kUnsupported, "the input has rank {}, expected 3 to 5", rank);
  return static_cast<size_t>(rank) - 2;
}

}  // namespace

Outputs identity(Call& call) { return {call.x()}; }

Outputs reshape_layer(Call& call) {
  Emitter& e = call.e;
  const Dims from = e.dims(call.x());
  std::vector<int64_t> shape = call.config.get("target_shape").integers();
  const auto unknown = std::find(shape.begin(), shape.end(), -1);
  const int64_t all = known_product(from, 1);
  if (unknown != shape.end() && all >= 0) {
    *unknown = 1;
    const int64_t others = known_product(Dims(shape), 0);
    require(others > 0 && all % others == 0, kBad, "{} elements do not fill the shape [{}]", all, join(shape, ", "));
    *unknown = all / others;
  }
  const bool known = std::find(shape.begin(), shape.end(), -1) == shape.end();
  std::vector<Emitter::Size> sizes = {{call.x(), 0}};
  for (const int64_t size : shape) sizes.emplace_back(-1, size);
  if (known) return {e.reshape_like(call.x(), sizes)};
  if (from[0] >= 0) return {e.reshape_like(call.x(), sizes)};
  return {e.builder().node("RESHAPE", {call.x(), e.sizes_vector(sizes)}, e.name("Reshape"))};
}

Outputs permute(Call& call) {
  std::vector<int> order = {0};
  for (const int64_t axis : call.config.get("dims").integers()) {
    order.push_back(call.e.axis(call.x(), axis));
  }
  return {call.e.transpose(call.x(), order)};
}

Outputs flatten(Call& call) {
  Emitter& e = call.e;
  int x = call.x();
  if (channels_first(call) && e.rank(x) > 2) {  // Keras flattens with channels last
    std::vector<int> order = {0};
    for (int axis = 2; axis < e.rank(x); ++axis) order.push_back(axis);
    order.push_back(1);
    x = e.transpose(x, order);
  }
  const Dims dims = e.dims(x);
  if (dims.size() < 2) return {e.expand_dims(x, 1)};
  const int64_t size = known_product(dims, 1);
  if (size >= 0) return {e.reshape(x, {-1, size})};
  const int shape = e.sizes_vector({{x, 0}, {-1, -1}});
  return {e.builder().node("RESHAPE", {x, shape}, e.name("Reshape"))};
}

Outputs repeat_vector(Call& call) {
  const int64_t n = call.config.integer("n");
  require(n > 0 && n <= INT32_MAX, kBad, "the vector is repeated {} times, expected 1 to {}", n, INT32_MAX);
  return {call.e.tile(call.e.expand_dims(call.x(), 1), {1, small(n), 1})};
}

Outputs zero_padding(Call& call) {
  const auto pads = borders_of_axes(call, "padding", spatial_axes(call));
  std::vector<std::pair<int64_t, int64_t>> all(1);
  if (channels_first(call)) all.emplace_back();
  all.insert(all.end(), pads.begin(), pads.end());
  if (!channels_first(call)) all.emplace_back();
  return {call.e.pad(call.x(), all)};
}

Outputs cropping(Call& call) {
  Emitter& e = call.e;
  const auto crops = borders_of_axes(call, "cropping", spatial_axes(call));
  int x = call.x();
  const int first = channels_first(call) ? 2 : 1;
  for (size_t i = 0; i < crops.size(); ++i) {
    const auto [before, after] = crops[i];
    const int axis = first + static_cast<int>(i);
    const int64_t size = e.dims(x)[static_cast<size_t>(axis)];
    require(
        before >= 0 && after >= 0 && before <= INT32_MAX && after <= INT32_MAX && (size < 0 || before + after < size),
        kBad, "{} and {} are cropped from {}", before, after, size);
    if (before == 0 && after == 0) continue;
    x = e.slice(x, axis, before, after == 0 ? INT64_MAX : -after);
  }
  return {x};
}

}  // namespace leadline::keras
