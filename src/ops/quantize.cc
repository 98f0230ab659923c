// SPDX-License-Identifier: Apache-2.0
// QUANTIZE (float to integers, integers to integers) and DEQUANTIZE.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>

#include "core/half.h"
#include "kernels/elementwise/lookup8.h"
#include "kernels/quant/convert.h"
#include "kernels/quant/fixed_point.h"
#include "ops/common.h"
#include "ops/families.h"

namespace leadline::ops {
namespace {

using kernels::Multiplier;

constexpr double kOperations = 4.0;  // per element

/// A tensor as outer x channels x inner, where the channels have a scale each. Per tensor: one channel.
struct ChannelView {
  int64_t outer = 1;
  int64_t channels = 1;
  int64_t inner = 1;
};

ChannelView channel_view(const Shape& shape, const Quantization& q) {
  ChannelView view;
  if (!q.per_channel()) {
    view.inner = shape.elements();
    return view;
  }
  view.channels = shape[q.axis];
  for (int i = 0; i < q.axis; ++i) view.outer *= shape[i];
  for (int i = q.axis + 1; i < shape.rank(); ++i) view.inner *= shape[i];
  return view;
}

/// Scales are present, and per channel they match the shape.
void check_operand_quantization(const OpContext& c, const Operand& operand, const Shape& shape, const char* what) {
  const Quantization& q = operand.quantization();
  const std::string& name = operand.value->name;
  if (q.block_size > 0) c.fail(ErrorCode::kUnsupported, "{} '{}' is quantized in blocks", what, name);
  c.require(!q.scale.empty(), "{} '{}' has no quantization parameters", what, name);
  if (!q.per_channel()) return;
  c.require(q.axis >= 0 && q.axis < shape.rank(), "{} '{}' is quantized along axis {}, but has shape {}", what, name,
            q.axis, shape.to_string());
  c.require(static_cast<int64_t>(q.scale.size()) == shape[q.axis] && q.zero_point.size() == q.scale.size(),
            "{} '{}' has {} scales for {} channels", what, name, q.scale.size(), shape[q.axis]);
}

/// Calls body(first element, count, channel) for runs of one channel, in parallel.
template <typename Body>
void for_each_run(RunContext& c, const ChannelView& view, const Body& body) {
  if (view.channels == 1 && view.outer == 1) {
    c.pool().for_pieces(view.inner, kOperations, [&](int64_t begin, int64_t end) { body(begin, end - begin, 0); });
    return;
  }
  const double work = kOperations * static_cast<double>(view.inner);
  c.pool().for_pieces(view.outer * view.channels, work, [&](int64_t begin, int64_t end) {
    for (int64_t run = begin; run < end; ++run) body(run * view.inner, view.inner, run % view.channels);
  });
}

/// Rounds to nearest, ties away from zero, and saturates; NaN becomes `lo`. The bounds are integers.
int32_t round_clamped(float value, float lo, float hi) {
  const float x = value > lo ? std::min(value, hi) : lo;
  // The largest float below 0.5: adding 0.5 itself would round 0.49999997 up.
  return static_cast<int32_t>(x + std::copysign(0x1.fffffep-2F, x));
}

kernels::QuantizeRange level_range_of(const Quantization& q, int64_t channel, DType type) {
  const auto k = static_cast<size_t>(channel);
  const auto zero = static_cast<int32_t>(q.zero_point[k]);
  const auto [lo, hi] = level_range(type);
  return {q.scale[k], zero, static_cast<float>(lo - zero), static_cast<float>(hi - zero)};
}

template <typename T>
std::unique_ptr<Kernel> quantize_kernel(const ChannelView& view, DType type) {
  return make_kernel([view, type, row = kernels::quantize_row<T>()](RunContext& c) {
    const float* in = c.input(0).as<float>();
    T* out = c.output(0).mutable_as<T>();
    const Quantization& q = *c.output(0).quantization;
    for_each_run(c, view, [&](int64_t first, int64_t count, int64_t channel) {
      row(in + first, out + first, count, level_range_of(q, channel, type));
    });
  });
}

/// Two 4-bit integers per byte, the first in the low half.
std::unique_ptr<Kernel> quantize_int4_kernel(int64_t elements, DType type) {
  return make_kernel([elements, type](RunContext& c) {
    const float* in = c.input(0).as<float>();
    auto* out = c.output(0).mutable_as<uint8_t>();
    const kernels::QuantizeRange r = level_range_of(*c.output(0).quantization, 0, type);
    auto level = [&](int64_t i) {
      if (i >= elements) return 0U;
      return static_cast<unsigned>(round_clamped(in[i] / r.scale, r.lo, r.hi) + r.zero_point) & 0xFU;
    };
    c.pool().for_pieces((elements + 1) / 2, 2 * kOperations, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) out[b] = static_cast<uint8_t>(level(2 * b) | level(2 * b + 1) << 4);
    });
  });
}

/// One level after the other, by `level(in) -> out`; 8-bit inputs through a table of all 256.
template <typename In, typename Out, typename Level>
std::unique_ptr<Kernel> level_to_level_kernel(const Level& level) {
  if constexpr (sizeof(In) == 1) {
    std::array<Out, 256> table;
    for (int i = 0; i < 256; ++i) table[static_cast<size_t>(i)] = level(static_cast<In>(i));
    return make_kernel([table](RunContext& run) {
      const auto* in = run.input(0).as<uint8_t>();
      Out* out = run.output(0).mutable_as<Out>();
      run.pool().for_pieces(run.output(0).elements(), 1, [&](int64_t begin, int64_t end) {
        if constexpr (sizeof(Out) == 1) {
          kernels::lookup8_row()(reinterpret_cast<const uint8_t*>(table.data()), in + begin,
                                 reinterpret_cast<uint8_t*>(out) + begin, end - begin);
        } else {
          for (int64_t i = begin; i < end; ++i) out[i] = table[in[i]];
        }
      });
    });
  } else {
    return make_kernel([level](RunContext& run) {
      const In* in = run.input(0).as<In>();
      Out* out = run.output(0).mutable_as<Out>();
      run.pool().for_pieces(run.output(0).elements(), 2 * kOperations, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) out[i] = level(in[i]);
      });
    });
  }
}

template <typename In, typename Out>
std::unique_ptr<Kernel> requantize_kernel(const PrepareContext& c) {
  const Quantization& from = c.input(0).quantization();
  const Quantization& to = c.output(0).quantization();
  const Multiplier m = kernels::quantize_multiplier(static_cast<double>(from.scale0()) / to.scale0());
  return level_to_level_kernel<In, Out>([m, in_zero = from.zero_point0(), out_zero = to.zero_point0()](In in) {
    const int32_t centred = kernels::saturate_i32(int64_t{in} - in_zero);
    const int64_t value = int64_t{kernels::multiply(centred, m)} + out_zero;
    return static_cast<Out>(
        std::clamp<int64_t>(value, std::numeric_limits<Out>::min(), std::numeric_limits<Out>::max()));
  });
}

/// XNNPACK's form for 8 bits of the same kind, with a factor of 8.8 bits; LiteRT uses it within these limits.
template <typename T>
std::unique_ptr<Kernel> direct_requantize_kernel(const PrepareContext& c, float factor) {
  const auto multiplier = static_cast<int32_t>(std::lrint(256.0F * factor));
  const int32_t bias =
      c.output(0).quantization().zero_point0() * 256 - multiplier * c.input(0).quantization().zero_point0() + 128;
  return level_to_level_kernel<T, T>([multiplier, bias](T in) {
    const int32_t level = (in * multiplier + bias) >> 8;
    return static_cast<T>(std::clamp<int32_t>(level, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
  });
}

template <typename In>
std::unique_ptr<Kernel> requantize_from(const PrepareContext& c) {
  if constexpr (sizeof(In) == 1) {
    const float factor = c.input(0).quantization().scale0() / c.output(0).quantization().scale0();
    if (c.output(0).dtype() == c.input(0).dtype() && factor >= 0x1.0p-8F && factor <= 0x1.0p+7F) {
      return direct_requantize_kernel<In>(c, factor);
    }
  }
  switch (c.output(0).dtype()) {
    case DType::kInt8:
      return requantize_kernel<In, int8_t>(c);
    case DType::kUInt8:
      return requantize_kernel<In, uint8_t>(c);
    case DType::kInt16:
      return requantize_kernel<In, int16_t>(c);
    default:
      return requantize_kernel<In, int32_t>(c);
  }
}

void check_requantize_types(const OpContext& c) {
  switch (c.input(0).dtype()) {
    case DType::kInt16:
      return c.require_output_type(0, {DType::kInt8, DType::kInt16, DType::kInt32});
    case DType::kInt32:
      return c.require_output_type(0, {DType::kInt8, DType::kInt16});
    default:
      return c.require_output_type(0, {DType::kInt8, DType::kUInt8, DType::kInt16});
  }
}

void infer_quantize(InferContext& c) {
  c.require_input_type(0, {DType::kFloat32, DType::kInt8, DType::kUInt8, DType::kInt16, DType::kInt32});
  const Shape& shape = c.input(0).shape;
  const DType to = c.output(0).dtype();
  if (c.input(0).dtype() == DType::kFloat32) {
    c.require_output_type(0, {DType::kInt8, DType::kUInt8, DType::kInt16, DType::kInt4, DType::kUInt4});
    check_operand_quantization(c, c.output(0), shape, "output");
    if (to == DType::kInt4 || to == DType::kUInt4) c.require_quantized(c.output(0), "output");
  } else {
    check_requantize_types(c);
    c.require_quantized(c.input(0), "input");
    c.require_quantized(c.output(0), "output");
    const int32_t in_zero = c.input(0).quantization().zero_point0();
    const int32_t out_zero = c.output(0).quantization().zero_point0();
    c.require(c.input(0).dtype() != DType::kInt16 || to != DType::kInt16 || (in_zero == 0 && out_zero == 0),
              "int16 zero points are {} and {}, expected 0", in_zero, out_zero);
  }
  c.set_output_shape(0, shape);
}

std::unique_ptr<Kernel> prepare_quantize(PrepareContext& c) {
  const DType to = c.output(0).dtype();
  switch (c.input(0).dtype()) {
    case DType::kInt8:
      return requantize_from<int8_t>(c);
    case DType::kUInt8:
      return requantize_from<uint8_t>(c);
    case DType::kInt16:
      return requantize_from<int16_t>(c);
    case DType::kInt32:
      return requantize_from<int32_t>(c);
    default:
      break;
  }
  const ChannelView view = channel_view(c.input(0).shape, c.output(0).quantization());
  switch (to) {
    case DType::kInt8:
      return quantize_kernel<int8_t>(view, to);
    case DType::kUInt8:
      return quantize_kernel<uint8_t>(view, to);
    case DType::kInt16:
      return quantize_kernel<int16_t>(view, to);
    default:
      return quantize_int4_kernel(c.input(0).shape.elements(), to);
  }
}

/// `bits` wide integers packed into bytes, the first in the lowest bits.
template <int bits, bool is_signed>
struct Packed {
  static int32_t get(const std::byte* data, int64_t i) {
    constexpr int64_t kPerByte = 8 / bits;
    constexpr uint32_t kMask = (1U << bits) - 1U;
    const auto shift = static_cast<unsigned>(i % kPerByte * bits);
    const auto value = static_cast<int32_t>((std::to_integer<uint32_t>(data[i / kPerByte]) >> shift) & kMask);
    return is_signed && value >= (1 << (bits - 1)) ? value - (1 << bits) : value;
  }
};

template <typename T>
std::unique_ptr<Kernel> dequantize_kernel(const ChannelView& view) {
  return make_kernel([view, row = kernels::dequantize_row<T>()](RunContext& c) {
    const T* in = c.input(0).as<T>();
    auto* out = c.output(0).mutable_as<float>();
    const Quantization& q = *c.input(0).quantization;
    for_each_run(c, view, [&](int64_t first, int64_t count, int64_t channel) {
      const auto k = static_cast<size_t>(channel);
      row(in + first, out + first, count, q.scale[k], static_cast<int32_t>(q.zero_point[k]));
    });
  });
}

template <typename Reader>
std::unique_ptr<Kernel> dequantize_packed_kernel(const ChannelView& view) {
  return make_kernel([view](RunContext& c) {
    const std::byte* in = c.input(0).data;
    float* out = c.output(0).mutable_as<float>();
    const Quantization& q = *c.input(0).quantization;
    for_each_run(c, view, [&](int64_t first, int64_t count, int64_t channel) {
      const float scale = q.scale[static_cast<size_t>(channel)];
      const auto zero = static_cast<int32_t>(q.zero_point[static_cast<size_t>(channel)]);
      for (int64_t i = first; i < first + count; ++i) out[i] = scale * static_cast<float>(Reader::get(in, i) - zero);
    });
  });
}

void infer_dequantize(InferContext& c) {
  const Operand& in = c.input(0);
  c.require_input_type(
      0, {DType::kFloat16, DType::kInt8, DType::kUInt8, DType::kInt16, DType::kInt4, DType::kUInt4, DType::kInt2});
  c.require_output_type(0, {DType::kFloat32});
  if (in.dtype() != DType::kFloat16) check_operand_quantization(c, in, in.shape, "input");
  if (in.dtype() == DType::kInt16) {
    c.require_quantized(in, "input");
    c.require(in.quantization().zero_point0() == 0, "int16 zero point is {}, expected 0",
              in.quantization().zero_point0());
  }
  c.set_output_shape(0, in.shape);
}

std::unique_ptr<Kernel> prepare_dequantize(PrepareContext& c) {
  if (c.input(0).dtype() == DType::kFloat16) {
    return make_kernel([](RunContext& run) {
      const auto* in = run.input(0).as<uint16_t>();
      float* out = run.output(0).mutable_as<float>();
      run.pool().for_pieces(run.output(0).elements(), kOperations, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) out[i] = half_to_float(in[i]);
      });
    });
  }
  const ChannelView view = channel_view(c.input(0).shape, c.input(0).quantization());
  switch (c.input(0).dtype()) {
    case DType::kInt8:
      return dequantize_kernel<int8_t>(view);
    case DType::kUInt8:
      return dequantize_kernel<uint8_t>(view);
    case DType::kInt16:
      return dequantize_kernel<int16_t>(view);
    case DType::kInt4:
      return dequantize_packed_kernel<Packed<4, true>>(view);
    case DType::kUInt4:
      return dequantize_packed_kernel<Packed<4, false>>(view);
    default:
      return dequantize_packed_kernel<Packed<2, true>>(view);
  }
}

}  // namespace

void register_quantize(Registry& registry) {
  registry.add({.id = op::kDequantize,
                .max_version = 9,
                .min_inputs = 1,
                .max_inputs = 1,
                .required_inputs = 1,
                .options = builtin_options(38),
                .infer = infer_dequantize,
                .prepare = prepare_dequantize,
                .elementwise = true,
                .dequantizes_f16 = true,
                .types = "f16 i8 u8 i16 i4 u4 i2, per channel",
                .fast = "i8 u8 i16"});
  registry.add({.id = op::kQuantize,
                .max_version = 6,
                .min_inputs = 1,
                .max_inputs = 1,
                .required_inputs = 1,
                .options = builtin_options(89),
                .infer = infer_quantize,
                .prepare = prepare_quantize,
                .sharing = Sharing::kInPlace,
                .elementwise = true,
                .types = "f32 i8 u8 i16 i32 i4 u4, per channel",
                .fast = "f32 i8 u8"});
}

}  // namespace leadline::ops
