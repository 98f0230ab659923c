// SPDX-License-Identifier: Apache-2.0
// SOFTMAX and LOG_SOFTMAX over the last dimension. Rows are computed one by one and may overwrite their input:
// a row is read to its end before it is written.
#include "ops/softmax.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "kernels/elementwise/softmax_8.h"
#include "kernels/elementwise/softmax_f32.h"
#include "kernels/quant/fixed_point.h"
#include "ops/elementwise.h"
#include "ops/families.h"

namespace leadline::ops {
namespace {

using kernels::Affine;

/// Calls row(in, out, depth) for each row; a scalar is a row of one.
template <typename In, typename Out, typename Row>
std::unique_ptr<Kernel> row_kernel(const OpContext& c, Row row) {
  const Shape& shape = c.input(0).shape;
  const int64_t depth = shape.rank() == 0 ? 1 : shape[shape.rank() - 1];
  const int64_t rows = depth == 0 ? 0 : shape.elements() / depth;
  return make_kernel([=](RunContext& run) {
    const In* in = run.input(0).as<In>();
    Out* out = run.output(0).mutable_as<Out>();
    run.pool().for_pieces(rows, kHeavyCost * static_cast<double>(depth), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) row(in + i * depth, out + i * depth, depth);
    });
  });
}

template <typename T>
T row_max(const T* in, int64_t depth) {
  T most = in[0];
  for_pieces(depth, 1,
             [&](int64_t begin, int64_t end) { most = std::max(most, *std::max_element(in + begin, in + end)); });
  return most;
}

/// e^(-scale * i) at 255 - i, so that 255 + x - max finds e^(scale (x - max)) for 8-bit x. Then the same once more, for
/// tables that begin elsewhere.
using ExpTable = std::array<float, 512>;

ExpTable exp_table(float scale) {
  ExpTable table{};
  for (int i = 0; i < 256; ++i) table[static_cast<size_t>(255 - i)] = std::exp(-scale * static_cast<float>(i));
  std::copy_n(table.data(), 256, table.data() + 256);
  return table;
}

template <typename In>
float table_sum(const ExpTable& table, const In* in, int64_t depth, int32_t most) {
  const int32_t offset = 255 - most;
  const float* values = table.data() + offset;
  // Four chains of additions, because one would wait for itself.
  float a = 0.0F;
  float b = 0.0F;
  float c = 0.0F;
  float d = 0.0F;
  const int64_t whole = depth / 4 * 4;
  for_items(whole / 4, 4, [&](int64_t group) {
    const In* four = in + 4 * group;
    a += values[four[0]];
    b += values[four[1]];
    c += values[four[2]];
    d += values[four[3]];
  });
  for (int64_t i = whole; i < depth; ++i) a += values[in[i]];
  return (a + b) + (c + d);
}

/// Rounds a number >= 0 to nearest, halves up; too large ones and NaN become 65536.
int32_t round_bounded_level(float value) {
  const float limited = value < 65536.0F ? value : 65536.0F;
  const auto whole = static_cast<int32_t>(limited);
  return whole + (limited - static_cast<float>(whole) >= 0.5F ? 1 : 0);
}

template <typename T>
T clamp_to_level(int64_t level) {
  return static_cast<T>(std::clamp<int64_t>(level, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
}

/// out = the level of table[offset + in] for whole rows. Values above the row's maximum do not occur.
template <typename T>
void look_levels_up(const ExpTable& table, float factor, int32_t zero_point, int32_t offset, const T* in, T* out,
                    int64_t depth) {
  const auto first = static_cast<uint8_t>(offset);  // belongs to the value whose bits are 0
  kernels::Lut8<T> lut;
  kernels::softmax_levels_8<T>()(table.data() + first, factor, zero_point, lut.data());
  for_pieces(depth, kLookupCost, [&, look_up = kernels::lookup8_row()](int64_t begin, int64_t end) {
    look_up(reinterpret_cast<const uint8_t*>(lut.data()), reinterpret_cast<const uint8_t*>(in + begin),
            reinterpret_cast<uint8_t*>(out + begin), end - begin);
  });
}

// SOFTMAX.

void require_near(const OpContext& c, float scale, float expected) {
  c.require(std::abs(scale - expected) <= 0.001F * expected, "the output has scale {}, expected {}", scale, expected);
}

void infer_softmax(InferContext& c) {
  c.require_input_type(
      0, {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kInt8, DType::kUInt8, DType::kInt16});
  const DType type = c.input(0).dtype();
  if (is_8bit(type)) {
    c.require_output_type(0, {type, DType::kInt16});
  } else {
    c.require_output_type(0, {type});
  }
  c.require(c.input(0).shape.rank() >= 1, "the input is a scalar, expected at least one dimension");
  const float beta = c.attributes<SoftmaxAttributes>().beta;
  c.require(std::isfinite(beta), "beta is {}, expected a finite number", beta);
  if (!is_floating(type)) {
    c.require_quantized(c.input(0), "input");
    c.require_quantized(c.output(0), "output");
    const Affine out = affine(c.output(0));
    if (type == DType::kInt8 && c.output(0).dtype() == DType::kInt8) {
      c.require(out.zero_point == -128, "the output has zero point {}, expected -128", out.zero_point);
      require_near(c, out.scale, 1.0F / 256.0F);
    } else if (c.output(0).dtype() == DType::kUInt8) {
      c.require(out.zero_point == 0, "the output has zero point {}, expected 0", out.zero_point);
    } else if (type == DType::kInt16) {
      require_symmetric(c, c.input(0), "input");
      require_symmetric(c, c.output(0), "output");
      require_near(c, out.scale, 1.0F / 32768.0F);
    }
  }
  c.set_output_shape(0, c.input(0).shape);
}

/// TFLite's 8-bit softmax on x86: float sums of a table of exponentials.
template <typename In, typename Out>
std::unique_ptr<Kernel> table_softmax(const OpContext& c) {
  const ExpTable table = exp_table(affine(c.input(0)).scale * c.attributes<SoftmaxAttributes>().beta);
  const Affine affine_out = affine(c.output(0));
  return row_kernel<In, Out>(c, [=, find_max = kernels::row_max_8<In>()](const In* in, Out* out, int64_t depth) {
    int32_t most = std::numeric_limits<In>::lowest();
    for_pieces(depth, kByteCost,
               [&](int64_t begin, int64_t end) { most = std::max<int32_t>(most, find_max(in + begin, end - begin)); });
    const float factor = 1.0F / (table_sum(table, in, depth, most) * affine_out.scale);
    // uint8 results have no zero point in TFLite's kernel.
    const int32_t zero_point = std::is_same_v<Out, uint8_t> ? 0 : affine_out.zero_point;
    const int32_t offset = 255 - most;
    if constexpr (std::is_same_v<In, Out>) {
      // All values there may be, then a lookup, take less time than many values one by one.
      if (depth >= 64) return look_levels_up(table, factor, zero_point, offset, in, out, depth);
    }
    for_items(depth, 4, [&](int64_t i) {
      out[i] =
          clamp_to_level<Out>(zero_point + round_bounded_level(table[static_cast<size_t>(offset + in[i])] * factor));
    });
  });
}

/// TFLite's int16 softmax: exponentials and a reciprocal by interpolated tables.
class SoftmaxI16 {
 public:
  explicit SoftmaxI16(float scale_times_beta)
      : exp_(
            kernels::make_lut16<double>(10.0 / 65535.0, 32767, 2.0 / 65535.0, 0, [](double x) { return std::exp(x); })),
        reciprocal_(kernels::make_lut16<double>(1.0 / 65535.0, -32768, 2.0 / 65535.0, 0,
                                                [](double x) { return 1.0 / (1.0 + x); })),
        factor_(kernels::quantize_multiplier(static_cast<double>(scale_times_beta) / (10.0 / 65535.0))) {}

  void operator()(const int16_t* in, int16_t* out, int64_t depth) const {
    const int32_t most = row_max(in, depth);
    int64_t sum = 0;  // 15 fractional bits
    for_items(depth, 8, [&](int64_t i) {
      // -10 .. 0 is -65535 .. 0, recentred for the table.
      const int64_t scaled = int64_t{kernels::multiply(in[i] - most, factor_)} + 32767;
      out[i] = kernels::lookup16(clamp_to_level<int16_t>(scaled), exp_);
      sum += out[i];
    });
    // The largest element adds almost 1, so the sum has a leading bit; above 2^16 it saturates.
    const auto bits = static_cast<uint32_t>(std::clamp<int64_t>(sum, 1, std::numeric_limits<int32_t>::max()));
    const int headroom = std::countl_zero(bits);
    const auto mantissa = static_cast<int32_t>(((int64_t{bits} << (headroom - 1)) + (1 << 13)) >> 14);
    const int64_t reciprocal =
        kernels::lookup16(clamp_to_level<int16_t>(mantissa - ((1 << 15) + (1 << 16))), reciprocal_);
    const int shift = std::max(31 - headroom, 1);
    for_items(depth, 4, [&](int64_t i) {
      const int64_t level = (out[i] * reciprocal + (int64_t{1} << (shift - 1))) >> shift;
      out[i] = static_cast<int16_t>(std::clamp<int64_t>(level, 0, 32767));
    });
  }

 private:
  kernels::Lut16 exp_;
  kernels::Lut16 reciprocal_;
  kernels::Multiplier factor_;
};

/// 16-bit floats: exponentials twice, so that no row of floats is needed.
template <typename T>
std::unique_ptr<Kernel> half_softmax(const OpContext& c) {
  const float beta = c.attributes<SoftmaxAttributes>().beta;
  return row_kernel<T, T>(c, [beta](const T* in, T* out, int64_t depth) {
    auto most = static_cast<float>(in[0]);
    for_items(depth, 4, [&](int64_t i) { most = std::max(most, static_cast<float>(in[i])); });
    const auto term = [&](int64_t i) { return std::exp((static_cast<float>(in[i]) - most) * beta); };
    float sum = 0.0F;
    for_items(depth, 24, [&](int64_t i) { sum += term(i); });
    for_items(depth, 32, [&](int64_t i) { out[i] = T(term(i) / sum); });
  });
}

/// Calls body(begin, count) for the blocks of a long row, `cost` for each value. Sums are added up block by block.
template <typename Body>
void for_row_blocks(int64_t depth, double cost, const Body& body) {
  const int64_t blocks = (depth + kernels::kSoftmaxBlock - 1) / kernels::kSoftmaxBlock;
  for_items(blocks, cost * kernels::kSoftmaxBlock, [&](int64_t i) {
    const int64_t begin = i * kernels::kSoftmaxBlock;
    body(begin, std::min(kernels::kSoftmaxBlock, depth - begin));
  });
}

float max_of_blocks(const kernels::SoftmaxF32& softmax, const float* in, int64_t depth) {
  float most = in[0];
  for_row_blocks(depth, 0.25,
                 [&](int64_t begin, int64_t count) { most = std::max(most, softmax.max(in + begin, count)); });
  return most;
}

// Not inlined: short rows, which are common, would save registers for it.
[[gnu::noinline]] void long_softmax(const kernels::SoftmaxF32& softmax, const float* in, float* out, int64_t depth,
                                    float beta) {
  const float most = max_of_blocks(softmax, in, depth);
  float sum = 0.0F;
  for_row_blocks(depth, 1, [&](int64_t begin, int64_t count) {
    sum += softmax.exp_sum(in + begin, out + begin, count, most, beta);
  });
  for_row_blocks(depth, 0.25, [&](int64_t begin, int64_t count) { softmax.multiply(out + begin, count, 1.0F / sum); });
}

[[gnu::noinline]] void long_log_softmax(const kernels::SoftmaxF32& softmax, const float* in, float* out,
                                        int64_t depth) {
  const float most = max_of_blocks(softmax, in, depth);
  float sum = 0.0F;
  for_row_blocks(depth, 1, [&](int64_t begin, int64_t count) { sum += softmax.log_sum(in + begin, count, most); });
  for_row_blocks(depth, 0.25, [&](int64_t begin, int64_t count) {
    softmax.subtract(in + begin, out + begin, count, most, std::log(sum));
  });
}

std::unique_ptr<Kernel> prepare_softmax(PrepareContext& c) {
  const float beta = c.attributes<SoftmaxAttributes>().beta;
  const bool widens = c.output(0).dtype() == DType::kInt16;
  switch (c.input(0).dtype()) {
    case DType::kInt8:
      return widens ? table_softmax<int8_t, int16_t>(c) : table_softmax<int8_t, int8_t>(c);
    case DType::kUInt8:
      return widens ? table_softmax<uint8_t, int16_t>(c) : table_softmax<uint8_t, uint8_t>(c);
    case DType::kInt16:
      return row_kernel<int16_t, int16_t>(c, SoftmaxI16(affine(c.input(0)).scale * beta));
    case DType::kFloat16:
      return half_softmax<kernels::Half>(c);
    case DType::kBFloat16:
      return half_softmax<kernels::BFloat16>(c);
    default:
      break;
  }
  const kernels::SoftmaxF32 softmax = kernels::softmax_f32();
  return row_kernel<float, float>(c, [softmax, beta](const float* in, float* out, int64_t depth) {
    depth > kernels::kSoftmaxBlock ? long_softmax(softmax, in, out, depth, beta) : softmax.row(in, out, depth, beta);
  });
}

// LOG_SOFTMAX.

void infer_log_softmax(InferContext& c) {
  infer_unary(c, {DType::kFloat32, DType::kInt8, DType::kUInt8});
  if (c.input(0).dtype() == DType::kFloat32) return;
  c.require_quantized(c.input(0), "input");
  c.require_quantized(c.output(0), "output");
  const Affine out = affine(c.output(0));
  const int32_t zero_point = c.input(0).dtype() == DType::kInt8 ? 127 : 255;
  c.require(out.zero_point == zero_point, "the output has zero point {}, expected {}", out.zero_point, zero_point);
  require_near(c, out.scale, 16.0F / 256.0F);
}

template <typename T>
std::unique_ptr<Kernel> table_log_softmax(const OpContext& c) {
  const float in_scale = affine(c.input(0)).scale;
  const Affine affine_out = affine(c.output(0));
  const ExpTable table = exp_table(in_scale);
  return row_kernel<T, T>(c, [=](const T* in, T* out, int64_t depth) {
    const int32_t most = row_max(in, depth);
    const float log_sum = std::log(table_sum(table, in, depth, most));
    const float scale = in_scale / affine_out.scale;
    const float shift = (in_scale * static_cast<float>(most) + log_sum) / affine_out.scale;
    for_items(depth, 8, [&](int64_t i) {
      const float level = std::rint(scale * static_cast<float>(in[i]) - shift);
      out[i] = clamp_to_level<T>(int64_t{kernels::saturating_int(level)} + affine_out.zero_point);
    });
  });
}

std::unique_ptr<Kernel> prepare_log_softmax(PrepareContext& c) {
  switch (c.input(0).dtype()) {
    case DType::kInt8:
      return table_log_softmax<int8_t>(c);
    case DType::kUInt8:
      return table_log_softmax<uint8_t>(c);
    default:
      break;
  }
  const kernels::SoftmaxF32 softmax = kernels::softmax_f32();
  return row_kernel<float, float>(c, [softmax](const float* in, float* out, int64_t depth) {
    depth > kernels::kSoftmaxBlock ? long_log_softmax(softmax, in, out, depth) : softmax.log_row(in, out, depth, 1.0F);
  });
}

}  // namespace

void register_softmax(Registry& registry) {
  add_ops(
      registry, 1, Sharing::kInPlace,
      {
          {.id = op::kSoftmax,
           .max_version = 4,
           .options = builtin_options(9),
           .make_attributes = make_attributes<SoftmaxAttributes>,
           .infer = infer_softmax,
           .prepare = prepare_softmax,
           .quantize = fixed_rule({.int8 = 2, .int16 = 3}, {.int8 = {1.0F / 256, -128}, .int16 = {1.0F / 32768, 0}}),
           .types = "f32 f16 bf16 i8 u8 i16 8-to-i16"},
          {.id = op::kLogSoftmax,
           .max_version = 2,
           .options = builtin_options(36),
           .infer = infer_log_softmax,
           .prepare = prepare_log_softmax,
           .quantize = fixed_rule({.int8 = 2}, {.int8 = {16.0F / 256, 127}, .int16 = {}}),
           .types = "f32 i8 u8"},
      },
      "f32");
}

}  // namespace leadline::ops
