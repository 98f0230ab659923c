// SPDX-License-Identifier: Apache-2.0
// Sizes that are not known yet, and sizes that change again and again.
#include "runtime/kept_plans.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "leadline/interpreter.h"
#include "leadline/model_builder.h"
#include "tests/cpp/sketch.h"

namespace leadline {
namespace {

using testing::thrown_by;

TensorInfo tensor(const std::string& name, const Shape& shape) {
  TensorInfo info;
  info.name = name;
  info.shape = shape;
  return info;
}

/// An image of any size, with 1 for what is unknown.
TensorInfo image(const std::string& name) {
  TensorInfo info = tensor(name, {1, 1, 1, 2});
  info.shape_signature = {-1, -1, -1, 2};
  return info;
}

/// Images of any size through two convolutions without padding.
Model any_image(std::shared_ptr<Budget> budget = nullptr) {
  ModelBuilder builder;
  int value = builder.add_tensor(0, image("image"));
  builder.set_inputs(0, {value});
  const std::vector<float> weights(36, 0.25F);
  const std::vector<float> biases(2, 1.0F);
  for (const std::string name : {"a", "b"}) {
    const int w = builder.add_constant(0, tensor(name + ".w", {2, 3, 3, 2}), std::as_bytes(std::span(weights)));
    const int b = builder.add_constant(0, tensor(name + ".b", {2}), std::as_bytes(std::span(biases)));
    const int y = builder.add_tensor(0, image(name));
    builder.add_node(0, {.op = "CONV_2D",
                         .inputs = {value, w, b},
                         .outputs = {y},
                         .attributes = {{"padding", int64_t{1}}, {"stride_w", int64_t{1}}, {"stride_h", int64_t{1}}}});
    value = y;
  }
  builder.set_outputs(0, {value});
  return Model::from_bytes(builder.to_tflite(), nullptr, std::move(budget));
}

TEST(UnknownSizes, NothingFailsBeforeTheyAreNeeded) {
  Interpreter interpreter(any_image());
  EXPECT_EQ(interpreter.unsized_inputs(), std::vector<int>{0});
  EXPECT_EQ(interpreter.tensor_info(0).shape_signature, (std::vector<int32_t>{-1, -1, -1, 2}));
  interpreter.reset_variables();
  const auto planned = thrown_by([&] { interpreter.plan(); });
  EXPECT_EQ(planned.code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(planned.names("'image' (tensor 0) of shape [?, ?, ?, 2]") && planned.names("resize_input"))
      << planned.message;
  EXPECT_EQ(thrown_by([&] { interpreter.allocate(); }).message, planned.message);
  EXPECT_EQ(thrown_by([&] { interpreter.invoke(); }).message, planned.message);

  const int64_t peak = interpreter.plan({{0, {1, 9, 9, 2}}}).peak_bytes;
  EXPECT_EQ(interpreter.unsized_inputs(), std::vector<int>{0}) << "it stays as it is";
  interpreter.resize_input(0, {1, 9, 9, 2});
  EXPECT_TRUE(interpreter.unsized_inputs().empty());
  interpreter.invoke();
  EXPECT_EQ(interpreter.plan().peak_bytes, peak);
  EXPECT_EQ(interpreter.counted_peak_bytes(), peak);
  EXPECT_EQ(interpreter.output<float>(0).size(), 50U);
}

TEST(UnknownSizes, SizesThatWereSaidAreNoPlaceholders) {
  Interpreter interpreter(any_image());
  interpreter.resize_input(0, {1, 1, 1, 2});
  const auto thrown = thrown_by([&] { interpreter.allocate(); });
  EXPECT_EQ(thrown.code, ErrorCode::kInvalidModel);
  EXPECT_TRUE(thrown.names("a window of 3 does not fit into 1 values")) << thrown.message;
}

TEST(KeptPlans, AreFoundAgainAndNotCountedInRuns) {
  const Model model = any_image();
  Interpreter interpreter(model);
  const std::vector<Shape> shapes = {{1, 9, 9, 2}, {2, 30, 20, 2}, {1, 9, 9, 2}, {1, 8, 7, 2}, {2, 30, 20, 2}};
  for (const Shape& shape : shapes) {
    Interpreter fresh(model);
    for (Interpreter* each : {&fresh, &interpreter}) {
      each->resize_input(0, shape);
      std::ranges::fill(each->input<float>(0), 2.0F);
      each->invoke();
    }
    EXPECT_EQ(interpreter.plan().peak_bytes, fresh.plan().peak_bytes);
    EXPECT_EQ(interpreter.counted_peak_bytes(), interpreter.plan().peak_bytes);
    EXPECT_TRUE(std::ranges::equal(interpreter.output<float>(0), fresh.output<float>(0)));
  }
  Interpreter fresh(model);
  fresh.resize_input(0, shapes.back());
  fresh.invoke();
  EXPECT_GT(interpreter.memory_bytes(), fresh.memory_bytes()) << "the other plans are kept, and charged";
}

TEST(KeptPlans, AreAFewAndGoWithTheInterpreter) {
  const auto budget = Budget::with_limit(64 << 20);
  const Model model = any_image();
  {
    InterpreterOptions options;
    options.budget = budget;
    Interpreter interpreter(model, options);
    int64_t after_twenty = 0;
    for (int size = 5; size < 200; ++size) {
      interpreter.resize_input(0, {1, size, 6, 2});
      interpreter.allocate();
      if (size == 25) after_twenty = interpreter.memory_bytes();
    }
    interpreter.resize_input(0, {1, 25, 6, 2});
    interpreter.allocate();
    EXPECT_EQ(interpreter.memory_bytes(), after_twenty);
    interpreter.invoke();
  }
  EXPECT_EQ(budget->used(), 0);
}

TEST(KeptPlans, MakeRoomForARun) {
  const Shape large{1, 300, 300, 2};
  const int64_t peak = Interpreter(any_image()).plan({{0, large}}).peak_bytes;
  const auto budget = Budget::with_limit(peak);
  Interpreter interpreter(any_image(budget));
  for (int size = 5; size < 12; ++size) {
    interpreter.resize_input(0, {1, size, size, 2});
    interpreter.allocate();
  }
  interpreter.resize_input(0, large);
  interpreter.invoke();  // takes all of the budget
  EXPECT_EQ(interpreter.counted_peak_bytes(), peak);
  EXPECT_EQ(budget->peak(), peak);
}

}  // namespace
}  // namespace leadline
