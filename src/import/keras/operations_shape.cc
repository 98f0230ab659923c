// SPDX-License-Identifier: Apache-2.0
// Operations of keras.ops that move elements: order of axes, parts, repetition, padding, indices.
#include <algorithm>
#include <numeric>

#include "import/keras/importer.h"
#include "import/keras/operations.h"
#include "ops/concatenation.h"
#include "ops/gather.h"
#include "ops/pad.h"
#include "ops/shape.h"
#include "ops/split.h"

namespace leadline::keras {
namespace {

std::vector<int> natural_order(Emitter& e, int x) {
  std::vector<int> order(static_cast<size_t>(e.rank(x)));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

int shape_of(Emitter& e, int x) {
  ops::ShapeAttributes a;
  a.out_type = DType::kInt32;
  return e.builder().node("SHAPE", {x}, e.name("Shape"), a, DType::kInt32);
}

int flipped(Emitter& e, int x, const std::vector<int32_t>& axes) {
  for (const int32_t axis : axes) x = e.reverse(x, axis);
  return x;
}

Outputs flip(Call& call) { return {flipped(call.e, call.x(), axes_setting(call, 1, "axis"))}; }
Outputs flip_rows(Call& call) { return {call.e.reverse(call.x(), call.e.axis(call.x(), 0))}; }
Outputs flip_columns(Call& call) { return {call.e.reverse(call.x(), call.e.axis(call.x(), 1))}; }

Outputs swap_axes(Call& call) {
  Emitter& e = call.e;
  std::vector<int> order = natural_order(e, call.x());
  const int a = e.axis(call.x(), integer_setting(call, 1, "axis1", 0));
  const int b = e.axis(call.x(), integer_setting(call, 2, "axis2", 0));
  std::swap(order[static_cast<size_t>(a)], order[static_cast<size_t>(b)]);
  return {e.transpose(call.x(), order)};
}

Outputs move_axis(Call& call) {
  Emitter& e = call.e;
  const auto from = setting(call, 1, "source");
  const auto to = setting(call, 2, "destination");
  require(from && to, kBad, "the axes are missing");
  const std::vector<int64_t> sources = from->integers();
  const std::vector<int64_t> targets = to->integers();
  require(sources.size() == targets.size(), kBad, "{} axes move to {}", sources.size(), targets.size());
  std::vector<int> order(static_cast<size_t>(e.rank(call.x())), -1);
  std::vector<int> rest = natural_order(e, call.x());
  for (size_t i = 0; i < sources.size(); ++i) {
    const int source = e.axis(call.x(), sources[i]);
    int& place = order[static_cast<size_t>(e.axis(call.x(), targets[i]))];
    require(place < 0 && std::erase(rest, source) == 1, kBad, "an axis is named twice");
    place = source;
  }
  size_t next = 0;
  for (int& place : order) {
    if (place < 0) place = rest[next++];
  }
  return {e.transpose(call.x(), order)};
}

/// Quarter turns in the plane of two axes.
Outputs rot90(Call& call) {
  Emitter& e = call.e;
  std::vector<int64_t> axes = {0, 1};
  if (const auto found = setting(call, 2, "axes")) axes = found->integers();
  require(axes.size() == 2, kBad, "a turn needs two axes");
  const int a = e.axis(call.x(), axes[0]);
  const int b = e.axis(call.x(), axes[1]);
  const int64_t turns = ((integer_setting(call, 1, "k", 1) % 4) + 4) % 4;
  std::vector<int> order = natural_order(e, call.x());
  std::swap(order[static_cast<size_t>(a)], order[static_cast<size_t>(b)]);
  if (turns == 0) return {call.x()};
  if (turns == 2) return {flipped(e, call.x(), {a, b})};
  if (turns == 1) return {e.transpose(e.reverse(call.x(), b), order)};
  return {e.reverse(e.transpose(call.x(), order), b)};
}

Outputs ravel(Call& call) { return {call.e.reshape(call.x(), {-1})}; }

int repeated(Call& call, int x, int axis, int64_t times) {
  Emitter& e = call.e;
  const Dims dims = e.dims(x);
  require(times > 0 && times <= INT32_MAX, kBad, "repeated {} times, expected 1 to {}", times, INT32_MAX);
  std::vector<int32_t> repeats(dims.size() + 1, 1);
  repeats[static_cast<size_t>(axis) + 1] = static_cast<int32_t>(times);
  const int tiled = e.tile(e.expand_dims(x, axis + 1), repeats);
  std::vector<Emitter::Size> sizes;
  for (int i = 0; i < e.rank(x); ++i) sizes.emplace_back(x, i);
  const int64_t size = dims[static_cast<size_t>(axis)];
  sizes[static_cast<size_t>(axis)] = {-1, size < 0 ? -1 : size * times};
  return e.reshape_like(tiled, sizes);
}

/// The same any number of times: `times` is a vector of one element.
int repeated_by(Call& call, int x, int axis, int times) {
  Emitter& e = call.e;
  const int wide = e.expand_dims(x, axis + 1);
  std::vector<int> repeats;
  std::vector<int> sizes;
  for (int i = 0; i <= e.rank(x); ++i) repeats.push_back(i == axis + 1 ? times : e.ints({1}));
  for (int i = 0; i < e.rank(x); ++i) {
    const int size = e.shape_part(x, i, i + 1);
    sizes.push_back(i == axis ? e.mul(size, times) : size);
  }
  const int tiled = e.builder().node("TILE", {wide, e.concat(repeats, 0)}, e.name("Tile"));
  return e.builder().node("RESHAPE", {tiled, e.concat(sizes, 0)}, e.name("Reshape"));
}

Outputs repeat(Call& call) {
  Emitter& e = call.e;
  if (const int computed = computed_sizes(call, 1, "repeats"); computed >= 0) {
    const auto along = setting(call, 2, "axis");
    const int x = along ? call.x() : e.reshape(call.x(), {-1});
    require(e.dims(computed) == Dims{1}, ErrorCode::kUnsupported, "repeats elements a different number of times each");
    return {repeated_by(call, x, along ? e.axis(x, along->integer()) : 0, computed)};
  }
  const auto times = setting(call, 1, "repeats");
  const auto axis = setting(call, 2, "axis");
  require(times.has_value(), kBad, "the number of repetitions is missing");
  const int x = axis ? call.x() : e.reshape(call.x(), {-1});
  const int where = axis ? e.axis(x, axis->integer()) : 0;
  const std::vector<int64_t> counts = times->integers();
  if (counts.size() == 1) return {repeated(call, x, where, counts[0])};
  std::vector<int32_t> numbers;
  for (size_t i = 0; i < counts.size(); ++i) {
    require(counts[i] >= 0 && counts[i] <= (1 << 20) && numbers.size() <= (1 << 20), kBad, "repeated {} times",
            counts[i]);
    numbers.insert(numbers.end(), static_cast<size_t>(counts[i]), static_cast<int32_t>(i));
  }
  return {e.gather(x, e.ints(numbers), where)};
}

Outputs tile(Call& call) {
  Emitter& e = call.e;
  if (const int computed = computed_sizes(call, 1, "repeats"); computed >= 0) {
    const Dims count = e.dims(computed);
    require(count.size() == 1 && count[0] >= 0 && count[0] <= kMaxRank, kBad, "the repetitions are not a vector");
    int x = call.x();
    while (e.rank(x) < count[0]) x = e.expand_dims(x, 0);
    std::vector<int> times(static_cast<size_t>(e.rank(x) - count[0]), e.ints({1}));
    times.push_back(computed);
    return {e.builder().node("TILE", {x, e.concat(times, 0)}, e.name("Tile"))};
  }
  const auto found = setting(call, 1, "repeats");
  require(found.has_value(), kBad, "the number of repetitions is missing");
  std::vector<int64_t> times = found->integers();
  int x = call.x();
  while (static_cast<int>(times.size()) < e.rank(x)) times.insert(times.begin(), 1);
  while (e.rank(x) < static_cast<int>(times.size())) x = e.expand_dims(x, 0);
  std::vector<int32_t> repeats;
  for (const int64_t n : times) {
    require(n >= 0 && n <= INT32_MAX, kBad, "repeated {} times, expected 0 to {}", n, INT32_MAX);
    repeats.push_back(static_cast<int32_t>(n));
  }
  return {e.tile(x, repeats)};
}

Outputs roll(Call& call) {
  Emitter& e = call.e;
  const auto shift = setting(call, 1, "shift");
  const auto axis = setting(call, 2, "axis");
  call.refuse_if(!shift || !axis, "rolls a flattened tensor, which is not converted; give an axis");
  const std::vector<int64_t> axes = axis->integers();
  std::vector<int64_t> shifts = shift->integers();
  if (shifts.size() == 1) shifts.assign(axes.size(), shifts[0]);
  require(shifts.size() == axes.size(), kBad, "{} shifts of {} axes", shifts.size(), axes.size());
  int x = call.x();
  for (size_t i = 0; i < axes.size(); ++i) {
    const int where = e.axis(x, axes[i]);
    const int64_t size = e.dims(x)[static_cast<size_t>(where)];
    call.refuse_if(size < 0 && (shifts[i] > INT32_MAX || shifts[i] < -INT32_MAX), "rolls too far");
    // The shift counts from the end of an axis of unknown size, which must be at least as long.
    const int64_t by = size > 0 ? ((shifts[i] % size) + size) % size : size == 0 ? 0 : shifts[i];
    if (by != 0) x = e.concat({e.slice(x, where, -by, INT64_MAX), e.slice(x, where, 0, -by)}, where);
  }
  return {x};
}

/// Indices from the end count from it.
int positive_indices(Emitter& e, int indices, int x, int axis) {
  const int size = e.reshape(e.shape_part(x, axis, axis + 1), {});
  const int below = e.compare("LESS", indices, e.integer(0));
  return e.select(below, e.add(indices, size), indices);
}

Outputs take(Call& call) {
  Emitter& e = call.e;
  const Argument* given = call.arguments.find(1, "indices");
  require(given != nullptr, kBad, "the indices are missing");
  const auto axis = setting(call, 2, "axis");
  int x = call.x();
  if (!axis) x = e.reshape(x, {-1});
  const int where = axis ? e.axis(x, axis->integer()) : 0;
  int indices = -1;
  if (given->tensor >= 0) {
    indices = positive_indices(e, e.cast(given->tensor, DType::kInt32), x, where);
  } else {
    const int like = e.integer(0);
    indices = positive_indices(e, operand(call, 1, "indices", like), x, where);
  }
  return {e.gather(x, indices, where)};
}

Outputs take_along_axis(Call& call) {
  Emitter& e = call.e;
  const int x = call.x();
  const auto axis = setting(call, 2, "axis");
  call.refuse_if(!axis, "takes from a flattened tensor, which is not converted; give an axis");
  const int where = e.axis(x, axis->integer());
  int indices = e.cast(operand(call, 1, "indices", e.integer(0)), DType::kInt32);
  require(e.rank(indices) == e.rank(x), kBad, "indices of rank {} for a tensor of rank {}", e.rank(indices), e.rank(x));
  std::vector<int> order = natural_order(e, x);
  std::swap(order[static_cast<size_t>(where)], order.back());
  ops::GatherAttributes a;
  a.axis = e.rank(x) - 1;
  a.batch_dims = e.rank(x) - 1;
  indices = positive_indices(e, indices, x, where);
  const int y = e.builder().node("GATHER", {e.transpose(x, order), e.transpose(indices, order)}, e.name("GatherV2"), a);
  return {e.transpose(y, order)};
}

Outputs unstack(Call& call) {
  Emitter& e = call.e;
  const int axis = e.axis(call.x(), integer_setting(call, 2, "axis", 0));
  const int64_t count = e.dims(call.x())[static_cast<size_t>(axis)];
  call.refuse_if(count <= 0 || count > 4096, "takes apart an axis of unknown size or more than 4096");
  auto a = std::make_shared<ops::UnpackAttributes>();
  a->axis = axis;
  a->num = static_cast<int32_t>(count);
  ops::NodeSpec spec;
  spec.op = "UNPACK";
  spec.inputs = {call.x()};
  spec.outputs.assign(static_cast<size_t>(count), {e.name("unstack"), e.dtype(call.x())});
  spec.attributes = a;
  return e.builder().add(std::move(spec));
}

/// hstack, vstack and dstack: axes are added to tensors of a low rank first.
Outputs stacked(Call& call, int axis, int least_rank) {
  Emitter& e = call.e;
  std::vector<int> parts;
  for (int x : call.inputs) {
    if (e.rank(x) == 0) x = e.reshape(x, {1});
    while (e.rank(x) < least_rank) x = e.expand_dims(x, axis == 0 ? 0 : e.rank(x) == 1 && axis == 2 ? 0 : e.rank(x));
    parts.push_back(x);
  }
  require(!parts.empty(), kBad, "nothing to stack");
  return {e.concat(parts, e.rank(parts[0]) == 1 ? 0 : axis)};
}
Outputs hstack(Call& call) { return stacked(call, 1, 1); }
Outputs vstack(Call& call) { return stacked(call, 0, 2); }
Outputs dstack(Call& call) { return stacked(call, 2, 3); }

Outputs append(Call& call) {
  Emitter& e = call.e;
  auto [a, b] = operands(call, "x1", "x2");
  const auto axis = setting(call, 2, "axis");
  if (!axis) return {e.concat({e.reshape(a, {-1}), e.reshape(b, {-1})}, 0)};
  return {e.concat({a, b}, e.axis(a, axis->integer()))};
}

/// Parts of an axis at the given places, or as even as they can be.
Outputs parts_of(Call& call, int axis) {
  Emitter& e = call.e;
  const auto sections = setting(call, 1, "indices_or_sections");
  require(sections.has_value(), kBad, "the parts are missing");
  const int64_t size = e.dims(call.x())[static_cast<size_t>(axis)];
  std::vector<int64_t> ends;
  if (sections->is_integer()) {
    const int64_t count = sections->integer();
    require(count > 0 && count <= 4096 && size > 0, kBad, "an axis of {} in {} parts", size, count);
    if (size % count == 0) return e.split(call.x(), axis, static_cast<int>(count));
    int64_t at = 0;
    for (int64_t i = 0; i + 1 < count; ++i) ends.push_back(at += size / count + (i < size % count ? 1 : 0));
  } else {
    ends = sections->integers();
    require(ends.size() < 4096, kBad, "split into {} parts, expected fewer than 4096", ends.size());
  }
  Outputs result;
  int64_t from = 0;
  for (const int64_t to : ends) {
    result.push_back(e.slice(call.x(), axis, from, to));
    from = to;
  }
  result.push_back(e.slice(call.x(), axis, from, INT64_MAX));
  return result;
}
Outputs array_split(Call& call) { return parts_of(call, call.e.axis(call.x(), integer_setting(call, 2, "axis", 0))); }
Outputs hsplit(Call& call) { return parts_of(call, call.e.axis(call.x(), call.e.rank(call.x()) == 1 ? 0 : 1)); }
Outputs vsplit(Call& call) { return parts_of(call, call.e.axis(call.x(), 0)); }
Outputs dsplit(Call& call) { return parts_of(call, call.e.axis(call.x(), 2)); }

Outputs where_op(Call& call) {
  Emitter& e = call.e;
  require(call.arguments.find(1, "x1") != nullptr && call.arguments.find(2, "x2") != nullptr, ErrorCode::kUnsupported,
          "returns the indices of true elements, whose number is not known; call where with three arguments");
  const Argument* a = call.arguments.find(1, "x1");
  const Argument* b = call.arguments.find(2, "x2");
  const int like = a->tensor >= 0 ? a->tensor : b->tensor >= 0 ? b->tensor : e.scalar(0.0F);
  int x = operand(call, 1, "x1", like);
  int y = operand(call, 2, "x2", like);
  if (e.dtype(x) != e.dtype(y)) {
    const bool real = e.dtype(x) == DType::kFloat32 || e.dtype(y) == DType::kFloat32;
    const DType type = real ? DType::kFloat32 : e.dtype(x) == DType::kBool ? e.dtype(y) : e.dtype(x);
    x = e.cast(x, type);
    y = e.cast(y, type);
  }
  return {e.select(e.cast(operand(call, 0, "condition", like), DType::kBool), x, y)};
}

Outputs pad_op(Call& call) {
  Emitter& e = call.e;
  const auto found = setting(call, 1, "pad_width");
  require(found.has_value(), kBad, "the widths are missing");
  const int rank = e.rank(call.x());
  std::vector<std::pair<int64_t, int64_t>> pads;
  if (found->is_integer()) {
    pads.assign(static_cast<size_t>(rank), {found->integer(), found->integer()});
  } else if (found->size() > 0 && found->at(0).is_integer()) {
    const std::vector<int64_t> pair = found->integers();
    pads.assign(static_cast<size_t>(rank), {pair.front(), pair.back()});
  } else {
    for (const Config& item : found->items()) {
      const std::vector<int64_t> pair = item.integers();
      require(pair.size() == 1 || pair.size() == 2, kBad, "a width has {} numbers, expected 1 or 2", pair.size());
      pads.emplace_back(pair.front(), pair.back());
    }
    if (pads.size() == 1) pads.assign(static_cast<size_t>(rank), pads[0]);
  }
  require(static_cast<int>(pads.size()) == rank, kBad, "{} widths for rank {}", pads.size(), rank);
  const auto mode_setting = setting(call, 2, "mode");
  std::string mode = mode_setting ? mode_setting->text() : "constant";
  for (char& c : mode) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;  // TensorFlow shouts
  if (mode == "constant") {
    const auto value = setting(call, 1, "constant_values");
    return {e.pad(call.x(), pads, value && value->is_number() ? value->number() : 0.0)};
  }
  call.refuse_if(mode != "reflect" && mode != "symmetric",
                 fmt::format("pads by '{}'; constant, reflect and symmetric are converted", printable(mode)));
  std::vector<int32_t> sizes;
  for (const auto& [before, after] : pads) {
    require(before >= 0 && after >= 0 && before <= INT32_MAX && after <= INT32_MAX, kBad, "padding of {} and {}",
            before, after);
    sizes.insert(sizes.end(), {static_cast<int32_t>(before), static_cast<int32_t>(after)});
  }
  ops::MirrorPadAttributes a;
  a.mode = mode == "reflect" ? ops::MirrorMode::kReflect : ops::MirrorMode::kSymmetric;
  const int paddings = e.builder().constant(e.name("Paddings"), DType::kInt32, {rank, 2}, sizes);
  return {e.builder().node("MIRROR_PAD", {call.x(), paddings}, e.name("MirrorPad"), a)};
}

Outputs broadcast_to(Call& call) {
  Emitter& e = call.e;
  if (const int sizes = computed_sizes(call, 1, "shape"); sizes >= 0) {
    return {e.builder().node("BROADCAST_TO", {call.x(), sizes}, e.name("BroadcastTo"))};
  }
  const auto found = setting(call, 1, "shape");
  require(found.has_value(), kBad, "the shape is missing");
  std::vector<Emitter::Size> sizes;
  const std::vector<Config> items = found->items();
  const int ahead = static_cast<int>(items.size()) - e.rank(call.x());
  for (size_t i = 0; i < items.size(); ++i) {
    const int own = static_cast<int>(i) - ahead;
    if (items[i].is_null()) {
      require(own >= 0, kBad, "an unknown size has no axis");
      sizes.emplace_back(call.x(), own);
    } else {
      sizes.emplace_back(-1, items[i].integer());
    }
  }
  require(!sizes.empty(), kBad, "the shape is empty");
  return {e.builder().node("BROADCAST_TO", {call.x(), e.sizes_vector(sizes)}, e.name("BroadcastTo"))};
}

Outputs filled_like(Call& call, double value) {
  Emitter& e = call.e;
  const auto name = setting(call, SIZE_MAX, "dtype");
  const auto type = name ? dtype_from_name(name->text()) : e.dtype(call.x());
  require(type.has_value(), ErrorCode::kUnsupported, "the type of the result is unknown");
  const DType made = *type == DType::kBool ? DType::kInt32 : *type;
  const int like = e.cast(e.integer(0), made);
  const int filled =
      e.builder().node("FILL", {shape_of(e, call.x()), e.scalar_like(like, value)}, e.name("fill"), made);
  return {e.cast(filled, *type)};
}
Outputs zeros_like(Call& call) { return filled_like(call, 0.0); }
Outputs ones_like(Call& call) { return filled_like(call, 1.0); }
Outputs full_like(Call& call) {
  const auto value = setting(call, 1, "fill_value");
  call.refuse_if(!value || !value->is_number(), "fills with something other than a number, which is not converted");
  return filled_like(call, value->number());
}

/// 0, 1, 2, ... along an axis.
int counted(Emitter& e, int x, int axis) {
  ops::NodeSpec spec;
  spec.op = "RANGE";
  spec.inputs = {e.integer(0), e.reshape(e.shape_part(x, axis, axis + 1), {}), e.integer(1)};
  spec.outputs = {{e.name("Range"), DType::kInt32, {}, Dims{-1}}};
  return e.builder().add(std::move(spec))[0];
}

constexpr int64_t kMostInTriangle = 1 << 16;  // elements of a mask that is a constant of the file

/// Elements of the last two axes on one side of a diagonal.
template <bool Lower>
Outputs triangle(Call& call) {
  Emitter& e = call.e;
  const Dims dims = e.dims(call.x());
  require(dims.size() >= 2, kBad, "the tensor has rank {}, expected 2 or more", dims.size());
  const int64_t rows = dims[dims.size() - 2];
  const int64_t columns = dims.back();
  const int64_t k = integer_setting(call, 1, "k", 0);
  if (rows < 0 || columns < 0 || rows * columns > kMostInTriangle) {
    require(k >= INT32_MIN && k <= INT32_MAX, kBad, "diagonal {} does not fit 32 bits", k);
    const int rank = e.rank(call.x());
    const int down = e.reshape(counted(e, call.x(), rank - 2), {-1, 1});
    const int distance = e.sub(counted(e, call.x(), rank - 1), down);
    const int kept = e.compare(Lower ? "LESS_EQUAL" : "GREATER_EQUAL", distance, e.integer(static_cast<int32_t>(k)));
    return {e.mul(call.x(), e.cast(kept, e.dtype(call.x())))};
  }
  std::vector<float> kept;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) kept.push_back((Lower ? c - r <= k : c - r >= k) ? 1.0F : 0.0F);
  }
  return {e.mul(call.x(), e.cast(e.floats(kept, {rows, columns}), e.dtype(call.x())))};
}

/// The elements of a diagonal of two axes, as the last axis.
int diagonal_of(Call& call) {
  Emitter& e = call.e;
  const int a = e.axis(call.x(), integer_setting(call, 2, "axis1", 0));
  const int b = e.axis(call.x(), integer_setting(call, 3, "axis2", 1));
  require(a != b, kBad, "a diagonal needs two axes");
  std::vector<int> order = natural_order(e, call.x());
  std::erase(order, a);
  std::erase(order, b);
  order.insert(order.end(), {a, b});
  const int x = e.transpose(call.x(), order);
  const int64_t rows = e.dims(x)[order.size() - 2];
  const int64_t columns = e.dims(x).back();
  const int64_t offset = integer_setting(call, 1, "offset", 0);
  call.refuse_if(rows <= 0 || columns <= 0 || rows > 65536 || columns > 32768,
                 "has a diagonal of unknown size, which is not converted; fix the size");
  std::vector<int32_t> numbers;
  for (int64_t r = 0; r < rows; ++r) {
    if (r + offset >= 0 && r + offset < columns) numbers.push_back(static_cast<int32_t>(r * columns + r + offset));
  }
  std::vector<Emitter::Size> sizes;
  for (size_t i = 0; i + 2 < order.size(); ++i) sizes.emplace_back(x, static_cast<int64_t>(i));
  sizes.emplace_back(-1, rows * columns);
  const int flat = e.reshape_like(x, sizes);
  return e.gather(flat, e.ints(numbers), e.rank(flat) - 1);
}
Outputs diagonal(Call& call) { return {diagonal_of(call)}; }
Outputs trace(Call& call) {
  const int d = diagonal_of(call);
  return {call.e.reduce("SUM", d, {call.e.rank(d) - 1}, false)};
}

Outputs diff(Call& call) {
  Emitter& e = call.e;
  const int64_t times = integer_setting(call, 1, "n", 1);
  const int axis = e.axis(call.x(), integer_setting(call, 2, "axis", -1));
  require(times >= 0 && times <= 64, kBad, "the number of differences is {}, expected 0 to 64", times);
  int x = call.x();
  for (int64_t i = 0; i < times; ++i) x = e.sub(e.slice(x, axis, 1, INT64_MAX), e.slice(x, axis, 0, -1));
  return {x};
}

Outputs meshgrid(Call& call) {
  Emitter& e = call.e;
  const auto indexing = setting(call, SIZE_MAX, "indexing");
  const size_t count = call.inputs.size();
  std::vector<int> spread;
  for (size_t i = 0; i < count; ++i) {
    const bool turned = (!indexing || indexing->text() == "xy") && count > 1 && i < 2;
    Dims target(count, 1);
    target[turned ? 1 - i : i] = -1;
    spread.push_back(e.reshape(call.inputs[i], target));
  }
  int whole = -1;  // zeros in the sizes of all
  for (const int x : spread) {
    const int zero = e.mul(x, 0.0);
    whole = whole < 0 ? zero : e.add(whole, zero);
  }
  Outputs result;
  for (const int x : spread) result.push_back(e.add(x, whole));
  return result;
}

Outputs slice_op(Call& call) {
  Emitter& e = call.e;
  const auto starts = setting(call, 1, "start_indices");
  const auto shape = setting(call, 2, "shape");
  call.refuse_if(!starts || !shape || call.inputs.size() > 1, "starts at a computed place, which is not converted");
  const std::vector<int64_t> from = starts->integers();
  const std::vector<Config> sizes = shape->items();
  int x = call.x();
  require(from.size() == sizes.size() && static_cast<int>(from.size()) == e.rank(x), kBad, "{} starts, {} sizes",
          from.size(), sizes.size());
  for (size_t i = 0; i < from.size(); ++i) {
    const int64_t size = sizes[i].is_null() ? -1 : sizes[i].integer();
    require(from[i] >= 0 && from[i] <= INT32_MAX && size >= -1 && size <= INT32_MAX, kBad, "{} from {}", size, from[i]);
    if (from[i] == 0 && (size == -1 || size == e.dims(x)[i])) continue;
    x = e.slice(x, static_cast<int>(i), from[i], size == -1 ? INT64_MAX : from[i] + size);
  }
  return {x};
}

Outputs shape_op(Call& call) { return {shape_of(call.e, call.x())}; }

constexpr LayerClass kShapeOperations[] = {
    {"Flip", flip},
    {"Flipud", flip_rows},
    {"Fliplr", flip_columns},
    {"Swapaxes", swap_axes},
    {"Moveaxis", move_axis},
    {"Rot90", rot90},
    {"Ravel", ravel},
    {"Repeat", repeat},
    {"Tile", tile},
    {"Roll", roll},
    {"Take", take},
    {"TakeAlongAxis", take_along_axis},
    {"Unstack", unstack},
    {"Hstack", hstack},
    {"Vstack", vstack},
    {"Dstack", dstack},
    {"Append", append},
    {"ArraySplit", array_split},
    {"Hsplit", hsplit},
    {"Vsplit", vsplit},
    {"Dsplit", dsplit},
    {"Where", where_op},
    {"Pad", pad_op},
    {"BroadcastTo", broadcast_to},
    {"ZerosLike", zeros_like},
    {"EmptyLike", zeros_like},
    {"OnesLike", ones_like},
    {"FullLike", full_like},
    {"Tril", triangle<true>},
    {"Triu", triangle<false>},
    {"Diagonal", diagonal},
    {"Trace", trace},
    {"Diff", diff},
    {"Meshgrid", meshgrid},
    {"Slice", slice_op},
    {"Shape", shape_op},
};

}  // namespace

std::span<const LayerClass> shape_operations() { return kShapeOperations; }

}  // namespace leadline::keras
