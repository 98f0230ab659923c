// SPDX-License-Identifier: Apache-2.0
// Flex ops over windows of images and volumes, channels last: Conv2D, Conv3D, DepthwiseConv2dNative,
// Conv2DBackpropInput, MaxPool, AvgPool and their 3D forms, MaxPoolWithArgmax, Dilation2D; BiasAdd and FusedBatchNorm,
// which stand beside them. Plain loops for all floating types: what these ops compute in other layouts and types the
// builtin ops do faster.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "ops/flex/families.h"
#include "ops/flex/flex.h"

namespace leadline::ops {
namespace {

using Triple = std::array<int64_t, 3>;

/// Images have one slice.
struct WindowPlan {
  int axes = 2;
  int64_t batch = 0;
  int64_t in_channels = 0;
  Triple in = {1, 1, 1};
  Triple out = {1, 1, 1};
  Triple size = {1, 1, 1};
  Triple stride = {1, 1, 1};
  Triple dilation = {1, 1, 1};
  Triple before = {0, 0, 0};

  int64_t in_pixels() const { return in[0] * in[1] * in[2]; }
  int64_t out_pixels() const { return out[0] * out[1] * out[2]; }
  int64_t window() const { return size[0] * size[1] * size[2]; }
};

void require_channels_last(const OpContext& c) {
  const std::string_view layout = node_def(c).text("data_format", "NHWC");
  if (layout != "NHWC" && layout != "NDHWC") {
    c.fail(ErrorCode::kUnsupported, "its data_format is {}, expected channels last", layout);
  }
}

/// An attribute with a number for batch, each axis and channels.
Triple axis_numbers(const OpContext& c, std::string_view name, int axes) {
  const std::vector<int64_t> given = node_def(c).integers(name);
  Triple result = {1, 1, 1};
  if (given.empty()) return result;
  c.require(given.size() == static_cast<size_t>(axes + 2) && given.front() == 1 && given.back() == 1,
            "its attribute {} has {} numbers, expected {}, the first and last of them 1", name, given.size(), axes + 2);
  for (int i = 0; i < axes; ++i) {
    const int64_t value = given[static_cast<size_t>(i + 1)];
    c.require(value > 0 && value <= std::numeric_limits<int32_t>::max(), "its attribute {} has a {}", name, value);
    result[static_cast<size_t>(3 - axes + i)] = value;
  }
  return result;
}

/// Sets the output sizes and the padding from sizes, strides and dilations.
void place_windows(const OpContext& c, WindowPlan& p) {
  const std::string_view padding = node_def(c).text("padding", "");
  const std::vector<int64_t> explicit_pads = node_def(c).integers("explicit_paddings");
  for (int i = 0; i < p.axes; ++i) {
    const auto at = static_cast<size_t>(3 - p.axes + i);
    if (padding == "EXPLICIT") {
      c.require(explicit_pads.size() == static_cast<size_t>(2 * (p.axes + 2)),
                "it has {} explicit paddings, expected {}", explicit_pads.size(), 2 * (p.axes + 2));
      const int64_t before = explicit_pads[static_cast<size_t>(2 * (i + 1))];
      const int64_t after = explicit_pads[static_cast<size_t>(2 * (i + 1) + 1)];
      c.require(before >= 0 && after >= 0 && before < (1 << 30) && after < (1 << 30), "it pads by {} and {}", before,
                after);
      p.before[at] = before;
      p.out[at] =
          window(c, ir::Padding::kValid, p.in[at] + before + after, p.size[at], p.stride[at], p.dilation[at]).output;
      continue;
    }
    c.require(padding == "SAME" || padding == "VALID", "its padding is '{}', expected SAME, VALID or EXPLICIT",
              padding);
    const Window w = window(c, padding == "SAME" ? ir::Padding::kSame : ir::Padding::kValid, p.in[at], p.size[at],
                            p.stride[at], p.dilation[at]);
    p.before[at] = w.pad_before;
    p.out[at] = w.output;
  }
}

WindowPlan image_plan(const OpContext& c, const Shape& shape, int axes) {
  require_channels_last(c);
  c.require(shape.rank() == axes + 2, "an input has shape {}, expected rank {}", shape.to_string(), axes + 2);
  WindowPlan p;
  p.axes = axes;
  p.batch = shape[0];
  p.in_channels = shape[axes + 1];
  for (int i = 0; i < axes; ++i) p.in[static_cast<size_t>(3 - axes + i)] = shape[1 + i];
  p.stride = axis_numbers(c, "strides", axes);
  return p;
}

Shape output_shape(const OpContext& c, const WindowPlan& p, int64_t channels) {
  std::vector<int64_t> sizes = {p.batch};
  for (int i = 0; i < p.axes; ++i) sizes.push_back(p.out[static_cast<size_t>(3 - p.axes + i)]);
  sizes.push_back(channels);
  return checked_shape(c, sizes);
}

/// Calls body(window position, input pixel) for the pixels of the image that output pixel `at` sees.
template <typename Body>
void for_window(const WindowPlan& p, int64_t at, const Body& body) {
  Triple first;
  for (size_t i = 3; i-- > 0;) {
    first[i] = at % p.out[i] * p.stride[i] - p.before[i];
    at /= p.out[i];
  }
  for (int64_t z = 0; z < p.size[0]; ++z) {
    const int64_t slice = first[0] + z * p.dilation[0];
    if (slice < 0 || slice >= p.in[0]) continue;
    for (int64_t y = 0; y < p.size[1]; ++y) {
      const int64_t row = first[1] + y * p.dilation[1];
      if (row < 0 || row >= p.in[1]) continue;
      for (int64_t x = 0; x < p.size[2]; ++x) {
        const int64_t column = first[2] + x * p.dilation[2];
        if (column < 0 || column >= p.in[2]) continue;
        body((z * p.size[1] + y) * p.size[2] + x, (slice * p.in[1] + row) * p.in[2] + column);
      }
    }
  }
}

// Conv2D, Conv3D(input, filter [sizes, input channels of a group, output channels])

template <int kAxes>
WindowPlan conv_plan(const OpContext& c) {
  WindowPlan p = image_plan(c, c.input(0).shape, kAxes);
  const Shape& filter = c.input(1).shape;
  c.require(filter.rank() == kAxes + 2, "the filter has shape {}, expected rank {}", filter.to_string(), kAxes + 2);
  for (int i = 0; i < kAxes; ++i) p.size[static_cast<size_t>(3 - kAxes + i)] = filter[i];
  p.dilation = axis_numbers(c, "dilations", kAxes);
  place_windows(c, p);
  return p;
}

template <int kAxes>
void infer_conv(InferContext& c) {
  require_same_type(c, c.input(0), c.input(1));
  require_same_type(c, c.input(0), c.output(0));
  const WindowPlan p = conv_plan<kAxes>(c);
  const int64_t group = c.input(1).shape[kAxes];
  const int64_t channels = c.input(1).shape[kAxes + 1];
  c.require(group > 0 && p.in_channels % group == 0 && channels % std::max<int64_t>(p.in_channels / group, 1) == 0,
            "a filter of shape {} does not fit an input of shape {}", c.input(1).shape.to_string(),
            c.input(0).shape.to_string());
  c.set_output_shape(0, output_shape(c, p, channels));
}

template <int kAxes>
std::unique_ptr<Kernel> prepare_conv(PrepareContext& c) {
  const WindowPlan p = conv_plan<kAxes>(c);
  const int64_t group = c.input(1).shape[kAxes];
  const int64_t channels = c.input(1).shape[kAxes + 1];
  return visit_floating(c, c.input(0).dtype(), [&](auto type) {
    using T = decltype(type);
    return make_kernel([p, group, channels](RunContext& run) {
      using Number = Compute<T>;
      const int64_t groups = p.in_channels / group;
      const int64_t each = channels / groups;  // output channels of a group
      const double cost = static_cast<double>(p.window() * group * channels);
      run.pool().for_pieces(p.batch * p.out_pixels(), cost, [&](int64_t begin, int64_t end) {
        for (int64_t at = begin; at < end; ++at) {
          const T* image = run.input(0).as<T>() + at / p.out_pixels() * p.in_pixels() * p.in_channels;
          T* out = run.output(0).mutable_as<T>() + at * channels;
          for (int64_t o = 0; o < channels; ++o) {
            Number sum = 0;
            for_window(p, at % p.out_pixels(), [&](int64_t tap, int64_t pixel) {
              const T* from = image + pixel * p.in_channels + o / each * group;
              const T* weights = run.input(1).as<T>() + tap * group * channels + o;
              for (int64_t i = 0; i < group; ++i) {
                sum += static_cast<Number>(from[i]) * static_cast<Number>(weights[i * channels]);
              }
            });
            out[o] = static_cast<T>(sum);
          }
        }
      });
    });
  });
}

// DepthwiseConv2dNative(input, filter [rows, columns, channels, multiplier])

void infer_depthwise(InferContext& c) {
  require_same_type(c, c.input(0), c.input(1));
  require_same_type(c, c.input(0), c.output(0));
  const WindowPlan p = conv_plan<2>(c);
  c.require(c.input(1).shape[2] == p.in_channels, "a filter of shape {} does not fit an input of shape {}",
            c.input(1).shape.to_string(), c.input(0).shape.to_string());
  c.set_output_shape(0, output_shape(c, p, checked_multiply(c, p.in_channels, c.input(1).shape[3])));
}

std::unique_ptr<Kernel> prepare_depthwise(PrepareContext& c) {
  const WindowPlan p = conv_plan<2>(c);
  const int64_t multiplier = c.input(1).shape[3];
  return visit_floating(c, c.input(0).dtype(), [&](auto type) {
    using T = decltype(type);
    return make_kernel([p, multiplier](RunContext& run) {
      using Number = Compute<T>;
      const int64_t channels = p.in_channels * multiplier;
      run.pool().for_pieces(
          p.batch * p.out_pixels(), static_cast<double>(p.window() * channels) * 2, [&](int64_t begin, int64_t end) {
            for (int64_t at = begin; at < end; ++at) {
              const T* image = run.input(0).as<T>() + at / p.out_pixels() * p.in_pixels() * p.in_channels;
              for (int64_t o = 0; o < channels; ++o) {
                Number sum = 0;
                for_window(p, at % p.out_pixels(), [&](int64_t tap, int64_t pixel) {
                  sum += static_cast<Number>(image[pixel * p.in_channels + o / multiplier]) *
                         static_cast<Number>(run.input(1).as<T>()[tap * channels + o]);
                });
                run.output(0).mutable_as<T>()[at * channels + o] = static_cast<T>(sum);
              }
            }
          });
    });
  });
}

// Conv2DBackpropInput(input_sizes, filter, out_backprop): the transposed convolution

WindowPlan transposed_plan(const OpContext& c) {
  const Shape result = shape_of_input(c, 0);
  WindowPlan p = image_plan(c, result, 2);
  const Shape& filter = c.input(1).shape;
  c.require(filter.rank() == 4, "the filter has shape {}, expected rank 4", filter.to_string());
  p.size = {1, filter[0], filter[1]};
  p.dilation = axis_numbers(c, "dilations", 2);
  place_windows(c, p);
  const Shape& from = c.input(2).shape;
  c.require(from.rank() == 4 && from[0] == p.batch && from[1] == p.out[1] && from[2] == p.out[2] &&
                from[3] == filter[3] && result[3] == filter[2],
            "an input of shape {} and a filter of shape {} do not make a result of shape {}", from.to_string(),
            filter.to_string(), result.to_string());
  return p;
}

void infer_transposed(InferContext& c) {
  node_def(c);
  c.require_input_type(0, {DType::kInt32});
  require_same_type(c, c.input(1), c.input(2));
  require_same_type(c, c.input(1), c.output(0));
  if (!c.known(0)) return c.defer();
  transposed_plan(c);
  c.set_output_shape(0, shape_of_input(c, 0));
}

std::unique_ptr<Kernel> prepare_transposed(PrepareContext& c) {
  const WindowPlan p = transposed_plan(c);
  const int64_t channels = c.input(1).shape[3];
  c.require_input_type(1, {DType::kFloat32, DType::kFloat64});
  return visit_numeric(c, c.input(1).dtype(), [&](auto type) {
    using T = decltype(type);
    return make_kernel([p, channels](RunContext& run) {
      T* out = run.output(0).mutable_as<T>();
      fill_bytes(run.output(0).data, std::byte{0}, run.output(0).bytes);
      for_items(p.batch * p.out_pixels(), static_cast<double>(p.window() * p.in_channels * channels), [&](int64_t at) {
        const T* from = run.input(2).as<T>() + at * channels;
        T* image = out + at / p.out_pixels() * p.in_pixels() * p.in_channels;
        for_window(p, at % p.out_pixels(), [&](int64_t tap, int64_t pixel) {
          const T* weights = run.input(1).as<T>() + tap * p.in_channels * channels;
          for (int64_t i = 0; i < p.in_channels; ++i) {
            T sum = 0;
            for (int64_t o = 0; o < channels; ++o) sum += from[o] * weights[i * channels + o];
            image[pixel * p.in_channels + i] += sum;
          }
        });
      });
    });
  });
}

// Pools

template <int kAxes>
WindowPlan pool_plan(const OpContext& c) {
  WindowPlan p = image_plan(c, c.input(0).shape, kAxes);
  p.size = axis_numbers(c, "ksize", kAxes);
  place_windows(c, p);
  return p;
}

template <int kAxes>
void infer_pool(InferContext& c) {
  require_same_type(c, c.input(0), c.output(0));
  const WindowPlan p = pool_plan<kAxes>(c);
  const Shape shape = output_shape(c, p, p.in_channels);
  c.set_output_shape(0, shape);
  if (c.output_count() == 1) return;
  c.require_output_type(1, {DType::kInt32, DType::kInt64});
  c.set_output_shape(1, shape);
}

template <int kAxes, bool kLargest>
std::unique_ptr<Kernel> prepare_pool(PrepareContext& c) {
  const WindowPlan p = pool_plan<kAxes>(c);
  const bool with_batch = node_def(c).flag("include_batch_in_index", false);
  return visit_floating(c, c.input(0).dtype(), [&](auto type) {
    using T = decltype(type);
    return make_kernel([p, with_batch](RunContext& run) {
      using Number = Compute<T>;
      const double cost = static_cast<double>(p.window() * p.in_channels) * 2;
      run.pool().for_pieces(p.batch * p.out_pixels(), cost, [&](int64_t begin, int64_t end) {
        for (int64_t at = begin; at < end; ++at) {
          const int64_t image = at / p.out_pixels();
          const T* from = run.input(0).as<T>() + image * p.in_pixels() * p.in_channels;
          for (int64_t channel = 0; channel < p.in_channels; ++channel) {
            Number result = kLargest ? std::numeric_limits<Number>::lowest() : Number(0);
            int64_t count = 0;
            int64_t best = 0;
            for_window(p, at % p.out_pixels(), [&](int64_t, int64_t pixel) {
              const auto value = static_cast<Number>(from[pixel * p.in_channels + channel]);
              if (!kLargest)
                result += value;
              else if (count == 0 || value > result || value != value) {
                result = value;
                best = pixel;
              }
              ++count;
            });
            if (!kLargest && count > 0) result /= static_cast<Number>(count);
            const int64_t to = at * p.in_channels + channel;
            run.output(0).mutable_as<T>()[to] = static_cast<T>(result);
            if (run.output_count() == 1) continue;
            const int64_t index = ((with_batch ? image * p.in_pixels() : 0) + best) * p.in_channels + channel;
            if (run.output(1).dtype == DType::kInt64)
              run.output(1).mutable_as<int64_t>()[to] = index;
            else
              run.output(1).mutable_as<int32_t>()[to] = static_cast<int32_t>(index);
          }
        }
      });
    });
  });
}

// Dilation2D(input, filter [rows, columns, channels]): the largest sum of a pixel and its weight

WindowPlan dilation_plan(const OpContext& c) {
  WindowPlan p = image_plan(c, c.input(0).shape, 2);
  const Shape& filter = c.input(1).shape;
  c.require(filter.rank() == 3 && filter[2] == p.in_channels, "a filter of shape {} does not fit an input of shape {}",
            filter.to_string(), c.input(0).shape.to_string());
  p.size = {1, filter[0], filter[1]};
  p.dilation = axis_numbers(c, "rates", 2);
  place_windows(c, p);
  return p;
}

void infer_dilation(InferContext& c) {
  require_same_type(c, c.input(0), c.input(1));
  require_same_type(c, c.input(0), c.output(0));
  const WindowPlan p = dilation_plan(c);
  c.set_output_shape(0, output_shape(c, p, p.in_channels));
}

std::unique_ptr<Kernel> prepare_dilation(PrepareContext& c) {
  const WindowPlan p = dilation_plan(c);
  return visit_floating(c, c.input(0).dtype(), [&](auto type) {
    using T = decltype(type);
    return make_kernel([p](RunContext& run) {
      using Number = Compute<T>;
      const double cost = static_cast<double>(p.window() * p.in_channels) * 2;
      run.pool().for_pieces(p.batch * p.out_pixels(), cost, [&](int64_t begin, int64_t end) {
        for (int64_t at = begin; at < end; ++at) {
          const T* from = run.input(0).as<T>() + at / p.out_pixels() * p.in_pixels() * p.in_channels;
          for (int64_t channel = 0; channel < p.in_channels; ++channel) {
            Number result = std::numeric_limits<Number>::lowest();
            for_window(p, at % p.out_pixels(), [&](int64_t tap, int64_t pixel) {
              result = std::max(result, static_cast<Number>(from[pixel * p.in_channels + channel]) +
                                            static_cast<Number>(run.input(1).as<T>()[tap * p.in_channels + channel]));
            });
            run.output(0).mutable_as<T>()[at * p.in_channels + channel] = static_cast<T>(result);
          }
        }
      });
    });
  });
}

// BiasAdd(value, bias), FusedBatchNorm(x, scale, offset, mean, variance)

void infer_bias(InferContext& c) {
  require_channels_last(c);
  require_same_type(c, c.input(0), c.input(1));
  require_same_type(c, c.input(0), c.output(0));
  const Shape& shape = c.input(0).shape;
  c.require(shape.rank() >= 2 && c.input(1).shape == Shape{shape[shape.rank() - 1]},
            "a bias of shape {} does not fit an input of shape {}", c.input(1).shape.to_string(), shape.to_string());
  c.set_output_shape(0, shape);
}

std::unique_ptr<Kernel> prepare_bias(PrepareContext& c) {
  return visit_number(c, c.input(0).dtype(), [&](auto type) -> std::unique_ptr<Kernel> {
    using T = decltype(type);
    if constexpr (std::is_same_v<T, bool>)
      c.fail(ErrorCode::kUnsupported, "type bool is not supported");
    else
      return binary_kernel<T, T>(c, [](Compute<T> a, Compute<T> b) { return wrapping_add(a, b); });
  });
}

void infer_batch_norm(InferContext& c) {
  require_channels_last(c);
  if (node_def(c).flag("is_training", true)) {
    c.fail(ErrorCode::kUnsupported, "it computes statistics of the batch (is_training), expected an inference graph");
  }
  c.require_input_type(0, {DType::kFloat32});
  require_same_type(c, c.input(0), c.output(0));
  const Shape& shape = c.input(0).shape;
  c.require(shape.rank() >= 1, "the input is a scalar");
  for (int i = 1; i < 5; ++i) {
    c.require_input_type(i, {DType::kFloat32});
    require_elements(c, i, shape[shape.rank() - 1]);
  }
  c.set_output_shape(0, shape);
  // The rest is for training: the statistics as they came in.
  for (int i = 1; i < c.output_count(); ++i) {
    c.require_output_type(i, {DType::kFloat32});
    c.set_output_shape(i, i < 5 ? c.input(i == 1 || i == 3 ? 3 : 4).shape : Shape{0});
  }
}

std::unique_ptr<Kernel> prepare_batch_norm(PrepareContext& c) {
  const float epsilon = node_def(c).number("epsilon", 1e-4F);
  return make_kernel([epsilon](RunContext& run) {
    const Shape& shape = run.input(0).shape;
    const int64_t channels = shape[shape.rank() - 1];
    const auto* in = run.input(0).as<float>();
    auto* out = run.output(0).mutable_as<float>();
    if (shape.elements() > 0) {
      run.pool().for_pieces(
          shape.elements() / channels, 12 * static_cast<double>(channels), [&](int64_t begin, int64_t end) {
            for (int64_t i = begin * channels; i < end * channels; ++i) {
              const int64_t channel = i % channels;
              const float scale =
                  run.input(1).as<float>()[channel] / std::sqrt(run.input(4).as<float>()[channel] + epsilon);
              out[i] = (in[i] - run.input(3).as<float>()[channel]) * scale + run.input(2).as<float>()[channel];
            }
          });
    }
    for (int i = 1; i < std::min(run.output_count(), 5); ++i) {
      const TensorView& from = run.input(i == 1 || i == 3 ? 3 : 4);
      if (from.bytes > 0) copy_bytes(run.output(i).data, from.data, from.bytes);
    }
  });
}

}  // namespace

void register_flex_windows(Registry& registry) {
  const auto add = [&](std::string_view name, int inputs, int outputs, Infer infer, Prepare prepare,
                       std::string_view types) {
    registry.add(flex_row(name, inputs, outputs, infer, prepare, types));
  };
  constexpr std::string_view kReal = "f32 f64 f16 bf16";
  add("FlexConv2D", 2, 1, infer_conv<2>, prepare_conv<2>, kReal);
  add("FlexConv3D", 2, 1, infer_conv<3>, prepare_conv<3>, kReal);
  add("FlexDepthwiseConv2dNative", 2, 1, infer_depthwise, prepare_depthwise, kReal);
  add("FlexConv2DBackpropInput", 3, 1, infer_transposed, prepare_transposed, "f32 f64");
  add("FlexMaxPool", 1, 1, infer_pool<2>, prepare_pool<2, true>, kReal);
  add("FlexAvgPool", 1, 1, infer_pool<2>, prepare_pool<2, false>, kReal);
  add("FlexMaxPool3D", 1, 1, infer_pool<3>, prepare_pool<3, true>, kReal);
  add("FlexAvgPool3D", 1, 1, infer_pool<3>, prepare_pool<3, false>, kReal);
  add("FlexMaxPoolWithArgmax", 1, 2, infer_pool<2>, prepare_pool<2, true>, kReal);
  add("FlexDilation2D", 2, 1, infer_dilation, prepare_dilation, kReal);
  add("FlexBiasAdd", 2, 1, infer_bias, prepare_bias, "all numbers");
  add("FlexFusedBatchNorm", 5, 5, infer_batch_norm, prepare_batch_norm, "f32");
  add("FlexFusedBatchNormV2", 5, 5, infer_batch_norm, prepare_batch_norm, "f32");
  add("FlexFusedBatchNormV3", 5, 6, infer_batch_norm, prepare_batch_norm, "f32");
}

}  // namespace leadline::ops
