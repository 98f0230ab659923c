// SPDX-License-Identifier: Apache-2.0
// Ops that move elements: reshapes, transpositions, joins, parts, paddings.
#include <algorithm>

#include "core/join.h"
#include "import/saved_model/op_functions.h"
#include "ops/concatenation.h"
#include "ops/pad.h"
#include "ops/reshape.h"
#include "ops/reverse_sequence.h"
#include "ops/slice.h"
#include "ops/space_depth.h"
#include "ops/split.h"

namespace leadline::saved_model {
namespace {

constexpr int64_t kMaxParts = 4096;

Outputs pieces_of(OpCall& call, const char* op, std::vector<int> inputs, int64_t count, int x,
                  std::shared_ptr<const ir::Attributes> attributes) {
  require(count > 0 && count <= kMaxParts, kBad, "it has {} outputs, expected 1 to {}", count, kMaxParts);
  ops::NodeSpec spec;
  spec.op = op;
  spec.inputs = std::move(inputs);
  spec.outputs.assign(static_cast<size_t>(count), {call.name(), call.e.dtype(x)});
  spec.attributes = std::move(attributes);
  return call.builder().add(std::move(spec));
}

}  // namespace

Outputs identity(OpCall& call) { return call.inputs; }

/// The sizes are often computed from the batch size: where only one is unknown, -1 says the same.
Outputs reshape(OpCall& call) {
  const int shape = call.in32(1);
  if (const auto known = call.builder().known_ints(shape)) return {call.e.reshape(call.in(), Dims(*known))};
  const int y = call.sized("RESHAPE", {call.in(), shape}, call.e.dtype(call.in()), call.unknown_like(shape));
  const Dims dims = call.e.dims(y);
  return {Emitter::is_target(dims) ? call.e.reshape(call.in(), dims) : y};
}

Outputs squeeze(OpCall& call) {
  Emitter& e = call.e;
  const Dims dims = e.dims(call.in());
  std::vector<int64_t> axes = call.attr_ints("squeeze_dims");
  if (axes.empty()) axes = call.attr_ints("axis");
  if (axes.empty()) {
    for (size_t i = 0; i < dims.size(); ++i) {
      if (dims[i] == 1) axes.push_back(static_cast<int64_t>(i));
    }
  }
  ops::SqueezeAttributes attributes;
  attributes.squeeze_dims = e.axes(call.in(), axes);
  Dims target;
  for (size_t i = 0; i < dims.size(); ++i) {
    const auto& gone = attributes.squeeze_dims;
    if (std::find(gone.begin(), gone.end(), static_cast<int32_t>(i)) == gone.end()) target.push_back(dims[i]);
  }
  const bool all_one = std::all_of(attributes.squeeze_dims.begin(), attributes.squeeze_dims.end(),
                                   [&](int32_t a) { return dims[static_cast<size_t>(a)] == 1; });
  if (all_one && Emitter::is_target(target)) return {e.reshape(call.in(), target)};
  return {call.builder().node("SQUEEZE", {call.in()}, call.name(), attributes)};
}

Outputs expand_dims(OpCall& call) {
  const int64_t axis = call.integer(1, "an axis");
  const int rank = call.e.rank(call.in());
  require(axis >= -rank - 1 && axis <= rank, kBad, "axis {} of a tensor of rank {}", axis, rank);
  return {call.e.expand_dims(call.in(), static_cast<int>(axis < 0 ? axis + rank + 1 : axis))};
}

Outputs transpose(OpCall& call) {
  const std::vector<int64_t> order = call.ints(1, "a permutation");
  require(static_cast<int>(order.size()) == call.e.rank(call.in()), kBad, "{} axes for a tensor of rank {}",
          order.size(), call.e.rank(call.in()));
  std::vector<int> permutation;
  for (const int64_t axis : order) permutation.push_back(call.e.axis(call.in(), axis));
  return {call.e.transpose(call.in(), permutation)};
}

/// ConcatV2 has the axis last, Concat first.
Outputs concat_v2(OpCall& call) {
  require(call.inputs.size() >= 2, kBad, "it has {} inputs, expected 2 or more", call.inputs.size());
  const bool last = call.node.op == "ConcatV2";
  const int64_t axis = call.integer(last ? call.inputs.size() - 1 : 0, "an axis");
  std::vector<int> parts = call.inputs;
  parts.erase(last ? parts.end() - 1 : parts.begin());
  if (parts.size() == 1) return {parts[0]};
  ops::ConcatenationAttributes attributes;
  attributes.axis = call.e.axis(parts[0], axis);
  return {call.builder().node("CONCATENATION", parts, call.name(), attributes)};
}

Outputs pack(OpCall& call) {
  ops::PackAttributes attributes;
  attributes.values_count = small(static_cast<int64_t>(call.inputs.size()));
  const int rank = call.e.rank(call.in());
  const int64_t axis = call.attr_int("axis", 0);
  require(axis >= -rank - 1 && axis <= rank, kBad, "axis {} of a tensor of rank {}", axis, rank + 1);
  attributes.axis = static_cast<int32_t>(axis < 0 ? axis + rank + 1 : axis);
  return {call.builder().node("PACK", call.inputs, call.name(), attributes)};
}

Outputs unpack(OpCall& call) {
  auto attributes = std::make_shared<ops::UnpackAttributes>();
  attributes->axis = call.e.axis(call.in(), call.attr_int("axis", 0));
  const int64_t count = call.attr_int("num", call.node.outputs);
  require(count > 0 && count <= kMaxParts, kBad, "it has {} outputs, expected 1 to {}", count, kMaxParts);
  attributes->num = small(count);
  return pieces_of(call, "UNPACK", {call.in()}, count, call.in(), attributes);
}

Outputs split(OpCall& call) {
  auto attributes = std::make_shared<ops::SplitAttributes>();
  const int64_t count = call.attr_int("num_split", call.node.outputs);
  require(count > 0 && count <= kMaxParts, kBad, "it has {} outputs, expected 1 to {}", count, kMaxParts);
  attributes->num_splits = small(count);
  if (count == 1) return {call.in(1)};
  return pieces_of(call, "SPLIT", {call.in32(0), call.in(1)}, count, call.in(1), attributes);
}

Outputs split_v(OpCall& call) {
  auto attributes = std::make_shared<ops::SplitAttributes>();
  const int64_t count = call.attr_int("num_split", call.node.outputs);
  require(count > 0 && count <= kMaxParts, kBad, "it has {} outputs, expected 1 to {}", count, kMaxParts);
  attributes->num_splits = small(count);
  return pieces_of(call, "SPLIT_V", {call.in(0), call.in32(1), call.in32(2)}, count, call.in(0), attributes);
}

namespace {

struct SliceShape {
  Dims dims;
  ops::SizeSamples samples;
};

/// What is left of `x` as far as the masks show: where begin and end count, the size is unknown.
SliceShape slice_shape(OpCall& call, int x, const ops::StridedSliceAttributes& a) {
  const Dims from = call.e.dims(x);
  const auto sizes = call.builder().samples(x);
  const Dims spec = call.e.dims(call.in(1));
  require(spec.size() == 1 && spec[0] >= 0 && spec[0] <= 32, kBad,
          "the beginnings have shape [{}], expected one axis of at most 32", join(spec, ", "));
  const auto bit = [](int32_t mask, int64_t i) { return (static_cast<uint32_t>(mask) >> i & 1U) != 0; };
  int64_t named = 0;  // axes of x that have entries of their own
  bool dots = false;
  for (int64_t i = 0; i < spec[0]; ++i) {
    dots = dots || bit(a.ellipsis_mask, i);
    if (!bit(a.new_axis_mask, i) && !bit(a.ellipsis_mask, i)) ++named;
  }
  SliceShape result;
  size_t axis = 0;
  const ops::SizeSamples any = ops::sample_shapes({-1});
  for (size_t s = 0; s < sizes.size(); ++s) {
    if (sizes[s]) result.samples[s] = Shape{};
  }
  const auto push = [&](int64_t size, const auto& sample_of) {
    result.dims.push_back(size);
    for (size_t s = 0; s < sizes.size(); ++s) {
      if (result.samples[s]) result.samples[s]->push_back(sample_of(s));
    }
  };
  const auto keep = [&](int64_t count) {
    for (; count > 0 && axis < from.size() && result.dims.size() < kMaxRank; --count, ++axis) {
      push(from[axis], [&](size_t s) { return (*sizes[s])[static_cast<int>(axis)]; });
    }
  };
  const auto others = static_cast<int64_t>(from.size()) - named;
  for (int64_t i = 0; i < spec[0] && result.dims.size() < kMaxRank; ++i) {
    if (bit(a.ellipsis_mask, i)) {
      keep(others);
    } else if (bit(a.new_axis_mask, i)) {
      push(1, [](size_t) { return 1; });
    } else if (bit(a.shrink_axis_mask, i)) {
      ++axis;
    } else if (bit(a.begin_mask, i) && bit(a.end_mask, i)) {
      keep(1);
    } else {
      push(-1, [&](size_t s) { return (*any[s])[0]; });
      ++axis;
    }
  }
  if (!dots) keep(static_cast<int64_t>(from.size()));
  return result;
}

ops::StridedSliceAttributes slice_attributes(const OpCall& call) {
  ops::StridedSliceAttributes a;
  a.begin_mask = small(call.attr_int("begin_mask", 0));
  a.end_mask = small(call.attr_int("end_mask", 0));
  a.ellipsis_mask = small(call.attr_int("ellipsis_mask", 0));
  a.new_axis_mask = small(call.attr_int("new_axis_mask", 0));
  a.shrink_axis_mask = small(call.attr_int("shrink_axis_mask", 0));
  return a;
}

/// The slice of `x` that the op's inputs 1 to 3 and its masks name.
int sliced(OpCall& call, int x, const ops::StridedSliceAttributes& a) {
  const SliceShape shape = slice_shape(call, x, a);
  return call.sized("STRIDED_SLICE", {x, call.in32(1), call.in32(2), call.in32(3)}, call.e.dtype(x), shape.dims,
                    std::make_shared<ops::StridedSliceAttributes>(a), shape.samples);
}

/// All sizes of `x`, for reshape_like().
std::vector<Emitter::Size> sizes_of(const Emitter& e, int x) {
  std::vector<Emitter::Size> sizes;
  for (int axis = 0; axis < e.rank(x); ++axis) sizes.emplace_back(x, axis);
  return sizes;
}

}  // namespace

/// Which elements they are is a slice, too: of a tensor that holds the number of each element.
int with_slice_replaced(OpCall& call, int x) {
  Emitter& e = call.e;
  const int flat = e.reshape(x, {-1});
  const int count = e.reshape(e.shape_part(flat, 0, 1), {});
  const int numbers = call.sized("RANGE", {e.integer(0), count, e.integer(1)}, DType::kInt32, {-1});
  const int part = sliced(call, e.reshape_like(numbers, sizes_of(e, x)), slice_attributes(call));
  int values = call.in(4);
  if (e.rank(part) > 0) {
    const int sizes = e.shape_part(part, 0, e.rank(part));
    values = call.sized("BROADCAST_TO", {values, sizes}, e.dtype(values), e.dims(part), nullptr,
                        call.builder().samples(part));
  }
  const int indices = e.expand_dims(e.reshape(part, {-1}), 1);
  return e.reshape_like(scattered_into(call, flat, indices, e.reshape(values, {-1})), sizes_of(e, x));
}

Outputs tensor_slice_update(OpCall& call) { return {with_slice_replaced(call, call.in())}; }

Outputs strided_slice(OpCall& call) {
  const ops::StridedSliceAttributes a = slice_attributes(call);
  const int x = call.in();
  const int y = sliced(call, x, a);
  // x[:, tf.newaxis] and the like only change the shape.
  const auto steps = call.builder().known_ints(call.in(3));
  const bool forward = steps && std::all_of(steps->begin(), steps->end(), [](int64_t s) { return s == 1; });
  const Dims before = call.e.dims(x);
  const Dims after = call.e.dims(y);
  Dims left = before;
  Dims right = after;
  std::erase(left, 1);
  std::erase(right, 1);
  const bool whole = a.new_axis_mask != 0 && forward && left == right && Emitter::is_target(after) &&
                     std::count(after.begin(), after.end(), -1) == 0;
  return {whole ? call.e.reshape(x, after) : y};
}

Outputs mirror_pad(OpCall& call) {
  const std::string mode = call.attr_text("mode", "");
  require(mode == "REFLECT" || mode == "SYMMETRIC", kBad, "the mode is '{}'", printable(mode));
  ops::MirrorPadAttributes a;
  a.mode = mode == "REFLECT" ? ops::MirrorMode::kReflect : ops::MirrorMode::kSymmetric;
  return {call.builder().node("MIRROR_PAD", {call.in(), call.in(1)}, call.name(), a)};
}

/// Inputs as they are, the result of the first one's type.
Outputs same_type(OpCall& call) { return {call.builder().node(call.row.target, call.inputs, call.name())}; }

/// The same, of the first one's rank when its sizes depend on data. A constant third input of SLICE has the sizes.
Outputs same_rank(OpCall& call) {
  Dims dims(static_cast<size_t>(call.e.rank(call.in())), -1);
  if (call.node.op == "Slice") {
    const auto sizes = call.builder().known_ints(call.in(2));
    if (sizes && sizes->size() == dims.size()) dims = Dims(*sizes);
  }
  return {call.sized(call.row.target, call.inputs, call.e.dtype(call.in()), dims)};
}

/// The second input is the shape of the result.
Outputs to_shape(OpCall& call) {
  return {call.sized(call.row.target, call.inputs, call.e.dtype(call.in()), call.unknown_like(call.in(1)))};
}

Outputs range(OpCall& call) {
  return {call.sized("RANGE", {call.in(0), call.in(1), call.in(2)}, call.e.dtype(call.in()), {-1})};
}

/// The same with all but the first input as int32.
Outputs with_int32(OpCall& call) {
  std::vector<int> inputs = {call.in()};
  for (size_t i = 1; i < call.inputs.size(); ++i) inputs.push_back(call.in32(i));
  return {call.builder().node(call.row.target, inputs, call.name())};
}

Outputs block_size(OpCall& call) {
  call.require_channels_last();
  ops::BlockSizeAttributes a;
  a.block_size = small(call.attr_int("block_size", 0));
  return {call.builder().node(call.row.target, {call.in()}, call.name(), a)};
}

/// REVERSE_V2 takes axes that are next to each other.
Outputs reverse(OpCall& call) {
  int y = call.in();
  for (const int32_t axis : call.e.axes(y, call.ints(1, "axes"))) y = call.e.reverse(y, axis);
  return {y};
}

Outputs reverse_sequence(OpCall& call) {
  ops::ReverseSequenceAttributes a;
  a.seq_dim = small(call.attr_int("seq_dim", 0));
  a.batch_dim = small(call.attr_int("batch_dim", 0));
  return {call.builder().node("REVERSE_SEQUENCE", {call.in(), call.in(1)}, call.name(), a)};
}

}  // namespace leadline::saved_model
