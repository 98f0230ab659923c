// SPDX-License-Identifier: Apache-2.0
// LOOKUP, SWISH and LAYER_NORM: what passes make of several nodes for a run.
#include "ops/fused.h"

#include "kernels/reduce/layer_norm.h"
#include "ops/elementwise.h"
#include "ops/families.h"

namespace leadline::ops {
namespace {

void infer_lookup(InferContext& c) {
  c.require_input_type(0, {DType::kInt8, DType::kUInt8});
  c.require_output_type(0, {DType::kInt8, DType::kUInt8});
  const Shape& shape = c.input(0).shape;
  const int missing = c.attributes<LookupAttributes>().least_rank - shape.rank();
  if (missing <= 0) return c.set_output_shape(0, shape);
  std::vector<int64_t> sizes(static_cast<size_t>(missing), 1);
  sizes.insert(sizes.end(), shape.begin(), shape.end());
  c.set_output_shape(0, Shape(sizes));
}

std::unique_ptr<Kernel> prepare_lookup(PrepareContext& c) {
  return lut8_kernel<uint8_t>(c.attributes<LookupAttributes>().table);
}

void infer_swish(InferContext& c) { infer_unary(c, {DType::kFloat32}); }

std::unique_ptr<Kernel> prepare_swish(PrepareContext& c) {
  return unary_float_kernel(c, kernels::UnaryF32::kSwish, 0.0F, 0.0F, kHeavyCost);
}

void infer_layer_norm(InferContext& c) {
  c.require_input_type(0, {DType::kFloat32});
  c.require_output_type(0, {DType::kFloat32});
  const Shape& shape = c.input(0).shape;
  const int axis = c.attributes<LayerNormAttributes>().axis;
  c.require(shape.rank() >= 1 && (axis == -1 || axis == shape.rank() - 1), "axis {} is not the last of shape {}", axis,
            shape.to_string());
  for (int i = 1; i < c.input_count(); ++i) {
    if (!c.has_input(i)) continue;
    c.require_input_type(i, {DType::kFloat32});
    const Shape& along = c.input(i).shape;
    const int64_t count = shape[shape.rank() - 1];
    c.require(along.rank() >= 1 && along.rank() <= shape.rank() && along[along.rank() - 1] == count &&
                  along.elements() == count,
              "operand {} has shape {}, expected {} numbers along the last axis of {}", i, along.to_string(), count,
              shape.to_string());
  }
  c.set_output_shape(0, shape);
}

/// Values of a row that is normalized in one piece.
constexpr int64_t kLongRow = int64_t{1} << 20;

void normalize_long_row(const kernels::LayerNorm& norm, const float* in, const float* gain, const float* shift,
                        float* out, int64_t count, float epsilon) {
  const auto over_row = [&](const auto& body) {
    for_boxes<1>({{{{0, count}, 64}}}, 0.25, [&](const auto& box) { body(box[0]); });
  };
  kernels::LayerNormSums values;
  kernels::LayerNormSums squares;
  const auto n = static_cast<float>(count);
  over_row([&](IndexRange range) { norm.add(in, count, range, values); });
  const float mean = values.total / n;
  over_row([&](IndexRange range) { norm.add_squares(in, count, range, mean, squares); });
  const float scale = 1.0F / std::sqrt(squares.total / n + epsilon);
  over_row([&](IndexRange range) { norm.write(in, gain, shift, out, range, mean, scale); });
}

std::unique_ptr<Kernel> prepare_layer_norm(PrepareContext& c) {
  const Shape& shape = c.input(0).shape;
  const int64_t count = shape[shape.rank() - 1];
  const int64_t rows = count == 0 ? 0 : shape.elements() / count;
  const float epsilon = c.attributes<LayerNormAttributes>().epsilon;
  return make_kernel([count, rows, epsilon, norm = kernels::layer_norm()](RunContext& run) {
    const float* in = run.input(0).as<float>();
    const float* gain = run.has_input(1) ? run.input(1).as<float>() : nullptr;
    const float* shift = run.has_input(2) ? run.input(2).as<float>() : nullptr;
    float* out = run.output(0).mutable_as<float>();
    run.pool().for_pieces(rows, kHeavyCost * static_cast<double>(count), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        if (count > kLongRow) {
          normalize_long_row(norm, in + i * count, gain, shift, out + i * count, count, epsilon);
        } else {
          norm.row(in + i * count, gain, shift, out + i * count, count, epsilon);
        }
      }
    });
  });
}

OpDef fused_op(const ir::OpId& id) {
  OpDef row;
  row.id = id;
  row.min_inputs = row.max_inputs = row.required_inputs = 1;
  row.sharing = Sharing::kInPlace;
  return row;
}

}  // namespace

void register_fused(Registry& registry) {
  OpDef lookup = fused_op(op::kLookup);
  lookup.make_attributes = make_attributes<LookupAttributes>;
  lookup.infer = infer_lookup;
  lookup.prepare = prepare_lookup;
  registry.add(lookup);
  OpDef swish = fused_op(op::kSwish);
  swish.infer = infer_swish;
  swish.prepare = prepare_swish;
  registry.add(swish);
  OpDef layer_norm = fused_op(op::kLayerNorm);
  layer_norm.max_inputs = 3;
  layer_norm.make_attributes = make_attributes<LayerNormAttributes>;
  layer_norm.infer = infer_layer_norm;
  layer_norm.prepare = prepare_layer_norm;
  registry.add(layer_norm);
}

}  // namespace leadline::ops
