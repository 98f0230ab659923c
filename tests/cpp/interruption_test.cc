// SPDX-License-Identifier: Apache-2.0
// Runs can be ended at any time: ops on large data ask again and again whether to go on, and what ends them leaves a
// usable interpreter.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "tests/cpp/silence.h"
#include "tests/cpp/sketch.h"

namespace leadline {
namespace {

using testing::AttributeValues;
using testing::get;
using testing::Silence;
using testing::Sketch;

constexpr DType kF32 = DType::kFloat32;
constexpr DType kI8 = DType::kInt8;
constexpr DType kI32 = DType::kInt32;
constexpr DType kI64 = DType::kInt64;

struct Case {
  std::string name;
  std::function<void(Sketch&)> make;
};

std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

/// Small numbers that differ; zeros where they would be indices.
void fill(Interpreter& interpreter) {
  for (const int v : interpreter.inputs()) {
    const TensorMemory memory = interpreter.tensor(v);
    if (memory.dtype == kF32) {
      auto* values = reinterpret_cast<float*>(memory.data);
      for (int64_t i = 0; i < memory.bytes / 4; ++i) values[i] = static_cast<float>(i * 7919 % 1009) / 1009.0F;
    } else if (memory.dtype == kI8) {
      for (int64_t i = 0; i < memory.bytes; ++i) memory.data[i] = static_cast<std::byte>(i * 7919 % 251);
    }
  }
}

Case unary(const std::string& op, int64_t elements, DType type = kF32) {
  return {op, [=](Sketch& s) {
            const int x = s.input("x", type, {elements});
            s.outputs({s.compute(op, {x}, "y", type, {elements})});
          }};
}

Case binary(const std::string& op, const Shape& a, const Shape& b, const Shape& out) {
  return {op, [=](Sketch& s) {
            const int x = s.input("x", kF32, a);
            const int y = s.input("y", kF32, b);
            s.outputs({s.compute(op, {x, y}, "z", kF32, out)});
          }};
}

Case with_constant(const std::string& op, const Shape& in, const std::vector<int32_t>& constant, const Shape& out,
                   const AttributeValues& attributes = {}, DType out_type = kF32) {
  return {op, [=](Sketch& s) {
            const int x = s.input("x", kF32, in);
            const int c = s.constant<int32_t>("c", kI32, {static_cast<int64_t>(constant.size())}, constant);
            s.outputs({s.compute(op, {x, c}, "y", out_type, out, attributes)});
          }};
}

Case conv(const std::string& op, const Shape& in, const Shape& filter, const Shape& out, AttributeValues attributes) {
  attributes.merge(
      AttributeValues{{"stride_w", 1}, {"stride_h", 1}, {"dilation_w_factor", 1}, {"dilation_h_factor", 1}});
  return {op, [=](Sketch& s) {
            const int x = s.input("x", kF32, in);
            const int f = s.constant<float>("f", kF32, filter, std::vector<float>(filter.elements(), 0.5F));
            s.outputs({s.compute(op, {x, f}, "y", kF32, out, attributes)});
          }};
}

std::vector<Case> cases() {
  const int64_t m = 1 << 18;
  std::vector<Case> all = {
      unary("TANH", 40 * m),
      unary("EXP", 24 * m),
      unary("SIN", 24 * m),
      unary("ABS", 64 * m),
      unary("GELU", 16 * m),
      unary("LOG", 24 * m),
      unary("ZEROS_LIKE", 96 * m),
      binary("ADD", {48 * m}, {48 * m}, {48 * m}),
      binary("MUL", {128, 1, 256}, {1, 256, 1}, {128, 256, 256}),
      binary("POW", {8 * m}, {8 * m}, {8 * m}),
      binary("BATCH_MATMUL", {2, 1024, 2048}, {2, 2048, 1024}, {2, 1024, 1024}),
      with_constant("TILE", {1024, 3}, {1, 4096}, {1024, 12288}),
      with_constant("BROADCAST_TO", {2048, 1}, {2048, 8192}, {2048, 8192}),
      with_constant("RESHAPE", {64 * m}, {32, static_cast<int32_t>(2 * m)}, {32, 2 * m}),
      with_constant("TRANSPOSE", {3072, 3072}, {1, 0}, {3072, 3072}),
      with_constant("REVERSE_V2", {32 * m}, {0}, {32 * m}),
      with_constant("CUMSUM", {32 * m}, {0}, {32 * m}),
      with_constant("CUMSUM", {8, 4 * m}, {0}, {8, 4 * m}),
      with_constant("SUM", {64 * m}, {0}, {}),
      with_constant("MEAN", {64, m}, {0}, {m}),
      with_constant("REDUCE_MAX", {64 * m}, {0}, {}),
      with_constant("REDUCE_PROD", {64 * m}, {0}, {}),
      with_constant("ARG_MAX", {48 * m}, {0}, {}, {{"output_type", 2}}, kI32),
      with_constant("ARG_MAX", {64, m / 2}, {0}, {m / 2}, {{"output_type", 2}}, kI32),
      with_constant("RESIZE_BILINEAR", {1, 64, 64, 16}, {2048, 1024}, {1, 2048, 1024, 16}),
      with_constant("RESIZE_NEAREST_NEIGHBOR", {1, 64, 64, 16}, {2048, 1536}, {1, 2048, 1536, 16}),
      conv("CONV_2D", {1, 512, 512, 32}, {64, 3, 3, 32}, {1, 512, 512, 64}, {}),
      conv("CONV_2D", {1, 512, 512, 64}, {128, 1, 1, 64}, {1, 512, 512, 128}, {}),
      conv("CONV_2D", {1, 192, 192, 16}, {64, 5, 5, 16}, {1, 192, 192, 64}, {}),
      conv("DEPTHWISE_CONV_2D", {1, 512, 512, 32}, {1, 5, 5, 32}, {1, 512, 512, 32}, {{"depth_multiplier", 1}}),
  };
  const auto add = [&](const std::string& name, std::function<void(Sketch&)> make) {
    all.push_back({name, std::move(make)});
  };
  add("MAX_POOL_2D", [](Sketch& s) {
    const int x = s.input("x", kF32, {1, 1024, 512, 16});
    s.outputs({s.compute("MAX_POOL_2D", {x}, "y", kF32, {1, 1024, 512, 16},
                         {{"stride_w", 1}, {"stride_h", 1}, {"filter_width", 5}, {"filter_height", 5}})});
  });
  add("SOFTMAX", [=](Sketch& s) {
    const int x = s.input("x", kF32, {16 * m / 256, 256});
    s.outputs({s.compute("SOFTMAX", {x}, "y", kF32, {16 * m / 256, 256}, {{"beta", 1}})});
  });
  add("FULLY_CONNECTED", [](Sketch& s) {
    const int x = s.input("x", kF32, {2048, 2048});
    const int w = s.constant<float>("w", kF32, {1024, 2048}, std::vector<float>(1024 * 2048, 0.1F));
    s.outputs({s.compute("FULLY_CONNECTED", {x, w, -1}, "y", kF32, {2048, 1024})});
  });
  add("TOPK_V2", [=](Sketch& s) {
    const int x = s.input("x", kF32, {2 * m});
    const int k = s.constant<int32_t>("k", kI32, {}, {static_cast<int32_t>(m / 4)});
    const int v = s.value("v", kF32, {m / 4});
    const int i = s.value("i", kI32, {m / 4});
    s.node("TOPK_V2", {x, k}, {v, i});
    s.outputs({v, i});
  });
  add("UNIQUE", [=](Sketch& s) {
    const int x = s.input("x", kF32, {8 * m});
    const int v = s.value("v", kF32, {1});
    const int i = s.value("i", kI32, {8 * m});
    s.node("UNIQUE", {x}, {v, i}, {{"idx_out_type", 2}});
    s.outputs({v, i});
  });
  add("WHERE", [=](Sketch& s) {
    const int x = s.input("x", kF32, {16 * m});
    s.outputs({s.compute("WHERE", {x}, "y", kI64, {1, 1})});
  });
  add("NON_MAX_SUPPRESSION_V4", [](Sketch& s) {
    const int64_t n = 200'000;  // boxes that all overlap a little: every one is compared with all selected ones
    std::vector<float> boxes;
    std::vector<float> scores;
    for (int64_t i = 0; i < n; ++i) {
      const auto at = static_cast<float>(i);
      boxes.insert(boxes.end(), {at, 0.0F, at + 1.5F, 1.0F});
      scores.push_back(1.0F + static_cast<float>(i % 1000));
    }
    const int b = s.constant<float>("b", kF32, {n, 4}, boxes);
    const int c = s.constant<float>("c", kF32, {n}, scores);
    const int most = s.constant<int32_t>("most", kI32, {}, {8000});
    const int iou = s.input("iou", kF32, {});
    const int low = s.constant<float>("low", kF32, {}, {0.0F});
    const int chosen = s.value("chosen", kI32, {8000});
    const int count = s.value("count", kI32, {});
    s.node("NON_MAX_SUPPRESSION_V4", {b, c, most, iou, low}, {chosen, count});
    s.outputs({chosen, count});
  });
  add("GATHER", [=](Sketch& s) {
    const int x = s.input("x", kF32, {m, 16});
    const int i = s.input("i", kI32, {4 * m});
    s.outputs({s.compute("GATHER", {x, i}, "y", kF32, {4 * m, 16})});
  });
  add("SCATTER_ND", [=](Sketch& s) {
    const int i = s.input("i", kI32, {8 * m, 1});
    const int u = s.input("u", kF32, {8 * m});
    const int shape = s.constant<int32_t>("shape", kI32, {1}, {static_cast<int32_t>(8 * m)});
    s.outputs({s.compute("SCATTER_ND", {i, u, shape}, "y", kF32, {8 * m})});
  });
  add("SEGMENT_SUM", [=](Sketch& s) {
    const int x = s.input("x", kF32, {24 * m, 1});
    const int i = s.input("i", kI32, {24 * m});
    s.outputs({s.compute("SEGMENT_SUM", {x, i}, "y", kF32, {1, 1})});
  });
  add("ONE_HOT", [=](Sketch& s) {
    const int i = s.input("i", kI32, {4 * m});
    const int depth = s.constant<int32_t>("depth", kI32, {}, {16});
    const int on = s.constant<float>("on", kF32, {}, {1.0F});
    const int off = s.constant<float>("off", kF32, {}, {0.5F});
    s.outputs({s.compute("ONE_HOT", {i, depth, on, off}, "y", kF32, {4 * m, 16}, {{"axis", -1}})});
  });
  add("RANGE", [=](Sketch& s) {
    const int a = s.constant<float>("a", kF32, {}, {0.0F});
    const int b = s.constant<float>("b", kF32, {}, {static_cast<float>(64 * m)});
    const int d = s.constant<float>("d", kF32, {}, {1.0F});
    s.outputs({s.compute("RANGE", {a, b, d}, "y", kF32, {64 * m})});
  });
  add("FILL", [=](Sketch& s) {
    const int shape = s.constant<int32_t>("shape", kI32, {1}, {static_cast<int32_t>(96 * m)});
    const int v = s.input("v", kF32, {});
    s.outputs({s.compute("FILL", {shape, v}, "y", kF32, {96 * m})});
  });
  add("RANDOM_STANDARD_NORMAL", [=](Sketch& s) {
    const int shape = s.constant<int32_t>("shape", kI32, {1}, {static_cast<int32_t>(4 * m)});
    s.outputs({s.compute("RANDOM_STANDARD_NORMAL", {shape}, "y", kF32, {4 * m}, {{"seed", 1}, {"seed2", 2}})});
  });
  add("CONCATENATION", [=](Sketch& s) {
    const int x = s.input("x", kF32, {m, 24});
    const int y = s.input("y", kF32, {m, 24});
    s.outputs({s.compute("CONCATENATION", {x, y}, "z", kF32, {m, 48}, {{"axis", 1}})});
  });
  add("CAST", [=](Sketch& s) {
    const int x = s.input("x", kF32, {64 * m});
    s.outputs({s.compute("CAST", {x}, "y", kI32, {64 * m})});
  });
  add("RFFT2D", [](Sketch& s) {
    const int x = s.input("x", kF32, {1, 1024, 1536});
    const int n = s.constant<int32_t>("n", kI32, {2}, {1024, 1536});
    s.outputs({s.compute("RFFT2D", {x, n}, "y", DType::kComplex64, {1, 1024, 769})});
  });
  add("CONV_3D", [](Sketch& s) {
    const int x = s.input("x", kF32, {1, 48, 48, 48, 16});
    const int f = s.constant<float>("f", kF32, {3, 3, 3, 16, 32}, std::vector<float>(27 * 16 * 32, 0.1F));
    s.outputs({s.compute("CONV_3D", {x, f}, "y", kF32, {1, 48, 48, 48, 32},
                         {{"stride_d", 1},
                          {"stride_w", 1},
                          {"stride_h", 1},
                          {"dilation_d_factor", 1},
                          {"dilation_w_factor", 1},
                          {"dilation_h_factor", 1}})});
  });
  add("TRANSPOSE_CONV", [](Sketch& s) {
    const int shape = s.constant<int32_t>("shape", kI32, {4}, {1, 256, 256, 16});
    const int f = s.constant<float>("f", kF32, {16, 4, 4, 32}, std::vector<float>(16 * 16 * 32, 0.1F));
    const int x = s.input("x", kF32, {1, 128, 128, 32});
    s.outputs(
        {s.compute("TRANSPOSE_CONV", {shape, f, x}, "y", kF32, {1, 256, 256, 16}, {{"stride_w", 2}, {"stride_h", 2}})});
  });
  add("RNN", [](Sketch& s) {
    const int x = s.input("x", kF32, {1024, 512});
    const int w = s.constant<float>("w", kF32, {512, 512}, std::vector<float>(512 * 512, 0.01F));
    const int r = s.constant<float>("r", kF32, {512, 512}, std::vector<float>(512 * 512, 0.01F));
    const int b = s.constant<float>("b", kF32, {512}, std::vector<float>(512, 0.0F));
    const int h = s.variable("h", kF32, {1024, 512});
    s.outputs({s.compute("RNN", {x, w, r, b, h}, "y", kF32, {1024, 512}, {{"fused_activation_function", 1}})});
  });
  add("SVDF", [](Sketch& s) {
    const int x = s.input("x", kF32, {512, 512});
    const int f = s.constant<float>("f", kF32, {1024, 512}, std::vector<float>(1024 * 512, 0.01F));
    const int t = s.constant<float>("t", kF32, {1024, 32}, std::vector<float>(1024 * 32, 0.01F));
    const int h = s.variable("h", kF32, {512, 32 * 1024});
    s.outputs({s.compute("SVDF", {x, f, t, -1, h}, "y", kF32, {512, 1024}, {{"rank", 1}})});
  });
  for (size_t i = 0; i < all.size(); ++i) all[i].name += "_" + std::to_string(i);
  return all;
}

class Interruption : public ::testing::TestWithParam<Case> {};

TEST_P(Interruption, LargeDataAskAgainAndAgainAndCanBeStopped) {
  Sketch sketch;
  GetParam().make(sketch);
  const Model model = sketch.load();
  Interpreter interpreter(model);
  interpreter.allocate();
  fill(interpreter);
  const Silence silence = testing::measured_silence([&] {
    interpreter.reset_variables();
    Silence each;
    interpreter.invoke(each.check());
    each.look();
    return each;
  });
  testing::expect_questions(GetParam().name, silence);
  const std::vector<std::byte> expected = get<std::byte>(interpreter, interpreter.outputs()[0]);

  // Stopped early, with a second thread at work (pieces may be fewer then); then the same again to the end.
  InterpreterOptions two;
  two.num_threads = 2;
  Interpreter other(model, two);
  other.allocate();
  fill(other);
  int64_t asked = 0;
  struct Enough {};
  bool stopped = false;
  try {
    other.invoke([&] {
      if (++asked > 1 && asked * 16 > silence.asked) throw Enough{};
    });
  } catch (const Enough&) {
    stopped = true;
  }
  EXPECT_TRUE(stopped || silence.asked < 8) << "asked " << asked << " of " << silence.asked << " times";
  other.reset_variables();
  if (GetParam().name.starts_with("RANDOM")) return;
  other.invoke();
  EXPECT_TRUE(get<std::byte>(other, other.outputs()[0]) == expected) << "another result after a run that was stopped";
}

INSTANTIATE_TEST_SUITE_P(Ops, Interruption, ::testing::ValuesIn(cases()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace leadline
