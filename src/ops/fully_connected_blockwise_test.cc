// SPDX-License-Identifier: Apache-2.0
#include "ops/fully_connected_blockwise.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "core/half.h"
#include "tests/cpp/sketch.h"

namespace leadline {
namespace {

using testing::run;
using testing::Sketch;
using testing::thrown_by;

constexpr DType kF32 = DType::kFloat32;
constexpr int kDepth = 8;

/// Two units of eight weights in blocks of four, scales 0.5 1 2 4; bias 100, -100.
Sketch block_model(const std::vector<int>& levels) {
  Sketch s;
  const int x = s.input("x", kF32, {1, kDepth});
  std::vector<uint16_t> halves;
  for (float scale : {0.5F, 1.0F, 2.0F, 4.0F}) halves.push_back(float_to_half(scale));
  const int scales = s.constant<uint16_t>("scales", DType::kFloat16, {2, 2}, halves);
  std::vector<std::byte> packed;
  for (size_t i = 0; i < levels.size(); i += 2) {
    packed.push_back(static_cast<std::byte>((levels[i] & 15) | ((levels[i + 1] & 15) << 4)));
  }
  const int w = s.constant_bytes("w", DType::kInt4, {2, kDepth}, packed);
  Quantization& q = s.subgraph().value(w).quantization;
  q.block_size = 4;
  q.block_scales = scales;
  const int bias = s.constant<float>("bias", kF32, {2}, {100, -100});
  s.outputs({s.compute("FULLY_CONNECTED", {x, w, bias}, "y", kF32, {1, 2})});
  return s;
}

const std::vector<int> kLevels = {1, -2, 3, 4, -8, 7, 0, 1, 2, 2, 2, 2, -1, -1, -1, 5};

TEST(BlockWeights, EveryBlockHasItsScale) {
  Interpreter interpreter(block_model(kLevels).load());
  // Values from 0 to 255 are exact as int8 with scale 1.
  const auto y = run<float>(interpreter, {255, 0, 10, 20, 30, 1, 2, 3});
  EXPECT_NEAR(y[0], 0.5F * (255 + 30 + 80) + (-240 + 7 + 3) + 100, 1e-3F);
  EXPECT_NEAR(y[1], 2.0F * (2 * 285) + 4.0F * (-33 + 15) - 100, 1e-3F);
  EXPECT_EQ(interpreter.plan().peak_bytes, interpreter.counted_peak_bytes());
}

TEST(BlockWeights, RefusesScalesThatDoNotFit) {
  const auto refused = [](const std::function<void(ir::Subgraph&)>& change) {
    Sketch s = block_model(kLevels);
    change(s.subgraph());
    EXPECT_TRUE(thrown_by([&] { Interpreter interpreter(s.load()); }).code.has_value());
  };
  refused([](ir::Subgraph& s) { s.values[2].quantization.block_size = 3; });
  refused([](ir::Subgraph& s) { s.values[2].quantization.block_size = 2; });
  refused([](ir::Subgraph& s) { s.values[2].quantization.block_size = INT32_MAX; });
  refused([](ir::Subgraph& s) { s.values[2].quantization.block_scales = 0; });
  refused([](ir::Subgraph& s) { s.values[2].quantization.block_scales = 3; });
  refused([](ir::Subgraph& s) { s.values[1].dtype = DType::kInt16; });
}

}  // namespace
}  // namespace leadline
