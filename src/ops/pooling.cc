// SPDX-License-Identifier: Apache-2.0
// AVERAGE_POOL_2D, MAX_POOL_2D, L2_POOL_2D.
//
// Maxima and averages of the common types have vectorised rows (kernels/pooling). One loop serves all others: for every
// output pixel, blocks of channels are accumulated over the part of the window that lies inside the image.
#include "ops/pooling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <type_traits>

#include "kernels/pooling/pooling.h"
#include "ops/common.h"
#include "ops/families.h"
#include "ops/half_activations.h"
#include "ops/quantization_rules.h"

namespace leadline::ops {
namespace {

enum class Pool { kAverage, kMax, kL2 };

constexpr int64_t kChannelBlock = 64;  // channels accumulated at a time; the accumulators stay in the first-level cache

struct PoolPlan {
  int64_t rows = 0;  // batches * output height
  int64_t in_h = 0, in_w = 0, channels = 0, out_h = 0, out_w = 0;
  int64_t stride_h = 0, stride_w = 0, filter_h = 0, filter_w = 0, pad_h = 0, pad_w = 0;
  float real_lo = 0.0F, real_hi = 0.0F;
  int32_t int_lo = 0, int_hi = 0;
};

using Span = kernels::PoolSpan;

/// The part of a window that lies inside [0, size). Never empty: see window() in common.h.
Span clip(int64_t position, int64_t stride, int64_t pad, int64_t filter, int64_t size) {
  const int64_t origin = position * stride - pad;
  return {std::max<int64_t>(0, origin), std::min(size, origin + filter)};
}

/// Values that a window has at most.
double window_size(const PoolPlan& p) {
  return static_cast<double>(std::min(p.filter_h, p.in_h)) * static_cast<double>(std::min(p.filter_w, p.in_w));
}

template <typename T, typename Acc>
struct AverageOp {
  static constexpr Acc kInit = 0;
  static void step(Acc& acc, T value) { acc += static_cast<Acc>(value); }
  static T finish(Acc acc, int64_t count, const PoolPlan& p) {
    // Rounded to nearest, ties away from zero.
    const auto half = static_cast<Acc>(count / 2);
    const Acc rounded = (acc > 0 ? acc + half : acc - half) / static_cast<Acc>(count);
    return static_cast<T>(std::clamp<Acc>(rounded, p.int_lo, p.int_hi));
  }
};

template <typename T>
struct MaxOp {
  static constexpr T kInit = std::numeric_limits<T>::lowest();
  static void step(T& acc, T value) { acc = acc < value ? value : acc; }
  static T finish(T acc, int64_t, const PoolPlan& p) {
    return static_cast<T>(std::clamp<int32_t>(acc, p.int_lo, p.int_hi));
  }
};

/// Windows that are too large to be pooled in one piece: the bits of kernels/pooling.
struct FloatMaxOp {
  static constexpr float kInit = std::numeric_limits<float>::lowest();
  static void step(float& acc, float value) { acc = acc < value ? value : acc; }
  static float finish(float acc, int64_t, const PoolPlan& p) { return std::min(std::max(acc, p.real_lo), p.real_hi); }
};

struct FloatAverageOp {
  static constexpr float kInit = 0.0F;
  static void step(float& acc, float value) { acc += value; }
  static float finish(float acc, int64_t count, const PoolPlan& p) {
    return std::min(std::max(acc / static_cast<float>(count), p.real_lo), p.real_hi);
  }
};

struct L2Op {
  static constexpr float kInit = 0.0F;
  static void step(float& acc, float value) { acc += value * value; }
  static float finish(float acc, int64_t count, const PoolPlan& p) {
    return std::min(std::max(std::sqrt(acc / static_cast<float>(count)), p.real_lo), p.real_hi);
  }
};

/// The window of an output pixel, numbered over rows of all images.
struct PoolWindow {
  Span ys, xs;
  int64_t image = 0;
  int64_t width() const { return xs.end - xs.begin; }
  int64_t count() const { return (ys.end - ys.begin) * width(); }
};

PoolWindow window_of(const PoolPlan& p, int64_t pixel) {
  const int64_t row = pixel / p.out_w;
  return {clip(row % p.out_h, p.stride_h, p.pad_h, p.filter_h, p.in_h),
          clip(pixel % p.out_w, p.stride_w, p.pad_w, p.filter_w, p.in_w), row / p.out_h};
}

/// Adds the places [begin, end) of a window, row by row, to `n` channels from `c0` on.
template <typename T, typename Acc, typename Op>
void add_places(const PoolPlan& p, const T* input, const PoolWindow& w, IndexRange places, int64_t c0, int64_t n,
                Acc* acc) {
  const T* image = input + w.image * p.in_h * p.in_w * p.channels + c0;
  int64_t y = w.ys.begin + places.begin / w.width();
  int64_t x = w.xs.begin + places.begin % w.width();
  for (int64_t left = places.size(); left > 0; ++y, x = w.xs.begin) {
    const T* in = image + (y * p.in_w + x) * p.channels;
    const int64_t count = std::min(left, w.xs.end - x);
    for (int64_t i = 0; i < count; ++i, in += p.channels) {
      for (int64_t c = 0; c < n; ++c) Op::step(acc[c], in[c]);
    }
    left -= count;
  }
}

/// Pools blocks of channels, block after block of each pixel.
template <typename T, typename Acc, typename Op>
std::unique_ptr<Kernel> pool_kernel(const PoolPlan& plan) {
  return make_kernel([plan](RunContext& c) {
    const T* in = c.input(0).as<T>();
    T* out = c.output(0).mutable_as<T>();
    const int64_t blocks = (plan.channels + kChannelBlock - 1) / kChannelBlock;
    const auto width = static_cast<double>(std::min(kChannelBlock, plan.channels));
    c.pool().for_pieces(plan.rows * plan.out_w * blocks, window_size(plan) * width, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const PoolWindow w = window_of(plan, i / blocks);
        const int64_t c0 = i % blocks * kChannelBlock;
        const int64_t n = std::min(kChannelBlock, plan.channels - c0);
        Acc acc[kChannelBlock];
        std::fill_n(acc, n, Op::kInit);
        for_pieces(w.count(), width,
                   [&](int64_t from, int64_t to) { add_places<T, Acc, Op>(plan, in, w, {from, to}, c0, n, acc); });
        T* to = out + i / blocks * plan.channels + c0;
        for (int64_t k = 0; k < n; ++k) to[k] = Op::finish(acc[k], w.count(), plan);
      }
    });
  });
}

/// Of a pixel, in vectors of 16 bytes at least.
template <typename T>
double vector_cost(const PoolPlan& p) {
  return window_size(p) * std::max(1.0, static_cast<double>(p.channels) * static_cast<double>(sizeof(T)) / 16.0);
}

/// Rows of kernels/pooling, with the columns of each window in scratch memory.
template <typename T>
std::unique_ptr<Kernel> vector_kernel(kernels::Pooling pooling, const PoolPlan& plan) {
  return make_kernel([plan, row_function = kernels::pool_row_function<T>(pooling)](RunContext& c) {
    auto* columns = c.scratch_as<Span>();
    for_items(plan.out_w, 1,
              [&](int64_t x) { columns[x] = clip(x, plan.stride_w, plan.pad_w, plan.filter_w, plan.in_w); });
    kernels::PoolRow<T> shared;
    shared.row_stride = plan.in_w * plan.channels;
    shared.columns = columns;
    shared.pixels = plan.out_w;
    shared.channels = plan.channels;
    if constexpr (std::is_same_v<T, float>) {
      shared.lo = plan.real_lo;
      shared.hi = plan.real_hi;
    } else {
      shared.lo = static_cast<T>(plan.int_lo);
      shared.hi = static_cast<T>(plan.int_hi);
    }
    const double pixel_cost = vector_cost<T>(plan);
    c.pool().for_pieces(plan.rows, pixel_cost * static_cast<double>(plan.out_w), [&](int64_t begin, int64_t end) {
      for_boxes<2>({{{{begin, end}}, {{0, plan.out_w}}}}, pixel_cost, [&](const auto& box) {
        for (int64_t row = box[0].begin; row < box[0].end; ++row) {
          const Span ys = clip(row % plan.out_h, plan.stride_h, plan.pad_h, plan.filter_h, plan.in_h);
          kernels::PoolRow<T> r = shared;
          r.in = c.input(0).as<T>() + (row / plan.out_h * plan.in_h + ys.begin) * r.row_stride;
          r.rows = ys.end - ys.begin;
          r.columns = columns + box[1].begin;
          r.pixels = box[1].size();
          r.out = c.output(0).mutable_as<T>() + (row * plan.out_w + box[1].begin) * plan.channels;
          row_function(r);
        }
      });
    });
  });
}

template <typename T>
std::unique_ptr<Kernel> choose_kernel(Pool pool, const PoolPlan& p) {
  if constexpr (std::is_same_v<T, float>) {
    if (pool == Pool::kL2) return pool_kernel<float, float, L2Op>(p);
    if (vector_cost<float>(p) > kLongPieceCost) {
      return pool == Pool::kMax ? pool_kernel<float, float, FloatMaxOp>(p)
                                : pool_kernel<float, float, FloatAverageOp>(p);
    }
    return vector_kernel<float>(pool == Pool::kMax ? kernels::Pooling::kMax : kernels::Pooling::kAverage, p);
  } else {
    if constexpr (sizeof(T) == 1) {
      if (pool == Pool::kMax && vector_cost<T>(p) <= kLongPieceCost) {
        return vector_kernel<T>(kernels::Pooling::kMax, p);
      }
      if (window_size(p) <= kernels::kMaxAveraged8) return vector_kernel<T>(kernels::Pooling::kAverage, p);
    }
    if (pool == Pool::kMax) return pool_kernel<T, T, MaxOp<T>>(p);
    // 65535 values of 16 bits and the rounding term still fit into 32 bits.
    const int64_t h = std::min(p.filter_h, p.in_h);
    const int64_t w = std::min(p.filter_w, p.in_w);
    if (h <= 65535 && w <= 65535 && h * w <= 65535) return pool_kernel<T, int32_t, AverageOp<T, int32_t>>(p);
    return pool_kernel<T, int64_t, AverageOp<T, int64_t>>(p);
  }
}

template <Pool pool>
void infer_pooling(InferContext& c) {
  if (pool == Pool::kL2) {
    c.require_input_type(0, {DType::kFloat32});
  } else {
    c.require_input_type(0, {DType::kFloat32, DType::kUInt8, DType::kInt8, DType::kInt16});
  }
  c.require_output_type(0, {c.input(0).dtype()});
  const Shape& in = c.input(0).shape;
  c.require(in.rank() == 4, "input has shape {}, expected 4 dimensions", in.to_string());
  const auto& a = c.attributes<PoolAttributes>();
  const Window h = window(c, a.padding, in[1], a.filter_height, a.stride_h, 1);
  const Window w = window(c, a.padding, in[2], a.filter_width, a.stride_w, 1);
  activation_range(c, a.activation);
  if (c.input(0).dtype() != DType::kFloat32 && a.activation != ir::Activation::kNone) {
    c.require_quantized(c.output(0), "output");
  }
  c.set_output_shape(0, {in[0], h.output, w.output, in[3]});
}

template <Pool pool>
std::unique_ptr<Kernel> prepare_pooling(PrepareContext& c) {
  const auto& a = c.attributes<PoolAttributes>();
  const Shape& in = c.input(0).shape;
  const Shape& out = c.output(0).shape;
  if (out.elements() == 0) return make_kernel([](RunContext&) {});
  PoolPlan p;
  p.rows = out[0] * out[1];
  p.in_h = in[1];
  p.in_w = in[2];
  p.channels = in[3];
  p.out_h = out[1];
  p.out_w = out[2];
  p.stride_h = a.stride_h;
  p.stride_w = a.stride_w;
  p.filter_h = a.filter_height;
  p.filter_w = a.filter_width;
  p.pad_h = window(c, a.padding, in[1], a.filter_height, a.stride_h, 1).pad_before;
  p.pad_w = window(c, a.padding, in[2], a.filter_width, a.stride_w, 1).pad_before;
  std::tie(p.real_lo, p.real_hi) = activation_range(c, a.activation);
  c.request_scratch(p.out_w * static_cast<int64_t>(sizeof(Span)));
  if (c.input(0).dtype() == DType::kFloat32) return choose_kernel<float>(pool, p);
  std::tie(p.int_lo, p.int_hi) = quantized_activation_range(c, a.activation, c.output(0));
  switch (c.input(0).dtype()) {
    case DType::kUInt8:
      return choose_kernel<uint8_t>(pool, p);
    case DType::kInt8:
      return choose_kernel<int8_t>(pool, p);
    default:
      return choose_kernel<int16_t>(pool, p);
  }
}

template <Pool pool>
OpDef pool_op(const ir::OpId& id, int version, std::string_view types, std::string_view fast,
              const QuantizationRule& rule = {}) {
  return {.id = id,
          .max_version = version,
          .min_inputs = 1,
          .max_inputs = 1,
          .required_inputs = 1,
          .options = builtin_options(5),
          .make_attributes = make_attributes<PoolAttributes>,
          .infer = AlsoHalf<infer_pooling<pool>, prepare_pooling<pool>>::infer,
          .prepare = AlsoHalf<infer_pooling<pool>, prepare_pooling<pool>>::prepare,
          .fuses = pool == Pool::kL2 ? ActivationSet{0} : kFusesRelus,
          .quantize = rule,
          .types = types,
          .fast = fast};
}

}  // namespace

void register_pooling(Registry& registry) {
  registry.add(pool_op<Pool::kAverage>(op::kAveragePool2D, 3, "f32 f16 u8 i8 i16", "f32 i8 u8",
                                       same_scale_rule({.int8 = 2, .int16 = 3})));
  registry.add(pool_op<Pool::kL2>(op::kL2Pool2D, 1, "f32 f16", ""));
  registry.add(pool_op<Pool::kMax>(op::kMaxPool2D, 3, "f32 f16 u8 i8 i16", "f32 i8 u8",
                                   same_scale_rule({.int8 = 2, .int16 = 3})));
}

}  // namespace leadline::ops
