// SPDX-License-Identifier: Apache-2.0
// A runner on its own, without an interpreter around it.
#include "runtime/runner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "tests/cpp/sketch.h"

namespace leadline {
namespace {

using testing::Sketch;

constexpr DType kF32 = DType::kFloat32;

TEST(SharedParts, CanBeSwitchedOff) {
  Sketch s;
  const int x = s.input("x", kF32, {256});
  const int a = s.compute("NEG", {x}, "a", kF32, {256});
  const int b = s.compute("ABS", {x}, "b", kF32, {256});
  const int c = s.compute("CONCATENATION", {a, b}, "c", kF32, {512}, {{"axis", 0}});
  const int y = s.compute("NEG", {c}, "y", kF32, {512});
  s.outputs({y});
  const std::shared_ptr<const ir::Graph> graph(&s.graph(), [](const ir::Graph*) {});
  const auto budget = Budget::with_limit(int64_t{1} << 20);
  const std::vector<Shape> shapes = {{256}};
  const std::vector<int64_t> bytes = {0};
  for (const bool share : {true, false}) {
    runtime::RunSettings settings;
    settings.share_parts = share;
    runtime::Environment environment(graph, std::make_shared<runtime::PackedWeightsCache>(budget), budget,
                                     std::make_shared<ops::Resources>(budget), {}, settings);
    const runtime::CallerMemories none;
    runtime::Runner runner(environment, 0, nullptr, none);
    runner.start(shapes, bytes);
    runner.allocate();
    EXPECT_EQ(runner.plan().value(b).root, share ? c : b);
    EXPECT_EQ(runner.plan().value(b).shift, share ? 1024 : 0);
    auto* in = reinterpret_cast<float*>(runner.bindings().address(x));
    std::fill_n(in, 256, 3.0F);
    runner.invoke();
    const auto* out = reinterpret_cast<const float*>(runner.bindings().address(y));
    EXPECT_EQ(std::vector<float>(out, out + 256), std::vector<float>(256, 3.0F));
    EXPECT_EQ(std::vector<float>(out + 256, out + 512), std::vector<float>(256, -3.0F));
  }
}

}  // namespace
}  // namespace leadline
