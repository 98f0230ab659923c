// SPDX-License-Identifier: Apache-2.0
// RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR.
//
// Where an output pixel lies in the input is computed once per column, into scratch memory, and once per row.
#include "ops/resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/resize/bilinear.h"
#include "ops/common.h"
#include "ops/families.h"
#include "ops/quantization_rules.h"

namespace leadline::ops {
namespace {

struct ResizePlan {
  int64_t rows = 0;  // batches * output height
  int64_t in_h = 0, in_w = 0, out_h = 0, out_w = 0, channels = 0;
  ResizeAttributes attributes;
};

template <typename Weight>
using Tap = kernels::ResizeTap<Weight>;

float axis_scale(const ResizeAttributes& a, int64_t in, int64_t out) {
  if (a.align_corners && out > 1) return static_cast<float>(in - 1) / static_cast<float>(out - 1);
  return static_cast<float>(in) / static_cast<float>(out);
}

Tap<float> float_tap(const ResizeAttributes& a, int64_t position, int64_t in, int64_t out) {
  const float scale = axis_scale(a, in, out);
  const auto p = static_cast<float>(position);
  const float raw = a.half_pixel_centers ? (p + 0.5F) * scale - 0.5F : p * scale;
  const float x = std::clamp(raw, 0.0F, static_cast<float>(in - 1));
  const auto first = std::min(static_cast<int64_t>(x), in - 1);
  return {first, std::min(first + 1, in - 1), x - static_cast<float>(first)};
}

constexpr int kFixedBits = 10;  // TFLite's integer resize computes positions, too, with 10 bits

/// 8-bit images: exact positions, weights rounded to 11 bits.
Tap<int32_t> byte_tap(const ResizeAttributes& a, int64_t position, int64_t in, int64_t out) {
  const Tap<float> t = float_tap(a, position, in, out);
  return {t.first, t.second,
          static_cast<int32_t>(std::lrint(t.weight * static_cast<float>(1 << kernels::kResizeWeightBits)))};
}

/// TFLite's fixed-point positions, whose error grows with the position.
Tap<int64_t> fixed_tap(const ResizeAttributes& a, int64_t position, int64_t in, int64_t out) {
  constexpr int64_t kOne = 1 << kFixedBits;
  const bool corners = a.align_corners && out > 1;
  const int64_t from = corners ? in - 1 : in;
  const int64_t to = corners ? out - 1 : out;
  const int64_t scale = (kOne * from + to / 2) / to;
  const int64_t x = a.half_pixel_centers ? position * scale + scale / 2 - kOne / 2 : position * scale;
  // Rounding may lead past the last pixel; both taps are the last one then, as they are the first before it.
  const int64_t first = std::clamp<int64_t>(x / kOne, 0, in - 1);
  const int64_t second = std::clamp<int64_t>((x + kOne - 1) / kOne, 0, in - 1);
  return {first, second, first == second ? 0 : x - kOne * first};
}

/// Four neighbours, blended with the weight of the right column and of the lower row.
template <typename T>
T blend(T top_left, T top_right, T bottom_left, T bottom_right, int64_t wx, int64_t wy) {
  constexpr int64_t kOne = 1 << kFixedBits;
  constexpr int64_t kHalf = kOne * kOne / 2;
  const int64_t top = top_left * (kOne - wx) + top_right * wx;
  const int64_t bottom = bottom_left * (kOne - wx) + bottom_right * wx;
  const int64_t sum = top * (kOne - wy) + bottom * wy;
  return static_cast<T>((sum + (sum > 0 ? kHalf : -kHalf)) / (kOne * kOne));
}

template <typename T>
void fixed_row(const kernels::BilinearRow<T, int64_t>& r) noexcept {
  T* out = r.out;
  for (int64_t x = 0; x < r.pixels; ++x, out += r.channels) {
    const Tap<int64_t> t = r.columns[x];
    const int64_t left = t.first * r.channels;
    const int64_t right = t.second * r.channels;
    for (int64_t c = 0; c < r.channels; ++c) {
      out[c] = blend<T>(r.top[left + c], r.top[right + c], r.bottom[left + c], r.bottom[right + c], t.weight, r.weight);
    }
  }
}

template <typename T, typename Weight, auto tap>
std::unique_ptr<Kernel> bilinear_kernel(const ResizePlan& p, kernels::BilinearRowFunction<T, Weight> row_function) {
  return make_kernel([p, row_function](RunContext& c) {
    auto* columns = c.scratch_as<Tap<Weight>>();
    for_items(p.out_w, 8, [&](int64_t x) { columns[x] = tap(p.attributes, x, p.in_w, p.out_w); });
    const T* in = c.input(0).as<T>();
    T* out = c.output(0).mutable_as<T>();
    const double row_work = 2.0 * static_cast<double>(p.out_w * p.channels);
    c.pool().for_pieces(p.rows, row_work, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const Tap<Weight> y = tap(p.attributes, row % p.out_h, p.in_h, p.out_h);
        const T* image = in + row / p.out_h * p.in_h * p.in_w * p.channels;
        for_pieces(p.out_w, static_cast<double>(p.channels), [&](int64_t from, int64_t to) {
          row_function({image + y.first * p.in_w * p.channels, image + y.second * p.in_w * p.channels, y.weight,
                        columns + from, to - from, p.channels, out + (row * p.out_w + from) * p.channels});
        });
      }
    });
  });
}

int64_t nearest(const ResizeAttributes& a, int64_t position, int64_t in, int64_t out) {
  const float x = (static_cast<float>(position) + (a.half_pixel_centers ? 0.5F : 0.0F)) * axis_scale(a, in, out);
  const float level = a.align_corners ? std::round(x) : std::floor(x);
  return std::clamp<int64_t>(static_cast<int64_t>(level), 0, in - 1);
}

/// Moves whole pixels of `pixel` bytes.
std::unique_ptr<Kernel> nearest_kernel(const ResizePlan& p, int64_t pixel) {
  return make_kernel([p, pixel](RunContext& c) {
    auto* columns = c.scratch_as<int64_t>();
    for_items(p.out_w, 8, [&](int64_t x) { columns[x] = nearest(p.attributes, x, p.in_w, p.out_w) * pixel; });
    const std::byte* in = c.input(0).data;
    std::byte* out = c.output(0).data;
    const double row_work = static_cast<double>(p.out_w) * (8.0 + static_cast<double>(pixel) / 16.0);
    c.pool().for_pieces(p.rows, row_work, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t in_row = row / p.out_h * p.in_h + nearest(p.attributes, row % p.out_h, p.in_h, p.out_h);
        const std::byte* from = in + in_row * p.in_w * pixel;
        std::byte* to = out + row * p.out_w * pixel;
        for_pieces(p.out_w, kByteCost * static_cast<double>(pixel) + 2, [&](int64_t first, int64_t last) {
          for (int64_t x = first; x < last; ++x) {
            std::memcpy(to + x * pixel, from + columns[x], static_cast<size_t>(pixel));
          }
        });
      }
    });
  });
}

/// Shapes and the size operand, which both ops share. `smallest` is the smallest legal output size.
void infer_resized_shape(InferContext& c, int64_t smallest) {
  c.require_output_type(0, {c.input(0).dtype()});
  c.require_input_type(1, {DType::kInt32});
  const Shape& in = c.input(0).shape;
  c.require(in.rank() == 4, "input has shape {}, expected 4 dimensions", in.to_string());
  c.require(c.input(1).shape == Shape{2}, "size has shape {}, expected [2]", c.input(1).shape.to_string());
  if (!c.known(1)) return c.defer();
  const auto size = c.input(1).values<int32_t>();
  c.require(size[0] >= smallest && size[1] >= smallest, "size is {} x {}, expected at least {}", size[0], size[1],
            smallest);
  const Shape out{in[0], size[0], size[1], in[3]};
  c.require(out.checked_elements().value_or(1) == 0 || (in[1] > 0 && in[2] > 0),
            "input of shape {} has no pixels to resize", in.to_string());
  c.set_output_shape(0, out);
}

void infer_bilinear(InferContext& c) {
  c.require_input_type(0, {DType::kFloat32, DType::kUInt8, DType::kInt8, DType::kInt16});
  const auto& a = c.attributes<ResizeBilinearAttributes>();
  c.require(!(a.align_corners && a.half_pixel_centers), "align_corners and half_pixel_centers exclude each other");
  infer_resized_shape(c, 1);
}

void infer_nearest(InferContext& c) {
  c.require_input_type(0, {DType::kFloat32, DType::kInt32, DType::kUInt32, DType::kUInt8, DType::kInt8, DType::kBool,
                           DType::kInt16, DType::kUInt16, DType::kFloat16, DType::kBFloat16});
  infer_resized_shape(c, 0);
}

ResizePlan plan_of(const PrepareContext& c, const ResizeAttributes& a) {
  const Shape& in = c.input(0).shape;
  const Shape& out = c.output(0).shape;
  return {out[0] * out[1], in[1], in[2], out[1], out[2], in[3], a};
}

std::unique_ptr<Kernel> prepare_bilinear(PrepareContext& c) {
  if (c.output(0).shape.elements() == 0) return make_kernel([](RunContext&) {});
  const ResizePlan p = plan_of(c, c.attributes<ResizeBilinearAttributes>());
  static_assert(sizeof(Tap<int64_t>) >= sizeof(Tap<int32_t>) && sizeof(Tap<int64_t>) >= sizeof(Tap<float>));
  c.request_scratch(p.out_w * static_cast<int64_t>(sizeof(Tap<int64_t>)));
  switch (c.input(0).dtype()) {
    case DType::kFloat32:
      return bilinear_kernel<float, float, float_tap>(p, kernels::bilinear_row<float, float>());
    case DType::kUInt8:
      return bilinear_kernel<uint8_t, int32_t, byte_tap>(p, kernels::bilinear_row<uint8_t, int32_t>());
    case DType::kInt8:
      // LiteRT leaves this one to XNNPACK only when the size is a constant.
      if (!c.input(1).value->constant) return bilinear_kernel<int8_t, int64_t, fixed_tap>(p, fixed_row<int8_t>);
      return bilinear_kernel<int8_t, int32_t, byte_tap>(p, kernels::bilinear_row<int8_t, int32_t>());
    default:
      return bilinear_kernel<int16_t, int64_t, fixed_tap>(p, fixed_row<int16_t>);
  }
}

std::unique_ptr<Kernel> prepare_nearest(PrepareContext& c) {
  if (c.output(0).shape.elements() == 0) return make_kernel([](RunContext&) {});
  const ResizePlan p = plan_of(c, c.attributes<ResizeNearestAttributes>());
  c.request_scratch(p.out_w * static_cast<int64_t>(sizeof(int64_t)));
  return nearest_kernel(p, p.channels * (dtype_bits(c.input(0).dtype()) / 8));
}

}  // namespace

void register_resize(Registry& registry) {
  registry.add({.id = op::kResizeBilinear,
                .max_version = 4,
                .min_inputs = 2,
                .max_inputs = 2,
                .required_inputs = 2,
                .options = builtin_options(15),
                .make_attributes = make_attributes<ResizeBilinearAttributes>,
                .infer = infer_bilinear,
                .prepare = prepare_bilinear,
                .quantize = same_scale_rule({.int8 = 2, .int16 = 4}),
                .types = "f32 u8 i8 i16",
                .fast = "f32 i8 u8"});
  registry.add({.id = op::kResizeNearestNeighbor,
                .max_version = 4,
                .min_inputs = 2,
                .max_inputs = 2,
                .required_inputs = 2,
                .options = builtin_options(74),
                .make_attributes = make_attributes<ResizeNearestAttributes>,
                .infer = infer_nearest,
                .prepare = prepare_nearest,
                .quantize = same_scale_rule({.int8 = 2, .int16 = 4}),
                .types = "f32 i32 u8 i8 i16 bool f16"});
}

}  // namespace leadline::ops
