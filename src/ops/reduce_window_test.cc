// SPDX-License-Identifier: Apache-2.0
#include "ops/reduce_window.h"

#include <gtest/gtest.h>

#include "ops/op_testing.h"

namespace leadline::ops {
namespace {

template <typename T>
OpTester reducer(WindowFunction function, const Shape& shape, const std::vector<T>& data, T init,
                 const std::vector<int64_t>& window, const std::vector<int64_t>& strides,
                 const std::vector<int64_t>& dilations) {
  OpTester t("REDUCE_WINDOW");
  ReduceWindowAttributes a;
  a.reduce_function = static_cast<int32_t>(function);
  t.attributes(a).input<T>(shape, data).template input<T>({}, {init});
  for (const auto& list : {window, strides, dilations}) {
    t.input<int64_t>({static_cast<int64_t>(list.size())}, list);
  }
  t.output(dtype_of<T>());
  return t;
}

TEST(ReduceWindow, SlidesWithStridesAndDilation) {
  auto t = reducer<float>(WindowFunction::kAdd, {3, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, 0.5F, {2, 2}, {1, 1},
                          {2, 2});
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{1, 2}));
  EXPECT_EQ(t.result<float>(0), (std::vector<float>{1 + 3 + 9 + 11 + 0.5F, 2 + 4 + 10 + 12 + 0.5F}));
  auto strided = reducer<int32_t>(WindowFunction::kMax, {5}, {1, 5, 2, 4, 3}, -9, {2}, {3}, {1});
  strided.run();
  EXPECT_EQ(strided.result<int32_t>(0), (std::vector<int32_t>{5, 4}));
}

TEST(ReduceWindow, EveryFunction) {
  const auto result = [](WindowFunction function) {
    auto t = reducer<int16_t>(function, {4}, {3, 0, -2, 5}, 1, {2}, {1}, {1});
    t.run();
    return t.result<int16_t>(0);
  };
  EXPECT_EQ(result(WindowFunction::kAdd), (std::vector<int16_t>{4, -1, 4}));
  EXPECT_EQ(result(WindowFunction::kMul), (std::vector<int16_t>{0, 0, -10}));
  EXPECT_EQ(result(WindowFunction::kMin), (std::vector<int16_t>{0, -2, -2}));
  EXPECT_EQ(result(WindowFunction::kMax), (std::vector<int16_t>{3, 1, 5}));
  EXPECT_EQ(result(WindowFunction::kAll), (std::vector<int16_t>{0, 0, 1}));
  EXPECT_EQ(result(WindowFunction::kAny), (std::vector<int16_t>{1, 1, 1}));
}

TEST(ReduceWindow, IntegersWrapAround) {
  auto t = reducer<int8_t>(WindowFunction::kAdd, {2}, {100, 100}, 0, {2}, {1}, {1});
  t.run();
  EXPECT_EQ(t.result<int8_t>(0), (std::vector<int8_t>{-56}));
}

TEST(ReduceWindow, AWindowLargerThanTheInputGivesNothing) {
  auto t = reducer<float>(WindowFunction::kAdd, {2}, {1, 2}, 0, {3}, {1}, {1});
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{0}));
}

TEST(ReduceWindow, RefusesBadWindows) {
  EXPECT_THROW(reducer<float>(WindowFunction::kAdd, {2}, {1, 2}, 0, {0}, {1}, {1}).run(), Error);
  EXPECT_THROW(reducer<float>(WindowFunction::kAdd, {2}, {1, 2}, 0, {1}, {0}, {1}).run(), Error);
  EXPECT_THROW(reducer<float>(WindowFunction::kAdd, {2}, {1, 2}, 0, {1}, {1}, {INT64_MAX}).run(), Error);
  EXPECT_THROW(reducer<float>(WindowFunction::kAdd, {2}, {1, 2}, 0, {1, 1}, {1}, {1}).run(), Error);
  EXPECT_THROW(reducer<float>(WindowFunction::kUnsupported, {2}, {1, 2}, 0, {1}, {1}, {1}).run(), Error);
  EXPECT_THROW(reducer<float>(static_cast<WindowFunction>(7), {2}, {1, 2}, 0, {1}, {1}, {1}).run(), Error);
  EXPECT_THROW(reducer<uint32_t>(WindowFunction::kAdd, {2}, {1, 2}, 0, {1}, {1}, {1}).run(), Error);
  EXPECT_THROW(reducer<float>(WindowFunction::kAdd, {}, {1}, 0, {}, {}, {}).run(), Error);
}

template <typename T>
OpTester stablehlo(StablehloReduceWindowAttributes a, const std::vector<ir::OpId>& body, const Shape& shape,
                   const std::vector<T>& data, T init) {
  OpTester t("STABLEHLO_REDUCE_WINDOW");
  t.attributes(std::move(a)).body(body).input<T>(shape, data).template input<T>({}, {init}).output(dtype_of<T>());
  return t;
}

TEST(StablehloReduceWindow, MissingListsMeanOnesAndNoPadding) {
  StablehloReduceWindowAttributes a;
  a.window_dimensions = {2};
  auto t = stablehlo<float>(a, {op::kAdd}, {3}, {1, 2, 3}, 0);
  t.run();
  EXPECT_EQ(t.result<float>(0), (std::vector<float>{3, 5}));
}

TEST(StablehloReduceWindow, GapsAndPaddingCountAsTheInitialValue) {
  StablehloReduceWindowAttributes a;
  a.window_dimensions = {3};
  a.base_dilations = {2};
  a.padding = {1, 0};
  // 10 | 1 10 2 10 3 in windows of three, each multiplied by 10 once more.
  auto t = stablehlo<int32_t>(a, {op::kStablehloMultiply}, {3}, {1, 2, 3}, 10);
  t.run();
  EXPECT_EQ(t.result<int32_t>(0), (std::vector<int32_t>{1000, 200, 2000, 600}));
}

TEST(StablehloReduceWindow, NegativePaddingCrops) {
  StablehloReduceWindowAttributes a;
  a.window_dimensions = {1, 2};
  a.padding = {-1, 0, 2, -1};
  // Row 1 of the input, two zeros before it, its last element cut off.
  auto t = stablehlo<float>(a, {op::kMaximum}, {2, 3}, {9, 9, 9, 1, 4, 9}, 0);
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{1, 3}));
  EXPECT_EQ(t.result<float>(0), (std::vector<float>{0, 1, 4}));
}

TEST(StablehloReduceWindow, BoolsAreJoined) {
  StablehloReduceWindowAttributes a;
  a.window_dimensions = {2};
  auto t = stablehlo<bool>(a, {op::kLogicalOr}, {4}, {false, false, true, false}, false);
  t.run();
  EXPECT_EQ(t.result<uint8_t>(0), (std::vector<uint8_t>{0, 1, 1}));
}

TEST(StablehloReduceWindow, ThreadsDoNotChangeTheResult) {
  StablehloReduceWindowAttributes a;
  a.window_dimensions = {9, 9};
  a.padding = {4, 4, 4, 4};
  std::vector<float> data(64 * 64);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i % 37) * 0.3F;
  auto one = stablehlo<float>(a, {op::kAdd}, {64, 64}, data, 0);
  auto four = stablehlo<float>(a, {op::kAdd}, {64, 64}, data, 0);
  one.run();
  four.threads(4).run();
  EXPECT_EQ(one.shape(0), (Shape{64, 64}));
  EXPECT_EQ(one.result<float>(0), four.result<float>(0));
}

TEST(StablehloReduceWindow, RefusesOtherBodiesAndBadLists) {
  StablehloReduceWindowAttributes a;
  a.window_dimensions = {2};
  const auto refused = [&](const StablehloReduceWindowAttributes& attributes, const std::vector<ir::OpId>& body) {
    EXPECT_THROW(stablehlo<float>(attributes, body, {3}, {1, 2, 3}, 0).run(), Error);
  };
  refused(a, {});
  refused(a, {op::kAdd, op::kAdd});
  refused(a, {op::kSub});
  for (auto list : {&StablehloReduceWindowAttributes::window_strides, &StablehloReduceWindowAttributes::base_dilations,
                    &StablehloReduceWindowAttributes::window_dilations}) {
    for (const std::vector<int64_t>& bad : {std::vector<int64_t>{0}, {-1}, {1, 1}, {INT64_MAX}}) {
      StablehloReduceWindowAttributes changed = a;
      changed.*list = bad;
      refused(changed, {op::kAdd});
    }
  }
  for (const std::vector<int64_t>& bad : {std::vector<int64_t>{1}, {-2, -2}, {INT64_MAX, INT64_MAX}, {INT64_MIN, 0}}) {
    StablehloReduceWindowAttributes changed = a;
    changed.padding = bad;
    refused(changed, {op::kAdd});
  }
  a.window_dimensions = {2, 2};
  refused(a, {op::kAdd});
  a.window_dimensions = {};
  refused(a, {op::kAdd});
}

}  // namespace
}  // namespace leadline::ops
