// SPDX-License-Identifier: Apache-2.0
// Max pooling that remembers where the maxima were, and its inverse, in the two forms that models have:
//   MediaPipe   MaxPoolingWithArgmax2D, MaxUnpooling2D with float32 indices: the place inside the window, plus 0.1
//   TensorFlow  MaxPoolWithArgmax, MaxUnpooling2D and LiteRtMaxUnpooling2D with int32 indices: the place inside the
//   image
// Options are a struct of padding, stride_width, stride_height, filter_width, filter_height, activation, or for
// MaxPoolWithArgmax a FlexBuffers map.
#include <algorithm>
#include <limits>
#include <tuple>

#include "io/flexbuffer_map.h"
#include "ops/common.h"
#include "ops/custom_options.h"
#include "ops/families.h"
#include "ops/movement.h"

namespace leadline::ops {
namespace mediapipe_pooling {
namespace {

struct Options {
  ir::Padding padding = ir::Padding::kSame;
  int64_t stride_w = 0, stride_h = 0;
  int64_t filter_w = 0, filter_h = 0;
  float lo = 0.0F, hi = 0.0F;  // fused activation
};

/// A window's place index must be exact as a float with a fraction.
void check_options(const OpContext& c, const Options& o) {
  c.require(o.stride_w > 0 && o.stride_h > 0, "the strides are {} and {}, expected 1 or more", o.stride_h, o.stride_w);
  c.require(o.filter_w > 0 && o.filter_h > 0 && o.filter_w * o.filter_h <= (1 << 20),
            "the window is {} x {}, expected 1 to 2^20 pixels", o.filter_h, o.filter_w);
}

Options read_struct(const OpContext& c) {
  const auto [padding, stride_w, stride_h, filter_w, filter_h, activation] = read_struct_options<6>(c);
  c.require(activation >= 0 && activation < ir::kActivationCount, "the activation is {}, expected 0 to {}", activation,
            ir::kActivationCount - 1);
  Options o{padding_option(c, padding), stride_w, stride_h, filter_w, filter_h};
  std::tie(o.lo, o.hi) = activation_range(c, static_cast<ir::Activation>(activation));
  check_options(c, o);
  return o;
}

Options read_map(const OpContext& c) {
  const auto map = FlexMap::parse(c.node().custom_options);
  c.require(map.has_value(), "the custom options are not a FlexBuffers map");
  c.require(!map->get_bool("include_batch_in_index", false), "include_batch_in_index is set, which is not supported");
  auto spatial = [&](const char* name) {
    const auto sizes = map->get_ints(name);
    c.require(sizes && sizes->size() == 4 && sizes->front() == 1 && sizes->back() == 1,
              "{} is not of the form [1, height, width, 1]", name);
    return *sizes;
  };
  const auto window = spatial("ksize");
  const auto strides = spatial("strides");
  const std::string padding = map->get_text("padding").value_or("");
  c.require(padding == "SAME" || padding == "VALID", "the padding is '{}', expected SAME or VALID",
            printable(padding.substr(0, 20)));
  Options o{padding == "SAME" ? ir::Padding::kSame : ir::Padding::kValid, strides[2], strides[1], window[2], window[1]};
  std::tie(o.lo, o.hi) = activation_range(c, ir::Activation::kNone);
  check_options(c, o);
  return o;
}

void check_image(const OpContext& c, const Shape& shape) {
  c.require(shape.rank() == 4, "the input has shape {}, expected rank 4 [batch, height, width, channels]",
            shape.to_string());
  for (const int64_t size : shape) {
    c.require(size <= std::numeric_limits<int32_t>::max(), "the input's shape {} is too large", shape.to_string());
  }
}

template <Options (*read)(const OpContext&), DType index_type>
void infer_pool(InferContext& c) {
  const Options o = read(c);
  c.require_input_type(0, {DType::kFloat32});
  c.require_output_type(0, {DType::kFloat32});
  c.require_output_type(1, {index_type});
  const Shape& input = c.input(0).shape;
  check_image(c, input);
  if constexpr (index_type == DType::kInt32) {
    const int64_t places = checked_multiply(c, checked_multiply(c, input[1], input[2]), input[3]);
    c.require(places <= std::numeric_limits<int32_t>::max(), "an image of shape {} has too many places for int32",
              input.to_string());
  }
  const Shape output{input[0], window(c, o.padding, input[1], o.filter_h, o.stride_h, 1).output,
                     window(c, o.padding, input[2], o.filter_w, o.stride_w, 1).output, input[3]};
  c.set_output_shape(0, output);
  c.set_output_shape(1, output);
}

/// The largest value of a window, and where it is: in the window, and in the image.
struct Best {
  float value = std::numeric_limits<float>::lowest();
  int64_t window_y = 0, window_x = 0;
  int64_t y = 0, x = 0;
};

/// Pools one row of the output; `index` makes an index of a Best and a channel.
template <typename Index, typename MakeIndex>
void pool_row(const Options& o, const Shape& in, const float* image, int64_t y_origin, int64_t pad_w, int64_t out_w,
              float* values, Index* indices, const MakeIndex& index) {
  const int64_t depth = in[3];
  const int64_t y_begin = std::max<int64_t>(0, -y_origin);
  const int64_t y_end = std::min(o.filter_h, in[1] - y_origin);
  for_items(out_w, static_cast<double>(depth * o.filter_w * o.filter_h), [&](int64_t out_x) {
    const int64_t x_origin = out_x * o.stride_w - pad_w;
    const int64_t x_begin = std::max<int64_t>(0, -x_origin);
    const int64_t x_end = std::min(o.filter_w, in[2] - x_origin);
    for (int64_t channel = 0; channel < depth; ++channel) {
      Best best;
      for_boxes<2>({{{{y_begin, y_end}}, {{x_begin, x_end}}}}, 1, [&](const auto& box) {
        for (int64_t y = box[0].begin; y < box[0].end; ++y) {
          for (int64_t x = box[1].begin; x < box[1].end; ++x) {
            const float value = image[((y_origin + y) * in[2] + x_origin + x) * depth + channel];
            if (value > best.value) best = {value, y, x, y_origin + y, x_origin + x};
          }
        }
      });
      values[out_x * depth + channel] = std::min(std::max(best.value, o.lo), o.hi);
      indices[out_x * depth + channel] = index(best, channel);
    }
  });
}

template <Options (*read)(const OpContext&), DType index_type>
std::unique_ptr<Kernel> prepare_pool(PrepareContext& c) {
  const Options o = read(c);
  const Shape in = c.input(0).shape;
  const Window rows = window(c, o.padding, in[1], o.filter_h, o.stride_h, 1);
  const Window columns = window(c, o.padding, in[2], o.filter_w, o.stride_w, 1);
  return make_kernel([o, in, rows, columns](RunContext& run) {
    if (run.output(0).elements() == 0) return;
    const int64_t row_size = columns.output * in[3];
    const auto work = static_cast<double>(row_size) * static_cast<double>(o.filter_w * o.filter_h);
    run.pool().for_pieces(in[0] * rows.output, work, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const float* image = run.input(0).as<float>() + row / rows.output * in[1] * in[2] * in[3];
        const int64_t y_origin = row % rows.output * o.stride_h - rows.pad_before;
        float* values = run.output(0).mutable_as<float>() + row * row_size;
        if constexpr (index_type == DType::kFloat32) {
          pool_row(o, in, image, y_origin, columns.pad_before, columns.output, values,
                   run.output(1).mutable_as<float>() + row * row_size, [&](const Best& best, int64_t) {
                     return static_cast<float>(best.window_y * o.filter_w + best.window_x) + 0.1F;
                   });
        } else {
          pool_row(o, in, image, y_origin, columns.pad_before, columns.output, values,
                   run.output(1).mutable_as<int32_t>() + row * row_size, [&](const Best& best, int64_t channel) {
                     return static_cast<int32_t>((best.y * in[2] + best.x) * in[3] + channel);
                   });
        }
      }
    });
  });
}

void infer_unpool(InferContext& c) {
  const Options o = read_struct(c);
  c.require_input_type(0, {DType::kFloat32});
  c.require_input_type(1, {DType::kFloat32, DType::kInt32});
  c.require_output_type(0, {DType::kFloat32});
  const Shape& input = c.input(0).shape;
  check_image(c, input);
  c.require(c.input(1).shape == input, "the indices have shape {}, the values {}: expected the same",
            c.input(1).shape.to_string(), input.to_string());
  auto size = [&](int64_t in, int64_t filter, int64_t stride) {
    if (c.input(1).dtype() == DType::kFloat32) return in * filter;
    if (o.padding == ir::Padding::kSame) return in * stride;
    return in == 0 ? 0 : (in - 1) * stride + filter;
  };
  c.set_output_shape(
      0, {input[0], size(input[1], o.filter_h, o.stride_h), size(input[2], o.filter_w, o.stride_w), input[3]});
}

/// MediaPipe's indices: the place in the window that the value came from.
void unpool_windows(const RunContext& run, const Options& o, const Shape& in) {
  const TensorView& output = run.output(0);
  const int64_t out_h = output.shape[1];
  const int64_t out_w = output.shape[2];
  const int64_t pad_h = std::max<int64_t>(0, (in[1] - 1) * o.stride_h + o.filter_h - out_h) / 2;
  const int64_t pad_w = std::max<int64_t>(0, (in[2] - 1) * o.stride_w + o.filter_w - out_w) / 2;
  const float* values = run.input(0).as<float>();
  const float* indices = run.input(1).as<float>();
  const auto places = static_cast<float>(o.filter_w * o.filter_h);
  auto each = [&](const auto& visit) {
    for_items(in.elements(), 16, [&](int64_t i) {
      const int64_t pixel = i / in[3];
      const int64_t row = pixel / in[2];
      visit(i, row / in[1], row % in[1], pixel % in[2], i % in[3]);
    });
  };
  auto target_y = [&](int64_t i, int64_t y) {
    return y * o.stride_h - pad_h + static_cast<int64_t>(indices[i]) / o.filter_w;
  };
  auto target_x = [&](int64_t i, int64_t x) {
    return x * o.stride_w - pad_w + static_cast<int64_t>(indices[i]) % o.filter_w;
  };
  each([&](int64_t i, int64_t, int64_t y, int64_t x, int64_t) {
    run.require(indices[i] >= 0.0F && indices[i] < places, "index {} of value {} is outside the window of {} places",
                indices[i], i, places);
    run.require(target_y(i, y) >= 0 && target_y(i, y) < out_h && target_x(i, x) >= 0 && target_x(i, x) < out_w,
                "index {} of value {} points outside the image of {} x {}", indices[i], i, out_h, out_w);
  });
  auto* result = output.mutable_as<float>();
  fill_bytes(output.data, std::byte{0}, output.bytes);
  each([&](int64_t i, int64_t image, int64_t y, int64_t x, int64_t channel) {
    result[((image * out_h + target_y(i, y)) * out_w + target_x(i, x)) * in[3] + channel] = values[i];
  });
}

/// TensorFlow's indices: the place in the image.
void unpool_places(const RunContext& run, const Shape& in) {
  const TensorView& output = run.output(0);
  const float* values = run.input(0).as<float>();
  const int32_t* indices = run.input(1).as<int32_t>();
  const int64_t in_size = in[1] * in[2] * in[3];
  const int64_t out_size = output.shape[1] * output.shape[2] * output.shape[3];
  for_items(in[0] * in_size, 2, [&](int64_t i) {
    run.require(indices[i] >= 0 && indices[i] < out_size, "index {} of value {} is outside the image of {} places",
                indices[i], i, out_size);
  });
  auto* result = output.mutable_as<float>();
  fill_bytes(output.data, std::byte{0}, output.bytes);
  for_items(in[0] * in_size, 8, [&](int64_t i) { result[i / in_size * out_size + indices[i]] = values[i]; });
}

std::unique_ptr<Kernel> prepare_unpool(PrepareContext& c) {
  const Options o = read_struct(c);
  const Shape in = c.input(0).shape;
  const bool windows = c.input(1).dtype() == DType::kFloat32;
  return make_kernel([o, in, windows](RunContext& run) {
    if (run.output(0).elements() == 0) return;
    if (windows) {
      unpool_windows(run, o, in);
    } else {
      unpool_places(run, in);
    }
  });
}

OpDef pool_op(std::string_view name, void (*infer)(InferContext&),
              std::unique_ptr<Kernel> (*prepare)(PrepareContext&)) {
  return {.id = ir::OpId::custom(name),
          .min_inputs = 1,
          .max_inputs = 1,
          .required_inputs = 1,
          .min_outputs = 2,
          .max_outputs = 2,
          .infer = infer,
          .prepare = prepare,
          .types = "f32"};
}

OpDef unpool_op(std::string_view name) {
  return {.id = ir::OpId::custom(name),
          .min_inputs = 2,
          .max_inputs = 2,
          .required_inputs = 2,
          .infer = infer_unpool,
          .prepare = prepare_unpool,
          .types = "f32"};
}

}  // namespace
}  // namespace mediapipe_pooling

void register_mediapipe_pooling(Registry& registry) {
  using namespace mediapipe_pooling;
  registry.add(pool_op("MaxPoolingWithArgmax2D", infer_pool<read_struct, DType::kFloat32>,
                       prepare_pool<read_struct, DType::kFloat32>));
  registry.add(
      pool_op("MaxPoolWithArgmax", infer_pool<read_map, DType::kInt32>, prepare_pool<read_map, DType::kInt32>));
  registry.add(unpool_op("MaxUnpooling2D"));
  registry.add(unpool_op("LiteRtMaxUnpooling2D"));
}

}  // namespace leadline::ops
