// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "io/flexbuffer_map_builder.h"
#include "ops/op_testing.h"

namespace leadline::ops {
namespace {

std::vector<FlexEntry> options(bool regular) {
  return {{"detections_per_class", 1},
          {"h_scale", 5.0F},
          {"max_classes_per_detection", 1},
          {"max_detections", 3},
          {"nms_iou_threshold", 0.5F},
          {"nms_score_threshold", 0.0F},
          {"num_classes", 2},
          {"use_regular_nms", regular},
          {"w_scale", 5.0F},
          {"x_scale", 10.0F},
          {"y_scale", 10.0F}};
}

/// Six boxes around three places, scores for a background and two classes.
OpTester detector(const std::vector<FlexEntry>& entries) {
  OpTester t("TFLite_Detection_PostProcess");
  t.custom_options(build_flex_map(entries));
  t.input<float>({1, 6, 4}, {0, 0, 0, 0, 0, 1, 0, 0, 0, -1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0});
  t.input<float>({1, 6, 3}, {0, .9F, .8F, 0, .75F, .72F, 0, .6F, .5F, 0, .93F, .95F, 0, .5F, .4F, 0, .3F, .2F});
  t.input<float>(
      {6, 4}, {.5F, .5F, 1, 1, .5F, .5F, 1, 1, .5F, .5F, 1, 1, .5F, 10.5F, 1, 1, .5F, 10.5F, 1, 1, .5F, 100.5F, 1, 1});
  for (int i = 0; i < 4; ++i) t.output(DType::kFloat32);
  return t;
}

// Results of TensorFlow Lite.
TEST(DetectionPostprocess, FastSuppressionTakesTheBestClassOfEachBox) {
  OpTester t = detector(options(false));
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{1, 3, 4}));
  EXPECT_EQ(t.result<float>(0), (std::vector<float>{0, 10, 1, 11, 0, 0, 1, 1, 0, 100, 1, 101}));
  EXPECT_EQ(t.result<float>(1), (std::vector<float>{1, 0, 0}));
  EXPECT_EQ(t.result<float>(2), (std::vector<float>{.95F, .9F, .3F}));
  EXPECT_EQ(t.result<float>(3), (std::vector<float>{3}));
}

TEST(DetectionPostprocess, RegularSuppressionWorksClassByClass) {
  OpTester t = detector(options(true));
  t.run();
  EXPECT_EQ(t.result<float>(0), (std::vector<float>{0, 10, 1, 11, 0, 10, 1, 11, 0, 0, 0, 0}));
  EXPECT_EQ(t.result<float>(1), (std::vector<float>{1, 0, 0}));
  EXPECT_EQ(t.result<float>(2), (std::vector<float>{.95F, .93F, 0}));
  EXPECT_EQ(t.result<float>(3), (std::vector<float>{2}));
}

TEST(DetectionPostprocess, QuantizedInputsAreDequantized) {
  OpTester t("TFLite_Detection_PostProcess");
  t.custom_options(build_flex_map(options(false)));
  t.input<uint8_t>({1, 2, 4}, std::vector<uint8_t>(8, 128), quantized(0.1F, 128));
  t.input<uint8_t>({1, 2, 2}, {100, 50, 20, 200}, quantized(0.004F, 0));
  t.input<float>({2, 4}, {.5F, .5F, 1, 1, .5F, 9.5F, 1, 1});
  for (int i = 0; i < 4; ++i) t.output(DType::kFloat32);
  t.run();
  EXPECT_EQ(t.result<float>(1), (std::vector<float>{1, 0, 0}));
  EXPECT_FLOAT_EQ(t.result<float>(2)[0], 0.8F);
  EXPECT_FLOAT_EQ(t.result<float>(2)[1], 0.4F);
}

TEST(DetectionPostprocess, HostileOptionsAreRefused) {
  const auto with = [](const std::string& name, decltype(FlexEntry::second) value) {
    auto entries = options(false);
    for (FlexEntry& entry : entries) {
      if (entry.first == name) entry.second = value;
    }
    return detector(entries);
  };
  EXPECT_THROW(with("max_detections", 0).run(), Error);
  EXPECT_THROW(with("max_detections", -5).run(), Error);
  EXPECT_THROW(with("num_classes", 7).run(), Error);
  EXPECT_THROW(with("nms_iou_threshold", 0.0F).run(), Error);
  EXPECT_THROW(with("y_scale", 0.0F).run(), Error);
  OpTester none = detector({});
  EXPECT_THROW(none.custom_options({}).run(), Error);
}

}  // namespace
}  // namespace leadline::ops
