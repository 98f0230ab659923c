// SPDX-License-Identifier: Apache-2.0
// Work that is one piece for an op is interrupted too: a single row, a single window, weights that are packed, lists of
// sizes; and work of many pieces that are too small to ask in any.
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/cpp/silence.h"
#include "tests/cpp/sketch.h"

namespace leadline {
namespace {

using testing::AttributeValues;
using testing::expect_questions;
using testing::Silence;
using testing::Sketch;
using testing::thread_ms;

constexpr DType kF32 = DType::kFloat32;
constexpr DType kI8 = DType::kInt8;
constexpr DType kI16 = DType::kInt16;
constexpr DType kI32 = DType::kInt32;

constexpr int64_t kM = int64_t{1} << 20;

/// What was seen takes this long at most; then it is stopped.
constexpr double kEnoughMs = 150;

struct Case {
  std::string name;
  std::function<void(Sketch&)> make;
};

std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

void quantize(Sketch& s, int value, float scale, int64_t zero_point = 0) {
  Quantization& q = s.subgraph().value(value).quantization;
  q.scale = {scale};
  q.zero_point = {zero_point};
}

/// One input, one output of the same type; integers have these scales and zero points.
Case one(const std::string& name, const std::string& op, DType type, const Shape& in, const Shape& out,
         const AttributeValues& attributes = {}, float out_scale = 0.5F, int64_t out_zero = 0) {
  return {name, [=](Sketch& s) {
            const int x = s.input("x", type, in);
            const int y = s.compute(op, {x}, "y", type, out, attributes);
            if (type != kF32) {
              quantize(s, x, 0.5F);
              quantize(s, y, out_scale, out_zero);
            }
            s.outputs({y});
          }};
}

/// The window is the image.
Case pool(const std::string& name, const std::string& op, DType type, int64_t h, int64_t w, int64_t channels) {
  return one(name, op, type, {1, h, w, channels}, {1, 1, 1, channels},
             {{"padding", 1}, {"stride_w", 1}, {"stride_h", 1}, {"filter_width", w}, {"filter_height", h}});
}

/// Two inputs; integers have a scale of 0.5.
Case two(const std::string& name, const std::string& op, DType type, const Shape& a, DType b_type, const Shape& b,
         const Shape& out, const AttributeValues& attributes = {}) {
  return {name, [=](Sketch& s) {
            const int x = s.input("x", type, a);
            const int y = s.input("y", b_type, b);
            const int z = s.compute(op, {x, y}, "z", type, out, attributes);
            for (const int value : {x, y, z}) {
              if (s.subgraph().value(value).dtype != kF32) quantize(s, value, 0.5F);
            }
            s.outputs({z});
          }};
}

const AttributeValues kPlainConv = {
    {"padding", 1}, {"stride_w", 1}, {"stride_h", 1}, {"dilation_w_factor", 1}, {"dilation_h_factor", 1}};

std::vector<Case> cases() {
  return {
      pool("AveragePoolOneChannel", "AVERAGE_POOL_2D", kF32, 4096, 4096, 1),
      pool("AveragePoolOneRow", "AVERAGE_POOL_2D", kF32, 1, 16 * kM, 1),
      pool("AveragePoolVectors", "AVERAGE_POOL_2D", kF32, 1024, 1024, 16),
      pool("AveragePoolI8", "AVERAGE_POOL_2D", kI8, 4096, 4096, 2),
      pool("AveragePoolI16", "AVERAGE_POOL_2D", kI16, 1, 16 * kM, 1),
      pool("MaxPoolI8", "MAX_POOL_2D", kI8, 4096, 8192, 1),
      pool("L2Pool", "L2_POOL_2D", kF32, 4096, 4096, 1),
      one("MaxPoolRowOfWindows", "MAX_POOL_2D", kF32, {1, 64, 4096, 8}, {1, 1, 2049, 8},
          {{"padding", 1}, {"stride_w", 1}, {"stride_h", 1}, {"filter_width", 2048}, {"filter_height", 64}}),
      one("Softmax", "SOFTMAX", kF32, {1, 16 * kM}, {1, 16 * kM}, {{"beta", 1}}),
      one("SoftmaxI8", "SOFTMAX", kI8, {1, 64 * kM}, {1, 64 * kM}, {{"beta", 1}}, 1.0F / 256, -128),
      one("SoftmaxI16", "SOFTMAX", kI16, {1, 16 * kM}, {1, 16 * kM}, {{"beta", 1}}, 1.0F / 32768, 0),
      one("LogSoftmax", "LOG_SOFTMAX", kF32, {1, 16 * kM}, {1, 16 * kM}),
      one("LogSoftmaxI8", "LOG_SOFTMAX", kI8, {1, 16 * kM}, {1, 16 * kM}, {}, 16.0F / 256, 127),
      one("L2Normalization", "L2_NORMALIZATION", kF32, {1, 16 * kM}, {1, 16 * kM}),
      one("L2NormalizationI8", "L2_NORMALIZATION", kI8, {1, 16 * kM}, {1, 16 * kM}, {}, 1.0F / 128, 0),
      one("LocalResponse", "LOCAL_RESPONSE_NORMALIZATION", kF32, {1, 1, 1, 8 * kM}, {1, 1, 1, 8 * kM}, {{"radius", 3}}),
      two("ManySmallProducts", "BATCH_MATMUL", kF32, {kM / 2, 2, 3}, kF32, {kM / 2, 3, 2}, {kM / 2, 2, 2}),
      two("ManySmallProductsI8", "BATCH_MATMUL", kI8, {kM / 2, 2, 3}, kI8, {kM / 2, 3, 2}, {kM / 2, 2, 2}),
      two("DotProduct", "BATCH_MATMUL", kF32, {1, 24 * kM}, kF32, {24 * kM, 1}, {1, 1}),
      two("WeightsPackedInRun", "FULLY_CONNECTED", kI8, {1, 8 * kM}, kI8, {4, 8 * kM}, {1, 4}),
      two("FewUnitsOfManyRows", "FULLY_CONNECTED", kF32, {4 * kM, 3}, kF32, {4, 3}, {4 * kM, 4}),
      two("FilterPackedInRun", "CONV_2D", kF32, {1, 3, 3, kM / 4}, kF32, {4, 3, 3, kM / 4}, {1, 1, 1, 4}, kPlainConv),
      two("OneRowOfPixels", "CONV_2D", kI16, {1, 3, kM / 4, 16}, kI8, {16, 3, 3, 16}, {1, 1, kM / 4 - 2, 16},
          kPlainConv),
      two("OneLargeFilter", "CONV_2D", kI16, {1, 1, 1, 16 * kM}, kI8, {4, 1, 1, 16 * kM}, {1, 1, 1, 4}, kPlainConv),
      {"ManySmallImages",
       [](Sketch& s) {
         AttributeValues attributes = kPlainConv;
         attributes["depth_multiplier"] = 1;
         const int x = s.input("x", kF32, {kM / 4, 3, 3, 3});
         const int f = s.input("f", kI8, {1, 3, 3, 3});
         quantize(s, f, 0.5F);
         s.outputs({s.compute("DEPTHWISE_CONV_2D", {x, f}, "y", kF32, {kM / 4, 1, 1, 3}, attributes)});
       }},
      {"WideRowTransposed",
       [](Sketch& s) {
         const int shape = s.constant<int32_t>("shape", kI32, {4}, {1, 4, static_cast<int32_t>(kM), 4});
         const int f = s.input("f", kI8, {4, 4, 4, 4});
         const int x = s.input("x", kI8, {1, 2, kM / 2, 4});
         const int y =
             s.compute("TRANSPOSE_CONV", {shape, f, x}, "y", kI8, {1, 4, kM, 4}, {{"stride_w", 2}, {"stride_h", 2}});
         for (const int value : {f, x, y}) quantize(s, value, 0.5F);
         s.outputs({y});
       }},
      {"Rfft",
       [](Sketch& s) {
         const int x = s.input("x", kF32, {1, 1, kM});
         const int n = s.constant<int32_t>("n", kI32, {2}, {1, static_cast<int32_t>(kM)});
         s.outputs({s.compute("RFFT2D", {x, n}, "y", DType::kComplex64, {1, 1, kM / 2 + 1})});
       }},
      {"BroadcastArgs",
       [](Sketch& s) {
         const int x = s.input("x", kI32, {16 * kM});
         const int y = s.input("y", kI32, {1});
         s.outputs({s.compute("BROADCAST_ARGS", {x, y}, "z", kI32, {16 * kM})});
       }},
  };
}

class InterruptionInside : public ::testing::TestWithParam<Case> {};

TEST_P(InterruptionInside, PiecesAskAndCanBeStopped) {
  Sketch sketch;
  GetParam().make(sketch);
  const Model model = sketch.load();
  InterpreterOptions options;
  options.num_threads = 1;
  std::optional<Interpreter> interpreter;
  const Silence preparing = testing::measured_silence([&] {
    interpreter.emplace(model, options);
    Silence silence;
    {
      const WorkLimit limit(silence.check());
      interpreter->allocate();
    }
    silence.look();
    return silence;
  });
  expect_questions(GetParam().name + ": prepare", preparing);

  struct Enough {};
  const Silence running = testing::measured_silence([&] {
    Silence silence;
    try {
      interpreter->invoke([&, ask = silence.check()] {
        ask();
        if (thread_ms() - silence.begin > kEnoughMs) throw Enough{};
      });
    } catch (const Enough&) {
    }
    silence.look();
    return silence;
  });
  expect_questions(GetParam().name, running);
}

INSTANTIATE_TEST_SUITE_P(Ops, InterruptionInside, ::testing::ValuesIn(cases()),
                         [](const auto& tested) { return tested.param.name; });

TEST(InterruptionByLimits, TheSizeOfRepeatedStringsIsSummedWithQuestions) {
  Sketch s;
  const int text = s.input("text", DType::kString, {1});
  const int times = s.input("times", kI32, {1});
  s.outputs({s.compute("TILE", {text, times}, "y", DType::kString, {1})});
  Interpreter interpreter(s.load());
  testing::set<int32_t>(interpreter, text, {1, 12, 12});  // one string, from byte 12 to 12
  testing::set<int32_t>(interpreter, times, {400'000'000});
  struct Enough {};
  const Silence summing = testing::measured_silence([&] {
    Silence silence;
    EXPECT_THROW(interpreter.invoke([&, ask = silence.check()] {
      ask();
      if (thread_ms() - silence.begin > kEnoughMs) throw Enough{};
    }),
                 Enough);
    return silence;
  });
  expect_questions("TILE of strings", summing);
}

TEST(InterruptionByLimits, ListsOfSizesHaveAnEnd) {
  Sketch s;
  const int shape = s.input("shape", kI32, {2 * kM});
  const int value = s.input("value", kF32, {});
  s.outputs({s.compute("FILL", {shape, value}, "y", kF32, {1})});
  Interpreter interpreter(s.load());
  const testing::Thrown thrown = testing::thrown_by([&] {
    interpreter.allocate();
    interpreter.invoke();
  });
  EXPECT_TRUE(thrown.code.has_value());
  EXPECT_TRUE(thrown.names("'shape' has 2097152 values, expected at most 1048576")) << thrown.message;
}

}  // namespace
}  // namespace leadline
