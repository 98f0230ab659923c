// SPDX-License-Identifier: Apache-2.0
// TRANSPOSE_CONV: output shape [4] (int32), filter [O,KH,KW,C], input [N,H,W,C], optional bias [O].
// Its kernel also serves MediaPipe's Convolution2DTransposeBias, which has the operands in another order.
#include <algorithm>

#include "kernels/gemm/gemm_i8.h"
#include "ops/common.h"
#include "ops/conv.h"
#include "ops/families.h"
#include "ops/loops/gemm.h"
#include "ops/loops/split.h"
#include "ops/packed_weights.h"
#include "ops/quantization_rules.h"

namespace leadline::ops {
namespace {

using kernels::reference::ConvShape;

constexpr int kOutputShape = 0;
constexpr int kFilter = 1;
constexpr int kInput = 2;
constexpr int kBias = 3;

struct TransposeConvLoop {
  ConvShape shape;
  int64_t images() const { return shape.batch; }
  int64_t image_size() const { return shape.in_h * shape.in_w * shape.in_c; }
  template <typename In, typename Zero, typename Weight, typename Finish, typename Out>
  void operator()(ThreadPool& pool, const In* input, Zero input_zero, const Weight* filter, int32_t filter_zero,
                  const Finish& finish, Out* output) const {
    run_reference(kernels::reference::TransposeConv<In, Weight, Zero, Finish, Out>{{shape, input, input_zero, filter,
                                                                                    filter_zero, finish, output}},
                  pool);
  }
};

constexpr ContractionOperands kTransposeConvOperands = {
    .kind = ContractionKind::kTransposed, .activations = kInput, .weights = kFilter, .bias = kBias};

ContractionRule transpose_conv_rule(const OpContext& c) {
  ContractionRule rule(c, kTransposeConvOperands);
  rule.symmetric_weights = true;
  rule.bias_attribute = c.attributes<TransposeConvAttributes>().quantized_bias_type;
  return rule;
}

}  // namespace

kernels::reference::ConvShape transpose_conv_shape(const OpContext& c, const TransposeConvAttributes& a,
                                                   const Shape& input, const Shape& filter, const Shape& output) {
  check_conv_ranks(c, output, filter);
  c.require(output[0] == input[0] && output[3] == filter[0],
            "the output shape is {}, expected {} images with {} channels", output.to_string(), input[0], filter[0]);
  const Window rows = window(c, a.padding, output[1], filter[1], a.stride_h, 1);
  const Window columns = window(c, a.padding, output[2], filter[2], a.stride_w, 1);
  c.require(rows.output == input[1] && columns.output == input[2],
            "an output of shape {} comes from {}x{} pixels, but the input has shape {}", output.to_string(),
            rows.output, columns.output, input.to_string());
  return {.batch = input[0],
          .in_h = input[1],
          .in_w = input[2],
          .in_c = input[3],
          .out_h = output[1],
          .out_w = output[2],
          .out_c = filter[0],
          .filter_h = filter[1],
          .filter_w = filter[2],
          .stride_h = a.stride_h,
          .stride_w = a.stride_w,
          .pad_h = rows.pad_before,
          .pad_w = columns.pad_before,
          .step_o = filter[1] * filter[2] * filter[3],
          .step_y = filter[2] * filter[3],
          .step_x = filter[3],
          .step_i = 1};
}

namespace {

void infer_transpose_conv(InferContext& c) {
  const Shape& input = c.input(kInput).shape;
  const Shape& filter = c.input(kFilter).shape;
  check_conv_ranks(c, input, filter);
  c.require(input[3] == filter[3], "the input has {} channels, the filter expects {}", input[3], filter[3]);
  check_contraction(c, transpose_conv_rule(c));
  activation_range(c, c.attributes<TransposeConvAttributes>().activation);
  c.require_input_type(kOutputShape, {DType::kInt32});
  c.require(c.input(kOutputShape).shape == Shape{4}, "the output shape operand has shape {}, expected [4]",
            c.input(kOutputShape).shape.to_string());
  if (!c.known(kOutputShape)) return c.defer();
  Shape output;
  for (const int32_t size : c.input(kOutputShape).values<int32_t>()) {
    c.require(size >= 0, "the output shape has a negative size {}", size);
    output.push_back(size);
  }
  transpose_conv_shape(c, c.attributes<TransposeConvAttributes>(), input, filter, output);
  c.set_output_shape(0, output);
}

/// One packed matrix [O, C] per tap of the filter.
struct TapLayout {
  int64_t taps = 0, out_c = 0, in_c = 0;
  int64_t tap_bytes_f32() const { return align_up(kernels::packed_bytes_f32(out_c, in_c)); }
  int64_t tap_bytes_i8() const { return align_up(kernels::packed_bytes_i8(out_c, in_c)); }
  int64_t bytes_f32() const { return taps * tap_bytes_f32(); }
  int64_t bytes_i8() const { return taps * tap_bytes_i8(); }
  template <typename Source>
  void pack(const Source& source, std::byte* target) const {
    const int64_t bytes = kPacksFloats<Source> ? tap_bytes_f32() : tap_bytes_i8();
    for_items(taps, static_cast<double>(out_c) * static_cast<double>(in_c) + 64,
              [&](int64_t i) { pack_matrix(source + i * in_c, taps * in_c, out_c, in_c, target + i * bytes); });
  }
};

/// Row by row of the output: every tap that reaches it is a product of an input row with that tap's matrix, added to
/// the row's sums where the stride puts them.
class GemmTransposeConv final : public Kernel {
 public:
  GemmTransposeConv(PrepareContext& c, const Contraction& contraction, const ConvShape& shape)
      : GemmTransposeConv(c, contraction, shape, BlockLayout(), BlockLayout()) {}

  void pack(std::byte* packed) override { weights_.pack(packed); }

  void run(RunContext& c) override {
    if (c.output(0).elements() == 0) return;
    weights_.update(c);
    const Contraction& f = weights_.contraction();
    if (f.arithmetic == Arithmetic::kFloat) {
      run_rows(c, kernels::reference::FinishFloat{weights_.float_bias(c), f.lo, f.hi}, c.output(0).mutable_as<float>());
    } else if (f.arithmetic == Arithmetic::kHybrid) {
      images_.quantize(c, activations(c).as<float>());
      run_rows(
          c,
          kernels::reference::FinishHybrid{images_.scales(c), weights_.scales(c), weights_.float_bias(c), f.lo, f.hi},
          c.output(0).mutable_as<float>());
    } else if (f.activation_type == DType::kInt8) {
      run_rows(c, quantized<int8_t>(c), c.output(0).mutable_as<int8_t>());
    } else {
      run_rows(c, quantized<uint8_t>(c), c.output(0).mutable_as<uint8_t>());
    }
  }

 private:
  GemmTransposeConv(PrepareContext& c, const Contraction& contraction, const ConvShape& shape, BlockLayout packed,
                    BlockLayout scratch)
      : s_(shape),
        weights_(contraction, {shape.filter_h * shape.filter_w, shape.out_c, shape.in_c}, packed, scratch),
        slots_(c.threads()) {
    if (contraction.arithmetic == Arithmetic::kHybrid) {
      images_ = QuantizedRows(s_.batch, s_.in_h * s_.in_w * s_.in_c, contraction.row_rule, scratch);
    }
    BlockLayout slot;
    sums_at_ = slot.take(s_.out_w * s_.out_c * 4);
    products_at_ = slot.take(s_.in_w * s_.out_c * 4);
    const bool real = contraction.arithmetic == Arithmetic::kFloat;
    workspace_at_ = slot.take(real ? 0 : kernels::gemm_i8_workspace_bytes(s_.in_w, s_.in_c));
    slot_bytes_ = slot.size();
    slots_at_ = scratch.take(slots_ * slot_bytes_);
    weights_.request(c, "transpose_conv", packed, scratch);
  }

  template <typename Out>
  kernels::reference::FinishQuantized<Out> quantized(const RunContext& c) const {
    const Contraction& f = weights_.contraction();
    return {weights_.int_bias(c), weights_.scales(c), f.output_zero, f.level_lo, f.level_hi};
  }

  const TensorView& activations(const RunContext& c) const { return c.input(weights_.contraction().rule.activations); }

  template <typename Finish, typename Out>
  void run_rows(RunContext& c, const Finish& finish, Out* output) const {
    const int64_t rows = s_.batch * s_.out_h;
    for_slots(c.pool(), slots_, rows, row_cost(), [&](int64_t slot, int64_t begin, int64_t end) {
      std::byte* scratch = c.scratch() + slots_at_ + slot * slot_bytes_;
      auto* sums = reinterpret_cast<typename Finish::Acc*>(scratch + sums_at_);
      for (int64_t row = begin; row < end; ++row) {
        sum_row(c, row, sums, scratch);
        Out* out = output + row * s_.out_w * s_.out_c;
        for_items(s_.out_w, 2 * static_cast<double>(s_.out_c), [&](int64_t x) {
          for (int64_t o = 0; o < s_.out_c; ++o) {
            out[x * s_.out_c + o] = finish(sums[x * s_.out_c + o], row / s_.out_h, o);
          }
        });
      }
    });
  }

  /// Of one tap on one row of the output, and of all of them.
  double tap_cost() const {
    return static_cast<double>(s_.in_w * s_.out_c) * (static_cast<double>(s_.in_c) / 16 + 1) + 64;
  }
  double row_cost() const { return tap_cost() * static_cast<double>(s_.filter_h * s_.filter_w); }

  /// All products that fall on one row of the output.
  template <typename Acc>
  void sum_row(const RunContext& c, int64_t row, Acc* sums, std::byte* scratch) const {
    fill_bytes(reinterpret_cast<std::byte*>(sums), std::byte{0}, s_.out_w * s_.out_c * int64_t{sizeof(Acc)});
    const int64_t image = row / s_.out_h;
    for_items(s_.filter_h * s_.filter_w, tap_cost(), [&](int64_t tap) {
      const int64_t up_y = row % s_.out_h + s_.pad_h - tap / s_.filter_w;
      if (up_y < 0 || up_y % s_.stride_h != 0 || up_y / s_.stride_h >= s_.in_h) return;
      add_tap(c, image, image * s_.in_h + up_y / s_.stride_h, tap, sums, scratch);
    });
  }

  /// The products of one tap with a row of the input.
  template <typename Acc>
  void add_tap(const RunContext& c, int64_t image, int64_t in_row, int64_t tap, Acc* sums, std::byte* scratch) const {
    const int64_t x = tap % s_.filter_w;
    // Input pixels whose output column in_x * stride - pad + x exists.
    const int64_t first = std::max<int64_t>(0, (s_.pad_w - x + s_.stride_w - 1) / s_.stride_w);
    const int64_t last = std::min(s_.in_w - 1, (s_.out_w - 1 + s_.pad_w - x) / s_.stride_w);
    if (s_.out_w - 1 + s_.pad_w < x || first > last) return;
    auto* products = reinterpret_cast<Acc*>(scratch + products_at_);
    multiply_tap(c, image, in_row * s_.in_w + first, last - first + 1, tap, products, scratch + workspace_at_);
    Acc* target = sums + (first * s_.stride_w - s_.pad_w + x) * s_.out_c;
    for_items(last - first + 1, static_cast<double>(s_.out_c), [&](int64_t i) {
      Acc* to = target + i * s_.stride_w * s_.out_c;
      for (int64_t o = 0; o < s_.out_c; ++o) to[o] = add(to[o], products[i * s_.out_c + o]);
    });
  }

  static float add(float a, float b) { return a + b; }
  static int32_t add(int32_t a, int32_t b) { return kernels::reference::wrapping_add(a, b); }

  void multiply_tap(const RunContext& c, int64_t /*image*/, int64_t pixel, int64_t count, int64_t tap, float* products,
                    std::byte* /*workspace*/) const {
    const kernels::GemmF32 g{.a = activations(c).as<float>() + pixel * s_.in_c,
                             .lda = s_.in_c,
                             .m = count,
                             .b = weights_.get(c) + tap * weights_.layout().tap_bytes_f32(),
                             .n = s_.out_c,
                             .k = s_.in_c,
                             .c = products,
                             .ldc = s_.out_c};
    multiply(g, {0, count}, {0, s_.out_c});
  }

  void multiply_tap(const RunContext& c, int64_t image, int64_t pixel, int64_t count, int64_t tap, int32_t* products,
                    std::byte* workspace) const {
    const Contraction& f = weights_.contraction();
    kernels::GemmI8 g{.a = activations(c).data + pixel * s_.in_c,
                      .a_unsigned = f.activation_type == DType::kUInt8,
                      .lda = s_.in_c,
                      .m = count,
                      .a_zero_point = f.input_zero,
                      .b = weights_.get(c) + tap * weights_.layout().tap_bytes_i8(),
                      .b_zero_point = weights_.zero_point(),
                      .n = s_.out_c,
                      .k = s_.in_c};
    if (f.arithmetic == Arithmetic::kHybrid) {
      g.a = images_.values(c) + pixel * s_.in_c;
      g.a_zero_point = images_.zeros(c)[image];
    }
    multiply(g, kernels::AccumulatorOutput{products, s_.out_c}, {0, count}, {0, s_.out_c}, workspace);
  }

  ConvShape s_;
  PackedWeights<TapLayout> weights_;
  QuantizedRows images_;  // dynamic range
  int64_t slots_;         // parts that run at the same time, each with scratch of its own
  int64_t slots_at_ = 0, slot_bytes_ = 0;
  int64_t sums_at_ = 0, products_at_ = 0, workspace_at_ = 0;  // inside a slot
};

std::unique_ptr<Kernel> prepare_transpose_conv(PrepareContext& c) {
  const auto& a = c.attributes<TransposeConvAttributes>();
  const ConvShape shape = transpose_conv_shape(c, a, c.input(kInput).shape, c.input(kFilter).shape, c.output(0).shape);
  return make_transpose_conv_kernel(c, make_contraction(c, transpose_conv_rule(c), a.activation), shape);
}

}  // namespace

std::unique_ptr<Kernel> make_transpose_conv_kernel(PrepareContext& c, const Contraction& contraction,
                                                   const kernels::reference::ConvShape& shape) {
  if (packable(contraction)) return std::make_unique<GemmTransposeConv>(c, contraction, shape);
  return std::make_unique<ReferenceContraction<TransposeConvLoop>>(c, contraction, TransposeConvLoop{shape});
}

void register_transpose_conv(Registry& registry) {
  registry.add({.id = op::kTransposeConv,
                .max_version = 5,
                .min_inputs = 3,
                .max_inputs = 4,
                .required_inputs = 3,
                .options = builtin_options(49),
                .make_attributes = make_attributes<TransposeConvAttributes>,
                .infer = infer_transpose_conv,
                .prepare = prepare_transpose_conv,
                .contraction = kTransposeConvOperands,
                .fuses = kFusesRelus,
                .quantize = weights_rule({.int8 = 2, .int16 = 3, .hybrid = 2}),
                .types = "f32 f16-weights i8 u8 i16x8 i4-weights hybrid",
                .fast = "f32 f16-weights i8 u8 i4-weights hybrid"});
}

}  // namespace leadline::ops
