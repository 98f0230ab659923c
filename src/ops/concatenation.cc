// SPDX-License-Identifier: Apache-2.0
// CONCATENATION, PACK: tensors side by side along an axis that is there already or is new.
#include "ops/concatenation.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ops/common.h"
#include "ops/families.h"
#include "ops/movement.h"
#include "ops/quantization_rules.h"

namespace leadline::ops {
namespace {

/// Every input must be there and have the output's type.
void check_inputs(const InferContext& c, Movable allowed) {
  for (int i = 0; i < c.input_count(); ++i) {
    c.require(c.has_input(i), "input {} is absent", i);
    require_same_type(c, c.input(i), c.output(0));
  }
  require_movable(c, c.input(0), allowed);
}

/// TFLite rescales uint8 inputs; it refuses int8 inputs that would need it and copies all other types.
void check_joined_quantization(const InferContext& c) {
  const Operand& output = c.output(0);
  for (int i = 0; i < c.input_count(); ++i) {
    const Operand& input = c.input(i);
    if (output.dtype() == DType::kInt8) require_same_quantization(c, input, output);
    if (output.dtype() == DType::kInt16) {
      c.require(input.quantization().zero_point0() == 0 && output.quantization().zero_point0() == 0,
                "int16 tensors need zero point 0, '{}' has {} and the output {}", input.value->name,
                input.quantization().zero_point0(), output.quantization().zero_point0());
    }
    if (output.dtype() == DType::kUInt8 && input.quantization() != output.quantization()) {
      const bool same = input.quantization().scale0() == output.quantization().scale0() &&
                        input.quantization().zero_point0() == output.quantization().zero_point0();
      if (same) continue;
      c.require_quantized(input, "input");
      c.require_quantized(output, "output");
    }
  }
}

void infer_concatenation(InferContext& c) {
  const auto& attributes = c.attributes<ConcatenationAttributes>();
  check_inputs(c, {.sub_byte = true});
  if (attributes.activation != ir::Activation::kNone) {
    c.fail(ErrorCode::kUnsupported, "a fused activation is not supported");
  }
  check_joined_quantization(c);
  const Shape& first = c.input(0).shape;
  for (int i = 1; i < c.input_count(); ++i) {
    c.require(c.input(i).shape.rank() == first.rank(), "inputs have ranks {} and {}, expected the same rank",
              first.rank(), c.input(i).shape.rank());
  }
  if (first.rank() == 0) {
    c.require(attributes.axis == 0, "axis {} is outside scalars", attributes.axis);
    c.set_output_shape(0, Shape{c.input_count()});
    return;
  }
  const int axis = resolve_axis(c, attributes.axis, first.rank());
  Shape output = first;
  for (int i = 1; i < c.input_count(); ++i) {
    const Shape& shape = c.input(i).shape;
    for (int d = 0; d < first.rank(); ++d) {
      c.require(d == axis || shape[d] == first[d], "shapes {} and {} differ outside axis {}", first.to_string(),
                shape.to_string(), axis);
    }
    output.set(axis, checked_add(c, output[axis], shape[axis]));
  }
  c.set_output_shape(0, output);
}

/// What one input adds to each row of the output.
struct Part {
  int64_t run = 0;       // elements
  bool rescale = false;  // uint8 with other parameters than the output's
  float scale = 0.0F;
  float bias = 0.0F;
};

void rescale_run(const uint8_t* from, uint8_t* to, const Part& part, int32_t zero_point) {
  for_items(part.run, 8, [&](int64_t i) {
    // Clamped before the conversion, so that any scale is safe; far outside 0..255 either way.
    const float level = std::clamp(std::round(static_cast<float>(from[i]) * part.scale + part.bias), -1e6F, 1e6F);
    to[i] = static_cast<uint8_t>(std::clamp(static_cast<int32_t>(level) + zero_point, 0, 255));
  });
}

/// One row: whole inputs one after the other. Those that were computed in their place stay.
std::unique_ptr<Kernel> make_append_kernel(PrepareContext& c, std::vector<Part> parts, int32_t zero_point) {
  const int64_t size = element_bytes(c.output(0).dtype());
  int64_t at = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i].rescale) c.input_is_part_of_output(static_cast<int>(i), at);
    at += parts[i].run * size;
  }
  return make_kernel([=, parts = std::move(parts)](RunContext& run) {
    std::byte* target = run.output(0).data;
    for (size_t i = 0; i < parts.size(); ++i) {
      const Part& part = parts[i];
      const std::byte* source = run.input(static_cast<int>(i)).data;
      const int64_t bytes = part.run * size;
      if (part.rescale) {
        rescale_run(reinterpret_cast<const uint8_t*>(source), reinterpret_cast<uint8_t*>(target), part, zero_point);
      } else if (source != target && bytes > 0) {
        run.pool().for_pieces(bytes, kByteCost, [&](int64_t begin, int64_t end) {
          std::memcpy(target + begin, source + begin, static_cast<size_t>(end - begin));
        });
      }
      target += bytes;
    }
  });
}

std::unique_ptr<Kernel> make_join_kernel(PrepareContext& c, int64_t rows, std::vector<Part> parts, int32_t zero_point) {
  const DType type = c.output(0).dtype();
  int64_t row = 0;
  for (const Part& part : parts) row += part.run;
  if (rows == 1 && dtype_bits(type) >= 8) return make_append_kernel(c, std::move(parts), zero_point);
  if (dtype_bits(type) < 8) {
    return make_kernel([rows, row, parts = std::move(parts), bits = dtype_bits(type)](RunContext& run) {
      const TensorView& out = run.output(0);
      if (out.bytes > 0) out.data[out.bytes - 1] = std::byte{0};
      int64_t next = 0;
      for_items(rows, 4 * static_cast<double>(row), [&](int64_t r) {
        for (size_t i = 0; i < parts.size(); ++i) {
          const std::byte* from = run.input(static_cast<int>(i)).data;
          for_items(parts[i].run, 4, [&](int64_t k) {
            put_packed(out.data, next++, bits, get_packed(from, r * parts[i].run + k, bits));
          });
        }
      });
    });
  }
  const int64_t size = element_bytes(type);
  return make_kernel([=, parts = std::move(parts)](RunContext& run) {
    if (row == 0 || rows == 0) return;
    std::byte* output = run.output(0).data;
    run.pool().for_pieces(rows, kByteCost * static_cast<double>(row * size) + 4, [&](int64_t begin, int64_t end) {
      int64_t at = 0;
      for (size_t i = 0; i < parts.size(); ++i) {
        const Part& part = parts[i];
        if (part.run == 0) continue;
        const std::byte* from = run.input(static_cast<int>(i)).data;
        for (int64_t r = begin; r < end; ++r) {
          const std::byte* source = from + r * part.run * size;
          std::byte* target = output + (r * row + at) * size;
          if (part.rescale) {
            rescale_run(reinterpret_cast<const uint8_t*>(source), reinterpret_cast<uint8_t*>(target), part, zero_point);
          } else {
            copy_bytes(target, source, part.run * size);
          }
        }
        at += part.run;
      }
    });
  });
}

std::unique_ptr<Kernel> prepare_concatenation(PrepareContext& c) {
  const Shape& output = c.output(0).shape;
  const DType type = c.output(0).dtype();
  const Quantization& q = c.output(0).quantization();
  const bool scalars = c.input(0).shape.rank() == 0;
  const int axis = scalars ? 0 : resolve_axis(c, c.attributes<ConcatenationAttributes>().axis, output.rank());
  std::vector<Part> parts;
  for (int i = 0; i < c.input_count(); ++i) {
    const Shape& shape = c.input(i).shape;
    const Quantization& qi = c.input(i).quantization();
    Part part;
    part.run = scalars ? 1 : span_elements(shape, axis, shape.rank());
    part.rescale = type == DType::kUInt8 && (qi.scale0() != q.scale0() || qi.zero_point0() != q.zero_point0());
    if (part.rescale) {
      // Float arithmetic in this order gives TFLite's bits.
      part.scale = qi.scale0() * (1.0F / q.scale0());
      part.bias = -static_cast<float>(qi.zero_point0()) * part.scale;
    }
    parts.push_back(part);
  }
  return make_join_kernel(c, span_elements(output, 0, axis), std::move(parts), q.zero_point0());
}

void infer_pack(InferContext& c) {
  const auto& attributes = c.attributes<PackAttributes>();
  check_inputs(c, {});
  c.require(attributes.values_count == c.input_count(), "the op has {} inputs, but its attribute says {}",
            c.input_count(), attributes.values_count);
  const Shape& input = c.input(0).shape;
  for (int i = 0; i < c.input_count(); ++i) {
    c.require(c.input(i).shape == input, "inputs have different shapes {} and {}", input.to_string(),
              c.input(i).shape.to_string());
    require_same_quantization(c, c.input(i), c.output(0));
  }
  const int axis = resolve_axis(c, attributes.axis, input.rank() + 1);
  std::vector<int64_t> dims(input.begin(), input.end());
  dims.insert(dims.begin() + axis, c.input_count());
  c.set_output_shape(0, checked_shape(c, dims));
}

std::unique_ptr<Kernel> prepare_pack(PrepareContext& c) {
  const Shape& input = c.input(0).shape;
  const int axis = resolve_axis(c, c.attributes<PackAttributes>().axis, input.rank() + 1);
  Part part;
  part.run = span_elements(input, axis, input.rank());
  std::vector<Part> parts(static_cast<size_t>(c.input_count()), part);
  return make_join_kernel(c, span_elements(input, 0, axis), std::move(parts), 0);
}

}  // namespace

void register_concatenation(Registry& registry) {
  registry.add({.id = op::kConcatenation,
                .max_version = 7,
                .min_inputs = 1,
                .max_inputs = -1,
                .required_inputs = 1,
                .options = builtin_options(10),
                .make_attributes = make_attributes<ConcatenationAttributes>,
                .infer = infer_concatenation,
                .prepare = prepare_concatenation,
                .quantize = same_scale_rule({.int8 = 2, .int16 = 3}),
                .types = "all but strings; u8 rescaled"});
  registry.add({.id = op::kPack,
                .max_version = 5,
                .min_inputs = 1,
                .max_inputs = -1,
                .required_inputs = 1,
                .options = builtin_options(59),
                .make_attributes = make_attributes<PackAttributes>,
                .infer = infer_pack,
                .prepare = prepare_pack,
                .quantize = same_scale_rule({.int8 = 2, .int16 = 3}),
                .types = "all but strings"});
}

}  // namespace leadline::ops
