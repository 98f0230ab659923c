// SPDX-License-Identifier: Apache-2.0
// Writes a small image classifier with fixed pseudo-random weights: what the examples, the demo and the installation
// test run. usage: sample_model OUT.tflite [SIDE] [CHANNELS]
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "model/writer.h"
#include "ops/conv.h"
#include "ops/graph_builder.h"
#include "ops/softmax.h"

namespace {

using leadline::DType;
using leadline::Shape;
using leadline::ops::GraphBuilder;

/// Numbers in [-1, 1) scaled for a layer with `fan_in` inputs; the same on every machine.
std::vector<float> weights(int64_t count, int64_t fan_in) {
  static uint32_t state = 12345;
  const float scale = std::sqrt(2.0F / static_cast<float>(fan_in));
  std::vector<float> result(static_cast<size_t>(count));
  for (float& w : result) {
    state = state * 1664525U + 1013904223U;  // the generator of Numerical Recipes
    w = scale * (static_cast<float>(state >> 8) / static_cast<float>(1U << 23) - 1.0F);
  }
  return result;
}

int conv(GraphBuilder& b, int x, int64_t filters, int64_t size, int32_t stride, const std::string& name) {
  const int64_t channels = b.value(x).shape[3];
  const Shape shape{filters, size, size, channels};
  const int w = b.constant(name + "/kernel", DType::kFloat32, shape, weights(shape.elements(), size * size * channels));
  const int bias = b.constant(name + "/bias", DType::kFloat32, {filters}, weights(filters, 64));
  auto attributes = std::make_shared<leadline::ops::Conv2DAttributes>();
  attributes->stride_w = attributes->stride_h = stride;
  attributes->activation = leadline::ir::Activation::kRelu6;
  return b.node("CONV_2D", {x, w, bias}, name, attributes, DType::kFloat32);
}

int depthwise(GraphBuilder& b, int x, const std::string& name) {
  const int64_t channels = b.value(x).shape[3];
  const int w = b.constant(name + "/kernel", DType::kFloat32, {1, 3, 3, channels}, weights(9 * channels, 9));
  const int bias = b.constant(name + "/bias", DType::kFloat32, {channels}, weights(channels, 64));
  auto attributes = std::make_shared<leadline::ops::DepthwiseConv2DAttributes>();
  attributes->stride_w = attributes->stride_h = attributes->depth_multiplier = 1;
  attributes->activation = leadline::ir::Activation::kRelu6;
  return b.node("DEPTHWISE_CONV_2D", {x, w, bias}, name, attributes, DType::kFloat32);
}

std::shared_ptr<const leadline::ir::Graph> build(int64_t side, int64_t channels) {
  GraphBuilder b;
  const int image = b.input("image", DType::kFloat32, {1, side, side, 3});
  int x = conv(b, image, channels, 3, 2, "stem");
  x = depthwise(b, x, "block1/depthwise");
  x = conv(b, x, 2 * channels, 1, 1, "block1/project");
  const int shortcut = x;
  x = depthwise(b, x, "block2/depthwise");
  x = conv(b, x, 2 * channels, 1, 1, "block2/project");
  x = b.node("ADD", {x, shortcut}, "block2/add");
  const int axes = b.constant("pool/axes", DType::kInt32, {2}, std::vector<int32_t>{1, 2});
  x = b.node("MEAN", {x, axes}, "pool");
  const int w = b.constant("classes/kernel", DType::kFloat32, {10, 2 * channels}, weights(20 * channels, 2 * channels));
  const int bias = b.constant("classes/bias", DType::kFloat32, {10}, weights(10, 64));
  x = b.node("FULLY_CONNECTED", {x, w, bias}, "classes");
  auto softmax = std::make_shared<leadline::ops::SoftmaxAttributes>();
  softmax->beta = 1.0F;
  return b.finish({b.node("SOFTMAX", {x}, "probabilities", softmax, DType::kFloat32)});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 4) {
    std::cerr << "usage: sample_model OUT.tflite [SIDE] [CHANNELS]\n";
    return 2;
  }
  try {
    const int64_t side = argc > 2 ? std::atoll(argv[2]) : 64;
    const int64_t channels = argc > 3 ? std::atoll(argv[3]) : 16;
    const std::vector<std::byte> bytes = leadline::model::write(*build(side, channels));
    std::ofstream file(argv[1], std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    if (!file.flush()) throw std::runtime_error(std::string("cannot write ") + argv[1]);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << "\n";
    return 1;
  }
}
