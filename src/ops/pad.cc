// SPDX-License-Identifier: Apache-2.0
// PAD, PADV2, MIRROR_PAD: a tensor with a border of one value or of its own mirror image.
#include "ops/pad.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "ops/common.h"
#include "ops/families.h"
#include "ops/movement.h"
#include "ops/quantization_rules.h"

namespace leadline::ops {
namespace {

bool is_quantized_type(DType type) { return type == DType::kUInt8 || type == DType::kInt8 || type == DType::kInt16; }

struct Border {
  int64_t before = 0;
  int64_t after = 0;
};

/// Paddings of every axis, of any integer type TFLite takes; their data must be known.
std::vector<Border> borders(const OpContext& c) {
  const Operand& operand = c.input(1);
  std::vector<int64_t> values;
  switch (operand.dtype()) {
    case DType::kInt8:
    case DType::kBool: {
      const auto bytes = operand.values<int8_t>();
      values.assign(bytes.begin(), bytes.end());
      break;
    }
    default:
      values = known_ints(c, 1);
  }
  std::vector<Border> result(values.size() / 2);
  for (size_t i = 0; i < result.size(); ++i) {
    result[i] = {values[2 * i], values[2 * i + 1]};
    c.require(result[i].before >= 0 && result[i].after >= 0, "dimension {} is padded by {} and {}, expected 0 or more",
              i, result[i].before, result[i].after);
  }
  return result;
}

void check_pad(const InferContext& c) {
  require_movable(c, c.input(0), {});
  require_same_type(c, c.input(0), c.output(0));
  const int64_t rank = c.input(0).shape.rank();
  c.require(c.input(1).shape == Shape{rank, 2}, "the paddings have shape {}, expected [{}, 2]",
            c.input(1).shape.to_string(), rank);
}

void set_padded_shape(InferContext& c, const std::vector<Border>& border) {
  const Shape& input = c.input(0).shape;
  std::vector<int64_t> dims;
  for (int d = 0; d < input.rank(); ++d) {
    const Border& b = border[static_cast<size_t>(d)];
    dims.push_back(checked_add(c, checked_add(c, input[d], b.before), b.after));
  }
  c.set_output_shape(0, checked_shape(c, dims));
}

/// The tensors as rows: the innermost padded axis and all within it are one row, outer axes count rows.
struct Rows {
  struct Axis {
    int64_t input = 0;
    int64_t output = 0;
    int64_t before = 0;
    int64_t input_stride = 0;  // in rows
  };
  std::array<Axis, kMaxRank> outer{};
  int outer_rank = 0;
  Axis row;           // the padded axis of a row, in units
  int64_t unit = 1;   // bytes
  int64_t count = 0;  // rows of the output
};

Rows make_rows(const OpContext& c, const std::vector<Border>& border) {
  const Shape& input = c.input(0).shape;
  const Shape& output = c.output(0).shape;
  Rows rows;
  rows.unit = element_bytes(c.input(0).dtype());
  rows.row = {1, 1, 0, 0};
  if (output.elements() == 0) return rows;
  int axis = input.rank() - 1;
  for (; axis >= 0; --axis) {
    const Border& b = border[static_cast<size_t>(axis)];
    if (b.before != 0 || b.after != 0) break;
    rows.unit *= output[axis];
  }
  rows.count = 1;
  if (axis < 0) return rows;
  rows.row = {input[axis], output[axis], border[static_cast<size_t>(axis)].before, 0};
  rows.outer_rank = axis;
  int64_t stride = 1;
  for (int d = axis - 1; d >= 0; --d) {
    rows.outer[static_cast<size_t>(d)] = {input[d], output[d], border[static_cast<size_t>(d)].before, stride};
    stride = input.elements() == 0 ? 0 : stride * input[d];
    rows.count *= output[d];
  }
  return rows;
}

/// Calls body(output row, input row) with the input's row, or -1 where `map` returns -1 for an outer index.
template <typename Map, typename Body>
void for_rows(const Rows& rows, int64_t begin, int64_t end, const Map& map, const Body& body) {
  for (int64_t r = begin; r < end; ++r) {
    int64_t rest = r;
    int64_t source = 0;
    for (int d = rows.outer_rank - 1; d >= 0 && source >= 0; --d) {
      const Rows::Axis& axis = rows.outer[static_cast<size_t>(d)];
      const int64_t i = map(axis, rest % axis.output);
      rest /= axis.output;
      source = i < 0 ? -1 : source + i * axis.input_stride;
    }
    body(r, source);
  }
}

double row_cost(const Rows& rows) { return kByteCost * static_cast<double>(rows.row.output * rows.unit) + 16; }

void pad_constant(const RunContext& c, const Rows& rows, const std::byte* value, int64_t size) {
  const std::byte* input = c.input(0).data;
  std::byte* output = c.output(0).data;
  const Rows::Axis& row = rows.row;
  const int64_t per_unit = rows.unit / size;
  auto inside = [](const Rows::Axis& axis, int64_t i) {
    return i >= axis.before && i < axis.before + axis.input ? i - axis.before : -1;
  };
  if (rows.count == 0) return;
  c.pool().for_pieces(rows.count, row_cost(rows), [&](int64_t begin, int64_t end) {
    for_rows(rows, begin, end, inside, [&](int64_t r, int64_t source) {
      std::byte* to = output + r * row.output * rows.unit;
      if (source < 0 || row.input == 0) {
        fill_elements(to, row.output * per_unit, value, size);
        return;
      }
      fill_elements(to, row.before * per_unit, value, size);
      to += row.before * rows.unit;
      copy_bytes(to, input + source * row.input * rows.unit, row.input * rows.unit);
      to += row.input * rows.unit;
      fill_elements(to, (row.output - row.before - row.input) * per_unit, value, size);
    });
  });
}

void infer_pad(InferContext& c) {
  check_pad(c);
  c.require_input_type(1, {DType::kInt32, DType::kInt64, DType::kInt16, DType::kInt8, DType::kBool});
  if (c.has_input(2)) {
    require_same_type(c, c.input(2), c.output(0));
    require_elements(c, 2, 1);
    if (is_quantized_type(c.output(0).dtype())) require_same_quantization(c, c.input(2), c.output(0));
  }
  if (!c.known(1)) return c.defer();
  set_padded_shape(c, borders(c));
}

std::unique_ptr<Kernel> prepare_pad(PrepareContext& c) {
  const Rows rows = make_rows(c, borders(c));
  const DType type = c.output(0).dtype();
  const int64_t size = element_bytes(type);
  if (c.has_input(2)) {
    return make_kernel([rows, size](RunContext& run) { pad_constant(run, rows, run.input(2).data, size); });
  }
  // Real 0 is the zero point of a quantized tensor, and all bits 0 in every other type.
  std::array<std::byte, 16> zero{};
  if (is_quantized_type(type)) {
    const auto zero_point = static_cast<int16_t>(c.output(0).quantization().zero_point0());
    std::memcpy(zero.data(), &zero_point, static_cast<size_t>(std::min<int64_t>(size, 2)));
  }
  return make_kernel([rows, size, zero](RunContext& run) { pad_constant(run, rows, zero.data(), size); });
}

void infer_mirror_pad(InferContext& c) {
  check_pad(c);
  c.require_input_type(1, {DType::kInt32, DType::kInt64});
  if (is_quantized_type(c.output(0).dtype())) require_same_quantization(c, c.input(0), c.output(0));
  if (!c.known(1)) return c.defer();
  const auto border = borders(c);
  const int64_t skipped = c.attributes<MirrorPadAttributes>().mode == MirrorMode::kReflect ? 1 : 0;
  const Shape& input = c.input(0).shape;
  for (int d = 0; d < input.rank(); ++d) {
    const Border& b = border[static_cast<size_t>(d)];
    if (b.before == 0 && b.after == 0) continue;
    c.require(std::max(b.before, b.after) <= input[d] - skipped,
              "dimension {} of shape {} is too small to mirror {} and {} elements", d, input.to_string(), b.before,
              b.after);
  }
  set_padded_shape(c, border);
}

std::unique_ptr<Kernel> prepare_mirror_pad(PrepareContext& c) {
  const Rows rows = make_rows(c, borders(c));
  const int64_t skipped = c.attributes<MirrorPadAttributes>().mode == MirrorMode::kReflect ? 1 : 0;
  return make_kernel([rows, skipped](RunContext& run) {
    if (rows.count == 0) return;
    auto mirrored = [skipped](const Rows::Axis& axis, int64_t i) {
      if (i < axis.before) return axis.before - 1 - i + skipped;
      i -= axis.before;
      return i < axis.input ? i : 2 * axis.input - 1 - i - skipped;
    };
    const std::byte* input = run.input(0).data;
    std::byte* output = run.output(0).data;
    const auto unit = static_cast<size_t>(rows.unit);
    run.pool().for_pieces(rows.count, row_cost(rows), [&](int64_t begin, int64_t end) {
      for_rows(rows, begin, end, mirrored, [&](int64_t r, int64_t source) {
        const Rows::Axis& row = rows.row;
        const std::byte* from = input + source * row.input * rows.unit;
        std::byte* to = output + r * row.output * rows.unit;
        auto copy_mirrored = [&](int64_t first, int64_t last) {
          for_items(last - first, kByteCost * static_cast<double>(unit) + 2, [&](int64_t k) {
            const int64_t i = first + k;
            std::memcpy(to + i * rows.unit, from + mirrored(row, i) * rows.unit, unit);
          });
        };
        copy_mirrored(0, row.before);
        copy_bytes(to + row.before * rows.unit, from, row.input * rows.unit);
        copy_mirrored(row.before + row.input, row.output);
      });
    });
  });
}

}  // namespace

void register_pad(Registry& registry) {
  registry.add({.id = op::kPad,
                .max_version = 6,
                .min_inputs = 2,
                .max_inputs = 3,
                .required_inputs = 2,
                .options = builtin_options(22),
                .infer = infer_pad,
                .prepare = prepare_pad,
                .quantize = same_scale_rule({.int8 = 2, .int16 = 3}),
                .types = "all but strings"});
  registry.add({.id = op::kPadV2,
                .max_version = 6,
                .min_inputs = 2,
                .max_inputs = 3,
                .required_inputs = 2,
                .options = builtin_options(43),
                .infer = infer_pad,
                .prepare = prepare_pad,
                .quantize = same_scale_rule({.int8 = 2, .int16 = 3}),
                .types = "all but strings"});
  registry.add({.id = op::kMirrorPad,
                .max_version = 3,
                .min_inputs = 2,
                .max_inputs = 2,
                .required_inputs = 2,
                .options = builtin_options(77),
                .make_attributes = make_attributes<MirrorPadAttributes>,
                .infer = infer_mirror_pad,
                .prepare = prepare_mirror_pad,
                .quantize = same_scale_rule({.int8 = 2, .int16 = 3}),
                .types = "all but strings"});
}

}  // namespace leadline::ops
