// SPDX-License-Identifier: Apache-2.0
// Flex op ScaleAndTranslate(images, size, scale, translation): columns of pixels first, then rows, as TensorFlow does.
#include <algorithm>
#include <span>

#include "ops/flex/families.h"
#include "ops/flex/flex.h"
#include "ops/resampling.h"

namespace leadline::ops {
namespace {

void infer_scale(InferContext& c) {
  c.require(c.input(0).shape.rank() == 4, "the images have shape {}, expected rank 4", c.input(0).shape.to_string());
  c.require_output_type(0, {DType::kFloat32});
  require_indices(c, 1);
  for (const int i : {1, 2, 3}) require_elements(c, i, 2);
  c.require_input_type(2, {DType::kFloat32});
  c.require_input_type(3, {DType::kFloat32});
  if (!c.known(1)) return c.defer();
  const std::vector<int64_t> size = known_ints(c, 1);
  const Shape& in = c.input(0).shape;
  c.require(size[0] > 0 && size[1] > 0 && in[1] > 0 && in[2] > 0, "images of {} x {} cannot become {} x {}", in[1],
            in[2], size[0], size[1]);
  c.set_output_shape(0, checked_shape(c, {in[0], size[0], size[1], in[3]}));
}

/// The weights of one axis for a run, in its scratch memory.
struct AxisTable {
  int64_t from, to;

  int64_t bytes(const OpContext& c) const {
    const int64_t weights = checked_multiply(c, checked_multiply(c, from, to), sizeof(float));
    const int64_t spans = checked_multiply(c, to, sizeof(Resampling::Span));
    return checked_add(c, spans, (weights + 7) / 8 * 8);
  }
  Resampling::Span* spans(std::byte* memory) const { return reinterpret_cast<Resampling::Span*>(memory); }
  std::span<float> weights(std::byte* memory, int64_t at) const {
    auto* const begin = reinterpret_cast<float*>(memory + to * static_cast<int64_t>(sizeof(Resampling::Span)));
    return {begin + at * from, static_cast<size_t>(from)};
  }
  void fill(std::byte* memory, const Resampling& resampling) const {
    for (int64_t at = 0; at < to; ++at) spans(memory)[at] = resampling.weights(at, weights(memory, at));
  }
};

/// Sums the lines (`length` numbers each) of the image that begins at number `begin` into one of the output.
template <typename T>
void resample_line(const std::byte* in, int64_t begin, float* out, int64_t length, const Resampling::Span& span,
                   std::span<const float> weights) {
  std::fill_n(out, length, 0.0F);
  for (int64_t i = 0; i < span.count; ++i) {
    const float weight = weights[static_cast<size_t>(i)];
    const T* const line = reinterpret_cast<const T*>(in) + begin + (span.first + i) * length;
    for (int64_t k = 0; k < length; ++k) out[k] += weight * static_cast<float>(line[k]);
  }
}

using ResampleLine = decltype(&resample_line<float>);

ResampleLine resample_line_of(const OpContext& c, DType type) {
  const auto choose = [](auto example) -> ResampleLine { return resample_line<decltype(example)>; };
  return is_floating(type) ? visit_floating(c, type, choose) : visit_numeric(c, type, choose);
}

std::unique_ptr<Kernel> prepare_scale(PrepareContext& c) {
  const std::string_view name = node_def(c).text("kernel_type", "lanczos3");
  const auto filter = resampling_filter(name);
  c.require(filter.has_value(),
            "its kernel_type is '{}', expected lanczos1, lanczos3, lanczos5, gaussian, box, triangle, keyscubic or "
            "mitchellcubic",
            name);
  const bool antialias = node_def(c).flag("antialias", true);
  const Shape in = c.input(0).shape;
  const Shape out = c.output(0).shape;
  const AxisTable rows{in[1], out[1]};
  const AxisTable columns{in[2], out[2]};
  const ResampleLine resample_row = resample_line_of(c, c.input(0).dtype());
  const int64_t line = checked_multiply(c, in[2], in[3]);
  const int64_t between = checked_multiply(c, checked_multiply(c, checked_multiply(c, in[0], out[1]), line), 4);
  const int64_t tables = checked_add(c, rows.bytes(c), columns.bytes(c));
  c.request_scratch(checked_add(c, tables, between));
  return make_kernel([=, column_table = rows.bytes(c)](RunContext& run) {
    const auto* scale = run.input(2).as<float>();
    const auto* translation = run.input(3).as<float>();
    run.require(scale[0] > 0 && scale[1] > 0, "its scale is [{}, {}], expected numbers above 0", scale[0], scale[1]);
    std::byte* const row_memory = run.scratch();
    std::byte* const column_memory = run.scratch() + column_table;
    rows.fill(row_memory, Resampling(*filter, antialias, rows.from, scale[0], translation[0]));
    columns.fill(column_memory, Resampling(*filter, antialias, columns.from, scale[1], translation[1]));
    auto* const middle = reinterpret_cast<float*>(run.scratch() + tables);
    const std::byte* const images = run.input(0).data;
    const double row_cost = static_cast<double>(line) * 16;
    run.pool().for_pieces(in[0] * rows.to, row_cost, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t at = i % rows.to;
        resample_row(images, i / rows.to * rows.from * line, middle + i * line, line, rows.spans(row_memory)[at],
                     rows.weights(row_memory, at));
      }
    });
    auto* const result = run.output(0).mutable_as<float>();
    const double pixel_cost = static_cast<double>(in[3]) * 16;
    run.pool().for_pieces(in[0] * rows.to * columns.to, pixel_cost, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t at = i % columns.to;
        resample_line<float>(run.scratch() + tables, i / columns.to * line, result + i * in[3], in[3],
                             columns.spans(column_memory)[at], columns.weights(column_memory, at));
      }
    });
  });
}

}  // namespace

void register_flex_image_scale(Registry& registry) {
  registry.add(flex_row("FlexScaleAndTranslate", 4, 1, infer_scale, prepare_scale, "real numbers to f32"));
}

}  // namespace leadline::ops
