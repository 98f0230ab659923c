// SPDX-License-Identifier: Apache-2.0
// Flex ops that a builtin op computes: those that move elements, of any type, and those of which the builtin op takes
// the types that matter. Each row says how attributes and inputs carry over.
#include "io/flexbuffer_map_builder.h"
#include "ops/cast.h"
#include "ops/concatenation.h"
#include "ops/fake_quant.h"
#include "ops/flex/families.h"
#include "ops/flex/flex.h"
#include "ops/gather.h"
#include "ops/normalization.h"
#include "ops/one_hot.h"
#include "ops/pad.h"
#include "ops/reshape.h"
#include "ops/resize.h"
#include "ops/reverse_sequence.h"
#include "ops/shape.h"
#include "ops/slice.h"
#include "ops/space_depth.h"
#include "ops/split.h"

namespace leadline::ops {
namespace {

using Maybe = std::optional<Translation>;

int32_t small(int64_t value) {
  return static_cast<int32_t>(
      std::clamp<int64_t>(value, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()));
}

/// The builtin op with its default attributes and the same inputs.
template <int kCode>
Maybe same(const OpContext& c) {
  node_def(c);
  return Translation{ir::OpId::builtin(kCode, {}), nullptr, all_inputs(c)};
}

template <typename A>
Maybe with(const OpContext& c, const ir::OpId& op, A attributes) {
  return Translation{op, std::make_shared<A>(std::move(attributes)), all_inputs(c)};
}

bool known(const OpContext& c, int i) { return c.input(i).known; }

Maybe squeeze(const OpContext& c) {
  SqueezeAttributes a;
  for (int64_t axis : node_def(c).integers("squeeze_dims")) a.squeeze_dims.push_back(small(axis));
  return with(c, op::kSqueeze, std::move(a));
}

/// The axis is the last input (ConcatV2) or the first (Concat).
template <bool kAxisLast>
Maybe concat(const OpContext& c) {
  node_def(c);
  c.require(c.input_count() >= 2, "it has {} inputs, expected an axis and tensors", c.input_count());
  const int axis_input = kAxisLast ? c.input_count() - 1 : 0;
  if (!known(c, axis_input)) return std::nullopt;
  ConcatenationAttributes a;
  a.axis = small(integer_of_input(c, axis_input));
  return Translation{op::kConcatenation, std::make_shared<ConcatenationAttributes>(a),
                     kAxisLast ? input_range(0, c.input_count() - 1) : input_range(1, c.input_count())};
}

Maybe pack(const OpContext& c) {
  PackAttributes a;
  a.values_count = c.input_count();
  a.axis = small(node_def(c).integer("axis", 0));
  return with(c, op::kPack, a);
}

Maybe unpack(const OpContext& c) {
  UnpackAttributes a;
  a.num = c.output_count();
  a.axis = small(node_def(c).integer("axis", 0));
  return with(c, op::kUnpack, a);
}

Maybe split(const OpContext& c) {
  node_def(c);
  SplitAttributes a;
  a.num_splits = c.output_count();
  return with(c, op::kSplit, a);
}

Maybe split_v(const OpContext& c) {
  node_def(c);
  SplitAttributes a;
  a.num_splits = c.output_count();
  return with(c, op::kSplitV, a);
}

Maybe strided_slice(const OpContext& c) {
  const NodeDefAttributes& from = node_def(c);
  StridedSliceAttributes a;
  a.begin_mask = small(from.integer("begin_mask", 0));
  a.end_mask = small(from.integer("end_mask", 0));
  a.ellipsis_mask = small(from.integer("ellipsis_mask", 0));
  a.new_axis_mask = small(from.integer("new_axis_mask", 0));
  a.shrink_axis_mask = small(from.integer("shrink_axis_mask", 0));
  return with(c, op::kStridedSlice, a);
}

Maybe mirror_pad(const OpContext& c) {
  const std::string_view mode = node_def(c).text("mode", "");
  c.require(mode == "REFLECT" || mode == "SYMMETRIC", "its mode is '{}', expected REFLECT or SYMMETRIC", mode);
  MirrorPadAttributes a;
  a.mode = mode == "REFLECT" ? MirrorMode::kReflect : MirrorMode::kSymmetric;
  return with(c, op::kMirrorPad, a);
}

/// Gather(params, indices), GatherV2(params, indices, axis).
Maybe gather(const OpContext& c) {
  GatherAttributes a;
  a.batch_dims = small(node_def(c).integer("batch_dims", 0));
  if (c.input_count() > 2) {
    if (!known(c, 2)) return std::nullopt;
    a.axis = small(integer_of_input(c, 2));
  }
  return Translation{op::kGather, std::make_shared<GatherAttributes>(a), {0, 1}};
}

Maybe shape(const OpContext& c) {
  node_def(c);
  ShapeAttributes a;
  a.out_type = c.output(0).dtype();
  return with(c, op::kShape, a);
}

Maybe cast(const OpContext& c) {
  node_def(c);
  CastAttributes a;
  a.in_data_type = c.input(0).dtype();
  a.out_data_type = c.output(0).dtype();
  return with(c, op::kCast, a);
}

Maybe one_hot(const OpContext& c) {
  OneHotAttributes a;
  a.axis = small(node_def(c).integer("axis", -1));
  return with(c, op::kOneHot, a);
}

template <int kCode>
Maybe block_size(const OpContext& c) {
  const std::string_view layout = node_def(c).text("data_format", "NHWC");
  if (layout != "NHWC") c.fail(ErrorCode::kUnsupported, "its data_format is {}, expected NHWC", layout);
  BlockSizeAttributes a;
  a.block_size = small(node_def(c).integer("block_size", 0));
  return with(c, ir::OpId::builtin(kCode, {}), a);
}

Maybe reverse_sequence(const OpContext& c) {
  ReverseSequenceAttributes a;
  a.seq_dim = small(node_def(c).integer("seq_dim", 0));
  a.batch_dim = small(node_def(c).integer("batch_dim", 0));
  return with(c, op::kReverseSequence, a);
}

template <typename A>
Maybe resize(const OpContext& c, const ir::OpId& op) {
  A a;
  a.align_corners = node_def(c).flag("align_corners", false);
  a.half_pixel_centers = node_def(c).flag("half_pixel_centers", false);
  return with(c, op, a);
}
Maybe resize_nearest(const OpContext& c) { return resize<ResizeNearestAttributes>(c, op::kResizeNearestNeighbor); }

Maybe local_response(const OpContext& c) {
  LocalResponseAttributes a;
  a.radius = small(node_def(c).integer("depth_radius", 5));
  a.bias = node_def(c).number("bias", 1.0F);
  a.alpha = node_def(c).number("alpha", 1.0F);
  a.beta = node_def(c).number("beta", 0.5F);
  return with(c, op::kLocalResponseNormalization, a);
}

Maybe fake_quant(const OpContext& c) {
  FakeQuantAttributes a;
  a.min = node_def(c).number("min", -6.0F);
  a.max = node_def(c).number("max", 6.0F);
  a.num_bits = small(node_def(c).integer("num_bits", 8));
  a.narrow_range = node_def(c).flag("narrow_range", false);
  return with(c, op::kFakeQuant, a);
}

/// FakeQuantWithMinMaxVars(inputs, min, max).
Maybe fake_quant_vars(const OpContext& c) {
  if (!known(c, 1) || !known(c, 2)) return std::nullopt;
  c.require_input_type(1, {DType::kFloat32});
  c.require_input_type(2, {DType::kFloat32});
  require_elements(c, 1, 1);
  require_elements(c, 2, 1);
  FakeQuantAttributes a;
  a.min = c.input(1).values<float>()[0];
  a.max = c.input(2).values<float>()[0];
  a.num_bits = small(node_def(c).integer("num_bits", 8));
  a.narrow_range = node_def(c).flag("narrow_range", false);
  return Translation{op::kFakeQuant, std::make_shared<FakeQuantAttributes>(a), {0}};
}

/// The custom ops of the same names have their attributes in a map.
Maybe audio_spectrogram(const OpContext& c) {
  const NodeDefAttributes& a = node_def(c);
  return Translation{ir::OpId::custom("AudioSpectrogram"),
                     nullptr,
                     {0},
                     build_flex_map({{"magnitude_squared", a.flag("magnitude_squared", false)},
                                     {"stride", small(a.integer("stride", 0))},
                                     {"window_size", small(a.integer("window_size", 0))}})};
}

Maybe mfcc(const OpContext& c) {
  const NodeDefAttributes& a = node_def(c);
  return Translation{ir::OpId::custom("Mfcc"),
                     nullptr,
                     {0, 1},
                     build_flex_map({{"dct_coefficient_count", small(a.integer("dct_coefficient_count", 13))},
                                     {"filterbank_channel_count", small(a.integer("filterbank_channel_count", 40))},
                                     {"lower_frequency_limit", a.number("lower_frequency_limit", 20)},
                                     {"upper_frequency_limit", a.number("upper_frequency_limit", 4000)}})};
}

}  // namespace

void register_flex_translations(Registry& registry) {
  constexpr std::string_view kAny = "those of the builtin op";
  const auto add = [&](OpDef row) { registry.add(std::move(row)); };
  add(translated_row<same<op::kReshape.code()>>("FlexReshape", 2, 1, kAny));
  add(translated_row<squeeze>("FlexSqueeze", 1, 1, kAny));
  add(translated_row<same<op::kExpandDims.code()>>("FlexExpandDims", 2, 1, kAny));
  add(translated_row<same<op::kTranspose.code()>>("FlexTranspose", 2, 1, kAny));
  add(translated_row<concat<true>>("FlexConcatV2", -1, 1, kAny));
  add(translated_row<concat<false>>("FlexConcat", -1, 1, kAny));
  add(translated_row<pack>("FlexPack", -1, 1, kAny));
  add(translated_row<unpack>("FlexUnpack", 1, -1, kAny));
  add(translated_row<split>("FlexSplit", 2, -1, kAny));
  add(translated_row<split_v>("FlexSplitV", 3, -1, kAny));
  add(translated_row<strided_slice>("FlexStridedSlice", 4, 1, kAny));
  add(translated_row<same<op::kSlice.code()>>("FlexSlice", 3, 1, kAny));
  add(translated_row<same<op::kPad.code()>>("FlexPad", 2, 1, kAny));
  add(translated_row<same<op::kPadV2.code()>>("FlexPadV2", 3, 1, kAny));
  add(translated_row<mirror_pad>("FlexMirrorPad", 2, 1, kAny));
  add(translated_row<same<op::kTile.code()>>("FlexTile", 2, 1, kAny));
  add(translated_row<same<op::kBroadcastTo.code()>>("FlexBroadcastTo", 2, 1, kAny));
  add(translated_row<same<op::kBroadcastArgs.code()>>("FlexBroadcastArgs", 2, 1, kAny));
  add(translated_row<same<op::kFill.code()>>("FlexFill", 2, 1, kAny));
  add(translated_row<gather>("FlexGather", 2, 1, kAny));
  add(translated_row<gather>("FlexGatherV2", 3, 1, kAny));
  add(translated_row<same<op::kGatherNd.code()>>("FlexGatherNd", 2, 1, kAny));
  add(translated_row<same<op::kScatterNd.code()>>("FlexScatterNd", 3, 1, kAny));
  add(translated_row<same<op::kReverseV2.code()>>("FlexReverseV2", 2, 1, kAny));
  add(translated_row<reverse_sequence>("FlexReverseSequence", 2, 1, kAny));
  add(translated_row<shape>("FlexShape", 1, 1, kAny));
  add(translated_row<same<op::kRank.code()>>("FlexRank", 1, 1, kAny));
  add(translated_row<cast>("FlexCast", 1, 1, kAny));
  add(translated_row<one_hot>("FlexOneHot", 4, 1, kAny));
  add(translated_row<same<op::kWhere.code()>>("FlexWhere", 1, 1, kAny));
  add(translated_row<same<op::kSelect.code()>>("FlexSelect", 3, 1, kAny));
  add(translated_row<same<op::kSelectV2.code()>>("FlexSelectV2", 3, 1, kAny));
  add(translated_row<block_size<op::kSpaceToDepth.code()>>("FlexSpaceToDepth", 1, 1, kAny));
  add(translated_row<block_size<op::kDepthToSpace.code()>>("FlexDepthToSpace", 1, 1, kAny));
  add(translated_row<same<op::kSpaceToBatchNd.code()>>("FlexSpaceToBatchND", 3, 1, kAny));
  add(translated_row<same<op::kBatchToSpaceNd.code()>>("FlexBatchToSpaceND", 3, 1, kAny));
  add(translated_row<resize_nearest>("FlexResizeNearestNeighbor", 2, 1, kAny));
  add(translated_row<local_response>("FlexLRN", 1, 1, kAny));
  add(translated_row<fake_quant>("FlexFakeQuantWithMinMaxArgs", 1, 1, kAny));
  add(translated_row<fake_quant_vars>("FlexFakeQuantWithMinMaxVars", 3, 1, kAny));
  add(translated_row<same<op::kBitcast.code()>>("FlexBitcast", 1, 1, kAny));
  add(translated_row<audio_spectrogram>("FlexAudioSpectrogram", 1, 1, "f32"));
  add(translated_row<mfcc>("FlexMfcc", 2, 1, "f32"));
  add(translated_row<same<op::kSparseToDense.code()>>("FlexSparseToDense", 4, 1, kAny));
}

}  // namespace leadline::ops
