// SPDX-License-Identifier: Apache-2.0
#include "op_cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "leadline/model_builder.h"
#include "leadline/types.h"

namespace leadline::bench {
namespace {

using Attributes = std::map<std::string, AttributeValue>;

enum class Kind { kFloat, kInt8, kDynamic };  // kDynamic: float tensors, int8 weights

const char* kind_name(Kind kind) { return kind == Kind::kFloat ? "f32" : kind == Kind::kInt8 ? "int8" : "dynamic"; }

/// One node in the making.
class OneOp {
 public:
  OneOp(std::string name, Kind kind) : kind_(kind) { case_.name = fmt::format("{}/{}", name, kind_name(kind)); }

  OneOp& input(const Shape& shape, float scale = 0.02F) {
    inputs_.push_back(builder_.add_tensor(0, describe("x", shape, activation_type(), scale, -3)));
    given_.push_back(inputs_.back());
    return *this;
  }
  /// A filter with `channels` scales along `dimension`, and its bias.
  OneOp& weights(const Shape& shape, int64_t channels, int dimension) {
    if (kind_ == Kind::kFloat) {
      add_constant<float>("w", shape, DType::kFloat32, 1.0F / 128);
      add_constant<float>("b", {channels}, DType::kFloat32, 1.0F / 128);
      return *this;
    }
    TensorInfo info = describe("w", shape, DType::kInt8, 0.0F, 0);
    info.scales.assign(static_cast<size_t>(channels), 0.003F);
    info.zero_points.assign(static_cast<size_t>(channels), 0);
    info.quantized_dimension = dimension;
    add_values<int8_t>(info, 1);
    if (kind_ == Kind::kDynamic) {
      add_constant<float>("b", {channels}, DType::kFloat32, 1.0F / 128);
      return *this;
    }
    TensorInfo bias = describe("b", {channels}, DType::kInt32, 0.0F, 0);
    bias.scales.assign(static_cast<size_t>(channels), 0.02F * 0.003F);
    bias.zero_points.assign(static_cast<size_t>(channels), 0);
    add_values<int32_t>(bias, 1);
    return *this;
  }
  OneOp& integers(const std::vector<int32_t>& values) {
    const Shape shape{static_cast<int64_t>(values.size())};
    inputs_.push_back(
        builder_.add_constant(0, describe("i", shape, DType::kInt32, 0.0F, 0), std::as_bytes(std::span(values))));
    return *this;
  }
  OneOp& macs(int64_t count) {
    case_.macs = count;
    case_.integer = kind_ != Kind::kFloat;
    return *this;
  }
  OneOp& counted() {
    case_.counted = true;
    return *this;
  }
  OpCase make(const std::string& op, const Shape& output, Attributes attributes = {}, float scale = 0.05F,
              int64_t zero_point = 5) {
    const int y = builder_.add_tensor(0, describe("y", output, activation_type(), scale, zero_point));
    return finish(op, y, std::move(attributes));
  }
  /// With a result of another type than the input's.
  OpCase make_as(const std::string& op, const Shape& output, DType type) {
    return finish(op, builder_.add_tensor(0, describe("y", output, type, 0.05F, 5)), {});
  }

 private:
  DType activation_type() const { return kind_ == Kind::kInt8 ? DType::kInt8 : DType::kFloat32; }

  TensorInfo describe(const char* name, const Shape& shape, DType dtype, float scale, int64_t zero_point) {
    TensorInfo info;
    info.name = fmt::format("{}{}", name, inputs_.size());
    info.dtype = dtype;
    info.shape = shape;
    if (dtype == DType::kInt8 && scale > 0) {
      info.scales = {scale};
      info.zero_points = {zero_point};
    }
    case_.bytes += shape.elements() * (dtype == DType::kInt8 ? 1 : 4);
    return info;
  }
  template <typename T>
  void add_constant(const char* name, const Shape& shape, DType dtype, float step) {
    add_values<T>(describe(name, shape, dtype, 0.0F, 0), step);
  }
  /// Small numbers of both signs, times `step`.
  template <typename T>
  void add_values(const TensorInfo& info, float step) {
    std::vector<T> values(static_cast<size_t>(info.shape.elements()));
    uint32_t state = 12345;
    for (T& value : values) {
      state = state * 1664525U + 1013904223U;  // the generator of Numerical Recipes
      value = static_cast<T>(static_cast<float>(static_cast<int32_t>(state >> 24) - 128) * step);
    }
    inputs_.push_back(builder_.add_constant(0, info, std::as_bytes(std::span(values))));
  }
  OpCase finish(const std::string& op, int y, Attributes attributes) {
    builder_.add_node(0, {.op = op, .inputs = inputs_, .outputs = {y}, .attributes = std::move(attributes)});
    builder_.set_inputs(0, given_);
    builder_.set_outputs(0, {y});
    case_.model = builder_.to_tflite();
    return std::move(case_);
  }

  Kind kind_;
  OpCase case_;
  ModelBuilder builder_;
  std::vector<int> inputs_;
  std::vector<int> given_;
};

// Numbers of the format.
constexpr int64_t kSame = 0;
constexpr int64_t kRelu6 = 3;

struct ConvShape {
  int64_t side, channels, filters, size, stride;
  bool counted;
};

void add_convolutions(std::vector<OpCase>& cases) {
  // First layers and typical ones of MobileNet, ResNet and EfficientNet.
  for (const auto& [side, channels, filters, size, stride, counted] : {ConvShape{224, 3, 32, 3, 2, true},
                                                                       {112, 32, 64, 1, 1, false},
                                                                       {56, 64, 64, 3, 1, false},
                                                                       {28, 512, 512, 1, 1, false},
                                                                       {14, 256, 256, 3, 1, false},
                                                                       {7, 960, 320, 1, 1, true},
                                                                       {7, 512, 512, 3, 1, false}}) {
    for (const Kind kind : {Kind::kFloat, Kind::kInt8, Kind::kDynamic}) {
      const int64_t out = (side + stride - 1) / stride;
      OneOp op(fmt::format("conv/{}x{}s{}_{}x{}x{}_{}", size, size, stride, side, side, channels, filters), kind);
      op.input({1, side, side, channels}).weights({filters, size, size, channels}, filters, 0);
      op.macs(out * out * filters * size * size * channels);
      if (counted) op.counted();
      cases.push_back(op.make("CONV_2D", {1, out, out, filters},
                              {{"padding", kSame},
                               {"stride_w", stride},
                               {"stride_h", stride},
                               {"fused_activation_function", kind == Kind::kDynamic ? int64_t{0} : kRelu6}}));
    }
  }
  for (const auto& [side, channels, filters, size, stride, counted] : {ConvShape{112, 32, 0, 3, 1, false},
                                                                       {112, 96, 0, 3, 2, false},
                                                                       {28, 192, 0, 3, 1, true},
                                                                       {14, 512, 0, 3, 1, false},
                                                                       {14, 240, 0, 5, 1, true},
                                                                       {7, 960, 0, 3, 1, false}}) {
    for (const Kind kind : {Kind::kFloat, Kind::kInt8}) {
      const int64_t out = (side + stride - 1) / stride;
      OneOp op(fmt::format("depthwise/{}x{}s{}_{}x{}x{}", size, size, stride, side, side, channels), kind);
      op.input({1, side, side, channels}).weights({1, size, size, channels}, channels, 3);
      op.macs(out * out * channels * size * size);
      if (counted) op.counted();
      cases.push_back(op.make("DEPTHWISE_CONV_2D", {1, out, out, channels},
                              {{"padding", kSame},
                               {"stride_w", stride},
                               {"stride_h", stride},
                               {"depth_multiplier", int64_t{1}},
                               {"fused_activation_function", kRelu6}}));
    }
  }
}

void add_matrices(std::vector<OpCase>& cases) {
  struct Dense {
    int64_t rows, inputs, outputs;
  };
  for (const auto& [rows, inputs, outputs] : {Dense{1, 1280, 1000}, {1, 28800, 10}, {128, 256, 1024}}) {
    for (const Kind kind : {Kind::kFloat, Kind::kInt8, Kind::kDynamic}) {
      OneOp op(fmt::format("dense/{}x{}_{}", rows, inputs, outputs), kind);
      op.input({rows, inputs}).weights({outputs, inputs}, outputs, 0).macs(rows * inputs * outputs);
      if (rows == 1 && outputs == 1000) op.counted();
      cases.push_back(op.make("FULLY_CONNECTED", {rows, outputs}));
    }
  }
  for (const Kind kind : {Kind::kFloat, Kind::kInt8}) {
    OneOp op("batch_matmul/4x128x64x128", kind);
    op.input({4, 128, 64}).input({4, 64, 128}).macs(int64_t{4} * 128 * 64 * 128);
    cases.push_back(op.make("BATCH_MATMUL", {4, 128, 128}));
  }
}

void add_elementwise(std::vector<OpCase>& cases) {
  const Shape large{1, 56, 56, 64};
  for (const Kind kind : {Kind::kFloat, Kind::kInt8}) {
    const auto one = [&](const char* name) { return OneOp(std::move(OneOp(name, kind).input(large).counted())); };
    cases.push_back(one("elementwise/add").input(large, 0.03F).make("ADD", large));
    cases.push_back(OneOp("elementwise/mul", kind).input(large).input(large, 0.03F).make("MUL", large));
    cases.push_back(one("elementwise/mul_channels").input({1, 1, 1, 64}, 0.004F).make("MUL", large));
    cases.push_back(OneOp("lookup/tanh", kind).input(large).make("TANH", large, {}, 1.0F / 128, 0));
    cases.push_back(one("lookup/logistic").make("LOGISTIC", large, {}, 1.0F / 256, -128));
    cases.push_back(one("lookup/hard_swish").make("HARD_SWISH", large));
    cases.push_back(OneOp("lookup/gelu", kind).input(large).make("GELU", large));
    cases.push_back(OneOp("softmax/512x128", kind)
                        .input({4, 128, 128})
                        .counted()
                        .make("SOFTMAX", {4, 128, 128}, {{"beta", 1.0}}, 1.0F / 256, -128));
    cases.push_back(
        OneOp("softmax/1x1000", kind).input({1, 1000}).make("SOFTMAX", {1, 1000}, {{"beta", 1.0}}, 1.0F / 256, -128));
  }
  cases.push_back(OneOp("requantize/int8_to_int8", Kind::kInt8).input(large).counted().make("QUANTIZE", large));
  cases.push_back(
      OneOp("requantize/quantize", Kind::kFloat).input(large).counted().make_as("QUANTIZE", large, DType::kInt8));
  cases.push_back(
      OneOp("requantize/dequantize", Kind::kInt8).input(large).counted().make_as("DEQUANTIZE", large, DType::kFloat32));
}

void add_spatial(std::vector<OpCase>& cases) {
  for (const Kind kind : {Kind::kFloat, Kind::kInt8}) {
    const Attributes window = {{"padding", kSame},
                               {"stride_w", int64_t{2}},
                               {"stride_h", int64_t{2}},
                               {"filter_width", int64_t{3}},
                               {"filter_height", int64_t{3}}};
    // Pooling keeps the quantization of its input.
    const auto pool = [&](const char* name, const char* op) {
      return OneOp(name, kind).input({1, 56, 56, 64}).counted().make(op, {1, 28, 28, 64}, window, 0.02F, -3);
    };
    cases.push_back(pool("pooling/max_3x3s2_56x56x64", "MAX_POOL_2D"));
    cases.push_back(pool("pooling/average_3x3s2_56x56x64", "AVERAGE_POOL_2D"));
    cases.push_back(
        OneOp("pooling/mean_7x7x1280", kind).input({1, 7, 7, 1280}).integers({1, 2}).counted().make("MEAN", {1, 1280}));
    cases.push_back(OneOp("resize/bilinear_32x32x64", kind)
                        .input({1, 32, 32, 64})
                        .integers({64, 64})
                        .counted()
                        .make("RESIZE_BILINEAR", {1, 64, 64, 64}, {{"half_pixel_centers", true}}, 0.02F, -3));
    cases.push_back(OneOp("resize/nearest_32x32x64", kind)
                        .input({1, 32, 32, 64})
                        .integers({64, 64})
                        .make("RESIZE_NEAREST_NEIGHBOR", {1, 64, 64, 64}, {}, 0.02F, -3));
    cases.push_back(OneOp("movement/concat_28x28x128", kind)
                        .input({1, 28, 28, 128}, 0.05F)
                        .input({1, 28, 28, 128}, 0.05F)
                        .make("CONCATENATION", {1, 28, 28, 256}, {{"axis", int64_t{3}}}, 0.05F, -3));
    cases.push_back(OneOp("movement/transpose_128x4x64", kind)
                        .input({1, 128, 4, 64})
                        .integers({0, 2, 1, 3})
                        .make("TRANSPOSE", {1, 4, 128, 64}, {}, 0.02F, -3));
  }
}

}  // namespace

std::vector<OpCase> make_op_cases() {
  std::vector<OpCase> cases;
  add_convolutions(cases);
  add_matrices(cases);
  add_elementwise(cases);
  add_spatial(cases);
  return cases;
}

}  // namespace leadline::bench
