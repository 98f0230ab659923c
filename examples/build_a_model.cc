// SPDX-License-Identifier: Apache-2.0
// Builds a small image classifier with pseudo-random weights, and writes it to a file: the model that the demo and the
// other examples run. usage: build_a_model OUT.tflite
#include <leadline/leadline.h>

#include <cmath>
#include <cstdint>
#include <iostream>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {

using leadline::Shape;
using Attributes = std::map<std::string, leadline::AttributeValue>;

leadline::TensorInfo info(const std::string& name, leadline::DType dtype, const Shape& shape) {
  leadline::TensorInfo result;
  result.name = name;
  result.dtype = dtype;
  result.shape = shape;
  return result;
}

/// Adds layers to a model. A layer takes the number of a tensor and returns that of its result.
class Classifier {
 public:
  static constexpr int64_t kRelu6 = 3;  // of ActivationFunctionType in the format
  static constexpr int64_t kSide = 64, kChannels = 16, kClasses = 10;

  std::vector<std::byte> build() {
    const int image = tensor("image", {1, kSide, kSide, 3});
    const int64_t side = kSide / 2;
    int x = convolution("stem", image, {3, 3, 3}, {1, side, side, kChannels}, 2);
    x = depthwise("block1/depthwise", x, {1, side, side, kChannels});
    x = convolution("block1/project", x, {1, 1, kChannels}, {1, side, side, 2 * kChannels}, 1);
    const int shortcut = x;
    x = depthwise("block2/depthwise", x, {1, side, side, 2 * kChannels});
    x = convolution("block2/project", x, {1, 1, 2 * kChannels}, {1, side, side, 2 * kChannels}, 1);
    x = node("ADD", "block2/add", {x, shortcut}, {1, side, side, 2 * kChannels});
    const std::vector<int32_t> axes{1, 2};
    const int pooled_axes =
        builder_.add_constant(0, info("pool/axes", leadline::DType::kInt32, {2}), std::as_bytes(std::span(axes)));
    x = node("MEAN", "pool", {x, pooled_axes}, {1, 2 * kChannels});
    const int kernel = weights("classes/kernel", {kClasses, 2 * kChannels}, 2 * kChannels);
    x = node("FULLY_CONNECTED", "classes", {x, kernel, weights("classes/bias", {kClasses}, 64)}, {1, kClasses});
    x = node("SOFTMAX", "probabilities", {x}, {1, kClasses}, {{"beta", 1.0}});
    builder_.set_inputs(0, {image});
    builder_.set_outputs(0, {x});
    return builder_.to_tflite();
  }

 private:
  int tensor(const std::string& name, const Shape& shape) {
    return builder_.add_tensor(0, info(name, leadline::DType::kFloat32, shape));
  }

  /// Numbers in [-1, 1), scaled for a layer with `fan_in` inputs; the same on every machine.
  int weights(const std::string& name, const Shape& shape, int64_t fan_in) {
    const float scale = std::sqrt(2.0F / static_cast<float>(fan_in));
    std::vector<float> values(static_cast<size_t>(shape.elements()));
    for (float& value : values) {
      state_ = state_ * 1664525U + 1013904223U;  // the generator of Numerical Recipes
      value = scale * (static_cast<float>(state_ >> 8) / static_cast<float>(1U << 23) - 1.0F);
    }
    return builder_.add_constant(0, info(name, leadline::DType::kFloat32, shape), std::as_bytes(std::span(values)));
  }

  int node(const std::string& op, const std::string& name, std::vector<int> inputs, const Shape& shape,
           const Attributes& attributes = {}) {
    const int result = tensor(name, shape);
    builder_.add_node(0, {.op = op, .inputs = std::move(inputs), .outputs = {result}, .attributes = attributes});
    return result;
  }

  /// `window` is height, width and channels of what one filter sees.
  int convolution(const std::string& name, int x, const Shape& window, const Shape& shape, int64_t stride) {
    const int64_t filters = shape[3];
    const int kernel =
        weights(name + "/kernel", {filters, window[0], window[1], window[2]}, window[0] * window[1] * window[2]);
    const int bias = weights(name + "/bias", {filters}, 64);
    return node("CONV_2D", name, {x, kernel, bias}, shape,
                {{"stride_w", stride}, {"stride_h", stride}, {"fused_activation_function", kRelu6}});
  }

  int depthwise(const std::string& name, int x, const Shape& shape) {
    const int kernel = weights(name + "/kernel", {1, 3, 3, shape[3]}, 9);
    const int bias = weights(name + "/bias", {shape[3]}, 64);
    return node("DEPTHWISE_CONV_2D", name, {x, kernel, bias}, shape,
                {{"stride_w", int64_t{1}},
                 {"stride_h", int64_t{1}},
                 {"depth_multiplier", int64_t{1}},
                 {"fused_activation_function", kRelu6}});
  }

  leadline::ModelBuilder builder_;
  uint32_t state_ = 12345;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: build_a_model OUT.tflite\n";
    return 2;
  }
  try {
    leadline::Model::from_bytes(Classifier().build()).save(argv[1]);
    return 0;
  } catch (const leadline::Error& error) {
    std::cerr << "error: " << error.what() << "\n";
    return 1;
  }
}
