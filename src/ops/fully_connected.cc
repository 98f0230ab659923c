// SPDX-License-Identifier: Apache-2.0
// FULLY_CONNECTED: input of any shape read as rows [M,K], weights [N,K], optional bias [N].
#include "ops/fully_connected.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "kernels/elementwise/unary_f32.h"
#include "kernels/quant/fixed_point.h"
#include "kernels/reference/matmul.h"
#include "ops/common.h"
#include "ops/contraction.h"
#include "ops/families.h"
#include "ops/fully_connected_blockwise.h"
#include "ops/gemm_kernel.h"
#include "ops/half_activations.h"
#include "ops/quantization_rules.h"
#include "ops/wide_contraction.h"

namespace leadline::ops {
namespace {

using kernels::reference::MatmulShape;

struct FullyConnectedLoop {
  MatmulShape shape;
  int64_t images() const { return shape.m; }
  int64_t image_size() const { return shape.k; }
  template <typename In, typename Zero, typename Weight, typename Finish, typename Out>
  void operator()(ThreadPool& pool, const In* input, Zero input_zero, const Weight* weights, int32_t weight_zero,
                  const Finish& finish, Out* output) const {
    run_reference(kernels::reference::Matmul<In, Weight, Zero, Finish, Out>{shape, input, input_zero, weights,
                                                                            weight_zero, finish, output},
                  pool);
  }
};

constexpr ContractionOperands kDenseOperands = {.kind = ContractionKind::kDense, .rank = 2, .input_axis = 1};

ContractionRule fully_connected_rule(const OpContext& c) {
  ContractionRule rule(c, kDenseOperands);
  rule.bias_attribute = c.attributes<FullyConnectedAttributes>().quantized_bias_type;
  rule.int16_weights = true;
  rule.int16_output = true;
  return rule;
}

/// The rows and columns of the product.
MatmulShape fully_connected_shape(const OpContext& c) {
  const Shape& input = c.input(0).shape;
  const Shape& weights = c.input(1).shape;
  c.require(weights.rank() == 2, "the weights have shape {}, expected [units, depth]", weights.to_string());
  const int64_t k = weights[1];
  int64_t rows = 0;
  if (k == 0 || c.attributes<FullyConnectedAttributes>().keep_num_dims) {
    c.require(input.rank() >= 1 && input[input.rank() - 1] == k,
              "the input has shape {}, the weights expect a last dimension of {}", input.to_string(), k);
    Shape outer = input;
    outer.set(input.rank() - 1, 1);
    rows = outer.elements();
  } else {
    c.require(input.elements() % k == 0, "the input has shape {}, expected a multiple of {} values", input.to_string(),
              k);
    rows = input.elements() / k;
  }
  return {.m = rows, .n = weights[0], .k = k, .a_row = k, .b_column = k, .c_row = weights[0]};
}

constexpr int64_t kBlockRows = 4;
constexpr int64_t kBlockColumns = 16;

bool is_shuffled(const OpContext& c) {
  return c.attributes<FullyConnectedAttributes>().weights_format == WeightsFormat::kShuffled4x16Int8;
}

void check_shuffled(const OpContext& c, const MatmulShape& s) {
  c.require_input_type(0, {DType::kUInt8});
  c.require_input_type(1, {DType::kUInt8});
  c.require_output_type(0, {DType::kInt16});
  c.require_output_type(1, {DType::kUInt8});
  c.require(c.has_input(2), "the bias is missing, which shuffled weights need");
  c.require_input_type(2, {DType::kInt32});
  c.require((s.m == 1 || s.m == 4) && s.n % kBlockRows == 0 && s.k > 0 && s.k % kBlockColumns == 0,
            "{} rows times weights [{}, {}]: shuffled weights need 1 or 4 rows and multiples of [4, 16]", s.m, s.n,
            s.k);
  const Shape& workspace = c.output(1).value->shape;
  c.require(workspace.checked_elements().value_or(0) >= s.m * s.k, "the workspace has shape {}, expected {} values",
            workspace.to_string(), s.m * s.k);
}

/// Dynamic range is the one arithmetic that TFLite fuses tanh with.
bool fuses_tanh(const OpContext& c, Arithmetic arithmetic) {
  return arithmetic == Arithmetic::kHybrid &&
         c.attributes<FullyConnectedAttributes>().activation == ir::Activation::kTanh;
}

/// Takes the tanh of what another kernel computes.
class TanhAfter final : public Kernel {
 public:
  explicit TanhAfter(std::unique_ptr<Kernel> kernel) : kernel_(std::move(kernel)) {}
  void pack(std::byte* packed) override { kernel_->pack(packed); }
  void run(RunContext& c) override {
    kernel_->run(c);
    auto* values = c.output(0).mutable_as<float>();
    for_pieces(c.output(0).elements(), 1,
               [values, tanh = kernels::unary_row_f32(kernels::UnaryF32::kTanh)](int64_t begin, int64_t end) {
                 tanh(values + begin, values + begin, end - begin, 0.0F, 0.0F);
               });
  }

 private:
  std::unique_ptr<Kernel> kernel_;
};

void infer_fully_connected(InferContext& c) {
  const auto& a = c.attributes<FullyConnectedAttributes>();
  c.require(c.output_count() == (is_shuffled(c) ? 2 : 1), "there are {} outputs, expected {}", c.output_count(),
            is_shuffled(c) ? 2 : 1);
  const MatmulShape s = fully_connected_shape(c);
  Arithmetic arithmetic = Arithmetic::kHybrid;
  if (has_block_weights(c)) {
    check_block_weights(c, s);
  } else {
    arithmetic = check_contraction(c, fully_connected_rule(c));
  }
  if (is_shuffled(c)) {
    check_shuffled(c, s);
    c.set_output_shape(1, c.output(1).value->shape);
  }
  if (!fuses_tanh(c, arithmetic)) activation_range(c, a.activation);
  if (!a.keep_num_dims) return c.set_output_shape(0, {s.m, s.n});
  Shape output = c.input(0).shape;
  output.set(output.rank() - 1, s.n);
  c.set_output_shape(0, output);
}

/// Whether LiteRT leaves dynamic range weights to XNNPACK: constants whose rows are whole bytes.
bool xnnpack_runs(const Contraction& f, int64_t k) {
  const int64_t per_byte = f.weight_type == DType::kInt4 ? 2 : f.weight_type == DType::kInt2 ? 4 : 1;
  return f.weight_type != DType::kUInt8 && f.all_fixed() && k % per_byte == 0;
}

/// Shuffled weights. The second output receives the input in the layout of the kernel for ARM: 16 columns of one row
/// after the other, less 128.
std::unique_ptr<Kernel> prepare_shuffled(const OpContext& c, const MatmulShape& s) {
  const Contraction f =
      make_contraction(c, fully_connected_rule(c), c.attributes<FullyConnectedAttributes>().activation);
  const kernels::Multiplier multiplier =
      kernels::quantize_multiplier(double{f.input_scale * f.weight_quantization->scale0()} / double{f.output_scale});
  return make_kernel([=](RunContext& run) {
    const auto* input = run.input(0).as<uint8_t>();
    auto* shuffled = run.output(1).mutable_as<int8_t>();
    fill_bytes(run.output(1).data, std::byte{0}, run.output(1).bytes);
    for_pieces(s.k / kBlockColumns * s.m, kBlockColumns, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const uint8_t* from = input + i % s.m * s.k + i / s.m * kBlockColumns;
        for (int64_t j = 0; j < kBlockColumns; ++j) {
          shuffled[i * kBlockColumns + j] = static_cast<int8_t>(from[j] - 128);
        }
      }
    });
    const auto* bias = run.input(2).as<int32_t>();
    auto* output = run.output(0).mutable_as<int16_t>();
    run.pool().for_pieces(s.n * s.m, static_cast<double>(s.k), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t unit = i / s.m;
        const int64_t row = i % s.m;
        const int8_t* weights =
            run.input(1).as<int8_t>() + unit / kBlockRows * kBlockRows * s.k + unit % kBlockRows * kBlockColumns;
        int64_t sum = bias[unit];
        for_pieces(s.k / kBlockColumns, kBlockColumns, [&](int64_t first, int64_t last) {
          for (int64_t block = first; block < last; ++block) {
            const int8_t* left = shuffled + (block * s.m + row) * kBlockColumns;
            const int8_t* right = weights + block * kBlockRows * kBlockColumns;
            for (int64_t j = 0; j < kBlockColumns; ++j) sum += left[j] * right[j];
          }
        });
        const int32_t level = kernels::multiply(kernels::saturate_i32(sum), multiplier);
        output[row * s.n + unit] = static_cast<int16_t>(std::clamp(level, f.level_lo, f.level_hi));
      }
    });
  });
}

std::unique_ptr<Kernel> prepare_fully_connected(PrepareContext& c) {
  const FullyConnectedLoop loop{fully_connected_shape(c)};
  if (is_shuffled(c)) return prepare_shuffled(c, loop.shape);
  if (loop.shape.k == 0) {
    // TFLite's answer to a sum over nothing: zero bytes, without the bias.
    return make_kernel([](RunContext& run) {
      if (run.output(0).bytes > 0) fill_bytes(run.output(0).data, std::byte{0}, run.output(0).bytes);
    });
  }
  const auto activation = c.attributes<FullyConnectedAttributes>().activation;
  const bool blocks = has_block_weights(c);
  const bool tanh = fuses_tanh(c, blocks ? Arithmetic::kHybrid : check_contraction(c, fully_connected_rule(c)));
  const auto finished = [tanh](std::unique_ptr<Kernel> kernel) -> std::unique_ptr<Kernel> {
    return tanh ? std::make_unique<TanhAfter>(std::move(kernel)) : std::move(kernel);
  };
  if (blocks) return finished(make_block_kernel(c, loop.shape, tanh ? ir::Activation::kNone : activation));
  Contraction contraction = make_contraction(c, fully_connected_rule(c), tanh ? ir::Activation::kNone : activation);
  if (contraction.arithmetic == Arithmetic::kHybrid && (tanh || !xnnpack_runs(contraction, loop.shape.k))) {
    contraction.row_rule = c.attributes<FullyConnectedAttributes>().asymmetric_quantize_inputs
                               ? kernels::RowRule::kTfliteAsymmetric
                               : kernels::RowRule::kTfliteSymmetric;
  }
  if (packable(contraction)) {
    return finished(make_gemm_kernel(c, contraction, loop.shape.m, loop.shape.n, loop.shape.k));
  }
  const bool wide_bias = (contraction.has_bias && contraction.bias_type == DType::kInt64) ||
                         contraction.rule.bias_attribute == DType::kInt64;
  using kernels::reference::WideRounding;
  if (contraction.weight_type == DType::kInt16) {
    contraction.wide_rounding = WideRounding::kShortFactor;
  } else {
    contraction.wide_rounding = wide_bias ? WideRounding::kReal : WideRounding::kNarrowSum;
  }
  const MatmulShape& s = loop.shape;
  if (has_wide_kernel(contraction, s.k)) {
    return make_wide_conv(c, contraction, {.in_w = s.m, .in_c = s.k, .out_w = s.m, .out_c = s.n, .filter_c = s.k});
  }
  if (has_int16_product(contraction, s.k)) return make_int16_product(c, contraction, s.m, s.n, s.k);
  return std::make_unique<ReferenceContraction<FullyConnectedLoop>>(c, contraction, loop);
}

}  // namespace

void register_fully_connected(Registry& registry) {
  registry.add({.id = op::kFullyConnected,
                .max_version = 14,
                .min_inputs = 2,
                .max_inputs = 3,
                .required_inputs = 2,
                .max_outputs = 2,
                .options = builtin_options(8),
                .make_attributes = make_attributes<FullyConnectedAttributes>,
                .infer = AlsoHalf<infer_fully_connected, prepare_fully_connected>::infer,
                .prepare = AlsoHalf<infer_fully_connected, prepare_fully_connected>::prepare,
                .half_inputs = input_set({1, 2}),
                .contraction = kDenseOperands,
                .fuses = kFusesRelus,
                .quantize = weights_rule({.int8 = 4, .int16 = 7, .hybrid = 9, .hybrid_per_channel = 12}),
                .types = "f32 f16 f16-weights i8 u8 i16x8 i16 i4-weights i4-block-weights i2-weights hybrid",
                .fast = "f32 f16-weights i8 u8 i16x8 i16 i4-weights i2-weights hybrid"});
}

}  // namespace leadline::ops
